/* outfiles.h - fetches, verifies and checks the outputs of pods. */
#ifndef BURST_ENGINE_OUTFILES_H
#define BURST_ENGINE_OUTFILES_H

#include "fetch.h"

struct engine;
struct outfile;

/* is_new: it was not reported before; otherwise a file of that name replaces the known one. */
struct outfile *outfiles_add(struct engine *e, uint32_t segment, const char *name, const char *path,
			     int64_t bytes, const char *sha256, bool is_new);
void outfiles_fetch(struct engine *e, int pod, uint32_t segment);
/* Fetches one that was just added while its command still runs. */
void outfiles_stream(struct engine *e, int pod, uint32_t segment, const struct outfile *f);
void outfiles_discard(struct engine *e, uint32_t segment);
void outfiles_reset(struct engine *e, uint32_t segment);
/* ERR_JOB: its segment fails for it. */
void outfiles_failed(struct engine *e, uint32_t segment, const struct err *why);
/* Frees the names that a distrusted pod gave, except those of fetched files. */
void outfiles_disclaim(struct engine *e, int pod);
/* The size of the largest file that this pod can have. */
int64_t outfiles_most_bytes(const struct engine *e, int pod);
/* Of this pod's finished segments, as announced: bytes of files that are not fetched yet. */
int64_t outfiles_left(const struct engine *e, int pod);

#endif
