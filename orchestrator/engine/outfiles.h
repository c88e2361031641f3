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
 * the list. Only outfiles.c writes it. */
struct outputs {
	struct outfile *files;   /* one for speech, any number for a command */
	size_t count, cap, home; /* home: the number that are fetched and verified */
	int pod;                 /* whose they are; -1: not known */
	enum outputs_state {
		OUTPUTS_OPEN,     /* further files may be reported */
		OUTPUTS_REPORTED, /* the pod has reported the segment finished */
		OUTPUTS_ANNOUNCED /* all are fetched: the core has had EV_FETCHED */
	} state;
	bool refused; /* one of them was: later reports of this attempt are ignored */
	struct check check;
	/* as the pod reported */
	char batch[24];
	double seconds;
	int rate;
};

struct outfiles {
	struct outputs *of; /* by segment */
	unsigned turns;     /* given to fetches; each number once */
};

/* Before the first batch, for the engine's job; outfiles_free() while claims.c still works. */
void outfiles_new(struct engine *e);
void outfiles_free(struct engine *e);

/* The segment is sent to a pod: drops what an earlier attempt had. */
void outfiles_expect(struct engine *e, uint32_t segment);
/* This pod reports its first file: drops what another pod, or an earlier attempt, had. */
void outfiles_from(struct engine *e, uint32_t segment, int pod);
/* Adds one. is_new: it was not reported before; otherwise a file of that name replaces the known
 * one. The result is valid until the next call. */
struct outfile *outfiles_add(struct engine *e, uint32_t segment, const char *name, const char *path,
			     int64_t bytes, const char *sha256, bool is_new);
/* One of them was refused. */
void outfiles_refuse(struct engine *e, uint32_t segment);
/* The pod reports the segment finished, with this event. */
void outfiles_reported(struct engine *e, uint32_t segment, const json_t *event);
void outfiles_discard(struct engine *e, uint32_t segment);

/* EV_FETCHED or EV_FETCH_FAILED follows. */
void outfiles_fetch(struct engine *e, int pod, uint32_t segment);
/* Fetches one that was just added while its command still runs. */
void outfiles_stream(struct engine *e, int pod, uint32_t segment, const struct outfile *f);
/* The fetched file under its .part name, which becomes the caller's. */
struct receive *outfiles_take(struct engine *e, uint32_t segment, size_t file);
/* ERR_JOB: its segment fails for it. */
void outfiles_failed(struct engine *e, uint32_t segment, const struct err *why);
/* Frees the names that a distrusted pod gave, except those of fetched files. */
void outfiles_disclaim(struct engine *e, int pod);
/* The size of the largest file that this pod can have. */
int64_t outfiles_most_bytes(const struct engine *e, int pod);
/* Of this pod's finished segments, as announced: bytes of files that are not fetched yet. */
int64_t outfiles_left(const struct engine *e, int pod);

#endif
