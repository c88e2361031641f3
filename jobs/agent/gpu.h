/* gpu.h - reads the cards and their use from nvidia-smi. */
#ifndef BURST_JOBS_AGENT_GPU_H
#define BURST_JOBS_AGENT_GPU_H

#include "agent.h"
#include "base/str.h"

void gpu_query(struct agent *a);
void gpu_line(struct agent *a, const char *line);

/* Adds one card's line. Once each card has sent one, reports the mean use and the sum of memory. */
void usage_line(struct agent *a, const char *line);
void gpu_read(struct agent *a, int *fd, struct str *b, void (*take)(struct agent *, const char *));

/* Samples the cards, but only while workers run. */
void usage_follow_workers(struct agent *a);

#endif
