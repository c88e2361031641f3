/* speed.c - what a batch should take, by the measurements of earlier runs or else by the job's own estimate. */
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
		if (pod_active(&c->pods[i]) && is_known(&c->pods[i].speed))
			return &c->pods[i];
	return NULL;
}

double speed_rate(const struct core *c)
{
	const struct core_pod *p = measured_pod(c);

	if (!p || !c->todo)
		return 0;
	double mean = c->weight_todo / (double)c->todo, sum = mean * (double)MIN(dispatch_batch_most(c, p), c->todo);
	double ms = batch_ms(&p->speed, mean, sum); /* batches hold segments of like length */
	return ms > 0 ? sum * 1000 / ms : 0;
}

/* The job's estimate is of one segment. It is a share of a full batch where the engine renders all of it at once, which takes about as
 * long for a few. */
static double estimated_ms(const struct core *c, const struct core_batch *b)
{
	const struct core_pod *p = &c->pods[b->pod];
	double ms = 0, count = (double)b->count;

	for (size_t i = 0; i < b->count; i++)
		ms += c->segs[b->segments[i]].est_s * 1000;
	return p->batching == BATCHING_PADDED && b->count ? ms / count * MAX((double)dispatch_batch_most(c, p), count) : ms;
}

static double expected_ms(const struct core *c, const struct core_batch *b)
{
	const struct batch_speed *speed = &c->pods[b->pod].speed;
	double longest = 0;

	if (!is_known(speed))
		return estimated_ms(c, b);
	for (size_t i = 0; i < b->count; i++)
		longest = MAX(longest, c->segs[b->segments[i]].weight);
	return batch_ms(speed, longest, b->weight);
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
