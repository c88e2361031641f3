/* agent.h - what the agent knows while it serves. */
#ifndef BURST_JOBS_AGENT_AGENT_H
#define BURST_JOBS_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/str.h"
#include "bounds.h"
#include "env.h"
#include "place.h"
#include "sha256.h"

struct segment {
	char *id, *file;
	char *task; /* the JSON object as it came */
	char *run;  /* a command */
	int64_t index, count;
	int tries;
	int alone_kills; /* how many workers it has killed when alone */
	bool settled;
};

/* Some segments of a batch, given to a worker in one go. */
struct part {
	struct part *next;
	struct batch *batch; /* while a worker holds it */
	size_t n;
	int kills;
	double share_ms; /* its worker's when it was given */
	size_t at[];
};

struct batch {
	struct batch *next;
	char *id;
	double estimate_s;
	struct segment *seg;
	size_t n;
	/* segments that no worker has begun; running ones are with one worker, or with a continuous
	 * one any number */
	struct part *parts;
	bool begun, told; /* `started` was reported since the batch was last tried again */
	int running;      /* parts */
	double busy_ms;
};

enum { OUTPUT_ROWS = 1024 };

enum worker_state { WORKER_LOADING, WORKER_IDLE, WORKER_BUSY, WORKER_RESTARTING, WORKER_FAILED };

struct command {
	int index; /* in the batch */
	char *id, *dir;
	int try;
	int log_fd;
	int64_t log_bytes;
	int notify;     /* inotify; -1 if the pod has none */
	char **watched; /* folder of each watch descriptor */
	int watches;
	/* outputs reported so far, by a hash of the name: there may be a hundred thousand */
	struct output *outputs[OUTPUT_ROWS];
	long output_count; /* without those that could not be kept */
	bool unfit;        /* a file that cannot be fetched by its name was reported */
	bool exited;
	int code;
	int64_t drain_until_ms;
};

struct worker {
	int w;
	enum worker_state state;
	pid_t pid;
	int in, out, err;
	struct str to, line, err_line;
	bool skipping[2]; /* the rest of an overlong log line */
	char last_words[400];
	struct part *parts; /* the parts that it holds: one; a continuous worker any number, of any
			       batches */
	bool continuous;    /* it accepts further segments while it renders */
	/* segments that a continuous worker may still be given before it asks again */
	int64_t room;
	/* of a continuous worker: the time for which it held something, each ms divided by the
	 * segments that it held then */
	double share_ms;
	int64_t share_at_ms;
	int64_t began_ms, line_ms, progress_ms, segment_ms, restart_ms;
	int restarts, in_row, max_batch;
	char *hello;            /* what its `ready` says of its engine; NULL: nothing */
	bool said_oom;          /* since its last batch */
	const char *killed_for; /* the agent killed it: why, and by when it should be gone */
	int64_t killed_ms;
	struct command *command;
};

struct output { /* the last report under a name */
	struct output *next;
	char *name;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

/* Slow work on files, one piece after the other, a slice at a time. */
enum job_kind { JOB_SEGMENT, JOB_OUTPUT, JOB_BATCH, JOB_COMMAND };

struct job {
	struct job *next;
	enum job_kind kind;
	char *id, *batch_id, *name, *dir;
	char claimed_sha256[65];
	int try, rate, code;
	double seconds;
	int64_t ms, bytes, claimed_bytes, flushed;
	long outputs, lost;
	int fd, to;
	struct sha256 sha;
};

/* A setup or install script while it runs. */
struct task {
	const char *kind; /* "setup", "install"; NULL: none */
	pid_t pid;
	int out;
	struct str line;
	bool skipping;
	char tail[1024];
	char *hash, *build;
	uid_t uid;    /* the user that runs the script; 0: the agent's own */
	char *op;     /* the request of `start` */
	bool keeping; /* the script has ended; its results are being put onto the volume */
	bool cancelled;
	struct str said; /* a child process of the agent does the work */
	int64_t began_ms, until_ms;
	bool timed_out;
};

struct deferred {
	struct deferred *next;
	char *line;
	size_t len;
};

struct client {
	int fd;
	bool attached;
	struct str in, out;
	uint64_t cursor; /* number of the next event to send */
	bool hello_due, closing;
};

struct gpu {
	char name[80];
	int64_t memory_mb;
};

struct agent {
	struct place place;
	char *dir; /* P */
	int dir_fd, volume_fd;
	/* on the container's disk: work/ holds what workers write, tree/ what they run and cannot
	 * change */
	char *disk, *out_dir;
	int disk_fd, out_fd;
	bool separate;            /* workers run as another user than the agent */
	gid_t groups[GROUPS_MAX]; /* of the GPUs */
	size_t group_count;
	int starts; /* number of tree copies so far: each goes into a folder of its own */
	char *run;  /* the run that it works for now */
	const char *attempt;
	int64_t began_ms, began_s, hard_end_s,
		lease_end_up_s; /* the latest end of the pod, in its uptime */
	int64_t lease_s, renewed_ms, kill_wait_ms;
	bool detached, draining, drained, idle, stopped, over, quit;

	int events; /* the event file; -1 if it cannot be written any more */
	uint64_t next;
	off_t *offsets; /* of each event in the file, or -1 - offset in `spill` */
	size_t offsets_cap;
	off_t events_size;
	struct str spill;
	bool events_dirty;
	struct str text; /* the event being written */
	int64_t largest; /* of the files that workers made */
	/* the size that the volume accepted last, and how long that is believed */
	int64_t room_bytes, room_until_ms;
	int64_t log_second, log_bytes, log_total;
	long log_dropped;

	struct client clients[CLIENTS_MAX];
	int listener, signals;

	struct worker *workers;
	int worker_count;
	struct env start_env;
	char *worker_command, *code;
	char **outputs;
	char *started; /* the `start` that its workers run by; NULL: none, or one for commands */
	bool command, stream;
	bool worker_root; /* the job asks for the agent's own user */
	int64_t hang_ms;
	int64_t part_limit; /* the user's limit, or the one learned from out-of-memory; 0: none */
	struct batch *queue;
	struct job *jobs, *jobs_last;
	struct task task;
	struct deferred *deferred;
	bool fatal, stop_due, setup_failed, install_failed; /* the last of its kind */
	char *built, built_id[65]; /* the environment that this pod's setup made, and its id */
	/* environments are on the container's disk, unpacked or as links to the volume, under the
	 * same name in each pod. NULL: this is no container, and they are used on the volume */
	const char *env_root;
	int env_fd;
	char *unpacked; /* "NAME ID" of the environment that is unpacked there */
	int64_t unpack_ms, unpack_bytes;
	char fatal_error[400];

	pid_t gpu_pid, usage_pid, sync_pid;
	/* turn of the sync that runs; of the one requested meanwhile, -1: none */
	int sync_turn, sync_next_turn;
	int64_t alive_ms;
	int gpu_out, usage_out;
	struct str gpu_text, usage_text;
	struct gpu gpus[16];
	int gpu_count;
	int64_t gpu_until_ms, usage_mb;
	int usage_cards, usage_percent; /* of the round of lines that is arriving */
	char switch_line[200];
	int64_t ticked_ms, synced_ms, over_ms;
	int64_t unsynced_ms; /* since when syncs fail; 0: the last one succeeded */
};

int64_t now_ms(const struct agent *a);
char *work_path(const struct agent *a, const char *name);

/* Where workers find an environment. */
char *env_path(const struct agent *a, const char *name);

#endif
