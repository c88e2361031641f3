/* advice.c - reads a run's pods and says what would have made them cheaper. */
#include "ledger.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/learn.h"
#include "plan/cost.h"
#include "plan_show.h"
#include "report.h"
#include "store/pod_cost.h"

/* Batch sizes of a run. Zeros: unknown. */
struct batches {
	bool padded;  /* the engine renders a batch at once */
	double mean;  /* segments per batch */
	int most;     /* largest batch of its worker */
	double seats; /* throughput at the mean size, relative to the largest */
};

enum { IDLE_GPU_PERCENT = 10, PINNED_GPU_PERCENT = 99 };

struct totals {
	int pods, width; /* that were billed; at the same time, at most */
	double billed_s, compute_s, phase_s[PHASES];
};

static bool was_billed(const struct pod_row *p, int64_t now_ms)
{
	return p->create_ms > 0 && pod_row_billed_ms(p, now_ms) > 0;
}

/* Until the pod was released, when another could take its place. */
static int64_t held_until(const struct pod_row *p)
{
	int64_t until = p->release_ms ? p->release_ms : p->released_ms;
	return until ? until : INT64_MAX;
}

/* The largest number of billed pods at a time. A replacement does not add to it. */
static int most_at_once(const struct pod_row *pods, size_t count, int64_t now_ms)
{
	int width = 0;

	for (size_t i = 0; i < count; i++) {
		int beside = 0;
		for (size_t k = 0; k < count; k++)
			beside += was_billed(&pods[k], now_ms) &&
				  pods[k].create_ms <= pods[i].create_ms &&
				  held_until(&pods[k]) > pods[i].create_ms;
		if (was_billed(&pods[i], now_ms))
			width = MAX(width, beside);
	}
	return width;
}

static struct totals totals_of(const struct pod_row *pods, size_t count, int64_t now_ms)
{
	struct totals t = {.width = most_at_once(pods, count, now_ms)};

	for (size_t i = 0; i < count; i++) {
		int64_t phase_ms[PHASES];
		if (!was_billed(&pods[i], now_ms))
			continue;
		t.pods++;
		t.billed_s += (double)pod_row_billed_ms(&pods[i], now_ms) / 1000;
		t.compute_s += (double)pods[i].compute_ms / 1000;
		report_phases(&pods[i], now_ms, phase_ms);
		for (int k = 0; k < PHASES; k++)
			t.phase_s[k] += (double)phase_ms[k] / 1000;
	}
	return t;
}

static const struct {
	const char *what, *then;
	bool by_width;        /* a run on one pod cannot use fewer */
	enum phase phases[4]; /* ends with PHASES */
} causes[] = {
	{"booting",
	 "render more in one run, or on fewer pods",
	 true,
	 {PHASE_QUEUE, PHASE_BOOT, PHASE_CONNECT, PHASES}},
	{"syncing and setting up",
	 "fill the volume beforehand with `burst volume warm`",
	 false,
	 {PHASE_SYNC, PHASES}},
	{"loading the engine",
	 "render more in one run, or on fewer pods",
	 true,
	 {PHASE_LOAD, PHASES}},
	{"waiting for work", "use fewer pods", true, {PHASE_IDLE, PHASES}},
	{"fetching files",
	 "use a volume that can be read without a pod",
	 false,
	 {PHASE_FETCH, PHASES}},
};

/* Of a pod, from its create until its workers are ready. */
static double mean_cold_s(const struct totals *t)
{
	double cold_s = 0;

	for (int k = PHASE_QUEUE; k <= PHASE_LOAD; k++)
		cold_s += t->phase_s[k];
	return cold_s / t->pods;
}

/* Index in causes[] of what took the most time, and how much. */
static size_t largest_cause(const struct totals *t, double *seconds)
{
	size_t cause = 0;

	*seconds = 0;
	for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
		double sum = 0;
		for (const enum phase *p = causes[i].phases; *p != PHASES; p++)
			sum += t->phase_s[*p];
		if (sum > *seconds) {
			*seconds = sum;
			cause = i;
		}
	}
	return cause;
}

/* Suggests fewer pods if that reaches the goal, else more work, unless there was enough. */
static void add_way_to_goal(struct str *to, const struct totals *t)
{
	double cold_s = mean_cold_s(t);
	int pods =
		cold_s > 0
			? (int)MIN(t->compute_s / cost_work_for_used_s(PLAN_USED_GOAL, cold_s), 1e6)
			: t->width;
	double work_s = cost_work_for_used_s(PLAN_USED_GOAL, cold_s * t->width);
	char work[24], has[24];

	if (cold_s <= 0 ||
	    t->compute_s >= work_s) /* there is enough work, so the cause is another */
		return;
	if (pods >= 1 && pods < t->width) {
		str_addf(to, "; 70%% needs %d pod%s instead of %d for this work", pods,
			 pods == 1 ? "" : "s", t->width);
		return;
	}
	str_addf(to, "; 70%% needs %s of work on %d pod%s, this run had %s",
		 duration_show(work, sizeof(work), (int64_t)(1000 * work_s)), t->width,
		 t->width == 1 ? "" : "s",
		 duration_show(has, sizeof(has), (int64_t)(1000 * t->compute_s)));
}

static void add_used_share(struct str *to, const struct totals *t)
{
	double used = t->compute_s / t->billed_s, most;
	size_t cause = largest_cause(t, &most);

	if (used >= PLAN_USED_GOAL)
		return;
	str_addf(to,
		 "%.0f%% of the billed time computed; most of the rest went into %s (%.0f%%): %s",
		 100 * used, causes[cause].what, 100 * MIN(most / t->billed_s, 1.0),
		 causes[cause].by_width && t->width < 2 ? "render more in one run"
							: causes[cause].then);
	add_way_to_goal(to, t);
	str_addc(to, '\n');
}

static void add_gpu_use(struct str *to, const struct pod_row *pods, size_t count)
{
	int idle = 0, pinned = 0, sampled = 0, most = 0;

	for (size_t i = 0; i < count; i++) {
		if (!pods[i].gpu_samples)
			continue;
		sampled++;
		idle += pods[i].gpu_busy_p95 < IDLE_GPU_PERCENT;
		pinned += pods[i].gpu_busy_p50 >= PINNED_GPU_PERCENT;
		most = MAX(most, pods[i].gpu_busy_p95);
	}
	if (sampled && idle == sampled)
		str_addf(to,
			 "the GPUs were at most %d%% busy while workers rendered: a smaller card, "
			 "larger batches or fewer pods cost less\n",
			 most);
	if (sampled && pinned == sampled)
		str_add(to, "the GPUs were always busy: a card with more bandwidth or compute is "
			    "faster\n");
}

void advice_add(struct str *to, const struct pod_row *pods, size_t count, int64_t now_ms)
{
	struct totals t = totals_of(pods, count, now_ms);

	if (t.billed_s <= 0 || t.compute_s <= 0)
		return;
	add_used_share(to, &t);
	add_gpu_use(to, pods, count);
}

/* ---- batches ---- */

/* Leaves zeros if the ledger has no batches of the run, or their speed was never measured. */
static void read_batches(struct batches *out, struct store *store, const char *run)
{
	struct batch_row *rows = NULL;
	struct speed speed;
	size_t count = 0;
	double segments = 0, length = 0;

	*out = (struct batches){0};
	if (store_batches(store, run, &rows, &count, NULL) < 0 || !count) {
		free(rows);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		segments += rows[i].segments;
		length += rows[i].sum;
		out->most = MAX(out->most, MAX(rows[i].segments, rows[i].most));
		out->padded = out->padded || rows[i].batching == ROW_BATCHING_PADDED;
	}
	out->mean = segments / (double)count;
	if (segments > 0 && learn_fit(&speed, store, rows[0].speed)) {
		double full = speed_gain(&speed, length / segments, out->most);
		out->seats = full > 0 ? speed_gain(&speed, length / segments, out->mean) / full : 0;
	}
	free(rows);
}

void advice_add_seats(struct str *to, struct store *store, const char *run,
		      const struct pod_row *pods, size_t count, int64_t now_ms)
{
	struct totals t = totals_of(pods, count, now_ms);
	struct batches batches;

	read_batches(&batches, store, run);
	if (!batches.padded || batches.seats <= 0 || t.billed_s <= 0 || t.compute_s <= 0)
		return;
	double used = MIN(t.compute_s / t.billed_s, 1.0), seats = MIN(batches.seats, 1.0);
	str_addf(to,
		 "used %.0f%%, seats %.0f%%: batches of %.0f segment%s on average, where %d fit; "
		 "full batches without a cold start cost %.1f times less\n",
		 100 * used, 100 * seats, batches.mean, batches.mean < 1.5 ? "" : "s", batches.most,
		 1 / (used * seats));
}
