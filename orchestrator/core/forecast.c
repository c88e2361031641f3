/* forecast.c - compares what the plan expects with what is measured, and forecasts the end. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "impl.h"
#include "plan/replan.h"

/* ---- speed ----
 * How long a batch should take, by measurements of earlier runs or else by the job's own
 * estimate. */

static bool is_speed_known(const struct batch_speed *s)
{
	return s->once_ms + s->longest_ms + s->each_ms > 0;
}

/* Expected time of a batch. longest, sum: weight of its heaviest segment, and of all. */
static double batch_ms(const struct batch_speed *s, double longest, double sum)
{
	return s->once_ms + s->longest_ms * longest + s->each_ms * sum;
}

/* A pod whose engine was measured in earlier runs; NULL: none. All pods run the same engine. */
static const struct core_pod *measured_pod(const struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (pod_is_active(&c->pods[i]) && is_speed_known(&c->pods[i].workload.speed))
			return &c->pods[i];
	return NULL;
}

/* Weight a second of one worker, like pace_rate(), by measurements of earlier runs; 0: none. */
static double speed_rate(const struct core *c)
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

/* By how much a batch takes longer than the sum of its segments' shares. Estimates, and
 * measurements of continuous engines, are a segment's share of a full batch or of a worker's
 * places. A few segments alone take about as long as a full batch. */
static double alone_factor(const struct core *c, const struct core_batch *b)
{
	double count = (double)b->count;

	return b->count ? MAX((double)speed_batch_most(c, &c->pods[b->pod]), count) / count : 1;
}

/* Time of a batch by measurements of its engine, else by the job's estimates; 0: unknown. */
static double expected_ms(const struct core *c, const struct core_batch *b)
{
	const struct core_pod *p = &c->pods[b->pod];
	double estimated_ms = 0, longest = 0;

	for (size_t i = 0; i < b->count; i++) {
		estimated_ms += c->segs[b->segments[i]].est_s * 1000;
		longest = MAX(longest, c->segs[b->segments[i]].weight);
	}
	if (!is_speed_known(&p->workload.speed))
		return p->workload.batching == BATCHING_NONE ? estimated_ms
							     : estimated_ms * alone_factor(c, b);
	double measured_ms = batch_ms(&p->workload.speed, longest, b->weight);
	return p->workload.batching == BATCHING_CONTINUOUS ? measured_ms * alone_factor(c, b)
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

/* An engine that renders one after the other gains nothing from more than the job names. */
size_t speed_batch_most(const struct core *c, const struct core_pod *p)
{
	int most = c->conf.max_batch;

	if (p->workload.max_batch > 0 &&
	    (p->workload.max_batch < most ||
	     (p->workload.batching != BATCHING_NONE && !c->conf.max_batch_is_cap)))
		most = p->workload.max_batch;
	return (size_t)MAX(most, 1);
}

/* ---- forecast ----
 * What the plan expects of each GPU, what its batches really take, and whether the two differ
 * much. */

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

/* Whether enough was measured to correct the forecast. */
static bool is_conclusive(const struct forecast *f)
{
	return f->batches >= BATCHES_LEAST || (f->batches && f->measured_s >= BATCH_LONG_S);
}

static bool is_off(const struct forecast *f)
{
	return is_conclusive(f) && replan_speed_is_off(f->measured_s, f->planned_s);
}

/* Adds batches of this size that took ms to the forecast of the pod's GPU. */
static void add_measurement(struct core *c, const struct core_pod *p, size_t segments,
			    double longest, double weight, int64_t ms)
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

void forecast_add_batch(struct core *c, const struct core_batch *b, int64_t ms)
{
	const struct core_pod *p = &c->pods[b->pod];
	double longest = 0;

	/* continuous batches overlap: add_overlapping() */
	if (b->first || p->workload.batching == BATCHING_CONTINUOUS)
		return;
	for (size_t i = 0; i < b->count; i++)
		longest = MAX(longest, c->segs[b->segments[i]].weight);
	add_measurement(c, p, b->count, longest, b->weight, ms);
}

/* For a worker that renders several batches side by side: adds what it finished in this time, about
 * as much as it holds. */
static void add_overlapping(struct core *c, const struct core_pod *p, size_t segments,
			    double weight, int64_t ms)
{
	add_measurement(c, p, segments, weight / (double)segments, weight, ms);
}

/* Carries a measured GPU's speed over to GPUs without a measurement. factor: by how much it differs
 * from the plan. */
static void carry_to_unmeasured(struct core *c, const struct forecast *from, double factor)
{
	const struct gpu *had = gpu_find(from->of.gpu);

	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		const struct gpu *its = gpu_find(f->of.gpu);
		if (f->of.measured)
			continue;
		if (f->of.host_share >= 1 || (had && its))
			f->of.speed_sigma = MIN(f->of.speed_sigma, SPEED_SIGMA_CARRIED);
		if (f->of.host_share >= 1)
			f->of.speed = from->of.speed;
		else if (had && its)
			f->of.speed = speed_carry(&from->of.speed, had, its, f->of.host_share);
		else
			f->of.speed = speed_scale(&f->of.speed, factor);
	}
}

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
		f->of.speed_sigma = SPEED_SIGMA_RUNS;
		f->of.measured = true;
		if (!best || f->batches > best->batches) {
			best = f;
			factor = its;
		}
	}
	if (best)
		carry_to_unmeasured(c, best, factor);
	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		if (is_conclusive(f))
			*f = (struct forecast){.of = f->of, .seen = true};
	}
	for (size_t i = 0; i < c->candidate_count; i++)
		c->candidates[i].planned_microusd_h = c->candidates[i].offer.price_microusd_h;
}

/* ---- why ---- */

/* By enough to plan again. */
static bool has_price_moved(const struct candidate *k)
{
	return replan_price_is_off((double)k->offer.price_microusd_h,
				   (double)k->planned_microusd_h);
}

/* The first offer whose price has moved; NULL: none. */
static const struct candidate *find_moved_price(const struct core *c)
{
	for (size_t i = 0; i < c->candidate_count; i++)
		if (has_price_moved(&c->candidates[i]))
			return &c->candidates[i];
	return NULL;
}

void forecast_note_prices(struct core *c)
{
	for (size_t i = 0; i < c->candidate_count; i++)
		if (!c->candidates[i].planned_microusd_h)
			c->candidates[i].planned_microusd_h =
				c->candidates[i].offer.price_microusd_h;
}

/* Writes "0.078", "3.1" or "240", and returns `to`. */
static const char *show_seconds(char to[24], double seconds)
{
	snprintf(to, 24, seconds < 9.95 ? "%.2g" : "%.0f", seconds);
	return to;
}

bool forecast_is_off(const struct core *c, char *to, size_t room)
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
	const struct candidate *k = find_moved_price(c);
	if (!k)
		return false;
	snprintf(to, room, "the price of %s at %s moved from %s to %s an hour", k->offer.gpu,
		 k->offer.provider, money_show(was, sizeof(was), k->planned_microusd_h),
		 money_show(is, sizeof(is), k->offer.price_microusd_h));
	return true;
}

/* ---- pace: how quickly batches are rendered, as this run has measured it ---- */

#define PACE_DECAY 0.9 /* of older measurements, so that the rate follows a pod that slows down */

/* A worker's first batch includes its start (it loads models, caches are cold), so later batches
 * count as soon as there are any. */
bool pace_is_rough(const struct core *c)
{
	return c->pace.ms <= 0;
}

double pace_rate(const struct core *c)
{
	const struct pace *pace = pace_is_rough(c) ? &c->first_pace : &c->pace;

	return pace->ms > 0 ? pace->weight * 1000 / pace->ms : 0;
}

/* If later results of a first batch are known, the start counts until its first result only. */
double pace_at_best(const struct core *c)
{
	double rate = pace_rate(c);

	if (!pace_is_rough(c))
		return rate;
	double measured = speed_rate(c);
	if (measured > 0)
		return MAX(rate, measured);
	return c->warm_pace.weight > 0
		       ? MAX(rate, c->warm_pace.weight * 1000 / MAX(c->warm_pace.ms, 1))
		       : rate * FIRST_BATCH_SLOWER;
}

double pace_weight_held(const struct core *c)
{
	double held = 0;

	for (size_t i = c->first_open; i < c->batch_count; i++)
		if (!c->batches[i].over)
			held += c->batches[i].weight - c->batches[i].rendered;
	return held;
}

/* Fits a line through the times of batches of different sizes. */
double pace_fixed_weight(const struct core *c)
{
	const struct fit *f = &c->fit;
	double spread = f->count * f->weight2 - f->weight * f->weight;

	if (f->count < 1 || spread < f->weight * f->weight / 100) /* a tenth of their mean */
		return 0;
	double each = (f->count * f->weight_ms - f->weight * f->ms) / spread,
	       fixed = (f->ms - each * f->weight) / f->count;
	if (fixed <= 0)
		return 0;
	return each > 0 ? fixed / each : c->weight_todo;
}

void pace_add_size(struct core *c, const struct core_batch *b, double ms)
{
	struct fit *f = &c->fit;

	if (b->first || c->pods[b->pod].workload.batching == BATCHING_CONTINUOUS)
		return; /* batches rendered beside it distort its time */
	*f = (struct fit){f->count * PACE_DECAY + 1, f->weight * PACE_DECAY + b->weight,
			  f->ms * PACE_DECAY + ms, f->weight2 * PACE_DECAY + b->weight * b->weight,
			  f->weight_ms * PACE_DECAY + b->weight * ms};
}

/* Before the end of the batch, its time counts once half of it is rendered and results came one by
 * one: an engine may report all results at the end, and the first of them would seem to have taken
 * the whole time. */
void pace_add_rendered(struct core *c, struct core_batch *b, double weight, int64_t t)
{
	struct pace *pace = b->first ? &c->first_pace : &c->pace;

	b->rendered = MIN(b->rendered + weight, b->weight);
	if (b->first && b->result_t && !b->over) {
		c->warm_pace.weight += weight;
		c->warm_pace.ms += (double)MAX(t - b->newest_t, 0);
	}
	b->newest_t = t;
	b->result_t = b->result_t ? b->result_t : t;
	if (!b->over && (b->rendered * 2 < b->weight || (t - b->result_t) * 4 < t - b->started_t))
		return;
	if (!b->measured_t) {
		pace->weight *= PACE_DECAY;
		pace->ms *= PACE_DECAY;
		b->measured_t = b->started_t;
	}
	pace->weight += b->rendered - b->measured;
	pace->ms += (double)MAX(t - b->measured_t, 0);
	b->measured = b->rendered;
	b->measured_t = MAX(t, b->measured_t);
	/* whether another pod pays may have changed */
	c->dirty = c->dirty || c->conf.pods > 1;
}

/* Counts a finished segment of a continuous engine whose time is not measured yet. */
static void add_unpaced(struct core_pod *p, double weight)
{
	if (!p->workload.unpaced)
		p->workload.unpaced_t = MAX(p->workload.unpaced_t, p->workload.busy_since_t);
	p->workload.unpaced++;
	p->workload.unpaced_weight += weight;
}

/* Batches of a continuous engine overlap, so the pod's output over time counts. Its first results
 * arrive together after one segment's time, so it is measured from when its places have been filled
 * once. */
static void add_continuous(struct core *c, struct core_pod *p, struct core_batch *b, double weight,
			   int64_t t)
{
	int workers = MAX(p->workload.workers_ready, 1);

	b->rendered = MIN(b->rendered + weight, b->weight);
	add_unpaced(p, weight);
	if (p->workload.unpaced < speed_batch_most(c, p) * (size_t)workers)
		return;
	c->pace.weight = c->pace.weight * PACE_DECAY + p->workload.unpaced_weight;
	int64_t ms = MAX(t - p->workload.unpaced_t, 1) * workers;
	c->pace.ms = c->pace.ms * PACE_DECAY + (double)ms;
	add_overlapping(c, p, p->workload.unpaced, p->workload.unpaced_weight, ms);
	p->workload.unpaced = 0;
	p->workload.unpaced_weight = 0;
	p->workload.unpaced_t = t;
	c->dirty = c->dirty || c->conf.pods > 1;
}

/* The batch of a segment that its pod holds, while it is rendered; else NULL. */
static struct core_batch *batch_in_hand(const struct core *c, const struct event *ev)
{
	struct core_batch *b = &c->batches[c->segs[ev->segment].batch];

	return b->pod == ev->pod && b->started && !b->over ? b : NULL;
}

/* A failed segment took time as well; the next result of its batch includes it. */
void pace_add_failed(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_in_hand(c, ev);
	struct core_pod *p = &c->pods[ev->pod];
	double weight = c->segs[ev->segment].weight;

	if (!b)
		return;
	b->rendered = MIN(b->rendered + weight, b->weight);
	if (b->first && b->result_t)
		c->warm_pace.weight += weight;
	if (p->workload.batching == BATCHING_CONTINUOUS && !b->first)
		add_unpaced(p, weight);
}

void pace_add_segment(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_in_hand(c, ev);
	struct core_pod *p = &c->pods[ev->pod];

	if (!b)
		return;
	if (p->workload.batching == BATCHING_CONTINUOUS && !b->first)
		add_continuous(c, p, b, c->segs[ev->segment].weight, ev->t);
	else
		pace_add_rendered(c, b, c->segs[ev->segment].weight, ev->t);
}

/* ---- outlook ----
 * How long the run will still take and what it will have cost: for displays; decides nothing. */

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

/* What a worker renders a second by the plan: by its GPU's forecast, else by the job's estimates.
 * */
static double planned_rate(const struct core *c, const struct core_pod *p)
{
	const struct forecast *f = forecast_of(c, p->rental.offer.provider, p->rental.offer.gpu);
	double mean = c->todo ? c->weight_todo / (double)c->todo : 0, est_s = 0;

	if (f && mean > 0) {
		double sum = mean *
			     (double)MAX(MIN((size_t)MAX(f->of.batch_max, 1), c->todo), (size_t)1);
		double batch_s = speed_batch_s(&f->of.speed, mean, sum);
		if (batch_s > 0)
			return sum / batch_s;
	}
	for (size_t i = 0; i < c->seg_count; i++)
		est_s += seg_is_unrendered(c->segs[i].state) ? c->segs[i].est_s : 0;
	return est_s > 0 ? segments_weight_left(c) / est_s : 0;
}

/* Seconds from now until the pod can work. A late one counts as nearly ready. */
static double ready_in_s(const struct core *c, const struct core_pod *p, int64_t now)
{
	const struct forecast *f = forecast_of(c, p->rental.offer.provider, p->rental.offer.gpu);
	int64_t cold_ms = c->cold_ms                  ? c->cold_ms
			  : f && f->of.cold_p50_s > 0 ? (int64_t)(f->of.cold_p50_s * 1000)
						      : COLD_GUESS_MS;

	if (p->phase == POD_WORKING)
		return 0;
	return (double)MAX(cold_ms - (now - pod_boots_from(p, now)), cold_ms / LEAST_SHARE) / 1000;
}

static int compare_start(const void *a, const void *b)
{
	double x = ((const struct helper *)a)->from_s, y = ((const struct helper *)b)->from_s;

	return (x > y) - (x < y);
}

/* Fills the list, sorted by start, with the pods that render or will; returns their number. */
static size_t list_helpers(const struct core *c, int64_t now, struct helper *list)
{
	double measured = pace_rate(c), planned = 0;
	size_t count = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (!pod_is_active(p) || pod_is_draining(p) || p->phase == POD_AMBIGUOUS)
			continue;
		if (measured <= 0 && planned <= 0)
			planned = planned_rate(c, p);
		double rate = measured > 0 ? measured : planned;
		int workers = p->workload.workers_ready ? p->workload.workers_ready
							: MAX(c->conf.workers, 1);
		list[count++] =
			(struct helper){.from_s = ready_in_s(c, p, now), .rate = rate * workers};
	}
	qsort(list, count, sizeof(*list), compare_start);
	return count;
}

/* Seconds until this weight is rendered by helpers that join one after the other; -1: never. */
static double rendered_in_s(const struct helper *list, size_t count, double weight)
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

/* From the release call until a list without the pod has come. */
static int64_t release_takes_ms(const struct core *c, const struct core_pod *p)
{
	return pod_provider(c, p)->list_gap_ms ? RELEASE_MS : RELEASE_HERE_MS;
}

/* From now until the last pod is proven gone, if all are released when the work is done. */
static int64_t gone_in_ms(const struct core *c, int64_t now, int64_t render_ms)
{
	int64_t last = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (!pod_may_bill(p))
			continue;
		int64_t proof = pod_provider(c, p)->list_gap_ms + release_takes_ms(c, p);
		int64_t from = p->phase == POD_CONFIRMING && p->rental.released_at
				       ? p->rental.released_at - now
			       : p->phase == POD_RELEASING ? 0
							   : render_ms;
		last = MAX(last, MAX(from + proof, 0));
	}
	return last;
}

void core_outlook(const struct core *c, int64_t now_ms, struct core_outlook *out)
{
	double left = segments_weight_left(c), render_s = 0;

	*out = (struct core_outlook){.stops = c->signals,
				     .stopping = core_is_stopping(c),
				     .render_ms = -1,
				     .gone_ms = -1,
				     .total_microusd = -1};
	if (left > 0 && !out->stopping) {
		struct helper *list = xcalloc((size_t)c->pod_count + 1, sizeof(*list));
		render_s = rendered_in_s(list, list_helpers(c, now_ms, list), left);
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
		out->total_microusd += core_cost(p, now_ms) +
				       (bills ? money_for(p->rental.price_microusd_h,
							  out->render_ms + release_takes_ms(c, p))
					      : 0);
	}
}
