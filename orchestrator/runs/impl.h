/* impl.h - shared by the files of this folder */
#ifndef BURST_RUNS_IMPL_H
#define BURST_RUNS_IMPL_H

#include "base/mem.h"
#include "job.h"
#include "runs.h"

/* The account of this provider that the run has opened; NULL: none. Valid until run_free(). */
const struct engine_provider *run_provider(const struct run *run, const char *name);
/* Passes a line to runs->watch. */
void runs_note(const struct runs *rs, enum log_level level, const char *fmt, ...) PRINTF(3, 4);

/* ---- segment keys ----
 * Keeps what each segment of a run was when the run began: runs/ID/keys, a line "KEY ID" each.
 *
 * Outputs on a pod are identified only by the segment's id. A script that has changed since must
 * not get the old text's sound. */

struct run_keys;

/* *out is NULL, without an error, if the run has no such file. */
int run_keys_read(struct run_keys **out, const char *run_dir, struct err *err);
void run_keys_free(struct run_keys *keys); /* accepts NULL */
/* Whether the segment is unchanged, or was not part of the run when it began. keys may be NULL. */
bool run_keys_fit(const struct run_keys *keys, const struct segment *segment);
/* Writes these segments' keys beside the old ones: an old segment keeps its key. */
int run_keys_write(const struct run_keys *old, const char *run_dir, const struct segment *segments,
		   size_t count, struct err *err);

DEFINE_CLEANUP(run_keys_free, struct run_keys *)

#endif
