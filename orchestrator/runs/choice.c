/* choice.c - turns a plan into what its run decides, keeps that in the ledger, and gives it to an
 * engine. */
#include "choice.h"

#include <math.h>
#include <stdlib.h>

#include "base/guard.h"

static const char *const goals[] = {
	[PLAN_COST] = "cost", [PLAN_TIME] = "time", [PLAN_BALANCED] = "balanced"};

bool plan_goal_find(const char *name, enum plan_goal *out)
{
	for (size_t i = 0; i < ARRAY_LEN(goals); i++)
		if (!strcmp(goals[i], name)) {
			*out = (enum plan_goal)i;
			return true;
		}
	return false;
}

/* The best plan of one GPU. */
struct ranked {
	struct plan plan;
	enum plan_verdict verdict;
};

/* Whether x serves the wish better than y: first that it keeps the limits, then the goal. */
static bool is_better(const struct ranked *x, const struct ranked *y, const struct plan_wish *wish)
{
	if ((x->verdict == PLAN_FOUND) != (y->verdict == PLAN_FOUND))
		return x->verdict == PLAN_FOUND;
	return plan_badness(&x->plan, wish) < plan_badness(&y->plan, wish);
}

/* The best plan of each GPU, the best GPU first. `best` has room for one of each offer. Returns the
 * count. */
static size_t rank_gpus(struct ranked *best, const struct estimate *e)
{
	size_t count = 0;

	for (size_t i = 0; i < e->count; i++) {
		struct ranked r;
		size_t at = 0;
		r.verdict = plan_choose(&r.plan, &e->work, &e->machines[i], 1, &e->wish);
		if (r.verdict == PLAN_NOTHING_FITS)
			continue;
		r.plan.machine = (int)i;
		while (at < count &&
		       strcmp(e->offers[best[at].plan.machine].gpu, e->offers[i].gpu) != 0)
			at++;
		if (at < count && !is_better(&r, &best[at], &e->wish))
			continue;
		count += at == count; /* at changes below */
		for (; at > 0 && is_better(&r, &best[at - 1], &e->wish); at--)
			best[at] = best[at - 1];
		best[at] = r;
	}
	return count;
}

/* Appends a name, unless it is there or there is no room for it. A name has no comma: the config
 * splits lists there. */
static void add_gpu(struct str *list, const char *gpu, size_t room)
{
	size_t len = strlen(gpu);

	for (const char *at = str_text(list); *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == len && !strncmp(at, gpu, len))
			return;
	if (list->len + len + 2 <= room)
		str_addf(list, "%s%s", list->len ? "," : "", gpu);
}

/* Names separated by commas: the pick's, then the others, the best first; kept pods may have
 * another one. "" if none fits. */
static void list_gpus(char *to, size_t room, const struct estimate *e, const struct plan *pick)
{
	struct ranked *best = xcalloc(e->count + 1, sizeof(*best));
	size_t count = rank_gpus(best, e);
	CLEANUP(str_free) struct str order = STR_INIT;

	if (count || estimate_is_on_kept(e, pick))
		add_gpu(&order, e->offers[pick->machine].gpu, room);
	for (size_t i = 0; i < count; i++)
		add_gpu(&order, e->offers[best[i].plan.machine].gpu, room);
	if (e->kept)
		add_gpu(&order, e->offers[e->count].gpu, room);
	copy_text(to, room, str_text(&order));
	free(best);
}

/* Makes a forecast for each GPU of a provider. */
static void make_forecasts(struct run_choice *c, const struct estimate *e)
{
	size_t n, *count = &c->forecast_count;

	c->forecasts = xcalloc(e->count + 2, sizeof(*c->forecasts));
	for (size_t i = 0; i < e->count + (e->kept > 0); i++) {
		const struct plan_machine *m = &e->machines[i];
		const struct offer *o = &e->offers[i];
		for (n = 0; n < *count; n++)
			if (!strcmp(c->forecasts[n].provider, o->provider) &&
			    !strcmp(c->forecasts[n].gpu, o->gpu))
				break;
		if (n < *count || m->batch_max <= 0)
			continue;
		struct forecast_row *f = &c->forecasts[(*count)++];
		*f = (struct forecast_row){.once_s = m->speed.once_s,
					   .longest_s = m->speed.longest_s,
					   .each_s = m->speed.each_s,
					   .measured = m->speed_source == PLAN_MEASURED,
					   .speed_sigma = m->speed_sigma,
					   .host_share = m->host_share,
					   .batch_max = m->batch_max,
					   .cold_p50_s = cold_p50_s(&m->cold),
					   .cold_p90_s = cold_p90_s(&m->cold)};
		COPY_TEXT(f->provider, o->provider);
		COPY_TEXT(f->gpu, o->gpu);
		if (e->speed_from)
			COPY_TEXT(f->speed_from, e->speed_from[i][0]
							 ? e->speed_from[i]
							 : plan_source_name(m->speed_source));
	}
}

/* How many pods a run with this plan may widen to. */
static int widest_of(const struct estimate *e, const struct plan *pick)
{
	const struct plan_wish wish = {
		.pods_most = MIN(engine_pods_fit(files_raise(), files_open()), PLAN_PODS_MOST)};

	return MIN(plan_widest(&e->work, &e->machines[pick->machine], &wish),
		   (int)MIN(e->open, (size_t)PLAN_PODS_MOST));
}

void run_choose(struct run_choice *c, const struct estimate *e, const struct plan *pick,
		const struct job_needs *needs)
{
	struct choice_row *row = &c->row;

	free(c->forecasts);
	c->forecasts = NULL;
	c->forecast_count = 0;
	row->pods_open = row->pods_open && !needs->command;
	if (row->pods_open)
		row->pods = pick->pods;
	row->pods_most = row->pods_open ? widest_of(e, pick) : 0;
	row->at_once = pick->pods > 1 && !e->wish.staged;
	row->on_demand = !e->offers[pick->machine].spot;
	row->batch = pick->batch;
	row->cost_microusd = (int64_t)llround(pick->pods_usd * 1e6);
	if (row->gpus_open && needs->gpu)
		list_gpus(row->gpus, sizeof(row->gpus), e, pick);
	make_forecasts(c, e);
}

/* ---- the ledger ---- */

int run_choice_write(const struct run_choice *c, struct store *s, const char *run, struct err *err)
{
	struct choice_row row = c->row;

	if (!row.decided_ms)
		return 0;
	COPY_TEXT(row.run, run);
	if (store_put_choice(s, &row, err) < 0)
		return -1;
	for (size_t i = 0; i < c->forecast_count; i++) {
		struct forecast_row f = c->forecasts[i];
		COPY_TEXT(f.run, run);
		if (store_put_forecast(s, &f, err) < 0)
			return -1;
	}
	return 0;
}

int run_choice_read(struct run_choice *out, struct store *s, const char *run, struct err *err)
{
	*out = (struct run_choice){0};
	if (store_choice(s, run, &out->row, err) < 0) {
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err);
		return 0;
	}
	return store_forecasts(s, run, &out->forecasts, &out->forecast_count, err);
}

/* ---- the engine ---- */

static void free_applied(struct run_choice *c)
{
	for (char **gpu = c->gpus; gpu && *gpu; gpu++)
		free(*gpu);
	free(c->gpus);
	free(c->expected);
	c->gpus = NULL;
	c->expected = NULL;
}

static char **split_gpus(const char *names)
{
	char **list = xcalloc(strlen(names) / 2 + 2, sizeof(*list));
	size_t count = 0;

	for (const char *at = names; *at;) {
		size_t len = strcspn(at, ",");
		list[count++] = xasprintf("%.*s", (int)len, at);
		at += len + (at[len] == ',');
	}
	return list;
}

/* The forecasts as the core takes them. */
static void fill_expected(struct run_choice *c)
{
	c->expected = xcalloc(c->forecast_count + 1, sizeof(*c->expected));
	for (size_t i = 0; i < c->forecast_count; i++) {
		const struct forecast_row *from = &c->forecasts[i];
		struct core_forecast *f = &c->expected[i];
		*f = (struct core_forecast){.speed = {from->once_s, from->longest_s, from->each_s},
					    .measured = from->measured,
					    .speed_sigma = from->speed_sigma,
					    .host_share = from->host_share,
					    .batch_max = from->batch_max,
					    .cold_p50_s = from->cold_p50_s,
					    .cold_p90_s = from->cold_p90_s};
		COPY_TEXT(f->provider, from->provider);
		COPY_TEXT(f->gpu, from->gpu);
	}
}

void run_choice_apply(struct run_choice *c, struct engine_setup *setup, int64_t wall_ms)
{
	const struct choice_row *row = &c->row;
	struct core_conf *conf = &setup->conf;
	int most = engine_pods_fit(files_raise(), files_open());

	free_applied(c);
	c->gpus = split_gpus(row->gpus);
	setup->gpus = c->gpus[0] ? (const char *const *)c->gpus : NULL;
	fill_expected(c);
	conf->pods = MAX(row->pods_open ? MIN(row->pods, most) : row->pods, 1);
	conf->at_once = row->at_once;
	conf->plan = (struct core_plan){
		.forecasts = c->expected,
		.forecast_count = c->forecast_count,
		.value_of_time_h = (double)row->value_of_time_microusd / 1e6,
		.cost_microusd = row->cost_microusd,
		.deadline_ms = row->deadline_ms ? MAX(row->deadline_ms - wall_ms, 1) : 0,
		.pods_open = row->pods_open && c->forecast_count,
		.pods_most = MIN(row->pods_most, most),
		.gpus_open = row->gpus_open,
		.on_demand = row->on_demand};
	plan_goal_find(row->goal, &conf->plan.goal);
}

int64_t run_choice_due_ms(const struct choice_row *row)
{
	return strchr(row->deadline, ':') ? row->deadline_ms : 0;
}

bool run_choice_is_late(const struct run_choice *c, bool has_pods, int64_t wall_ms)
{
	double least_s = has_pods || !c->forecast_count ? 0 : c->forecasts[0].cold_p50_s;

	for (size_t i = 1; i < c->forecast_count && !has_pods; i++)
		least_s = MIN(least_s, c->forecasts[i].cold_p50_s);
	return c->row.deadline_ms && wall_ms + (int64_t)(least_s * 1000) >= c->row.deadline_ms;
}

void run_choice_free(struct run_choice *c)
{
	free_applied(c);
	free(c->forecasts);
	*c = (struct run_choice){0};
}
