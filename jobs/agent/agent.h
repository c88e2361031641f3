/* agent.h - the state of `serve`. */
#ifndef BURST_JOBS_AGENT_AGENT_H
#define BURST_JOBS_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/str.h"
#include "bounds.h"
#include "env.h"
#include "place.h"
#include "sha256.h"

struct segment {
	char *id, *file;
	char *task; /* the JSON object, as received */
	char *run;  /* a shell command */
	int64_t index, count;
	int tries;
	int alone_kills; /* workers that died while they held this segment alone */
	bool settled;
};

/* Segments of a batch that one worker receives together. */
struct part {
	struct part *next;
	struct batch *batch; /* set while a worker holds the part */
	size_t n;
	int kills;
	double share_ms; /* the worker's share_ms when it received the part */
	size_t at[];
};

struct batch {
	struct batch *next;
	char *id;
	double estimate_s;
	struct segment *seg;
	size_t n;
	bool halted; /* its command was ended by `halt` */
	/* Segments that no worker has started. One worker holds the others; with continuous
	 * workers, several may. */
	struct part *parts;
	bool begun;
	bool start_reported; /* since the batch was last tried again */
	int running;         /* number of parts that workers hold */
	double busy_ms;
};

enum { OUTPUT_ROWS = 1024 };

enum worker_state { WORKER_LOADING, WORKER_IDLE, WORKER_BUSY, WORKER_RESTARTING, WORKER_FAILED };

/* How far a command's end has come. A file that its writer closes is finished; one that the end of
 * its writer closes is not. */
enum ending {
	ENDING_NOT,
	/* it was asked to end, or has ended: what is closed now may be closed by that */
	ENDING_BEGUN,
	ENDING_KILLED, /* what still ran was killed: what is closed now is closed by that */
};

/* What of a command outlives it: a folder that it writes, and the snapshots of that. */
struct checkpoint {
	char *dir;               /* $BURST_CHECKPOINT */
	char seed[65];           /* hash of the snapshot that it is being filled from; "": none */
	char from[65];           /* hash of the snapshot that the command began with; "": none */
	char spare[300];         /* file of the one that it could not begin with; "": none */
	char print[65];          /* of what the last snapshot holds; "": there is none */
	int64_t began_ms;        /* since when the command has it; 0: it is being filled */
	int64_t due_ms, took_ms; /* when the next snapshot is due; how long the last one took */
	int tries;               /* in a row in which the command changed the folder meanwhile */
	int told; /* the enum snapshot_end that was reported last as the reason for no new one */
	int64_t exited_ms; /* since when the last one is due; 0: the command runs */
	bool last;         /* that one is settled */
};

struct command {
	int index; /* index in the batch */
	char *id, *dir;
	int try;
	int log_fd;
	int64_t log_bytes;
	int notify;     /* inotify descriptor; -1 if the pod has no inotify */
	char **watched; /* folder of each watch descriptor */
	int watches;
	bool blind; /* part of what happened in its folder was not seen */
	/* How many processes the kernel had killed for want of memory; until when the last one may
	 * still be closing its files, 0: none since the command began. */
	int64_t oom_kills, oom_until_ms;
	/* Outputs by a hash of the name: a command may write a hundred thousand. */
	struct output *outputs[OUTPUT_ROWS];
	long output_count; /* reported; excludes outputs that could not be kept */
	int unfit;         /* files that were reported because their names cannot be fetched */
	bool odd;          /* something that is no plain file was logged */
	long torn;         /* outputs that were still being written at its end */
	char *torn_name;   /* the first of them */
	enum ending ending;
	bool exited, halted;
	bool by_itself; /* it ended itself, with a code of its own */
	pid_t group;    /* processes to wait for after its exit */
	int code;
	int64_t drain_until_ms, halt_until_ms;
	/* Its shell reports a death: what was closed since then may be closed by that. 0: no such
	 */
	int64_t doubt_from_ms;
	struct checkpoint checkpoint;
	int filled; /* what the child says that fills the checkpoint's folder; -1: there is none */
};

/* The snapshot that a child is taking; there is at most one. */
struct save {
	pid_t pid; /* 0: none */
	int out;
	char id[256], dir[PATH_BYTES_MAX], known[65], from[65], spare[300];
	int64_t number, began_ms;
	int64_t ran_ms; /* since its command began */
	bool flushing;  /* the file is complete, and the volume is being made durable */
	int64_t bytes;
	char sha256[65], print[65];
};

/* What the child gets that fills a checkpoint's folder. */
struct filling {
	int from, to;
	char sha256[65];
};

struct worker {
	int w;
	enum worker_state state;
	pid_t pid;
	int in, out, err;
	struct str to, line, err_line;
	bool skipping[2]; /* whether the rest of an overlong log line is skipped: stdout, stderr */
	char err_tail[400];
	struct part *parts; /* one part; in a continuous worker any number, from any batches */
	bool continuous;    /* accepts further segments while it renders */
	/* segments that a continuous worker still accepts before its next `take` */
	int64_t room;
	/* Of a continuous worker: busy time; each ms is divided by the number of segments then
	 * held. */
	double share_ms;
	int64_t share_at_ms;
	int64_t began_ms, line_ms, progress_ms, segment_ms, restart_ms;
	int restarts, in_row, max_batch;
	char *hello;            /* the engine fields of its `ready`; NULL: none */
	bool reported_oom;      /* out of memory reported since the last batch */
	const char *killed_for; /* why the agent killed it; NULL: it did not */
	int64_t killed_ms;
	struct command *command;
};

struct output {
	struct output *next;
	char *name;
	enum ending closed; /* when it was last closed after writing, or found */
	int64_t closed_ms;  /* 0: renamed since */
	bool oom;           /* closed then, perhaps by a process that was killed for memory */
	bool reported;      /* the rest is of the last report */
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

/* Slow work on files: one job at a time, one slice a turn. */
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
	bool halted;
	struct stat was; /* an output when its copy began */
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
	uid_t uid;    /* runs the script; 0: the agent's own user */
	char *op;     /* the `start` request */
	bool keeping; /* the script has exited and its results are being copied to the volume */
	bool cancelled;
	struct str result; /* what the child process of the agent printed */
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
	char *dir; /* P of CONTROL.md: the run's folder */
	int dir_fd, volume_fd;
	int oom_fd; /* machine.h; -1: none */
	/* On the container's disk: workers write to work/; they run what is in tree/ and cannot
	 * change it. */
	char *disk, *out_dir;
	int disk_fd, out_fd;
	bool separate;            /* workers run as a different user from the agent */
	gid_t groups[GROUPS_MAX]; /* groups that own the GPU devices */
	size_t group_count;
	int starts; /* tree copies so far; each gets its own folder */
	char *run;  /* the current run */
	const char *attempt;
	int64_t began_ms, began_s, hard_end_s;
	int64_t lease_end_up_s; /* latest end of the pod, as uptime */
	int64_t lease_s, renewed_ms, kill_wait_ms;
	bool detached, draining, drained, idle, stopped, over, quit;

	int events; /* event file; -1 once a write has failed */
	uint64_t next;
	off_t *offsets; /* offset of each event in the file, or -1 - offset in `spill` */
	size_t offsets_cap;
	off_t events_size;
	struct str spill;
	bool events_dirty;
	struct str text; /* the event being written */
	int64_t largest; /* size of the largest file that a worker has made */
	/* The size that the volume last accepted, and until when that result is trusted. */
	int64_t room_bytes, room_until_ms;
	int64_t log_second, log_bytes, log_total;
	long log_dropped;

	struct client clients[CLIENTS_MAX];
	int listener, signals;
	int64_t deaf_until_ms; /* no connection could be taken: files or memory are used up */

	struct worker *workers;
	int worker_count;
	struct env start_env;
	char *worker_command, *code;
	char **outputs;
	char *started; /* the `start` whose workers are running; NULL: none, or commands */
	bool command, stream;
	/* of snapshots: the interval (0: by what they take), the mean time between interruptions,
	 * the largest file */
	int64_t checkpoint_every_ms, checkpoint_mean_s, checkpoint_most;
	bool checkpoint_on_volume; /* what is durable there outlives the pod */
	struct save save;
	struct filling filling;
	bool worker_root; /* the job requests the agent's own user */
	int64_t hang_ms;
	int64_t part_limit; /* set by the user or lowered after out of memory; 0: none */
	struct batch *queue;
	struct job *jobs, *jobs_last;
	struct task task;
	struct deferred *deferred;
	bool fatal, stop_due;
	bool setup_failed, install_failed; /* the last of each kind failed */
	char *built, built_id[65]; /* the environment that this pod's setup made, with its id */
	/* Environments have the same path in every pod: on the container's disk, unpacked or as
	 * links to the volume. NULL: the pod is not a container and uses environments on the
	 * volume. */
	const char *env_root;
	int env_fd;
	char *unpacked; /* "NAME ID" of the unpacked environment */
	int64_t unpack_ms, unpack_bytes;
	char fatal_error[400];

	pid_t gpu_pid, usage_pid, sync_pid;
	/* turn of the running sync, and of the sync requested meanwhile (-1: none) */
	int sync_turn, sync_next_turn;
	int64_t alive_ms;
	int gpu_out, usage_out;
	struct str gpu_text, usage_text;
	struct gpu gpus[16];
	int gpu_count;
	int64_t gpu_until_ms, usage_mb;
	int usage_cards, usage_percent; /* sums over the round of lines being received */
	char switch_line[200];
	/* The pod is about to end: it begins no work, and makes durable what is finished. */
	bool leaving, left;
	int64_t left_ms;       /* when the machine asked for that last */
	int64_t lease_asked_s; /* length of the last lease */
	int64_t ticked_ms, synced_ms, over_ms;
	int64_t unsynced_ms; /* since when syncs have failed; 0: the last one succeeded */
};

int64_t now_ms(const struct agent *a);
char *work_path(const struct agent *a, const char *name);

/* The path under which workers find environment `name`. */
char *env_path(const struct agent *a, const char *name);

#endif
