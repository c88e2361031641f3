/* queue.h - batches, their parts, and what becomes of a part that failed. */
#ifndef BURST_JOBS_AGENT_QUEUE_H
#define BURST_JOBS_AGENT_QUEUE_H

#include <stddef.h>

#include "agent.h"

void segment_failed(struct agent *a, const char *batch, const char *id, int try, const char *reason,
		    const char *error);
void batch_free(struct batch *b);
void batch_unlink(struct agent *a, struct batch *b);
struct part *part_new(size_t n, int kills);
void part_add_slice(struct batch *b, const struct part *of, size_t from, size_t n, int kills);
void batch_settled(struct agent *a, struct batch *b);
struct part *part_unsettled(const struct batch *b, const struct part *p);

/* Decides how a failed part is tried again. reason: crash, hang, oom, garbage, or "worker" (it is
 * alive and reports an error). in_flight: how many segments its worker held. A continuous worker
 * that ran out of memory gets fewer segments at a time. After another failure its parts run alone,
 * to find the cause (worker_room). */
void part_failed(struct agent *a, const struct worker *w, struct part *p, size_t in_flight,
		 const char *reason, const char *words);

#endif
