/* embed.h - the worker programs that burst embeds. */
#ifndef BURST_JOBS_WORKERS_EMBED_H
#define BURST_JOBS_WORKERS_EMBED_H

#include "job.h"

/* "espeak-worker", for pods of this machine's architecture */
extern const struct job_file espeak_worker_file;

#endif
