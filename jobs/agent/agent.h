/* agent.h - the state of `serve`, and what its parts share. */
#ifndef BURST_JOBS_AGENT_AGENT_H
#define BURST_JOBS_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/str.h"
#include "files.h"
#include "json.h"
#include "sha256.h"

enum {
	WORKERS_MAX = 256,
	/* Users of workers and commands, and of a job's setup, if the agent is root. They differ so
	 * that no worker can change what the setup leaves. */
	WORKER_UID = 61001,
	SETUP_UID = 61002,
	GROUPS_MAX = 16,
};

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
	bool waiting;   /* the file is complete, and outputs that were finished before are copied */
	bool flushing;  /* the volume is being made durable */
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
enum job_kind { JOB_SEGMENT, JOB_OUTPUT, JOB_SAVE, JOB_BATCH, JOB_COMMAND };

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
};

struct client {
	int fd;
	bool attached;
	struct str in, out;
	uint64_t cursor; /* number of the next event to send */
	bool hello_due, closing;
};

struct agent {
	struct place place;
	char *dir; /* P of CONTROL.md: the run's folder */
	int dir_fd, volume_fd;
	int oom_fd; /* pod.h; -1: none */
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
	bool detached, over, quit;

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

	struct client client; /* the last one that has connected; fd -1: there is none */
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
	char gpus[16][80]; /* their names */
	int gpu_count;
	int64_t gpu_until_ms, usage_mb;
	int usage_cards, usage_percent; /* sums over the round of lines being received */
	char switch_line[200];
	/* The pod is about to end: it begins no work, and makes durable what is finished. */
	bool leaving, left;
	int64_t left_ms;       /* when the machine asked for that last */
	int64_t lease_asked_s; /* length of the last lease */
	int64_t life_s;        /* from its start to the pod's hard end; 0: no hard end */
	int64_t ticked_ms, synced_ms, over_ms;
	int64_t unsynced_ms; /* since when syncs have failed; 0: the last one succeeded */
};

/* ---- events.c ----
 * Numbered events are kept in P/events.jsonl and sent from there. Notices go only to the attached
 * client. */

/* Since the agent began. */
int64_t now_ms(const struct agent *a);

/* Notes where the next event begins in the file. For tests. */
void events_index(struct agent *a, off_t offset);
/* Counts the events that an earlier agent wrote, and cuts off a torn last line. Numbers start at 1.
 */
void events_open(struct agent *a);
/* Makes the written events durable. */
void events_sync(struct agent *a);
/* Begins an event; append members to the result, then call event_end(), which writes it. */
struct str *event_begin(struct agent *a, const char *name);
void event_end(struct agent *a);
/* NULL: there is none. */
struct client *attached_client(struct agent *a);
/* Like event_begin(), for notice_end(). */
struct str *notice_begin(struct agent *a, const char *name);

/* Ends an unnumbered event. It goes only to the attached client and is not kept. */
void notice_end(struct agent *a);
void notice_error(struct agent *a, const char *error);

/* Moves events that the client has not received from the file into its buffer. */
void events_send(struct agent *a, struct client *c);
/* Reports why this pod can do no more work; the loop then ends all work. Later calls do nothing. */
void fatal(struct agent *a, const char *fmt, ...) PRINTF(2, 3);

/* ---- program output as log events, within limits per second and in total ---- */

/* The last state of a line that a program overwrites repeatedly (a progress bar), as a terminal
 * would show it. */
const char *last_shown_state(const char *line, size_t *len);

/* id names a segment or a task; NULL: the line is worker w's. */
void event_log(struct agent *a, int w, const char *id, const char *line, size_t len);

/* Keeps only the last overwritten state of an unfinished line longer than `most`. */
void drop_overwritten(struct str *b, size_t most);

/* Logs every complete line of `b`. Cuts an endless line and skips its rest, unless the line is
 * overwritten. */
void log_lines(struct agent *a, struct str *b, bool *skipping, int w, const char *id);
/* Appends to a text of at most `room` bytes; drops its beginning. */
void keep_tail(char *tail, size_t room, const char *bytes, size_t len);

/* The last non-empty line of a stderr tail, which it shortens to that line's end. */
const char *last_line(char *tail);

/* ---- pod.c ---- */

char *work_path(const struct agent *a, const char *name);

/* The path under which workers find environment `name`. */
char *env_path(const struct agent *a, const char *name);

/* Writes the file name of the image's Python behind all links ("python3.11"), or "" if there is
 * none. An environment works for one version only. Runs no program. */
void python_of_image(char *name, size_t room);
char *image_path(const struct agent *a, const char *key);

/* Returns whether the environment is complete and its owner could have changed the image anyway. */
bool image_has(const struct agent *a, const char *key);
void add_image_envs(const struct agent *a, struct str *b);

enum { PROBE_LIST_MOST = 64 << 10 /* bytes of the file: some hundred cards and versions */ };

/* Adds a line and drops the oldest lines to make room. Returns false if the line existed. */
bool probe_add(struct str *list, const char *line);

/* Copies the list to the container's disk, because workers may not read the volume. */
void probe_bring(struct agent *a);

/* Keeps the measurement in a worker's hello. If the write fails, the next pod measures again. */
void probe_keep(struct agent *a, const struct json *hello);

/* Becomes another user, for good: no program can regain root. First gives that user the process's
 * own descriptors, because programs reopen /dev/stdout and the like. */
int child_switch(const struct agent *a, uid_t uid);

/* Sets the user's name and folders. An image's folders for root are not writable for other users.
 */
void env_set_user(const struct agent *a, struct env *env, uid_t uid);
void worker_env(struct agent *a, struct env *env, int w);

/* Opens the volume, and P of the run. */
bool open_volume_and_run(struct agent *a);

/* Opens P, or a folder on the container's disk if the volume accepts no files. Returns false in
 * that case. */
bool open_run_folder(struct agent *a);

/* Removes everything that an earlier agent left on the container's disk. */
void prepare_disk(struct agent *a);

/* Makes a folder for the agent alone, with the same name in all containers. Removes what an earlier
 * agent left there. */
void prepare_env_folder(struct agent *a);

int64_t lease_left_s(const struct agent *a);
void lease_renew(struct agent *a, int64_t lease_s);

/* Reads the lease that the start script or an earlier agent left. It counts until this agent writes
 * one. Uses the wall clock, or the uptime if that ends sooner: the uptime may have restarted. */
void lease_read(struct agent *a);
/* Tells the client how long the lease lasts. */
void lease_report(struct agent *a);

/* ---- process.c ---- */

/* Renames the folder at once, then removes it in a child. The same segment may run again in a
 * folder of this name. */
void remove_in_background(const char *dir);

struct spawn {
	const char *script; /* for sh -c */
	const char *dir;    /* NULL: $BURST_HOME */
	const char *copy;   /* a folder to copy to `dir`; NULL: dir exists */
	/* a tree of the volume to copy to work/kept if it matches; or NULL */
	const char *kept;
	bool own_dir; /* dir is made, and belongs to this child alone */
	uid_t uid;    /* runs the child, if the agent can choose; 0: the agent's own user */
	const struct env *env;
	int in, out, err; /* in -1: /dev/null */
};

/* Starts a shell in its own process group. Returns -1 with errno. */
pid_t spawn(struct agent *a, const struct spawn *s);

/* Runs `work` in a child of the agent. *out reads what it prints; NULL: the agent's own output
 * receives it. Returns -1 with errno. */
pid_t spawn_own(struct agent *a, int (*work)(struct agent *a), int *out);
void kill_group(pid_t pid);

/* Kills a child that was not reaped, also if it has left its group. */
void kill_child(pid_t pid);

/* Ends stray descendants at any depth. A process becomes a child of the agent only when its parent
 * ends, so this searches repeatedly. */
void kill_strays(struct agent *a);

/* Syncs on a pod without a client. Returns true once everything is durable. Hours of work may be at
 * stake, so it retries a failed sync for SYNC_PATIENCE_MS; then fatal() ends the pod's work. Blocks
 * while the volume syncs. */
bool sync_alone(struct agent *a);

/* Syncs, then asks the start script to end the pod. Later calls do nothing. */
void end_pod(struct agent *a, const char *reason);

/* For spawn_own(): makes the volume durable. Returns 0 if it is. */
int sync_work(struct agent *a);

/* Syncs in a child, so that the pod works on. `turn` is the client's number for this sync. */
void sync_start(struct agent *a, int turn);

/* Handles the exit of the child of sync_start(); `status` is from waitpid(). */
void sync_ended(struct agent *a, int status);

/* Starts an nvidia-smi that lists the cards. gpu_line() reads one line of it. */
void gpu_query(struct agent *a);
void gpu_line(struct agent *a, const char *line);

/* Adds one card's line. Once each card has sent one, reports the mean use and the sum of memory. */
void usage_line(struct agent *a, const char *line);
void gpu_read(struct agent *a, int *fd, struct str *b, void (*take)(struct agent *, const char *));

/* Samples the cards, but only while workers run. */
void usage_follow_workers(struct agent *a);

/* ---- worker.c ---- */

/* Queues slow work on files. The caller fills in the rest of the job, which the queue owns. */
struct job *job_add(struct agent *a, enum job_kind kind, const char *id);
/* Removes the first job and frees it. */
void job_done(struct agent *a);

/* ---- whether volume and disk have room ---- */

/* Checks that the volume has room after a failed write, whose file is already removed: for a file
 * of usual size, or for a far larger one if the error was a lack of room. Keeps errno for the
 * caller. */
void check_volume_for(struct agent *a, const char *words);
void check_volume(struct agent *a);

/* Returns true if the volume is full, and ends this pod's work: every attempt would fail here, and
 * another pod can render the segment. */
bool volume_is_to_blame(struct agent *a, const char *words);

/* ---- batches and their parts ---- */

/* Begins an event of this segment. */
struct str *segment_event(struct agent *a, const char *batch, const char *id, int try, bool ok);

/* Begins an event of this batch. */
struct str *batch_event(struct agent *a, const char *id, const char *state);

void segment_failed(struct agent *a, const char *batch, const char *id, int try, const char *reason,
		    const char *error);
void batch_free(struct batch *b);
void batch_unlink(struct agent *a, struct batch *b);
struct part *part_new(size_t n, int kills);
void batch_settled(struct agent *a, struct batch *b);

/* Number of segments that the worker holds. A worker that renders a batch holds all of it until the
 * batch ends. */
size_t count_held_segments(const struct worker *w);

/* Call before the parts of a worker change. */
void share_advance(const struct agent *a, struct worker *w);

/* Takes all that the worker holds of a batch away from it, as one part. */
struct part *take_parts_of_batch(const struct agent *a, struct worker *w, struct batch *b);
void worker_failed_parts(struct agent *a, struct worker *w, const char *reason, const char *words);
struct batch *held_batch(const struct worker *w, const char *id);

/* Puts the worker's unfinished segments back into the queue. */
void worker_requeue(struct agent *a, struct worker *w);

/* ---- workers ---- */

/* Begins an event of this worker. */
struct str *worker_event(struct agent *a, const struct worker *w, const char *state);

/* unfit: the part of the pod to blame ("card"); NULL: the worker names none. */
void worker_failed(struct agent *a, struct worker *w, const char *error, const char *unfit);
void worker_start(struct agent *a, struct worker *w);
void worker_kill(struct agent *a, struct worker *w, const char *why);
void worker_write(struct worker *w);
void worker_close(struct worker *w);

enum { PHASE_MOST_S = 86400 /* limit of a phase in a worker's hello */ };

/* Appends the times of the steps before hello, as the worker reports them. Skips unknown phases and
 * impossible times. The agent's own unpacking comes first, unless unpack_bytes is 0. */
void add_phases(struct str *b, const struct json *line, int64_t unpack_ms, int64_t unpack_bytes);
void worker_line(struct agent *a, struct worker *w, const char *line, size_t len);

/* Reads the available bytes, at most `rounds` pieces. Returns false at the end of the file. */
bool worker_read_out(struct agent *a, struct worker *w, int rounds);
bool worker_read_err(struct agent *a, struct worker *w, int rounds);

/* ---- outputs.c ---- */

/* Returns whether anything in this folder ("" is the root) or below it could match. Compares with
 * the plain start of each pattern. */
bool may_hold_output(const struct agent *a, const char *dir);

enum look {
	LOOK_WATCH, /* for folders to watch */
	LOOK_SAVE,  /* reports the matching files, too, that are finished by now */
	LOOK_OFFER  /* reports matching files, too */
};

/* Returns whether a file or folder is being written by its name: it ends in .tmp or .part. */
bool is_being_written(const char *name);
/* Scans everything below `folder` ("" is the root); adds watches if the pod has inotify. Once the
 * command has exited, reports finished files only. */
void scan_folder(struct agent *a, struct command *c, const char *folder, enum look look);
/* Handles what has happened in the command's folder. pid: its first process; 0: that has ended. */
void command_watched(struct agent *a, struct command *c, pid_t pid);

/* Watches the command's folder as soon as the copy has made it. The scan at the exit finds files
 * renamed before that. */
void command_watch(struct agent *a, struct command *c);
/* Lets an output that could not be copied be reported again when it is found again. */
void output_forget(struct command *c, const char *name);

/* Reads length in seconds and rate from the contents of a RIFF/WAVE file. Returns false for other
 * files. */
bool wav_measure(int fd, int64_t file_bytes, double *seconds, int *rate);
void jobs_step(struct agent *a);

/* ---- command.c ---- */

void command_exited(struct agent *a, struct worker *w, int status);

/* Asks each running command to end, by SIGTERM, and kills it after grace_ms. What it has finished
 * is reported, and then its batch as revoked. */
void commands_halt(struct agent *a, int64_t grace_ms);
bool command_is_halting(const struct agent *a);
void command_turn(struct agent *a, struct worker *w);

void worker_exited(struct agent *a, struct worker *w, int status);

/* Treats silence as a hang, and also output without progress for ten times as long. */
void worker_check_hang(struct agent *a, struct worker *w);
/* Gives queued parts to all workers that have room. */
void dispatch(struct agent *a);

void stop_workers_only(struct agent *a);
bool running_something(const struct agent *a);

/* Ends all workers, commands and scripts and empties the queue: the state before the first `start`.
 */
void stop_work(struct agent *a);

/* ---- checkpoint.c ---- */

enum { SNAPSHOT_WORDS = 300, SNAPSHOT_ENTRIES_MAX = 100000 };

enum snapshot_end {
	SNAPSHOT_TAKEN,
	SNAPSHOT_SAME,   /* nothing has changed since the last one */
	SNAPSHOT_MOVING, /* the command changed the folder meanwhile */
	SNAPSHOT_LARGE,  /* more than `most` */
	SNAPSHOT_UNFIT,  /* the folder holds what cannot travel; words: what */
	SNAPSHOT_FAILED  /* words: why */
};

struct snapshot {
	int from;          /* the folder */
	uid_t owner;       /* of every file; 0: any */
	int64_t most;      /* bytes of the tar file */
	const char *known; /* print[] of the last snapshot; "": there is none */
	/* results */
	char print[65]; /* a hash of names, sizes and times */
	int64_t bytes;
	char sha256[65];
	char words[SNAPSHOT_WORDS];
};

/* Writes the folder to the file `to`, which the caller has opened. What was written is whole only
 * if the result is SNAPSHOT_TAKEN: the folder was the same before and after the copy. Leaves out
 * names that end in .tmp or .part, and what lies below such folders: these are being written. */
enum snapshot_end snapshot_take(struct snapshot *s, int to);

/* Reads from the request `start` how often and where to take snapshots. */
void checkpoint_read_start(struct agent *a, const struct json *op);

/* Before the command starts: makes its folder, or keeps the one that an earlier start left on this
 * pod. Returns the pid of a child that fills it from the snapshot that the task names, 0: it is
 * ready. Call checkpoint_filled() when that child has exited. */
pid_t checkpoint_prepare(struct agent *a, struct command *c, const char *task);
void checkpoint_filled(struct agent *a, struct command *c, int status);
void checkpoint_env(const struct command *c, struct env *env);

/* Takes the snapshots that are due. */
void checkpoint_tick(struct agent *a);
/* Returns true if this was the child that takes a snapshot. */
bool checkpoint_exited(struct agent *a, pid_t pid, int status);
/* Reports the snapshot: the outputs that were finished before it are copied and reported. The event
 * is written before the volume is made durable, so that a client that finds the file there finds
 * the event, too. */
void checkpoint_outputs_copied(struct agent *a);
/* Of a command that has exited: returns false while its last snapshot is being taken. Only a
 * command that failed gets one: its next attempt continues from there. */
bool checkpoint_settled(struct agent *a, struct command *c);
/* The segment is finished: its folder is not needed any more. */
void checkpoint_forget(struct agent *a, const char *id);
void checkpoint_free(struct command *c);

/* ---- start.c ---- */

void task_forget(struct task *t);

/* Reads what the task printed, at most `rounds` pieces so that the loop goes on. Returns false once
 * the output is closed. */
bool task_read(struct agent *a, int rounds);

/* A copy of a member's text; NULL if it is absent or empty. The caller frees it. */
char *copy_json_text(const struct json *op, const char *key);
void start_forget(struct agent *a);
void op_start(struct agent *a, const struct json *op);

/* `setup` and `install`. */
void op_task(struct agent *a, const struct json *op);
void task_exited(struct agent *a, int status);

/* ---- clients.c ---- */

void add_gpus(struct agent *a, struct str *b);
void read_switch(struct agent *a, char *to, size_t room);

/* Does what one line of the client says; a request that must wait is kept. */
void obey_request(struct agent *a, const char *line, size_t len);
/* Obeys the kept requests, up to one that must wait again. */
void obey_deferred_requests(struct agent *a);

void client_close(struct client *c);
void client_read(struct client *c);
void client_accept(struct agent *a);
/* Sends events and answers. */
void client_send(struct agent *a);
/* Obeys what the client has sent, and answers. */
void client_turn(struct agent *a);

/* ---- serve.c ---- */

void agent_free(struct agent *a);
int agent_serve(void);

#endif
