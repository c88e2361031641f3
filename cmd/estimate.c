/* estimate.c - gathers what a plan is made from: lengths of segments, prices, learned speeds and cold starts. */
#include "estimate.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "engine/learn.h"

enum { PODS_LEARNED_FROM = 200 };
#define CHARS_PER_AUDIO_S 15.0 /* 900 characters a minute, as published measurements of speech have it (750 to 1000) */
#define TAIL_S		  1.0  /* after its last batch: the last files, the release */
#define QUANTUM_S	  1.0  /* pods are billed by the second, rounded up */

/* What pods took elsewhere, until this ledger knows better: seconds, median and slow tenth. */
static const struct {
	const char *provider; /* NULL: any other */
	struct cold_time phase[COLD_PHASES];
} cold_priors[] = {
	{"local", {{0.1, 0.5, 0}, {0.5, 2, 0}, {0.3, 1, 0}, {0.5, 2, 0}, {0, 0, 0}, {0.5, 2, 0}}},
	{"modal", {{5, 60, 0}, {5, 15, 0}, {2, 5, 0}, {3, 10, 0}, {0, 0, 0}, {5, 15, 0}}},
	{NULL, {{10, 60, 0}, {60, 180, 0}, {2, 5, 0}, {3, 10, 0}, {0, 0, 0}, {5, 15, 0}}},
};
#define GPU_LOAD_S  20.0 /* beside that, where weights go to a GPU */
#define GPU_LOAD_SLOW_S 60.0

static struct cold cold_prior(const char *provider, bool gpu)
{
	struct cold c = {0};
	size_t i = 0;

	while (cold_priors[i].provider && strcmp(cold_priors[i].provider, provider) != 0)
		i++;
	memcpy(c.phase, cold_priors[i].phase, sizeof(c.phase));
	if (gpu) {
		c.phase[COLD_LOAD].p50_s += GPU_LOAD_S;
		c.phase[COLD_LOAD].p90_s += GPU_LOAD_SLOW_S;
	}
	return c;
}

/* ---- deadline and goal ---- */

/* "07:00"; false: it is no time of day. */
static bool read_clock(const char *text, int *hour, int *minute)
{
	int used = 0;

	return sscanf(text, "%2d:%2d%n", hour, minute, &used) == 2 && !text[used] && *hour >= 0 && *hour < 24 && *minute >= 0 &&
	       *minute < 60;
}

/* This time of day, so many days from now. */
static time_t time_of_day(time_t now, int hour, int minute, int days)
{
	struct tm tm;

	localtime_r(&now, &tm);
	tm.tm_mday += days;
	tm.tm_hour = hour;
	tm.tm_min = minute;
	tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return mktime(&tm);
}

double estimate_deadline_s(const char *text, int64_t wall_ms)
{
	int hour, minute;
	int64_t ms;

	if (!read_clock(text, &hour, &minute))
		return duration_parse(text, &ms, NULL) == 0 && ms > 0 ? (double)ms / 1000 : -1;
	time_t now = wall_ms / 1000, at = time_of_day(now, hour, minute, 0);
	return difftime(at > now ? at : time_of_day(now, hour, minute, 1), now);
}

static int read_goal(const struct section *top, struct plan_wish *wish, struct err *err)
{
	static const char *const names[] = {"cost", "time", "balanced"};
	const char *goal = section_text(top, "goal");

	wish->value_of_time_h = (double)section_int(top, "value_of_time") / 1e6;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(goal, names[i])) {
			wish->goal = (enum plan_goal)i;
			if (wish->goal == PLAN_BALANCED && wish->value_of_time_h <= 0)
				return err_set(err, ERR_CONFIG, "%s: goal = \"balanced\" needs value_of_time: what an hour of waiting costs, in dollars",
					       section_where(top, "goal"));
			return 0;
		}
	return err_set(err, ERR_CONFIG, "%s: goal = \"%s\": it must be \"cost\", \"time\" or \"balanced\"", section_where(top, "goal"), goal);
}

static int read_wish(const struct section *top, struct plan_wish *wish, struct err *err)
{
	const struct section *caps = section_group(top, "caps");
	const char *deadline = section_text(top, "deadline");

	if (read_goal(top, wish, err) < 0)
		return -1;
	wish->budget_usd = (double)section_int(caps, "max_cost") / 1e6;
	wish->deadline_s = (double)section_int(caps, "max_duration") / 1000; /* no pod outlives it */
	wish->pods = section_has(top, "pods") ? (int)section_int(top, "pods") : 0;
	if (!deadline || !*deadline)
		return 0;
	double seconds = estimate_deadline_s(deadline, clock_wall_ms());
	if (seconds < 0)
		return err_set(err, ERR_CONFIG, "%s: deadline = \"%s\": it must be a duration (\"20m\") or a time of day (\"07:00\")",
			       section_where(top, "deadline"), deadline);
	wish->deadline_s = wish->deadline_s > 0 ? MIN(wish->deadline_s, seconds) : seconds;
	return 0;
}

/* ---- work ---- */

static double *open_lengths(struct launch *l, struct estimate *out, double *estimated_s)
{
	const struct segment *segments = l->setup.job_ops->segments(l->setup.job, &out->segments);
	double *lengths = xcalloc(out->segments + 1, sizeof(*lengths));

	for (size_t i = 0; i < out->segments; i++) {
		if (l->setup.results && l->setup.results[i].state == SEGMENT_SAFE)
			continue;
		lengths[out->open++] = segments[i].weight;
		out->sum += segments[i].weight;
		*estimated_s += segments[i].est_seconds;
	}
	return lengths;
}

/* ---- machines ---- */

struct learned { /* of one provider */
	const char *provider;
	struct pod_row *rows;
	size_t count;
};

static void learn_provider(struct learned *k, struct store *store, const char *provider)
{
	if (k->provider && !strcmp(k->provider, provider))
		return;
	free(k->rows);
	*k = (struct learned){.provider = provider};
	store_pods_up(store, provider, PODS_LEARNED_FROM, &k->rows, &k->count, NULL);
}

static void make_machine(struct estimate *e, struct launch *l, size_t i, const struct speed *prior, const struct learned *pods)
{
	const struct job_needs *needs = l->setup.job_ops->needs(l->setup.job);
	const struct offer *o = &e->offers[i];
	struct plan_machine *m = &e->machines[i];
	struct learn_what what = {.engine = needs->engine, .options = needs->speed_options, .gpu = o->gpu, .provider = o->provider};

	*m = (struct plan_machine){
		.id = (int)i,
		.price_h = (double)o->price_microusd_h / 1e6,
		.quantum_s = QUANTUM_S,
		.cold = cold_prior(o->provider, needs->gpu),
		.workers = MAX(needs->workers, 1),
		.batch_max = needs->vram_gb > o->vram_gb * MAX(o->gpus, 1) && needs->gpu ? 0 : MAX(needs->max_batch, 1),
		.tail_s = TAIL_S,
	};
	learn_cold(pods->rows, pods->count, o->gpu, &m->cold);
	m->speed_source = learn_speed(l->ctx->store, &what, prior, &m->speed, e->speed_from[i]);
	if (m->speed.once_s + m->speed.longest_s + m->speed.each_s > 0)
		e->known = true;
	else
		m->batch_max = 0; /* nothing can be said of it */
}

int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count, struct err *err)
{
	const struct job_needs *needs = l->setup.job_ops->needs(l->setup.job);
	struct learned pods = {0};
	struct speed prior = {0};
	double estimated_s = 0;
	bool any_fits = false;

	*out = (struct estimate){.offers = offers, .count = count, .need_gb = needs->vram_gb};
	if (read_wish(config_top(l->ctx->config), &out->wish, err) < 0)
		return -1;
	double *lengths = open_lengths(l, out, &estimated_s);
	if (out->sum > 0)
		prior.each_s = estimated_s / out->sum;
	out->audio_s = needs->command ? 0 : out->sum / CHARS_PER_AUDIO_S;
	plan_work_init(&out->work, lengths, out->open, needs->max_batch, out->audio_s);
	free(lengths);
	out->machines = xcalloc(count + 1, sizeof(*out->machines));
	out->speed_from = xcalloc(count + 1, sizeof(*out->speed_from));
	for (size_t i = 0; i < count; i++) {
		learn_provider(&pods, l->ctx->store, offers[i].provider);
		make_machine(out, l, i, &prior, &pods);
		any_fits |= !needs->gpu || needs->vram_gb <= offers[i].vram_gb * MAX(offers[i].gpus, 1);
	}
	out->never_fits = count && !any_fits;
	free(pods.rows);
	return 0;
}

void estimate_free(struct estimate *e)
{
	free(e->machines);
	free(e->speed_from);
	*e = (struct estimate){0};
}
