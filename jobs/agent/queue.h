/* queue.h - batches, their parts, and what becomes of a part that did not end well. */
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

/* What a part that did not end well becomes. reason: crash, hang, oom, garbage, or "worker" (it
 * lives and says no). in_flight: so many segments its worker held. A continuous worker that ran out
 * of memory is given fewer at a time; which of them ended it otherwise is found by trying their
 * parts alone (worker_room). */
void part_failed(struct agent *a, const struct worker *w, struct part *p, size_t in_flight,
		 const char *reason, const char *words);

#endif
