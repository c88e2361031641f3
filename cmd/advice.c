/* advice.c - reads a run's pods and says what would have made them cheaper. */
#include "advice.h"

#include "base/clock.h"
#include "base/mem.h"
#include "plan/cost.h"
#include "report.h"

enum { IDLE_GPU_PERCENT = 10, PINNED_GPU_PERCENT = 99 };
#define USED_GOAL 0.7

struct totals {
	int pods;
	double billed_s, compute_s, phase_s[PHASES];
};

static struct totals totals_of(const struct pod_row *pods, size_t count, int64_t now_ms)
{
	struct totals t = {0};

	for (size_t i = 0; i < count; i++) {
		int64_t phase_ms[PHASES];
		if (pods[i].create_ms <= 0 || report_billed_ms(&pods[i], now_ms) <= 0)
			continue;
		t.pods++;
		t.billed_s += (double)report_billed_ms(&pods[i], now_ms) / 1000;
		t.compute_s += (double)pods[i].compute_ms / 1000;
		report_phases(&pods[i], now_ms, phase_ms);
		for (int k = 0; k < PHASES; k++)
			t.phase_s[k] += (double)phase_ms[k] / 1000;
	}
	return t;
}

static const struct {
	const char *what, *then;
	enum phase phases[4]; /* PHASES ends them */
} causes[] = {
	{"coming up", "render more in one run, or on fewer pods", {PHASE_QUEUE, PHASE_BOOT, PHASE_CONNECT, PHASES}},
	{"syncing and setting up", "fill the volume before, with `burst volume warm`", {PHASE_SYNC, PHASES}},
	{"loading the engine", "render more in one run, or on fewer pods", {PHASE_LOAD, PHASES}},
	{"waiting for work", "use fewer pods", {PHASE_IDLE, PHASES}},
	{"fetching files", "use a volume that can be read without a pod", {PHASE_FETCH, PHASES}},
};

static void add_used(struct str *to, const struct totals *t)
{
	double used = t->compute_s / t->billed_s, most = 0, cold_s = 0;
	size_t cause = 0;
	char work[24], has[24];

	if (used >= USED_GOAL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
		double seconds = 0;
		for (const enum phase *p = causes[i].phases; *p != PHASES; p++)
			seconds += t->phase_s[*p];
		if (seconds > most) {
			most = seconds;
			cause = i;
		}
	}
	for (int k = PHASE_QUEUE; k <= PHASE_LOAD; k++)
		cold_s += t->phase_s[k];
	str_addf(to, "%.0f%% of the billed time computed; most of the rest went into %s (%.0f%%): %s", 100 * used, causes[cause].what,
		 100 * MIN(most / t->billed_s, 1.0), causes[cause].then);
	if (cold_s > 0)
		str_addf(to, "; 70%% takes %s of work on %d pod%s, this run had %s",
			 duration_show(work, sizeof(work), (int64_t)(1000 * cost_work_for_used_s(USED_GOAL, cold_s))), t->pods, t->pods == 1 ? "" : "s",
			 duration_show(has, sizeof(has), (int64_t)(1000 * t->compute_s)));
	str_addc(to, '\n');
}

static void add_gpus(struct str *to, const struct pod_row *pods, size_t count)
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
		str_addf(to, "the GPUs were at most %d%% busy while workers rendered: a smaller card, larger batches or fewer pods cost less\n", most);
	if (sampled && pinned == sampled)
		str_add(to, "the GPUs were always busy: a card with more bandwidth or compute is faster\n");
}

void advice_add(struct str *to, const struct pod_row *pods, size_t count, int64_t now_ms)
{
	struct totals t = totals_of(pods, count, now_ms);

	if (t.billed_s <= 0 || t.compute_s <= 0)
		return;
	add_used(to, &t);
	add_gpus(to, pods, count);
}
