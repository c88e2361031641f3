/* outlook.c - how long the run will still take and what it will have cost: for displays; decides
 * nothing. */
#include "impl.h"

#include <stdlib.h>

#include "base/clock.h"

enum {
	/* from the release call to its answer, with the list that follows */
	RELEASE_MS = 1500,
	RELEASE_HERE_MS = 300, /* where no list lags */
	LEAST_SHARE = 4,       /* an overdue pod is expected after this part of the usual time */
	OUTLOOK_MOST_S = 30 * 24 * 3600, /* later ends count as unknown */
};

struct helper { /* a pod that renders, or will */
	double from_s, rate;
};

/* What a worker renders a second by the plan: by the forecast of its GPU, else by the job's own
 * estimates. */
static double planned_rate(const struct core *c, const struct core_pod *p)
{
	const struct forecast *f = forecast_of(c, p->rental.offer.provider, p->rental.offer.gpu);
	double mean = c->todo ? c->weight_todo / (double)c->todo : 0, est_s = 0, weight = 0;

	if (f && mean > 0) {
		double sum = mean *
			     (double)MAX(MIN((size_t)MAX(f->of.batch_max, 1), c->todo), (size_t)1);
		double batch_s = speed_batch_s(&f->of.speed, mean, sum);
		if (batch_s > 0)
			return sum / batch_s;
	}
	for (size_t i = 0; i < c->seg_count; i++)
		if (seg_is_unrendered(c->segs[i].state)) {
			est_s += c->segs[i].est_s;
			weight += c->segs[i].weight;
		}
	return est_s > 0 ? weight / est_s : 0;
}

/* From now on. A pod that takes longer than expected always counts as nearly ready. */
static double ready_in_s(const struct core *c, const struct core_pod *p, int64_t now)
{
	const struct forecast *f = forecast_of(c, p->rental.offer.provider, p->rental.offer.gpu);
	int64_t cold_ms = c->cold_ms                  ? c->cold_ms
			  : f && f->of.cold_p50_s > 0 ? (int64_t)(f->of.cold_p50_s * 1000)
						      : COLD_GUESS_MS;

	if (p->phase == POD_WORKING)
		return 0;
	return (double)MAX(cold_ms - (now - p->rental.create_at), cold_ms / LEAST_SHARE) / 1000;
}

static int by_start(const void *a, const void *b)
{
	double x = ((const struct helper *)a)->from_s, y = ((const struct helper *)b)->from_s;

	return (x > y) - (x < y);
}

static size_t list_helpers(const struct core *c, int64_t now, struct helper *list)
{
	double measured = pace_rate(c), planned = 0;
	size_t count = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (!pod_active(p) || pod_is_draining(p) || p->phase == POD_AMBIGUOUS)
			continue;
		if (measured <= 0 && planned <= 0)
			planned = planned_rate(c, p);
		double rate = measured > 0 ? measured : planned;
		int workers = p->workload.workers_ready ? p->workload.workers_ready
							: MAX(c->conf.workers, 1);
		list[count++] =
			(struct helper){.from_s = ready_in_s(c, p, now), .rate = rate * workers};
	}
	qsort(list, count, sizeof(*list), by_start);
	return count;
}

/* When this weight is rendered, by helpers that join one after the other; negative: never. */
static double done_in_s(const struct helper *list, size_t count, double weight)
{
	double rate = 0, at = 0;

	for (size_t i = 0; i < count; i++) {
		double by_then = rate * (list[i].from_s - at);
		if (by_then >= weight)
			break;
		weight -= by_then;
		at = list[i].from_s;
		rate += list[i].rate;
	}
	return rate > 0 ? at + weight / rate : -1;
}

static int64_t release_ms(const struct core *c, const struct core_pod *p)
{
	return c->conf.providers[p->rental.provider].list_gap_ms ? RELEASE_MS : RELEASE_HERE_MS;
}

/* Until the last pod is proven gone, if all are released when the work is done. */
static int64_t gone_in_ms(const struct core *c, int64_t now, int64_t render_ms)
{
	int64_t last = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (!pod_may_bill(p))
			continue;
		int64_t proof =
			c->conf.providers[p->rental.provider].list_gap_ms + release_ms(c, p);
		int64_t from = p->phase == POD_CONFIRMING && p->rental.released_at
				       ? p->rental.released_at - now
			       : p->phase == POD_RELEASING ? 0
							   : render_ms;
		last = MAX(last, MAX(from + proof, 0));
	}
	return last;
}

static double weight_left(const struct core *c)
{
	double left = 0;

	for (size_t i = 0; i < c->seg_count; i++)
		left += seg_is_unrendered(c->segs[i].state) ? c->segs[i].weight : 0;
	return left;
}

void core_outlook(const struct core *c, int64_t now_ms, struct core_outlook *out)
{
	double left = weight_left(c), render_s = 0;

	*out = (struct core_outlook){.stops = c->signals,
				     .stopping = core_stopping(c),
				     .render_ms = -1,
				     .gone_ms = -1,
				     .total_microusd = -1};
	if (left > 0 && !out->stopping) {
		struct helper *list = xcalloc((size_t)c->pod_count + 1, sizeof(*list));
		render_s = done_in_s(list, list_helpers(c, now_ms, list), left);
		free(list);
	}
	if (render_s < 0 || render_s > OUTLOOK_MOST_S)
		return;
	out->render_ms = (int64_t)(render_s * 1000);
	out->gone_ms = gone_in_ms(c, now_ms, out->render_ms);
	out->total_microusd = 0;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		bool bills = !pod_is_released(p) && p->phase != POD_AMBIGUOUS;
		out->total_microusd +=
			core_cost(p, now_ms) + (bills ? money_for(p->rental.price_microusd_h,
								  out->render_ms + release_ms(c, p))
						      : 0);
	}
}
