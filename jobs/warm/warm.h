/* warm.h - the job that fills a volume: it is prepared for as the user's own job is, and renders
 * nothing. */
#ifndef BURST_JOBS_WARM_H
#define BURST_JOBS_WARM_H

#include "job.h"

/* Its type in the ledger. A config cannot name it. */
#define JOB_WARM "warm"

extern const struct job_ops job_warm;

/* A job of one command that does nothing, on a pod without a GPU, with the worker files, packages,
 * set-up and variables of `real`. It owns `real` from here on. Free with job_warm.free(). */
struct job *warm_job(const struct job_ops *real_ops, struct job *real);

#endif
