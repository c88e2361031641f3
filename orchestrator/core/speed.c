/* speed.c - how long a batch should take, by measurements of earlier runs or else by the job's own
 * estimate. */
#include "impl.h"

static bool is_known(const struct batch_speed *s)
{
	return s->once_ms + s->longest_ms + s->each_ms > 0;
}

static double batch_ms(const struct batch_speed *s, double longest, double sum)
{
	return s->once_ms + s->longest_ms * longest + s->each_ms * sum;
}

/* The pod whose engine has been measured; they all run the same one. */
static const struct core_pod *measured_pod(const struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (pod_active(&c->pods[i]) && is_known(&c->pods[i].workload.speed))
			return &c->pods[i];
	return NULL;
}

double speed_rate(const struct core *c)
{
	const struct core_pod *p = measured_pod(c);

	if (!p || !c->todo)
		return 0;
	double mean = c->weight_todo / (double)c->todo,
	       sum = mean * (double)MIN(speed_batch_most(c, p), c->todo);
	double ms =
		batch_ms(&p->workload.speed, mean, sum); /* batches hold segments of like length */
	return ms > 0 ? sum * 1000 / ms : 0;
}

/* Estimates, and measurements of continuous engines, are a segment's share of a full batch or of a
 * worker's places. A few segments alone take about as long as a full batch. */
static double alone(const struct core *c, const struct core_batch *b)
{
	double count = (double)b->count;

	return b->count ? MAX((double)speed_batch_most(c, &c->pods[b->pod]), count) / count : 1;
}

static double expected_ms(const struct core *c, const struct core_batch *b)
{
	const struct core_pod *p = &c->pods[b->pod];
	double estimated_ms = 0, longest = 0;

	for (size_t i = 0; i < b->count; i++) {
		estimated_ms += c->segs[b->segments[i]].est_s * 1000;
		longest = MAX(longest, c->segs[b->segments[i]].weight);
	}
	if (!is_known(&p->workload.speed))
		return p->workload.batching == BATCHING_NONE ? estimated_ms
							     : estimated_ms * alone(c, b);
	double measured_ms = batch_ms(&p->workload.speed, longest, b->weight);
	return p->workload.batching == BATCHING_CONTINUOUS ? measured_ms * alone(c, b)
							   : measured_ms;
}

double core_batch_expected_ms(const struct core *c, uint32_t batch)
{
	return expected_ms(c, &c->batches[batch]);
}

void speed_judge_canary(struct core *c, const struct core_batch *b, int64_t ms)
{
	double expected = expected_ms(c, b);
	struct err err;

	if (expected <= 0 || ms < SLOW_CANARY_MIN_MS || (double)ms < expected * SLOW_CANARY_FACTOR)
		return;
	err_set(&err, ERR_JOB,
		"the first batch took %.0f s where %.0f s were expected: stopped while it is cheap "
		"(is the GPU in use?)",
		(double)ms / 1000, expected / 1000);
	core_fault(c, b->pod, &err);
}

/* How many segments a batch for this pod may have. An engine that renders one after the other gains
 * nothing from more than the job names. */
size_t speed_batch_most(const struct core *c, const struct core_pod *p)
{
	int most = c->conf.max_batch;

	if (p->workload.max_batch > 0 &&
	    (p->workload.max_batch < most ||
	     (p->workload.batching != BATCHING_NONE && !c->conf.max_batch_is_cap)))
		most = p->workload.max_batch;
	return (size_t)MAX(most, 1);
}
