/* sizes.c - how much work a pod holds, and how large its next batch is: sizes shrink toward the end
 * so that all pods finish together. */
#include "impl.h"

/* Workers that could share what is left, those still on their way included. */
static int worker_slots(const struct core *c)
{
	int slots = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (pod_active(p) && p->leave < LEAVE_DRAINING)
			slots += p->workload.workers_ready ? p->workload.workers_ready
							   : c->conf.workers;
	}
	return slots ? slots : 1;
}

/* Segments in the next batch for an engine that renders all of it at once: full ones while there is
 * more than one for each worker, then even shares, so that all workers finish together. Batches
 * that were given are counted, since a share is one of a round. No share is so small that most of
 * its time goes into what a batch costs by itself. */
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

/* The size of a batch of which three quarters of the time go into its segments, where each batch
 * costs something by itself, as it does with engines that render all of it at once: by the line
 * through what batches of different sizes took. 0: nothing is known. */
static double worthwhile_weight(const struct core *c)
{
	if (c->fit.count <= 0)
		return c->weight_todo; /* nothing is known yet, and a small batch would teach little
					*/
	return MIN(3 * pace_fixed_weight(c), c->weight_todo);
}

/* A share of what is left, so that sizes shrink toward the end and all workers finish together. It
 * is not so small that the round trips show, and not so large that a lost pod hurts. A single
 * worker has no other worker to finish together with: small batches would only slow an engine that
 * renders a whole batch at once. */
double size_weight(const struct core *c)
{
	int slots = worker_slots(c);
	double weight = slots == 1 && c->canary_ok && pace_rate(c) > 0
				? c->weight_todo
				: c->weight_todo / (3.0 * slots);
	double rate = pace_rate(c);

	weight = MAX(weight, MIN(worthwhile_weight(c), c->weight_todo / slots));
	/* The first pod gets its share, in two batches, until it is known how many others are worth
	 * it: they are rented only then. */
	if (c->conf.canary && c->conf.pods > 1 && pace_is_rough(c))
		weight = MIN(weight,
			     c->weight_todo / (2.0 * c->conf.pods * MAX(c->conf.workers, 1)));
	if (rate > 0) {
		weight = MIN(weight, rate * 20);
		weight = MAX(weight, rate * 0.25);
	}
	return weight;
}

/* Several batches share a worker's places, so that one ends, and another one can follow, well
 * before all places are free. */
static size_t continuous_batch(const struct core *c, const struct core_pod *p)
{
	return MAX(speed_batch_most(c, p) / CONTINUOUS_BATCHES, (size_t)1);
}

/* How many segments the pod should hold: its workers' places, and half as many that wait there, so
 * that a worker that asks is answered at once; toward the end no more than its share. */
static size_t continuous_hold(const struct core *c, const struct core_pod *p)
{
	size_t workers = (size_t)MAX(p->workload.workers_ready, 1),
	       places = speed_batch_most(c, p) * workers, left = c->todo;
	size_t slots = (size_t)worker_slots(c);

	for (int i = 0; i < c->pod_count; i++)
		left += pod_active(&c->pods[i]) ? c->pods[i].workload.held : 0;
	return MIN(places + (places + 1) / 2, (left + slots - 1) / slots * workers);
}

/* A batch is sent when there is room for all of it. A pod with nothing to do gets what is left,
 * whatever its share. */
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
	/* one batch in each worker's hands and one waiting behind it, so that no worker waits for a
	 * round trip */
	return p->workload.batches < (c->conf.command ? 1 : 2 * MAX(p->workload.workers_ready, 1));
}
