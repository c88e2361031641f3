/* outfiles.h - outputs on their way from a pod to this machine. */
#ifndef BURST_ENGINE_OUTFILES_H
#define BURST_ENGINE_OUTFILES_H

#include "fetch.h"

struct engine;
struct outfile;

/* is_new: it was not told before; then a file of that name replaces the one that is known. */
struct outfile *outfiles_add(struct engine *e, uint32_t segment, const char *name, const char *path,
			     int64_t bytes, const char *sha256, bool is_new);
void outfiles_fetch(struct engine *e, int pod, uint32_t segment);
/* One that was added just now, while its command still runs. */
void outfiles_stream(struct engine *e, int pod, uint32_t segment, const struct outfile *f);
void outfiles_discard(struct engine *e, uint32_t segment);
void outfiles_reset(struct engine *e, uint32_t segment);
/* ERR_JOB: its segment fails for it. */
void outfiles_failed(struct engine *e, uint32_t segment, const struct err *why);
/* A pod that is not believed any more has no names: those of what is not safe are free. */
void outfiles_disclaim(struct engine *e, int pod);
/* The largest file that this pod can have. */
int64_t outfiles_most_bytes(const struct engine *e, int pod);
/* Of this pod's finished segments, as announced: bytes of files that are not here yet. */
int64_t outfiles_left(const struct engine *e, int pod);

#endif
