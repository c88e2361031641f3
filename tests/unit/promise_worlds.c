/* promise_worlds.c - simulates runs in worlds that the planner does not know, and compares them
 * with its promises
 *
 * The truth is drawn from these ranges, each factor of a range being as likely. They are taken from
 * what others have published, and none from the planner's own constants:
 *
 * - Speed on another card than that of the engine's figures: up to 1.6 times faster or slower than
 *   bandwidth and peak promise. F5-TTS (SWivid/F5-TTS issue 713): A100 40GB 2.67 s, RTX 3090 2.75
 * s, RTX 4090 1.46 s, where bandwidth makes the A100 1.66 times as fast as the RTX 3090. Chatterbox
 *   on vLLM: 32 times real time on RTX 3090, 10.1 on RTX 3060 Ti (README of
 *   randombk/chatterbox-vllm), 23.2 on RTX 4090 (README of Jransom33/Chatterbox-turbo-vllm). Two
 *   worlds of three are such.
 * - Speed on one card, as different people report it: up to 1.67 times either way. Chatterbox takes
 *   1 to 2.8 s a second of speech (resemble-ai/chatterbox issues 63, 71 and 127).
 * - Boots at RunPod: 20 to 180 s; 40 s (davefojtik/RunPod-Fooocus-API issue 5), up to 2 minutes
 *   (runpod-workers/worker-vllm issue 111). At Modal: 2 to 15 s, as its documents promise of cached
 *   images. Queues: 3 to 30 s and 2 to 15 s; connecting .7 to 6 s and sending code 1 to 9 s are our
 *   own measurements on loopback and on delayed links.
 * - One boot in 50 fails: after three times as long as others take, another pod is rented (20 to 60
 *   minutes on a bad host: runpod-workers/comfyui-base issue 15).
 * - Loads: 7.5 to 60 s. One engine took 7.5 s on a desktop and 27.3 s at RunPod (the two READMEs),
 *   Whisper large-v3 one or two minutes (replicate/replicate-python issue 242).
 * - Set-ups of unknown length: 60 to 900 s; less than 5 minutes (TheLastBen/fast-stable-diffusion
 *   issue 68), more than 30 for a video model (dihan/runpod-hunyuan issue 2).
 * - From run to run nobody publishes much: cards reach 78 to 87 % of their peak, and hosts with
 *   other processors differ more. Here: a host is up to 20 % faster or slower, a batch up to 8 %,
 *   and boots and loads vary by a standard deviation of .3 in their logarithm, queues by .6.
 * - Prices: .16 to 4.6 dollars, those of cards rented by the hour. Three of ten move between plan
 *   and run, by a standard deviation of .03 to .25 of their logarithm; the planner has looked 1 to
 *   40 times before the first run. Of spot pods, hours between interruptions: 2 to 24. How much
 *   prices move, and how often spot pods are taken, is published by no vendor: both are guesses. */
#include "promise_worlds.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "engine/learn.h"
#include "plan/choose.h"
#include "plan/cost.h"
#include "plan/forecast.h"
#include "plan/speed.h"

enum {
	RUNS = 11,
	PODS_MOST = 8,
	ROWS_MOST = 400,
	SEGMENTS_MOST = 2000,
	BATCH_MOST = 32,
	LOOKS_MOST = 100
};
enum setup_kind { SETUP_NONE, SETUP_ONCE, SETUP_ALWAYS, SETUP_KINDS };

const int promise_runs[PROMISE_POINTS] = {0, 1, 3, 10};

struct range {
	double least, most;
};

/* Of one pod of each provider; COLD_SETUP is the job's. */
static const struct place {
	const char *provider;
	struct range phase[COLD_PHASES];
} places[] = {
	{"runpod",
	 {[COLD_QUEUE] = {3, 30},
	  [COLD_BOOT] = {20, 180},
	  [COLD_CONNECT] = {.7, 6},
	  [COLD_SYNC] = {1, 9},
	  [COLD_LOAD] = {7.5, 60}}},
	{"modal",
	 {[COLD_QUEUE] = {2, 15},
	  [COLD_BOOT] = {2, 15},
	  [COLD_CONNECT] = {.7, 6},
	  [COLD_SYNC] = {1, 9},
	  [COLD_LOAD] = {7.5, 60}}},
};
static const struct range setup_range = {60, 900}, other_card = {1 / 1.6, 1.6},
			  other_reports = {1 / 1.67, 1.67}, taken_hours = {2, 24},
			  price_range = {.16, 4.6}, price_moves = {.03, .25};
#define OTHER_CARD_SHARE (2 / 3.0)

struct world {
	const struct place *place;
	bool other_card;
	double phase_s[COLD_PHASES], phase_sigma[COLD_PHASES]; /* of one pod */
	double taken_every_s;                                  /* 0: never */
	double usual_price_h, price_sigma, price_h;            /* price_h: of the next run */
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
	struct forecast_price looks[LOOKS_MOST];
	size_t look_count;
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

static double draw(const struct range *r)
{
	return log_uniform(r->least, r->most);
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

/* A price at some moment. */
static double draw_price(const struct world *w)
{
	return w->usual_price_h * exp(w->price_sigma * normal());
}

/* Notes so many looks at the price, hours apart. */
static void look(struct world *w, int times)
{
	for (; times > 0 && w->look_count < LOOKS_MOST; times--) {
		w->looks[w->look_count] = (struct forecast_price){
			.local_ms = (int64_t)w->look_count * 6 * 3600 * 1000,
			.microusd_h = (int64_t)(draw_price(w) * 1e6)};
		w->look_count++;
	}
}

/* What the planner sees before the first run. */
static struct world *draw_world(void)
{
	struct world *w = xcalloc(1, sizeof(*w));
	/* engines from one that computes 100 times as fast as it speaks to one that is as slow */
	double each_s = log_uniform(.0006, .02);
	bool spot = uniform(0, 1) < .2;

	w->place = &places[uniform(0, 1) < .5];
	w->other_card = uniform(0, 1) < OTHER_CARD_SHARE;
	w->prior = (struct plan_machine){
		.quantum_s = 1,
		.interrupted_every_s = spot ? prior_of_provider("")->interrupted_every_s : 0,
		.workers = 1,
		.batch_max = BATCH_MOST,
		.speed = {.once_s = log_uniform(.1, 2),
			  .longest_s = each_s * log_uniform(.1, 10),
			  .each_s = each_s},
		.speed_sigma = w->other_card ? SPEED_SIGMA_PRIOR_ELSEWHERE : SPEED_SIGMA_PRIOR,
		.tail_s = .3,
		.release_s = .3,
	};
	draw_job(w);
	w->usual_price_h = draw(&price_range);
	w->price_sigma = uniform(0, 1) < .3 ? draw(&price_moves) : 0;
	look(w, (int)uniform(1, 40));
	w->prior.cold = prior_cold(w->place->provider, true);
	if (w->setup != SETUP_NONE)
		w->prior.cold.phase[COLD_SETUP] = prior_setup;
	w->host = .2;
	w->batch = .08;
	for (int i = 0; i < COLD_PHASES; i++)
		w->phase_sigma[i] = i == COLD_QUEUE ? .6 : .3;
	return w;
}

/* What it does not see. Parts that are `known` stay as they are. */
static void draw_truth(struct world *w, unsigned known)
{
	double speed = draw(&other_reports) * (w->other_card ? draw(&other_card) : 1);

	if (!(known & KNOWN_SPEED))
		w->truth = speed_scale(&w->prior.speed, speed);
	for (int i = 0; i < COLD_PHASES; i++) {
		const struct range *r = &w->place->phase[i];
		double s = r->most > 0 ? draw(r) : 0;
		if (i != COLD_SETUP && !(known & KNOWN_BOOTS))
			w->phase_s[i] = s;
	}
	double setup_s = draw(&setup_range);
	if (!(known & KNOWN_SETUP))
		w->phase_s[COLD_SETUP] = w->setup == SETUP_NONE ? 0 : setup_s;
	w->taken_every_s = w->prior.interrupted_every_s > 0 ? draw(&taken_hours) * 3600 : 0;
	w->price_h = draw_price(w);
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

	struct forecast_prices prices;

	*m = w->prior;
	forecast_prices(&prices, w->looks, w->look_count);
	m->price_h = (double)w->looks[w->look_count - 1].microusd_h / 1e6;
	m->price_p90_h = (double)prices.most / 1e6;
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

static void plan_next_run(struct plan *out, struct world *w)
{
	struct plan_machine m;
	struct plan_work work;

	learn(w, &m);
	plan_work_init(&work, w->lengths, w->segments, BATCH_MOST, 0);
	plan_choose(out, &work, &m, 1, &w->wish);
}

static void compare(struct series *to, struct world *w)
{
	struct plan p;

	plan_next_run(&p, w);
	struct outcome o = run(w, &p);
	double usd = cost_usd(w->price_h, o.billed_s);
	*to = (struct series){
		.time_kept = o.time_s <= p.makespan_p90_s,
		.cost_kept = usd <= p.cost_p90_usd,
		.time_width = p.makespan_p90_s / p.makespan_p50_s - 1,
		.cost_width = p.cost_p90_usd / p.cost_usd - 1,
		.time_error = fabs(p.makespan_p50_s / o.time_s - 1),
		.cost_error = fabs(p.cost_usd / usd - 1),
		.bias = log(o.time_s / p.makespan_p50_s),
	};
	look(w, 3);
	w->price_h = draw_price(w);
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
		draw_truth(w, KNOWN_NOTHING);
		for (int run = 0; run < RUNS; run++)
			compare(&list[run * worlds + i], w);
		free(w);
	}
	for (int i = 0; i < PROMISE_POINTS; i++)
		sum_up(&out[i], list + promise_runs[i] * worlds, worlds);
	free(list);
}

/* ---- the least error ----
 * A prediction p of T has an error of at most e if log T is between log p - log(1 + e) and
 * log p - log(1 - e). So of each world's first runs, the best prediction is where a window of that
 * width holds most of them. It is found with one half of the draws and judged by the other. */

enum { DRAWS = 400, HALF = DRAWS / 2 };

static double window_of(double error)
{
	return log((1 + error) / (1 - error));
}

/* The share of the second half that is within the window that holds most of the first one, which is
 * sorted. */
static double share_in_best_window(const double draws[DRAWS], double window)
{
	int best = 0, at = 0, in = 0;

	for (int from = 0, to = 0; from < HALF; from++) {
		while (to < HALF && draws[to] <= draws[from] + window)
			to++;
		if (to - from > best) {
			best = to - from;
			at = from;
		}
	}
	for (int i = HALF; i < DRAWS; i++)
		in += draws[i] >= draws[at] && draws[i] <= draws[at] + window;
	return (double)in / HALF;
}

/* The error that half of all runs do not exceed. */
static double least_error(double (*draws)[DRAWS], int worlds)
{
	double low = 0, high = .9;

	for (int i = 0; i < worlds; i++)
		qsort(draws[i], HALF, sizeof(double), by_size);
	while (high - low > .0005) {
		double error = (low + high) / 2, share = 0;
		for (int i = 0; i < worlds; i++)
			share += share_in_best_window(draws[i], window_of(error)) / worlds;
		*(share > .5 ? &high : &low) = error;
	}
	return high;
}

/* Forgets all runs. */
static void begin_anew(struct world *w)
{
	w->row_count = 0;
	w->run_count = 0;
	w->sums = w->runs[0] = (struct speed_sums){0};
}

struct promise_bound promises_bound(int worlds, uint64_t seed, unsigned known)
{
	double(*times)[DRAWS] = xcalloc((size_t)worlds, sizeof(*times)),
	(*costs)[DRAWS] = xcalloc((size_t)worlds, sizeof(*costs));

	random_state = seed;
	for (int i = 0; i < worlds; i++) {
		struct world *w = draw_world();
		struct plan plan;
		draw_truth(w, KNOWN_NOTHING);
		plan_next_run(&plan, w);
		for (int k = 0; k < DRAWS; k++) {
			draw_truth(w, known);
			begin_anew(w);
			struct outcome o = run(w, &plan);
			times[i][k] = log(o.time_s);
			costs[i][k] = log(cost_usd(w->price_h, o.billed_s));
		}
		free(w);
	}
	struct promise_bound bound = {least_error(times, worlds), least_error(costs, worlds)};
	free(times);
	free(costs);
	return bound;
}
