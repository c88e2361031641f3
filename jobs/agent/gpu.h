/* gpu.h - asks nvidia-smi for the cards and their use. */
#ifndef BURST_JOBS_AGENT_GPU_H
#define BURST_JOBS_AGENT_GPU_H

#include "agent.h"
#include "base/str.h"

void gpu_query(struct agent *a);
void gpu_line(struct agent *a, const char *line);

/* Several cards: the mean of their use, the sum of their memory. A round ends once each card has
 * sent its line. */
void usage_line(struct agent *a, const char *line);
void gpu_read(struct agent *a, int *fd, struct str *b, void (*take)(struct agent *, const char *));

/* The card's use matters only while workers use it. */
void usage_follow_workers(struct agent *a);

#endif
