/* advice.c - reads a run's pods and says what would have made them cheaper. */
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/learn.h"
#include "plan/cost.h"
#include "plan_show.h"
#include "report.h"
#include "store/pod_cost.h"

enum { IDLE_GPU_PERCENT = 10, PINNED_GPU_PERCENT = 99 };

struct totals {
	int pods, width; /* that were billed; at the same time, at most */
	/* useful: without what was lost */
	double billed_s, useful_s, lost_s, setup_s, phase_s[PHASES];
	bool reclaimed, has_volume;
	int64_t synced_bytes; /* to one pod, at most */
};

static bool was_billed(const struct pod_row *p, int64_t now_ms)
{
	return p->create_ms > 0 && pod_row_billed_ms(p, now_ms) > 0;
}

/* When the pod last worked, as far as is known. */
static int64_t last_work_ms(const struct pod_row *p)
{
	return MAX(MAX(p->worked_ms, p->safe_ms), p->ready_ms + p->compute_ms);
}

/* Until when another pod that is created stands beside it. A pod that was lost is replaced, maybe
 * before its provider has confirmed its end. */
static int64_t held_until(const struct pod_row *p)
{
	int64_t until = p->release_ms ? p->release_ms : p->released_ms;

	if (p->preempted || p->error[0])
		return last_work_ms(p);
	return until ? until : INT64_MAX;
}

/* The largest number of billed pods at a time. A replacement does not add to it. */
static int most_at_once(const struct pod_row *pods, size_t count, int64_t now_ms)
{
	int width = 0;

	for (size_t i = 0; i < count; i++) {
		int beside = 1;
		for (size_t k = 0; k < count; k++)
			beside += k != i && was_billed(&pods[k], now_ms) &&
				  (pods[k].create_ms < pods[i].create_ms ||
				   (pods[k].create_ms == pods[i].create_ms && k < i)) &&
				  held_until(&pods[k]) > pods[i].create_ms;
		if (was_billed(&pods[i], now_ms))
			width = MAX(width, beside);
	}
	return width;
}

static void add_pod(struct totals *t, const struct pod_row *p, int64_t now_ms)
{
	int64_t phase_ms[PHASES];

	t->pods++;
	t->billed_s += (double)pod_row_billed_ms(p, now_ms) / 1000;
	t->useful_s += (double)MAX(p->compute_ms - p->wasted_ms, 0) / 1000;
	t->lost_s += (double)MIN(p->wasted_ms, p->compute_ms) / 1000;
	t->setup_s += (double)p->setup_ms / 1000;
	t->reclaimed = t->reclaimed || p->preempted;
	t->has_volume = t->has_volume || p->volume_id[0] || p->volume_name[0];
	t->synced_bytes = MAX(t->synced_bytes, p->synced_bytes);
	report_phases(p, now_ms, phase_ms);
	for (int k = 0; k < PHASES; k++)
		t->phase_s[k] += (double)phase_ms[k] / 1000;
}

static struct totals totals_of(const struct advice_of *of)
{
	struct totals t = {.width = most_at_once(of->pods, of->count, of->now_ms)};

	for (size_t i = 0; i < of->count; i++)
		if (was_billed(&of->pods[i], of->now_ms))
			add_pod(&t, &of->pods[i], of->now_ms);
	return t;
}

/* ---- one long segment ---- */

/* The end of a run in which only one batch was rendered. Zeros: there was none. */
struct long_tail {
	double took_s, run_s; /* the batch; from the first batch to the last */
	double alone_s;       /* the part of the batch with no other beside it */
};
#define LONG_ALONE 0.25 /* of run_s; less is not worth a word */

/* The end of the last batch of another pod. */
static int64_t others_end_ms(const struct batch_row *rows, size_t count,
			     const struct batch_row *last)
{
	int64_t end_ms = 0;

	for (size_t i = 0; i < count; i++)
		if (strcmp(rows[i].attempt, last->attempt) != 0)
			end_ms = MAX(end_ms, rows[i].done_ms);
	return end_ms;
}

/* Whether one segment is most of the batch. */
static bool is_one_segment(const struct batch_row *b)
{
	return b->longest > 0 && 2 * b->longest > b->sum;
}

static struct long_tail find_long_tail(const struct advice_of *of)
{
	struct batch_row *rows = NULL;
	const struct batch_row *last = NULL;
	int64_t first_ms = INT64_MAX;
	size_t count = 0;
	struct long_tail tail = {0};

	if (!of->store || store_batches(of->store, of->run, &rows, &count, NULL) < 0)
		return tail;
	for (size_t i = 0; i < count; i++) {
		first_ms = MIN(first_ms, rows[i].done_ms - rows[i].took_ms);
		if (!last || rows[i].done_ms > last->done_ms)
			last = &rows[i];
	}
	int64_t others_ms = last ? others_end_ms(rows, count, last) : 0;
	if (others_ms && is_one_segment(last)) {
		tail.took_s = (double)last->took_ms / 1000;
		tail.run_s = (double)(last->done_ms - first_ms) / 1000;
		tail.alone_s = MIN((double)(last->done_ms - others_ms) / 1000, tail.took_s);
	}
	free(rows);
	return tail.alone_s >= LONG_ALONE * tail.run_s ? tail : (struct long_tail){0};
}

static void add_long_tail(struct str *to, const struct long_tail *tail)
{
	char took[24], run[24], alone[24];

	if (tail->took_s > 0)
		str_addf(to,
			 "one long segment took %s of the %s in which the run rendered, %s of it "
			 "with "
			 "no other batch left: split it, or use fewer pods\n",
			 plan_seconds(took, tail->took_s), plan_seconds(run, tail->run_s),
			 plan_seconds(alone, tail->alone_s));
}

/* ---- less than 70 % of the billed time computed ---- */

enum cause { BOOTING, CONNECTING, SYNCING, LOADING, WAITING, FETCHING, LOSING, CAUSES };

static const struct {
	const char *what, *then; /* then NULL: it depends on more */
	bool by_width;           /* a run on one pod cannot use fewer */
	enum phase phases[3];    /* ends with PHASES */
} causes[CAUSES] = {
	[BOOTING] = {"booting",
		     "render more in one run, or on fewer pods",
		     true,
		     {PHASE_QUEUE, PHASE_BOOT, PHASES}},
	[CONNECTING] = {"connecting",
			"each step waits for the network: rent closer to this machine, or render "
			"more in one run",
			false,
			{PHASE_CONNECT, PHASES}},
	[SYNCING] = {"syncing and setting up", NULL, false, {PHASE_SYNC, PHASES}},
	[LOADING] = {"loading the engine",
		     "render more in one run, or on fewer pods",
		     true,
		     {PHASE_LOAD, PHASES}},
	[WAITING] = {"waiting for work", "use fewer pods", true, {PHASE_IDLE, PHASES}},
	[FETCHING] = {"fetching files",
		      "use a volume that can be read without a pod",
		      false,
		      {PHASE_FETCH, PHASES}},
	[LOSING] = {"work that was lost", NULL, false, {PHASES}},
};

#define MUCH_CODE 10e6 /* bytes: sending them takes longer than the steps around it */

static const char *way_to_sync_less(const struct totals *t)
{
	if (t->has_volume)
		return "fill the volume beforehand with `burst volume warm`";
	if (t->setup_s < t->phase_s[PHASE_SYNC] / 2 && (double)t->synced_bytes >= MUCH_CODE)
		return "name what the pods do not need in .burstignore";
	return "a `volume` keeps it for the next run";
}

static const char *way_out(enum cause cause, const struct totals *t)
{
	if (cause == SYNCING)
		return way_to_sync_less(t);
	if (cause == LOSING)
		return t->reclaimed ? "save more often (job.checkpoint), or rent without `spot`"
				    : "see `burst logs`";
	return causes[cause].by_width && t->width < 2 ? "render more in one run"
						      : causes[cause].then;
}

/* Of a pod, from its create until its workers are ready. */
static double mean_cold_s(const struct totals *t)
{
	double cold_s = 0;

	for (int k = PHASE_QUEUE; k <= PHASE_LOAD; k++)
		cold_s += t->phase_s[k];
	return cold_s / t->pods;
}

/* What took the most time, and how much. */
static enum cause largest_cause(const struct totals *t, double *seconds)
{
	enum cause cause = BOOTING;

	*seconds = 0;
	for (enum cause i = BOOTING; i < CAUSES; i++) {
		double sum = i == LOSING ? t->lost_s : 0;
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
	int pods = cold_s > 0 ? (int)MIN(t->useful_s / cost_work_for_used_s(PLAN_USED_GOAL, cold_s),
					 1e6)
			      : t->width;
	double work_s = cost_work_for_used_s(PLAN_USED_GOAL, cold_s * t->width);
	char work[24], has[24];

	if (cold_s <= 0 ||
	    t->useful_s >= work_s) /* there is enough work, so the cause is another */
		return;
	if (pods >= 1 && pods < t->width) {
		str_addf(to, "; 70%% needs %d pod%s instead of %d for this work", pods,
			 pods == 1 ? "" : "s", t->width);
		return;
	}
	str_addf(to, "; 70%% needs %s of work on %d pod%s, this run had %s",
		 duration_show(work, sizeof(work), (int64_t)(1000 * work_s)), t->width,
		 t->width == 1 ? "" : "s",
		 duration_show(has, sizeof(has), (int64_t)(1000 * t->useful_s)));
}

static void add_used_share(struct str *to, const struct totals *t, const struct long_tail *tail)
{
	double used = t->useful_s / t->billed_s, most;
	enum cause cause = largest_cause(t, &most);
	bool by_tail = cause == WAITING && tail->took_s > 0;

	if (used >= PLAN_USED_GOAL)
		return;
	str_addf(to, "%.0f%% of the billed time computed%s; most of the rest went into %s (%.0f%%)",
		 100 * used, t->lost_s > 0 ? " what was kept" : "",
		 by_tail ? "waiting for one long segment" : causes[cause].what,
		 100 * MIN(most / t->billed_s, 1.0));
	if (!by_tail) /* the next line has the way out */
		str_addf(to, ": %s", way_out(cause, t));
	if (cause != LOSING && !by_tail)
		add_way_to_goal(to, t);
	str_addc(to, '\n');
}

/* ---- how busy the GPUs were ---- */

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

void advice_add(struct str *to, const struct advice_of *of)
{
	struct totals t = totals_of(of);
	struct long_tail tail = find_long_tail(of);

	if (t.billed_s <= 0 || t.useful_s + t.lost_s <= 0)
		return;
	add_used_share(to, &t, &tail);
	add_long_tail(to, &tail);
	add_gpu_use(to, of->pods, of->count);
}

/* ---- batches ---- */

/* Batch sizes of a run. Zeros: unknown. */
struct batches {
	bool padded;  /* the engine renders a batch at once */
	double mean;  /* segments per batch */
	int most;     /* largest batch of its worker */
	double seats; /* throughput at the mean size, relative to the largest; 0: unknown */
};

/* Leaves zeros if the ledger has no batches of the run. */
static void read_batches(struct batches *out, const struct advice_of *of)
{
	struct batch_row *rows = NULL;
	size_t count = 0;
	double segments = 0, length = 0;

	*out = (struct batches){0};
	if (store_batches(of->store, of->run, &rows, &count, NULL) < 0 || !count) {
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
	if (segments > 0)
		out->seats = learn_seats(of->store, rows[0].speed, length / segments, out->mean,
					 out->most);
	free(rows);
}

void advice_add_seats(struct str *to, const struct advice_of *of)
{
	struct totals t = totals_of(of);
	struct batches b;

	read_batches(&b, of);
	if (!b.padded || t.billed_s <= 0 || t.useful_s <= 0)
		return;
	double used = MIN(t.useful_s / t.billed_s, 1.0);
	str_addf(to, "used %.0f%%, seats ", 100 * used);
	if (b.seats > 0)
		str_addf(to, "%.0f%%", 100 * b.seats);
	else
		str_add(to, "unknown");
	str_addf(to, ": batches of %.0f segment%s on average, where %d fit; ", b.mean,
		 b.mean < 1.5 ? "" : "s", b.most);
	if (b.seats > 0)
		str_addf(to, "full batches without a cold start cost %.1f times less\n",
			 1 / (used * b.seats));
	else
		str_add(to, "these batches do not show what larger ones gain, `burst calibrate` "
			    "does\n");
}
