/* excerpt.h - jobs of a few segments of the real job: to measure its engine, or to be listened to
 */
#ifndef BURST_JOBS_EXCERPT_H
#define BURST_JOBS_EXCERPT_H

#include "job.h"

/* Types of such runs in the ledger. They are never resumed or delivered. */
#define CALIBRATE "calibrate"
#define LISTEN    "listen"

extern const struct job_ops calibrate_ops, listen_ops;

/* Both types; NULL-terminated. */
extern const char *const excerpt_types[];
/* Whether a run of this type rendered an excerpt. */
bool excerpt_is(const char *type);

/* Makes a job for calibrate_ops of `count` segments, which repeat those of real's largest group in
 * turn. Takes over `real`, also on failure. ERR_CONFIG: `real` has no segments. Free with
 * calibrate_ops.free(). */
int calibrate_job(struct job **out, const struct job_ops *real_ops, struct job *real, size_t count,
		  struct err *err);
/* Makes a job for listen_ops of real's segments with these `count` indices. Their ids and files
 * keep their names. Takes over `real`. Free with listen_ops.free(). */
struct job *listen_job(const struct job_ops *real_ops, struct job *real, const size_t *indices,
		       size_t count);

#endif
