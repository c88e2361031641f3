/* sizes.c - how much work a pod holds, and the size of its next batch: sizes shrink toward the end
 * so that all pods finish together. */
#include "impl.h"

/* Workers that could share what is left, including those that still boot. */
static int worker_slots(const struct core *c)
{
	int slots = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (pod_active(p) && !pod_is_draining(p))
			slots += p->workload.workers_ready ? p->workload.workers_ready
							   : c->conf.workers;
	}
	return slots ? slots : 1;
}

/* Segments in the next batch for an engine that renders a whole batch at once: full batches while
 * there is more than one for each worker, then even shares, so that all workers finish together.
 * Batches already given count, since a share is one of a round. A share is never so small that a
 * batch's fixed cost dominates. */
static size_t padded_count(const struct core *c, const struct core_pod *p)
{
	size_t most = speed_batch_most(c, p), slots = (size_t)worker_slots(c);
	size_t batches = (c->todo + most - 1) / most, fewest = batches;

	while ((c->padded + batches) % slots)
		batches++;
	double fixed = pace_fixed_weight(c);
	if (fixed > 0)
		batches = MAX(fewest, MIN(batches, (size_t)(c->weight_todo / fixed)));
	return MIN((c->todo + batches - 1) / batches, most);
}

/* The size at which three quarters of a batch's time go into its segments, for engines with a fixed
 * cost per batch. 0: unknown. */
static double worthwhile_weight(const struct core *c)
{
	if (c->fit.count <= 0)
		return c->weight_todo; /* nothing is known yet, and a small batch would teach little
					*/
	return MIN(3 * pace_fixed_weight(c), c->weight_todo);
}

/* A share of what is left, so that sizes shrink toward the end and all workers finish together: not
 * so small that round trips show, not so large that a lost pod hurts. A single worker needs no
 * small batches: they would only slow an engine that renders a whole batch at once. */
double size_weight(const struct core *c)
{
	int slots = worker_slots(c);
	double weight = slots == 1 && c->canary_ok && pace_rate(c) > 0
				? c->weight_todo
				: c->weight_todo / (3.0 * slots);
	double rate = pace_rate(c);

	weight = MAX(weight, MIN(worthwhile_weight(c), c->weight_todo / slots));
	/* Until it is known how many other pods pay, the first pod gets its share in two batches.
	 */
	if (c->conf.canary && c->conf.pods > 1 && pace_is_rough(c))
		weight = MIN(weight,
			     c->weight_todo / (2.0 * c->conf.pods * MAX(c->conf.workers, 1)));
	if (rate > 0) {
		weight = MIN(weight, rate * 20);
		weight = MAX(weight, rate * 0.25);
	}
	return weight;
}

/* Several batches share a worker's places, so that one ends and another one follows well before all
 * places are free. */
static size_t continuous_batch(const struct core *c, const struct core_pod *p)
{
	return MAX(speed_batch_most(c, p) / CONTINUOUS_BATCHES, (size_t)1);
}

/* How many segments the pod should hold: its workers' places plus half as many in its queue, so
 * that a worker never waits; toward the end no more than its share. */
static size_t continuous_hold(const struct core *c, const struct core_pod *p)
{
	size_t workers = (size_t)MAX(p->workload.workers_ready, 1),
	       places = speed_batch_most(c, p) * workers, left = c->todo;
	size_t slots = (size_t)worker_slots(c);

	for (int i = 0; i < c->pod_count; i++)
		left += pod_active(&c->pods[i]) ? c->pods[i].workload.held : 0;
	return MIN(places + (places + 1) / 2, (left + slots - 1) / slots * workers);
}

/* A batch is sent when all of it fits. A pod without work gets what is left, whatever its share. */
static bool continuous_wants(const struct core *c, const struct core_pod *p)
{
	size_t hold = continuous_hold(c, p), next = MIN(continuous_batch(c, p), c->todo);

	return !p->workload.held || p->workload.held + next <= hold;
}

static size_t continuous_count(const struct core *c, const struct core_pod *p)
{
	return MAX(MIN(continuous_batch(c, p), continuous_hold(c, p)), (size_t)1);
}

size_t size_count(const struct core *c, const struct core_pod *p)
{
	switch (p->workload.batching) {
	case BATCHING_PADDED: return padded_count(c, p);
	case BATCHING_CONTINUOUS: return continuous_count(c, p);
	case BATCHING_NONE: break;
	}
	return speed_batch_most(c, p);
}

bool size_wants_more(const struct core *c, const struct core_pod *p)
{
	if (p->workload.batching == BATCHING_CONTINUOUS)
		return continuous_wants(c, p);
	/* one batch in work and one queued per worker, so that no worker waits for a round trip */
	return p->workload.batches < (c->conf.command ? 1 : 2 * MAX(p->workload.workers_ready, 1));
}
