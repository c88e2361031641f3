/* forecast.c - what the plan expects of each GPU, what its batches really take, and whether the two
 * differ much. */
#include "impl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "plan/replan.h"

enum {
	BATCHES_LEAST = 2, /* batches after a worker's first that a measurement needs */
	BATCH_LONG_S = 20, /* one batch of this length is enough */
};

void forecast_init(struct core *c)
{
	struct replan *r = &c->replan;
	const struct core_plan *plan = &c->conf.plan;

	r->count = plan->forecast_count;
	r->forecasts = xcalloc(r->count, sizeof(*r->forecasts));
	for (size_t i = 0; i < r->count; i++)
		r->forecasts[i].of = plan->forecasts[i];
	c->conf.plan.forecasts = NULL; /* the caller's */
}

void forecast_free(struct core *c)
{
	free(c->replan.forecasts);
}

/* ---- what was measured ---- */

struct forecast *forecast_of(const struct core *c, const char *provider, const char *gpu)
{
	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		if (!strcmp(f->of.provider, provider) && !strcmp(f->of.gpu, gpu))
			return f;
	}
	return NULL;
}

static bool is_conclusive(const struct forecast *f)
{
	return f->batches >= BATCHES_LEAST || (f->batches && f->measured_s >= BATCH_LONG_S);
}

static bool is_off(const struct forecast *f)
{
	return is_conclusive(f) && replan_speed_is_off(f->measured_s, f->planned_s);
}

static void measured(struct core *c, const struct core_pod *p, size_t segments, double longest,
		     double weight, int64_t ms)
{
	struct forecast *f = forecast_of(c, p->rental.offer.provider, p->rental.offer.gpu);
	double planned_s = f && ms > 0 ? speed_batch_s(&f->of.speed, longest, weight) : 0;

	if (planned_s <= 0)
		return;
	f->measured_s += (double)ms / 1000;
	f->planned_s += planned_s;
	f->segments += segments;
	f->batches++;
	c->dirty = c->dirty || is_off(f);
}

void forecast_measured(struct core *c, const struct core_batch *b, int64_t ms)
{
	const struct core_pod *p = &c->pods[b->pod];
	double longest = 0;

	/* continuous batches overlap: forecast_measured_beside() */
	if (b->first || p->workload.batching == BATCHING_CONTINUOUS)
		return;
	for (size_t i = 0; i < b->count; i++)
		longest = MAX(longest, c->segs[b->segments[i]].weight);
	measured(c, p, b->count, longest, b->weight, ms);
}

void forecast_measured_beside(struct core *c, const struct core_pod *p, size_t segments,
			      double weight, int64_t ms)
{
	measured(c, p, segments, weight / (double)segments, weight, ms);
}

/* Carries a measured GPU's speed over to GPUs without a measurement. */
static void carry_over(struct core *c, const struct forecast *from, double factor)
{
	const struct gpu *had = gpu_find(from->of.gpu);

	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		const struct gpu *its = gpu_find(f->of.gpu);
		if (f->of.measured)
			continue;
		if (f->of.host_share >= 1)
			f->of.speed = from->of.speed;
		else if (had && its)
			f->of.speed = speed_carry(&from->of.speed, had, its, f->of.host_share);
		else
			f->of.speed = speed_scale(&f->of.speed, factor);
	}
}

/* The plan as it would have been with what is known now. */
void forecast_correct(struct core *c)
{
	const struct forecast *best = NULL;
	double factor = 1;

	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		if (!is_conclusive(f))
			continue;
		double its = f->measured_s / f->planned_s;
		f->of.speed = speed_scale(&f->of.speed, its);
		f->of.measured = true;
		if (!best || f->batches > best->batches) {
			best = f;
			factor = its;
		}
	}
	if (best)
		carry_over(c, best, factor);
	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		if (is_conclusive(f))
			*f = (struct forecast){.of = f->of, .seen = true};
	}
	for (size_t i = 0; i < c->candidate_count; i++)
		c->candidates[i].planned_microusd_h = c->candidates[i].offer.price_microusd_h;
}

/* ---- why ---- */

static bool moved(const struct candidate *k)
{
	return replan_price_is_off((double)k->offer.price_microusd_h,
				   (double)k->planned_microusd_h);
}

static const struct candidate *moved_price(const struct core *c)
{
	for (size_t i = 0; i < c->candidate_count; i++)
		if (moved(&c->candidates[i]))
			return &c->candidates[i];
	return NULL;
}

void forecast_listed(struct core *c)
{
	for (size_t i = 0; i < c->candidate_count; i++)
		if (!c->candidates[i].planned_microusd_h)
			c->candidates[i].planned_microusd_h =
				c->candidates[i].offer.price_microusd_h;
}

/* "0.078", "3.1", "240" */
static const char *show_seconds(char to[24], double seconds)
{
	snprintf(to, 24, seconds < 9.95 ? "%.2g" : "%.0f", seconds);
	return to;
}

bool forecast_why(const struct core *c, char *to, size_t room)
{
	char was[32], is[32];

	for (size_t i = 0; i < c->replan.count; i++) {
		const struct forecast *f = &c->replan.forecasts[i];
		if (!is_off(f))
			continue;
		bool gpu = !gpu_is_none(f->of.gpu);
		snprintf(to, room, "%s than planned: %s s a segment%s%s instead of %s s",
			 f->measured_s > f->planned_s ? "slower" : "faster",
			 show_seconds(is, f->measured_s / (double)f->segments), gpu ? " on " : "",
			 gpu ? f->of.gpu : "",
			 show_seconds(was, f->planned_s / (double)f->segments));
		return true;
	}
	const struct candidate *k = moved_price(c);
	if (!k)
		return false;
	snprintf(to, room, "the price of %s at %s moved from %s to %s an hour", k->offer.gpu,
		 k->offer.provider, money_show(was, sizeof(was), k->planned_microusd_h),
		 money_show(is, sizeof(is), k->offer.price_microusd_h));
	return true;
}
