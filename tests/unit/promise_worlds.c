/* promise_worlds.c - simulates runs in worlds that the planner does not know, and compares them
 * with its promises
 *
 * The truth is drawn around the planner's priors (their medians alone, no spread of the planner's)
 * in the ranges that others have published:
 *
 * - Speed: one engine on two cards was 1.4 to 1.6 times off what bandwidth and peak promise
 *   (Chatterbox on vLLM on RTX 3090, 4090 and 3060 Ti; Kokoro on RTX 3090 Ti, 2060 and T4). Here:
 *   up to 1.6 times faster or slower. Besides, reports about one engine and card differ by 2.8
 *   times (Chatterbox: 1 to 2.8 s a second of speech). Here: up to 1.67 times either way.
 * - Loads: the same engine loaded in 7.5 s on one host and in 27 s on another. Here: up to twice as
 *   long as the prior, or half. Boots: serverless starts take 5 to more than 60 s, RunPod's up to
 *   two minutes. Here: each phase up to three times as long, or a third.
 * - Set-ups: 90 s with a volume, 15 minutes without. Here: 60 to 900 s.
 * - From run to run nobody publishes much: cards reach 78 to 87 % of their peak, and hosts with
 *   other processors differ more. Here: a host is up to 20 % faster or slower, a batch up to 8 %,
 *   and boots and loads vary by a standard deviation of 0.3 in their logarithm, queues by 0.6.
 * - One boot in 50 fails: after three times as long as others take, another pod is rented.
 * - Prices: those of cards rented by the hour, .16 to 4.6 dollars; a run is billed what it was
 *   planned with, since offers are live. Of spot pods, hours between interruptions: 2 to 24. */
#include "promise_worlds.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "engine/learn.h"
#include "plan/choose.h"
#include "plan/cost.h"
#include "plan/speed.h"

enum { RUNS = 11, PODS_MOST = 8, ROWS_MOST = 400, SEGMENTS_MOST = 2000, BATCH_MOST = 32 };
enum setup_kind { SETUP_NONE, SETUP_ONCE, SETUP_ALWAYS, SETUP_KINDS };

const int promise_runs[PROMISE_POINTS] = {0, 1, 3, 10};

struct world {
	double phase_s[COLD_PHASES], phase_sigma[COLD_PHASES]; /* of one pod */
	double taken_every_s;                                  /* 0: never */
	struct speed truth;
	double host, batch; /* 1 + this: the most that one host, one batch is slower */
	enum setup_kind setup;
	struct plan_machine prior; /* what the planner knows before the first run */
	struct plan_wish wish;
	double lengths[SEGMENTS_MOST];
	size_t segments;
	/* what the ledger has */
	struct pod_row rows[ROWS_MOST]; /* the newest last */
	size_t row_count;
	struct speed_sums sums, runs[RUNS]; /* the oldest run first */
	int run_count;
};

/* ---- chance ---- */

static uint64_t random_state;

static double uniform(double least, double most)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return least + (most - least) * (double)(random_state >> 11) / 9007199254740992.0;
}

/* Each factor is as likely. */
static double log_uniform(double least, double most)
{
	return exp(uniform(log(least), log(most)));
}

static double normal(void)
{
	double a = uniform(1e-12, 1), b = uniform(0, 1);

	return sqrt(-2 * log(a)) * cos(2 * M_PI * b);
}

/* ---- the world ---- */

static void draw_job(struct world *w)
{
	w->segments = (size_t)log_uniform(60, SEGMENTS_MOST);
	for (size_t i = 0; i < w->segments; i++)
		w->lengths[i] = uniform(30, 280);
	w->setup = (enum setup_kind)uniform(0, SETUP_KINDS);
	w->wish = (struct plan_wish){.goal = PLAN_COST, .canary = 3, .staged = true};
	if (uniform(0, 1) < 0.3) { /* a third is made by several pods from the start */
		w->wish.pods = (int)uniform(2, PODS_MOST + 1);
		w->wish.staged = false;
	}
}

static void draw_speed(struct world *w)
{
	/* engines from one that computes 100 times as fast as it speaks to one that is as slow */
	double each_s = log_uniform(.0006, .02);

	w->prior.speed = (struct speed){.once_s = log_uniform(.1, 2),
					.longest_s = each_s * log_uniform(.1, 10),
					.each_s = each_s};
	w->truth = speed_scale(&w->prior.speed,
			       log_uniform(1 / 1.6, 1.6) * log_uniform(1 / 1.67, 1.67));
	w->host = .2;
	w->batch = .08;
}

static void draw_cold(struct world *w)
{
	w->prior.cold = prior_cold(uniform(0, 1) < .5 ? "modal" : "runpod", true);
	if (w->setup != SETUP_NONE)
		w->prior.cold.phase[COLD_SETUP] = (struct cold_time){120, 600, 0};
	for (int i = 0; i < COLD_PHASES; i++) {
		double most = i == COLD_LOAD ? 2 : 3;
		w->phase_s[i] = w->prior.cold.phase[i].p50_s * log_uniform(1 / most, most);
		w->phase_sigma[i] = i == COLD_QUEUE ? .6 : .3;
	}
	if (w->setup != SETUP_NONE)
		w->phase_s[COLD_SETUP] = log_uniform(60, 900);
}

static struct world *draw_world(void)
{
	struct world *w = xcalloc(1, sizeof(*w));
	bool spot = uniform(0, 1) < .2;

	w->prior = (struct plan_machine){
		.price_h = log_uniform(.16, 4.6),
		.quantum_s = 1,
		.interrupted_every_s = spot ? prior_of_provider("")->interrupted_every_s : 0,
		.workers = 1,
		.batch_max = BATCH_MOST,
		.speed_sigma = SPEED_SIGMA_PRIOR,
		.tail_s = .3,
		.release_s = .3,
	};
	w->taken_every_s = spot ? log_uniform(2, 24) * 3600 : 0;
	draw_job(w);
	draw_speed(w);
	draw_cold(w);
	return w;
}

/* ---- a run in it ---- */

struct pod {
	struct pod_row *row; /* NULL: the ledger is full */
	double from_s, free_s, host, taken_s;
};

struct outcome {
	double time_s, billed_s;
};

static double phase_took(const struct world *w, int phase, bool sets_up)
{
	if (phase == COLD_SETUP && !sets_up)
		return 0;
	return w->phase_s[phase] * exp(w->phase_sigma[phase] * normal());
}

/* Writes a cold start down as a ledger does; times of day in ms. Returns its seconds. */
static double note_start(struct world *w, struct pod *p, const double took_s[COLD_PHASES])
{
	struct pod_row row = {
		.create_ms = 1000000, .synced_bytes = 1, .spot = w->taken_every_s > 0};

	row.running_ms = row.create_ms + (int64_t)(took_s[COLD_QUEUE] * 1000);
	row.reached_ms = row.running_ms + (int64_t)(took_s[COLD_BOOT] * 1000);
	row.connected_ms = row.reached_ms + (int64_t)(took_s[COLD_CONNECT] * 1000);
	row.setup_ms = (int64_t)(took_s[COLD_SETUP] * 1000);
	row.synced_ms = row.connected_ms + row.setup_ms + (int64_t)(took_s[COLD_SYNC] * 1000);
	row.ready_ms = row.synced_ms + (int64_t)(took_s[COLD_LOAD] * 1000);
	p->row = w->row_count < ROWS_MOST ? &w->rows[w->row_count++] : NULL;
	if (p->row)
		*p->row = row;
	return (double)(row.ready_ms - row.create_ms) / 1000;
}

/* Boots a pod that is rented at from_s. Adds what failed boots are billed to *lost_s. */
static void boot(struct world *w, struct pod *p, double from_s, bool sets_up, double *lost_s)
{
	double took_s[COLD_PHASES], usual_s = 0;

	for (int i = 0; i < COLD_PHASES; i++) {
		took_s[i] = phase_took(w, i, sets_up);
		usual_s += i == COLD_SETUP ? 0 : w->phase_s[i];
	}
	for (; uniform(0, 1) < .02; from_s += 3 * usual_s)
		*lost_s += 3 * usual_s;
	p->from_s = from_s;
	p->host = uniform(1 / (1 + w->host), 1 + w->host);
	p->free_s = from_s + note_start(w, p, took_s);
	p->taken_s = w->taken_every_s > 0 ? from_s - w->taken_every_s * log(uniform(1e-12, 1))
					  : INFINITY;
}

static double life_s(const struct pod *p, double end_s)
{
	if (p->row)
		p->row->billed_ms = (int64_t)ceil((end_s - p->from_s) * 1000);
	return ceil(end_s - p->from_s);
}

/* Renders the segments from `first` on the pod that is free first. */
static void render(struct world *w, struct pod *pods, int count, size_t first, size_t size,
		   struct outcome *o)
{
	struct pod *p = &pods[0];
	double sum = 0, longest = 0;

	for (int i = 1; i < count; i++)
		if (pods[i].free_s < p->free_s)
			p = &pods[i];
	for (size_t i = first; i < first + size; i++) {
		sum += w->lengths[i];
		longest = MAX(longest, w->lengths[i]);
	}
	for (;;) {
		double took_s = speed_batch_s(&w->truth, longest, sum) * p->host *
				uniform(1 - w->batch, 1 + w->batch);
		if (p->free_s + took_s <= p->taken_s) {
			p->free_s += took_s;
			speed_add(&w->sums, longest, sum, took_s);
			speed_add(&w->runs[w->run_count], longest, sum, took_s);
			return;
		}
		if (p->row)
			p->row->preempted = true;
		o->billed_s += life_s(p, p->taken_s);
		boot(w, p, p->taken_s, w->setup == SETUP_ALWAYS, &o->billed_s);
	}
}

/* The run as planned: the first pod renders the canary, the others come with it or after it. */
static struct outcome run(struct world *w, const struct plan *plan)
{
	struct outcome o = {0};
	struct pod pods[PODS_MOST];
	bool sets_up = w->setup == SETUP_ALWAYS || (w->setup == SETUP_ONCE && !w->run_count);
	int pods_planned = MIN(plan->pods, PODS_MOST);
	size_t done = MIN((size_t)w->wish.canary, w->segments);

	speed_decay(&w->sums, SPEED_DECAY);
	boot(w, &pods[0], 0, sets_up, &o.billed_s);
	for (int i = 1; i < pods_planned && !w->wish.staged; i++)
		boot(w, &pods[i], 0, sets_up, &o.billed_s);
	/* a few lines of the script; the rest is sorted by length */
	render(w, pods, 1, w->segments / 2, done, &o);
	for (int i = 1; i < pods_planned; i++) {
		if (w->wish.staged)
			boot(w, &pods[i], pods[0].free_s, false, &o.billed_s);
		pods[i].free_s = MAX(pods[i].free_s, pods[0].free_s);
	}
	size_t batch = (size_t)MAX(plan->batch, 1);
	for (size_t first = 0; first + done < w->segments; first += batch)
		render(w, pods, pods_planned, first, MIN(batch, w->segments - done - first), &o);
	for (int i = 0; i < pods_planned; i++) {
		double end_s = pods[i].free_s + .3 * exp(.3 * normal());
		o.time_s = MAX(o.time_s, end_s);
		o.billed_s += life_s(&pods[i], end_s + .3);
	}
	w->run_count++;
	return o;
}

/* ---- what the ledger has learned by now ---- */

static void learn(struct world *w, struct plan_machine *m)
{
	struct pod_row newest[ROWS_MOST];
	struct speed_sums runs[RUNS];
	const struct cold_what what = {.gpu = "", .image = "", .setup = ""};
	double lived_s;

	*m = w->prior;
	for (size_t i = 0; i < w->row_count; i++)
		newest[i] = w->rows[w->row_count - 1 - i];
	learn_cold(newest, w->row_count, &what, &m->cold);
	if (w->setup == SETUP_NONE || (w->setup == SETUP_ONCE && w->run_count))
		m->cold.phase[COLD_SETUP] = (struct cold_time){0};
	if (w->taken_every_s > 0)
		m->interrupted_every_s =
			learn_interrupted_s(newest, w->row_count, true, m->interrupted_every_s,
					    &m->interruptions, &lived_s);
	if (w->sums.batches >= SPEED_MEASURED_MIN &&
	    speed_fit(&m->speed, &w->sums, &w->prior.speed)) {
		for (int i = 0; i < w->run_count; i++)
			runs[i] = w->runs[w->run_count - 1 - i];
		m->speed_sigma = speed_learn_sigma(&m->speed, runs, (size_t)w->run_count);
		m->speed_source = PLAN_MEASURED;
	}
}

/* ---- plans against runs ---- */

struct series { /* one figure of each world */
	double time_width, cost_width, time_error, cost_error, bias;
	bool time_kept, cost_kept;
};

static void compare(struct series *to, struct world *w)
{
	struct plan_machine m;
	struct plan_work work;
	struct plan p;

	learn(w, &m);
	plan_work_init(&work, w->lengths, w->segments, BATCH_MOST, 0);
	plan_choose(&p, &work, &m, 1, &w->wish);
	struct outcome o = run(w, &p);
	double usd = cost_usd(w->prior.price_h, o.billed_s);
	*to = (struct series){
		.time_kept = o.time_s <= p.makespan_p90_s,
		.cost_kept = usd <= p.cost_p90_usd,
		.time_width = p.makespan_p90_s / p.makespan_p50_s - 1,
		.cost_width = p.cost_p90_usd / p.cost_usd - 1,
		.time_error = fabs(p.makespan_p50_s / o.time_s - 1),
		.cost_error = fabs(p.cost_usd / usd - 1),
		.bias = log(o.time_s / p.makespan_p50_s),
	};
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of one double in each of these. */
static double median_of(const struct series *list, int count, size_t offset)
{
	double *values = xcalloc((size_t)count, sizeof(*values));

	for (int i = 0; i < count; i++)
		values[i] = *(const double *)((const char *)&list[i] + offset);
	qsort(values, (size_t)count, sizeof(*values), by_size);
	double median = values[count / 2];
	free(values);
	return median;
}

static void sum_up(struct promise_point *out, const struct series *list, int count)
{
	*out = (struct promise_point){
		.time_width = median_of(list, count, offsetof(struct series, time_width)),
		.cost_width = median_of(list, count, offsetof(struct series, cost_width)),
		.time_error = median_of(list, count, offsetof(struct series, time_error)),
		.cost_error = median_of(list, count, offsetof(struct series, cost_error)),
		.time_bias = median_of(list, count, offsetof(struct series, bias)),
	};
	for (int i = 0; i < count; i++) {
		out->time_kept += (double)list[i].time_kept / count;
		out->cost_kept += (double)list[i].cost_kept / count;
	}
}

void promises_measure(struct promise_point out[PROMISE_POINTS], int worlds, uint64_t seed)
{
	struct series *list = xcalloc((size_t)worlds * RUNS, sizeof(*list));

	random_state = seed;
	for (int i = 0; i < worlds; i++) {
		struct world *w = draw_world();
		for (int run = 0; run < RUNS; run++)
			compare(&list[run * worlds + i], w);
		free(w);
	}
	for (int i = 0; i < PROMISE_POINTS; i++)
		sum_up(&out[i], list + promise_runs[i] * worlds, worlds);
	free(list);
}
