/* calibrate.h - a job whose segments are the real one's texts, as many as a measurement takes.
 */
#ifndef BURST_JOBS_CALIBRATE_H
#define BURST_JOBS_CALIBRATE_H

#include "job.h"

/* The type in the ledger's row of such a run: nothing of it is resumed or delivered. */
#define CALIBRATE "calibrate"

extern const struct job_ops calibrate_ops;

/* Takes over the job, which renders segments for a worker. ERR_CONFIG: it has none. Free with
 * calibrate_ops.free(). */
int calibrate_job(struct job **out, const struct job_ops *real_ops, struct job *real, size_t count,
		  struct err *err);

#endif
