/* warm.h - a job that prepares a volume as the user's job needs it, and renders nothing. */
#ifndef BURST_JOBS_WARM_H
#define BURST_JOBS_WARM_H

#include "job.h"

/* Type in the ledger. A config cannot name it. */
#define JOB_WARM "warm"

extern const struct job_ops job_warm;

/* Makes a job of one command that does nothing, on a pod without a GPU, with the worker files,
 * packages, set-up and variables of `real`. Takes over `real`. Free with job_warm.free(). */
struct job *warm_job(const struct job_ops *real_ops, struct job *real);

#endif
