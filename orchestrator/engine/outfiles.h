/* outfiles.h - fetches, verifies and checks the outputs of pods. */
#ifndef BURST_ENGINE_OUTFILES_H
#define BURST_ENGINE_OUTFILES_H

#include <jansson.h>

#include "sync/receive.h"
#include "fetch.h"
#include "job.h"

struct engine;

/* One finished file on a pod. */
struct outfile {
	char *name, *path, sha256[SHA256_HEX];
	int64_t bytes;
	int pod; /* whose it is */
	/* Of a command, each output of which is a result by itself. */
	enum outfile_fate {
		FATE_OPEN,    /* to be fetched */
		FATE_PLACING, /* fetched; place.c has it */
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

/* The outputs of one segment in its present attempt. outfiles_expect() begins it when a batch is
 * sent, outfiles_from() when a pod reports the first file; the report of the segment itself ends
 * the list. A command also keeps what its earlier attempts have finished. Only outfiles.c writes
 * it.
 */
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
	bool placing;            /* place.c is at work on it */
	size_t under_way, ready; /* of a command: fetches that run; fetched, and not placing */
	size_t unkept;           /* outputs of this attempt that cannot be kept */
	char unkept_why[160];    /* the first of them */
	struct check check;
	/* as the pod reported */
	char batch[24];
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

/* Before the first batch, for the engine's job; place() is called when outputs of a command are
 * fetched. outfiles_free() while claims.c still works. */
void outfiles_new(struct engine *e, void (*place)(struct engine *e, uint32_t segment));
void outfiles_free(struct engine *e);

/* The segment is sent to a pod in this batch: drops what an earlier attempt at speech had. */
void outfiles_expect(struct engine *e, uint32_t segment, const char *batch);
/* This pod reports its first file: drops what another pod, or an earlier attempt, had of speech. */
void outfiles_from(struct engine *e, uint32_t segment, int pod);
/* Adds one. is_new: it was not reported before; otherwise a file of that name replaces the known
 * one. The result is valid until the next call. */
struct outfile *outfiles_add(struct engine *e, int pod, uint32_t segment, const char *name,
			     const char *path, int64_t bytes, const char *sha256, bool is_new);
/* One of them was refused. */
void outfiles_refuse(struct engine *e, uint32_t segment);
/* The pod reports the segment finished, with this event. */
void outfiles_reported(struct engine *e, uint32_t segment, const json_t *event);
void outfiles_discard(struct engine *e, uint32_t segment);

/* EV_FETCHED or EV_FETCH_FAILED follows. */
void outfiles_fetch(struct engine *e, int pod, uint32_t segment);
/* Fetches an output of a command, whatever becomes of the command. */
void outfiles_stream(struct engine *e, uint32_t segment, const struct outfile *f);
/* Those of this pod that are not here: fetches them from where the pod's files are now, or gives
 * them up as lost with it. */
void outfiles_again(struct engine *e, int pod, bool lost);
/* The fetched file under its .part name, which becomes the caller's. */
struct receive *outfiles_take(struct engine *e, uint32_t segment, size_t file);
/* An output of a command that outfiles_take() gave, of this turn, has its final name; or why not.
 */
void outfiles_placed(struct engine *e, uint32_t segment, size_t file, unsigned turn,
		     const struct err *why);
/* Places what is fetched, without waiting for more. */
void outfiles_place(struct engine *e);
/* place.c begins, or has ended, its work on outputs of this segment. */
void outfiles_placing(struct engine *e, uint32_t segment, bool begins);
/* The segment's command has ended: what was lost is tried once more. */
void outfiles_retry(struct engine *e, uint32_t segment);
/* This attempt has an output that cannot be kept: the segment fails for it, and for it alone. */
void outfiles_unkept(struct engine *e, uint32_t segment, const char *why);
/* How many outputs of commands are neither here nor given up. */
size_t outfiles_open(const struct engine *e);
/* At the end: tells which finished outputs are not here, and how to get them. */
void outfiles_note_left(struct engine *e);
/* ERR_JOB: its segment fails for it. */
void outfiles_failed(struct engine *e, uint32_t segment, const struct err *why);
/* Frees the names that a distrusted pod gave, except those of fetched files. */
void outfiles_disclaim(struct engine *e, int pod);
/* The size of the largest file that this pod can have. */
int64_t outfiles_most_bytes(const struct engine *e, int pod);
/* Of this pod's finished segments, as announced: bytes of files that are not fetched yet. */
int64_t outfiles_left(const struct engine *e, int pod);

#endif
