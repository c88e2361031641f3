/* held.h - the parts that a worker holds, and for how long it held them. */
#ifndef BURST_JOBS_AGENT_HELD_H
#define BURST_JOBS_AGENT_HELD_H

#include <stddef.h>

#include "agent.h"

size_t part_open(const struct part *p);

/* Number of segments that the worker holds. A worker that renders a batch holds all of it until the
 * batch ends. */
size_t in_flight(const struct worker *w);

/* Call before the parts of a worker change. */
void share_advance(const struct agent *a, struct worker *w);

/* Removes a part that has ended, with or without success. */
void worker_drop(const struct agent *a, struct worker *w, struct part *p);

/* Takes all that the worker holds of a batch away from it, as one part. */
struct part *worker_leave(const struct agent *a, struct worker *w, struct batch *b);
void worker_failed_parts(struct agent *a, struct worker *w, const char *reason, const char *words);
struct segment *held_segment(const struct worker *w, const char *id, struct part **part);
struct batch *held_batch(const struct worker *w, const char *id);

/* Puts the worker's unfinished segments back into the queue. */
void worker_requeue(struct agent *a, struct worker *w);

#endif
