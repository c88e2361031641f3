/* calibrate.h - a job that renders the real job's texts, as many as a measurement needs. */
#ifndef BURST_JOBS_CALIBRATE_H
#define BURST_JOBS_CALIBRATE_H

#include "job.h"

/* Type of the run in the ledger. Such a run is never resumed or delivered. */
#define CALIBRATE "calibrate"

extern const struct job_ops calibrate_ops;

/* Makes a job of `count` segments, which repeat those of real's largest group in turn. Takes over
 * `real`, also on failure. ERR_CONFIG: `real` has no segments. Free with calibrate_ops.free(). */
int calibrate_job(struct job **out, const struct job_ops *real_ops, struct job *real, size_t count,
		  struct err *err);

#endif
