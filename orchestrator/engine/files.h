/* files.h - the outputs and snapshots of pods: fetches, verifies and keeps them. */
#ifndef BURST_ENGINE_FILES_H
#define BURST_ENGINE_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job.h"
#include "net/pool.h"
#include "net/ssh.h"
#include "provider.h"
#include "sync/receive.h"

struct engine;

/* ---- claims ----
 * Knows which segment an output's name belongs to. */

/* Gives an output's name to the first segment that reports it. A file with the name of one of its
 * folders, or below it, cannot exist beside it. owner: the segment whose name is in the way. */
enum claim_answer { CLAIM_TAKEN, CLAIM_OF_ANOTHER, CLAIM_IN_THE_WAY };
/* Gives an output's name to the first segment that reports it. A file with the name of one of its
 * folders, or below it, cannot exist beside it. *owner: the segment that has the name, or whose
 * name is in the way. */
enum claim_answer claims_take(struct engine *e, uint32_t segment, const char *name,
			      uint32_t *owner);
/* Frees the name if this segment has it. */
void claims_drop(struct engine *e, uint32_t segment, const char *name);
void claims_free(struct engine *e);
/* Where to note which of its files has the name; NULL: the name is not this segment's. */
size_t *claims_file(struct engine *e, uint32_t segment, const char *name);

/* ---- fetch ----
 * Fetches finished files over one `burst-agent send` channel per pod. It requests them without
 * waiting for answers; worker threads verify and write one while the next ones arrive.
 *
 * A file has two descriptors from shortly before its request until its done(). Each connection
 * may always have one such file; all connections of an engine share the number of others, and the
 * memory for bytes that wait for the disk. */

struct fetcher; /* one per connection */

struct fetch_want {
	const char *output_dir,
		*name;            /* the destination; the pod gives the name, which is checked */
	const char *path;         /* on the pod, as the agent names it */
	int64_t bytes, max_bytes; /* as announced; more than max_bytes is ERR_UNTRUSTED */
	const char *sha256;
	/* Called in a worker thread when length and hash are verified, before the rename, so that
	 * the job can check the content. May be NULL. */
	void (*inspect)(void *ctx, const char *part_path);
	/* Called in the loop, exactly once. err NULL: *r is the verified file under its .part name;
	 * it is closed (receive_close_until_kept) and the callee's. Otherwise ERR_NETWORK
	 * (connection lost; the next attempt continues what arrived), ERR_NOT_FOUND, ERR_UNTRUSTED,
	 * ERR_LOCAL, ERR_BUSY (an older fetch of that name has not ended yet), ERR_INTERRUPTED
	 * (cancelled). */
	void (*done)(void *ctx, struct receive *r, const struct err *err);
	void *ctx;
};

/* What all connections of an engine share. */
struct fetch_share {
	int files;        /* that may still be opened */
	size_t unwritten; /* bytes that wait for the disk */
};

/* share is borrowed. A channel that owes files, is not paused and brings no byte for silent_ms is
 * closed: its files end with ERR_NETWORK. After four in a row stuck(ctx) is called instead, which
 * must close the fetcher. */
struct fetcher *fetcher_new(struct ssh *ssh, struct loop *loop, struct pool *pool,
			    struct fetch_share *share, int64_t silent_ms,
			    void (*stuck)(void *ctx, const char *why), void *ctx);
/* Strings are copied. */
void fetcher_get(struct fetcher *f, const struct fetch_want *want);
/* Cancels the files whose ctx is_one() accepts: they end with ERR_INTERRUPTED, at once or when
 * their thread returns them. */
void fetcher_cancel(struct fetcher *f, bool (*is_one)(const void *ctx, const void *arg),
		    const void *arg);
/* Before the connection closes, or after. A file whose bytes have all arrived ends by itself; the
 * others end with ERR_NETWORK. Accepts NULL. */
void fetcher_close(struct fetcher *f);

/* The same steps for the file `local`, which a provider has put on this disk: copies it to the
 * .part name, verifies it, and removes it. Strings are copied. */
void fetch_local(struct pool *pool, const struct fetch_want *want, const char *local);

/* ---- outfiles ----
 * Fetches, verifies and checks the outputs of pods. */

/* One finished file on a pod. */
struct outfile {
	char *name, *path, sha256[SHA256_HEX];
	int64_t bytes;
	int pod; /* whose it is */
	/* Of a command, each output of which is a result by itself. */
	enum outfile_fate {
		FATE_OPEN,    /* to be fetched */
		FATE_PLACING, /* fetched; ending.c has it */
		FATE_HERE,    /* under its final name */
		FATE_LOST,    /* could not be fetched or kept; its segment fails */
		FATE_FALSE    /* reported by a pod that is not trusted any more */
	} fate;
	struct err why;    /* FATE_LOST; ERR_JOB: for good */
	struct receive *r; /* fetched and verified, not renamed yet */
	enum outfile_fetch {
		FETCH_NONE,
		FETCH_UNDER_WAY,
		FETCH_OUTDATED /* what is under way is not the file that the pod has now */
	} fetch;
	unsigned turn; /* of the fetch that counts; an older one is ignored */
	int retries;
};

/* The outputs of one segment in its present attempt. outfiles_begin_batch() and
 * outfiles_begin_report() begin it; the report of the segment itself ends the list. A command also
 * keeps what its earlier attempts have finished. Only outfiles.c writes it. */
struct outputs {
	struct outfile *files;   /* one for speech, any number for a command */
	size_t count, cap, home; /* home: the number that are fetched and verified */
	size_t open;             /* of a command: FATE_OPEN or FATE_PLACING */
	int pod;                 /* whose present attempt it is; -1: not known */
	enum outputs_state {
		OUTPUTS_OPEN,     /* further files may be reported */
		OUTPUTS_REPORTED, /* the pod has reported the segment finished */
		OUTPUTS_ANNOUNCED /* all are fetched: the core has had EV_FETCHED */
	} state;
	bool refused;            /* one of them was: later reports of this attempt are ignored */
	bool placing;            /* ending.c is at work on it */
	size_t under_way, ready; /* of a command: fetches that run; fetched, and not placing */
	size_t unkept;           /* outputs of this attempt that cannot be kept */
	char unkept_why[160];    /* the first of them */
	size_t failed;           /* fetches whose failure is no passing one */
	struct check check;
	struct tried *aside; /* the best try so far, while the next one is made; NULL: none */
	/* as the pod reported */
	char batch[24];
	double seconds;
	int rate;
};

/* A file of speech that was checked, and where it came from. */
struct tried {
	struct receive *file;
	int pod;
	struct check check;
	char sha256[SHA256_HEX], batch[24];
	int64_t bytes;
	double seconds;
	int rate;
};

struct outfiles {
	struct outputs *of; /* by segment */
	unsigned turns;     /* given to fetches; each number once */
	size_t open;        /* of commands: FATE_OPEN or FATE_PLACING */
	struct timer *due;  /* when fetched outputs are placed; NULL: none wait */
	void (*place)(struct engine *e, uint32_t segment);
};

/* Before the first batch; place() is called when outputs of a command are fetched. */
void outfiles_init(struct engine *e, void (*place)(struct engine *e, uint32_t segment));
/* Before claims_free(). */
void outfiles_free(struct engine *e);

/* The segment is sent to a pod in this batch: drops what an earlier attempt at speech had. */
void outfiles_begin_batch(struct engine *e, uint32_t segment, const char *batch);
/* The pod reports the segment's first file: drops what others, or earlier attempts, had of speech.
 */
void outfiles_begin_report(struct engine *e, uint32_t segment, int pod);
/* Adds a reported file. is_new: it was not reported before; a new file of a known name replaces
 * that one. The result is valid until the next call. */
struct outfile *outfiles_add(struct engine *e, int pod, uint32_t segment, const char *name,
			     const char *path, int64_t bytes, const char *sha256, bool is_new);
/* A file of the segment was refused: later reports of this attempt are ignored. */
void outfiles_refuse(struct engine *e, uint32_t segment);
/* The pod reports the segment finished, with this event. */
void outfiles_end_report(struct engine *e, uint32_t segment, const json_t *event);
/* Drops all outputs of the segment, and cancels their fetches. */
void outfiles_discard(struct engine *e, uint32_t segment);

/* Fetches the files of a reported segment. EV_FETCHED or EV_FETCH_FAILED follows. */
void outfiles_fetch(struct engine *e, int pod, uint32_t segment);
/* Fetches an output of a command, whatever becomes of the command. */
void outfiles_fetch_output(struct engine *e, uint32_t segment, const struct outfile *f);
/* Fetches the pod's outputs that are not here from where its files are now. */
void outfiles_fetch_rest(struct engine *e, int pod);
/* Gives up the pod's outputs that are not here: they are lost with the pod. */
void outfiles_lose_rest(struct engine *e, int pod);
/* Returns the fetched file under its .part name, which becomes the caller's. */
struct receive *outfiles_take(struct engine *e, uint32_t segment, size_t file);
/* Whether the segment's present file, which failed its check, is the best of its tries so far and
 * may be better than the next one. */
bool outfiles_is_best(const struct engine *e, uint32_t segment);
/* Keeps it aside, in place of an earlier one. Takes over t->file. */
void outfiles_keep_aside(struct engine *e, uint32_t segment, const struct tried *t);
/* If the file aside is better than *t, drops t->file and gives the one aside. */
void outfiles_prefer_aside(struct engine *e, uint32_t segment, struct tried *t);
/* Drops the file aside. */
void outfiles_forget_aside(struct engine *e, uint32_t segment);
/* An output of a command that outfiles_take() gave, of this turn, has its final name; why->kind
 * set: it has not, and that is why. */
void outfiles_placed(struct engine *e, uint32_t segment, size_t file, unsigned turn,
		     const struct err *why);
/* Places all fetched outputs of commands, without waiting for more. */
void outfiles_place_all(struct engine *e);
/* ending.c begins, or has ended, its work on outputs of this segment. */
void outfiles_begin_placing(struct engine *e, uint32_t segment);
void outfiles_end_placing(struct engine *e, uint32_t segment);
/* The segment's command has ended: what was lost is fetched once more. */
void outfiles_retry_lost(struct engine *e, uint32_t segment);
/* This attempt has an output that cannot be kept: the segment fails for that alone. */
void outfiles_note_unkept(struct engine *e, uint32_t segment, const char *why);
/* How many outputs of commands are neither here nor given up. */
size_t outfiles_count_open(const struct engine *e);
/* At the end: logs which finished outputs are not here, and how to get them. */
void outfiles_note_left(struct engine *e);
/* Logs why the segment cannot be fetched or placed. ERR_JOB: notes that as the segment's result. */
void outfiles_log_failure(struct engine *e, uint32_t segment, const struct err *why);
/* The pod is no longer trusted: frees its names, except those of files that are here. */
void outfiles_disclaim(struct engine *e, int pod);
/* The size of the largest file that this pod can have. */
int64_t outfiles_most_bytes(const struct engine *e, int pod);
/* How many bytes of files of this pod's finished segments, as announced, are not fetched yet. */
int64_t outfiles_bytes_left(const struct engine *e, int pod);

/* ---- place ----
 * Records fetched files and renames them into place. */

/* After EV_FETCHED: takes the files from outfiles.c, records the segment, and renames them into
 * place. EV_LOCAL (ledger.h) or EV_FETCH_FAILED follows. suspect: they failed their check. */
void place_files(struct engine *e, uint32_t segment, bool suspect);
/* The segment's file failed its check, and another try follows: keeps the file aside if it is the
 * best so far, and drops it otherwise. */
void set_files_aside(struct engine *e, uint32_t segment);

/* Places those outputs of a command that are fetched, whatever the command does. outfiles_placed()
 * follows for each. Does nothing while others of the segment are being placed. */
void place_outputs(struct engine *e, uint32_t segment);

/* ---- checkpoint ----
 * Keeps what commands save in $BURST_CHECKPOINT, for their next attempts.
 *
 * The agent takes a snapshot of the folder (jobs/agent/CONTROL.md, "checkpoint"). It is safe once
 * the pod's volume or this machine has both the snapshot and the outputs that the command had
 * finished before. The newest safe one of each segment is noted in the ledger, and given to the
 * segment's next attempt: by its path on the same volume, else sent from here. If that fails for
 * good, the command begins anew, and what it saves replaces the older snapshot only once it has as
 * much work. */

struct getting;
struct sending;
struct timer;
struct upsync;

/* One snapshot. */
struct snapshot {
	char attempt[20]; /* of the pod that took it; "": there is none */
	char provider[PROVIDER_NAME_MAX], volume[POD_ID_MAX]; /* volume "": none has it */
	int64_t number, bytes;
	char sha256[SHA256_HEX];
	bool here; /* this machine has the file */
	int64_t t; /* the pod's clock when it was begun */
	int64_t took_ms;
	int pod;
	/* The snapshot that its command began with ("": with none), and the computing time that is
	 * in that one and in this one. */
	char from[SHA256_HEX];
	int64_t from_work_ms, work_ms;
	size_t outputs; /* files of the segment that were reported before it */
};

struct saved {
	struct snapshot safe;   /* given to the next attempt */
	struct snapshot coming; /* newer, complete on its pod, not safe yet */
	struct getting *fetch;  /* of the one that is coming, or of an older one; NULL: none */
	/* Fetched, or on a volume that only pods can read. An attempt that continues from it does
	 * not make again what was finished before, so those files must be here first. */
	struct snapshot waits;
	bool told_large;
	int64_t taken_ms;     /* wall clock of the safe one */
	char told_poorer[20]; /* the attempt whose snapshots hold less than the safe one */
	int useless;          /* pods that could not unpack the safe one */
	char useless_to[20];  /* the last of their attempts */
};

struct checkpoints {
	struct saved *of; /* by segment */
	struct sending *sendings;
	unsigned dirs; /* that were made for sendings */
	int *troubles; /* by pod: lines that it has caused */
	int pods;
};

enum { USELESS_PODS = 2 }; /* that cannot unpack a snapshot, before any newer one replaces it */

#define CHECKPOINT_DIR "checkpoint" /* in the run's folder, and of trees on a pod's volume */

/* The caller frees them: the folder with this machine's copies; one of those; and where the agent
 * puts the snapshot, below the pod's volume or the folder that stands for one. */
char *checkpoints_dir(const struct engine *e);
char *checkpoint_path_here(const struct engine *e, uint32_t segment, const struct snapshot *s);
char *checkpoint_path_there(const struct engine *e, uint32_t segment, const struct snapshot *s);
/* Removes this machine's copy of the snapshot, if it has one. */
void checkpoint_remove_here(struct engine *e, uint32_t segment, struct snapshot *s);
/* Warns, once for each segment, that a snapshot is too large to travel through this machine. bytes:
 * its size; 0: not known. */
void checkpoint_too_large(struct engine *e, uint32_t segment, int64_t bytes);

/* Reads what an earlier client of this run noted. After work_read(). */
void checkpoints_read(struct engine *e);
void checkpoints_free(struct engine *e);

/* An agent's event about a snapshot: takes or refuses the snapshot, or logs the trouble. replayed:
 * read from the pod's log on its volume. Returns false if no agent of ours reports that. */
bool checkpoint_event(struct engine *e, int pod, const json_t *event, bool replayed);
/* An output of the command is here, or lost: a waiting snapshot may be safe now. */
void checkpoint_output_settled(struct engine *e, uint32_t segment);
/* The pod's files can be fetched: fetches the snapshots that a lost connection cut off. */
void checkpoint_connected(struct engine *e, int pod);
/* The segment's command has succeeded: no snapshot on its way here is waited for. */
void checkpoint_finished(struct engine *e, uint32_t segment);
/* The segment's files have their names: removes its snapshots here, and its note in the ledger. */
void checkpoint_done(struct engine *e, uint32_t segment);

/* ---- bring ----
 * Brings the snapshots to the pods of the next attempts. */

/* A snapshot on its way to one pod, before its batch. Only bring.c writes it. */
struct bringing {
	unsigned
		turn; /* of the newest; what ends with an older one is ignored. 0: there was none */
	uint32_t segment, batch;
	void (*send)(struct engine *e, int pod, uint32_t batch); /* NULL: nothing is on its way */
	struct upsync *sync;
	struct timer *again;  /* before the next try; NULL: none */
	int tries;            /* that failed */
	struct sending *what; /* NULL: nothing is being sent */
	char here[65];        /* the tree that this pod has on its volume; "": none */
	uint32_t *later;      /* batches whose snapshots are brought afterwards */
	size_t later_count, later_cap;
};

/* Calls send(e, pod, batch) for the batch: at once, or when the pod has the snapshot that its
 * command continues from. Never if the connection ends first: the core orders it again. */
void bring_send(struct engine *e, int pod, uint32_t batch,
		void (*send)(struct engine *e, int pod, uint32_t batch));
/* The pod returns its batches: posts EV_REVOKED for those that were not sent to it yet. */
void bring_revoke(struct engine *e, int pod);
/* Adds the snapshot that a command continues from to its task. Returns false if there is none, or
 * the pod cannot read it. */
bool bring_add_to_task(struct engine *e, int pod, uint32_t segment, json_t *task);
/* The pod's connection ends: nothing is brought or sent any more. */
void bring_drop(struct engine *e, int pod);
/* Frees what threads and transfers have used; they have ended. Before checkpoints_free(). */
void bring_free(struct engine *e);

#endif
