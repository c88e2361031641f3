/* held.h - the parts that a worker holds, and how long it took for them. */
#ifndef BURST_JOBS_AGENT_HELD_H
#define BURST_JOBS_AGENT_HELD_H

#include <stddef.h>

#include "agent.h"

size_t part_open(const struct part *p);

/* Segments that it holds. A worker that renders a batch holds all of it until the batch is over. */
size_t in_flight(const struct worker *w);

/* To be called before the parts of a worker change. */
void share_advance(const struct agent *a, struct worker *w);

/* This part is over, with or without success. */
void worker_drop(const struct agent *a, struct worker *w, struct part *p);

/* All that the worker holds of a batch, as one part; the worker keeps none of it. */
struct part *worker_leave(const struct agent *a, struct worker *w, struct batch *b);
void worker_failed_parts(struct agent *a, struct worker *w, const char *reason, const char *words);
struct segment *held_segment(const struct worker *w, const char *id, struct part **part);
struct batch *held_batch(const struct worker *w, const char *id);

/* Whether its unfinished segments can be begun again. */
void worker_give_back(struct agent *a, struct worker *w);

#endif
