/* decide.c - decides what a run rents: its wishes, the estimate, what cannot succeed, the plan */
#include "decide.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/guard.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "core/core.h"
#include "engine/caller.h"
#include "engine/engine.h"
#include "engine/prices.h"
#include "launch.h"
#include "plan/choose.h"
#include "volume.h"

/* ---- wish ---- */

/* A time of day that passed less than this ago counts as missed; otherwise the next day's counts.
 */
enum { MISSED_S = 6 * 3600 };

/* This local time of day, `days` days after the day of `now`. */
static time_t local_time_of_day(time_t now, int hour, int minute, int days)
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

/* "20m" is that long after from_ms; "07:00" is the next one, or the last one if it was less than
 * six hours before. Returns false for other texts. */
static bool parse_deadline(const char *text, int64_t from_ms, int64_t *at_ms)
{
	int hour, minute;
	int64_t ms;

	if (!clock_time_of_day(text, &hour, &minute)) {
		bool fine = duration_parse(text, &ms, NULL) == 0;
		*at_ms = fine ? from_ms + ms : 0;
		return fine;
	}
	time_t now = from_ms / 1000, at = local_time_of_day(now, hour, minute, -1);
	for (int days = 0; difftime(now, at) > MISSED_S; days++)
		at = local_time_of_day(now, hour, minute, days);
	*at_ms = (int64_t)at * 1000;
	return true;
}

/* Reads goal and value_of_time. The user's own file, which is for all jobs, may have a
 * value_of_time for those with the goal "balanced" alone. */
static int read_goal(struct choice_row *row, const struct config *config, const struct section *top,
		     struct err *err)
{
	const char *goal = section_text(top, "goal");
	enum plan_goal found;

	row->value_of_time_microusd = section_int(top, "value_of_time");
	COPY_TEXT(row->goal, goal);
	if (!plan_goal_find(goal, &found))
		return err_set(err, ERR_CONFIG,
			       "%s: goal = \"%s\": it must be \"cost\", \"time\" or \"balanced\"",
			       section_where(top, "goal"), goal);
	if (found == PLAN_BALANCED && row->value_of_time_microusd <= 0)
		return err_set(err, ERR_CONFIG,
			       "%s: goal = \"balanced\" needs value_of_time: what an hour of "
			       "waiting costs, in dollars",
			       section_where(top, "goal"));
	if (found != PLAN_BALANCED && row->value_of_time_microusd > 0 &&
	    !config_is_set_by_user(config, top, "value_of_time"))
		return err_set(err, ERR_CONFIG,
			       "%s: value_of_time counts with goal = \"balanced\" alone: name that "
			       "goal, or leave it out",
			       section_where(top, "value_of_time"));
	return 0;
}

/* Reads the deadline; a duration counts from from_ms. A time of day may have passed already. */
static int read_deadline(struct choice_row *row, const struct section *top, int64_t from_ms,
			 struct err *err)
{
	const char *deadline = section_text(top, "deadline"),
		   *where = section_where(top, "deadline");

	COPY_TEXT(row->deadline, deadline ? deadline : "");
	row->deadline_ms = 0;
	if (!row->deadline[0])
		return 0;
	if (!parse_deadline(deadline, from_ms, &row->deadline_ms))
		return err_set(err, ERR_CONFIG,
			       "%s: deadline = \"%s\": it must be a duration (\"20m\") or a time "
			       "of day (\"07:00\")",
			       where, deadline);
	if (row->deadline_ms <= from_ms && !strchr(deadline, ':'))
		return err_set(err, ERR_CONFIG, "%s: deadline = \"%s\": it must be longer than 0",
			       where, deadline);
	return 0;
}

/* ERR_CAP if the deadline has passed: that is no mistake in the config. */
static int check_deadline_is_ahead(const struct choice_row *row, struct err *err)
{
	int64_t now = clock_wall_ms();
	char ago[24];

	if (!row->deadline_ms || now < row->deadline_ms)
		return 0;
	err_set(err, ERR_CAP,
		"deadline = \"%s\": that was %s ago; give a later time, or a duration (\"20m\"); "
		"nothing was rented",
		row->deadline, duration_show(ago, sizeof(ago), now - row->deadline_ms));
	return err_about(err, "deadline");
}

int wish_read(struct launch *l, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	struct choice_row *row = &l->choice.row;

	if (row->decided_ms)
		return 0;
	row->pods_open = row->gpus_open = true;
	order_override_choice(&l->order, row);
	if (read_goal(row, l->ctx->config, top, err) < 0 ||
	    read_deadline(row, top, l->ctx->began_ms, err) < 0)
		return -1;
	row->decided_ms = clock_wall_ms();
	return 0;
}

/* For a resumed run: if the user changed the deadline since, or `given` it now, reads it again; it
 * counts from the start of this command. ERR_CAP: it has passed. */
static int renew_deadline(struct launch *l, bool given, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	const char *deadline = section_text(top, "deadline");

	if (!given && !strcmp(deadline ? deadline : "", l->choice.row.deadline))
		return 0;
	return read_deadline(&l->choice.row, top, l->ctx->began_ms, err) < 0
		       ? -1
		       : check_deadline_is_ahead(&l->choice.row, err);
}

void wish_check(const struct config *config, struct mistakes *m)
{
	const struct section *top = config_top(config);
	struct choice_row row = {0};
	struct err err = {0};

	if (read_goal(&row, config, top, &err) < 0)
		mistakes_note(m, "goal", &err);
	if (read_deadline(&row, top, clock_wall_ms(), &err) < 0)
		mistakes_note(m, "deadline", &err);
}

/* ---- estimate ---- */

/* Reads the wishes in the planner's form. ERR_CAP: the deadline has passed. */
static int read_plan_wish(struct launch *l, struct plan_wish *wish, struct err *err)
{
	const struct choice_row *row = &l->choice.row;

	if (wish_read(l, err) < 0 || check_deadline_is_ahead(&l->choice.row, err) < 0)
		return -1;
	plan_goal_find(row->goal, &wish->goal);
	wish->value_of_time_h = (double)row->value_of_time_microusd / 1e6;
	wish->budget_usd = (double)l->order.max_cost_microusd / 1e6;
	/* no pod outlives it */
	wish->cap_s = (double)l->order.max_duration_ms / 1000;
	wish->staged = wish->goal == PLAN_COST && !row->deadline_ms;
	wish->pods = row->pods_open ? 0 : row->pods;
	wish->pods_most = MIN(engine_pods_fit(files_raise(), files_open()), PLAN_PODS_MOST);
	if (row->deadline_ms)
		wish->within_s = (double)(row->deadline_ms - clock_wall_ms()) / 1000;
	return 0;
}

/* Callback of estimate_fill(): reads a key of the provider's section. The provider need not be
 * open.
 */
static bool find_provider_setting(void *ctx, const char *provider, const char *key, int64_t *value)
{
	const struct launch *l = ctx;
	const struct provider_ops *ops = provider_find(provider);
	const struct section *conf = ops ? config_provider(l->ctx->config, provider) : NULL;
	const struct option_spec *o = conf ? ops->options : NULL;

	while (o && o->key && strcmp(o->key, key) != 0)
		o++;
	if (!o || !o->key)
		return false;
	*value = section_int(conf, key);
	return section_has(conf, key);
}

/* kept: how many pods follow in the list that other runs keep. */
static int make_estimate(struct estimate *out, struct launch *l, const struct offer *offers,
			 size_t count, size_t kept, struct err *err)
{
	const struct order *o = &l->order;
	struct estimate_of of = {
		.run = &l->run,
		.config = o->config,
		.job = o->job,
		.image = o->image,
		.volume = o->volume,
		.volume_gb = o->volume_gb,
		.stages = o->stages,
		.gpus_named = o->gpus != NULL,
		.kept = kept,
		.provider_setting = find_provider_setting,
		.ctx = l,
		.find_provider = provider_find,
	};

	*out = (struct estimate){0};
	if (read_plan_wish(l, &of.wish, err) < 0)
		return -1;
	estimate_fill(out, &of, offers, count);
	return 0;
}

int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count,
		  struct err *err)
{
	return make_estimate(out, l, offers, count, 0, err);
}

int estimate_wanted(struct estimate *out, struct launch *l, const struct wanted *w, struct err *err)
{
	return make_estimate(out, l, w->list, w->count, w->kept, err);
}

/* ---- better ---- */

/* Fills *all with the offers of e and those of all other GPUs. */
static void fetch_offers_of_all_gpus(struct launch *l, const struct estimate *e, int64_t offers_ms,
				     struct wanted *all)
{
	struct op_want want;

	wanted_add(all, e->offers, e->count);
	order_fill_want(&l->order, &want);
	want.offers.gpus = NULL;
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		struct op_result result = {0};
		struct err ignored = {0};
		if (caller_perform(&l->run.setup.providers[i], OP_OFFERS, &want, offers_ms, &result,
				   &ignored) == 0)
			wanted_add(all, result.offers, result.offer_count);
		op_result_free(&result);
	}
	wanted_end(all);
}

/* "2 pods"; if named: "2 pods of OFFER". */
static void add_pods_of_plan(struct str *to, const struct plan *p, const struct offer *o,
			     bool named)
{
	char offer[PLAN_TEXT];

	str_addf(to, "%d pod%s%s%s", p->pods, p->pods == 1 ? "" : "s", named ? " of " : "",
		 named ? plan_offer(offer, o) : "");
}

/* Writes b->line, which compares b->plan with pick. given: the offer of pick. */
static void describe_better(struct better *b, const struct plan *pick, const struct offer *given)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	double longer_s = b->plan.makespan_p50_s - pick->makespan_p50_s;
	bool other_card = strcmp(b->offer.gpu, given->gpu) != 0 ||
			  strcmp(b->offer.provider, given->provider) != 0 ||
			  b->offer.spot != given->spot;
	char cost[32], time[24];

	add_pods_of_plan(&line, pick, given, other_card);
	str_addf(&line, " cost%s %s; ", pick->pods == 1 ? "s" : "",
		 plan_dollars(cost, pick->cost_usd));
	add_pods_of_plan(&line, &b->plan, &b->offer, other_card);
	str_addf(&line, " would cost %s and take ", plan_dollars(cost, b->plan.cost_usd));
	if (fabs(longer_s) < 0.05)
		str_add(&line, "as long");
	else
		str_addf(&line, "%s %s", plan_seconds(time, fabs(longer_s)),
			 longer_s > 0 ? "longer" : "less");
	COPY_TEXT(b->line, str_text(&line));
}

/* Fills *out if the planner finds a clearly better plan than pick, which is for offer `given`. */
static void compare_with_planner(struct better *out, const struct plan *pick,
				 const struct offer *given, const struct estimate *e)
{
	out->found = plan_better(&out->plan, pick, &e->work, e->machines, e->count, &e->wish);
	if (!out->found)
		return;
	out->offer = e->offers[out->plan.machine];
	describe_better(out, pick, given);
}

void better_find(struct better *out, struct launch *l, const struct estimate *e,
		 const struct plan *pick, int64_t offers_ms)
{
	bool gpus_given = l->order.gpus != NULL,
	     pods_given = l->order.pods && !l->run.setup.job_ops->needs(l->run.setup.job)->command;
	const struct offer *given = &e->offers[pick->machine];
	struct err ignored = {0};
	struct estimate all;
	struct wanted others = {.order = &l->order, .store = l->ctx->store};

	*out = (struct better){0};
	if (!gpus_given || !offers_ms) {
		if (gpus_given || pods_given || l->run.setup.provider_count > 1)
			compare_with_planner(out, pick, given, e);
		return;
	}
	fetch_offers_of_all_gpus(l, e, offers_ms, &others);
	if (estimate_make(&all, l, others.list, others.count, &ignored) == 0)
		compare_with_planner(out, pick, given, &all);
	estimate_free(&all);
	wanted_free(&others);
}

/* ---- refuse ---- */

/* The share of a prior that counts when a run is refused: a start may be as much faster. */
#define UNMEASURED_SHARE 0.25

/* Whether the cards of offer i have the GPU memory that the job needs. Unknown counts as enough. */
static bool has_enough_memory(const struct estimate *e, size_t i)
{
	const struct offer *o = &e->offers[i];

	return !e->need_gb || !o->vram_gb || o->vram_gb * MAX(o->gpus, 1) >= e->need_gb;
}

/* ---- the deadline ---- */

/* Index of the offer whose pods are up first nine times in ten, and when; -1: none fits. */
static int find_quickest_start(const struct estimate *e, double *up_s)
{
	int found = -1;

	for (size_t i = 0; i < e->count; i++) {
		double s = cold_p90_s(&e->machines[i].cold);
		if (!has_enough_memory(e, i) || (found >= 0 && s >= *up_s))
			continue;
		found = (int)i;
		*up_s = s;
	}
	return found;
}

/* ERR_CAP if booting a pod alone, or the fastest plan, misses the user's deadline. wish: has that
 * deadline. */
static int refuse_deadline(const struct choice_row *wish, const struct estimate *e,
			   const struct plan *pick, enum plan_verdict verdict, struct err *err)
{
	CLEANUP(str_free) struct str why = STR_INIT;
	char time[24], text[256], offer[PLAN_TEXT];
	double up_s = 0, left_s = (double)(wish->deadline_ms - clock_wall_ms()) / 1000;
	int first = find_quickest_start(e, &up_s);
	bool up_too_late = first >= 0 && up_s > left_s,
	     too_slow = verdict == PLAN_TOO_SLOW && pick->makespan_p90_s > left_s;

	if (!up_too_late && !too_slow)
		return 0;
	if (up_too_late)
		str_addf(&why, "; booting a pod alone takes %s (%s: %s)",
			 duration_show(time, sizeof(time), (int64_t)(up_s * 1000)),
			 plan_offer(offer, &e->offers[first]),
			 plan_source_name(cold_source(&e->machines[first].cold)));
	if (too_slow)
		str_addf(&why, "; the fastest plan takes %s (%s)",
			 duration_show(time, sizeof(time), (int64_t)(pick->makespan_p90_s * 1000)),
			 plan_sentence(text, sizeof(text), e, pick));
	err_set(err, ERR_CAP,
		"deadline = \"%s\": no plan finishes by then in nine runs of ten%s; nothing was "
		"rented",
		wish->deadline, str_text(&why));
	return err_about(err, "deadline");
}

/* ---- the budget ---- */

/* The time until a pod is up, as short as can be expected. */
static double least_start_s(const struct cold *c)
{
	double s = 0;

	for (int i = 0; i < COLD_PHASES; i++)
		if (i != COLD_QUEUE || !c->queue_is_free)
			s += c->phase[i].samples ? c->phase[i].p50_s
						 : c->phase[i].p50_s * UNMEASURED_SHARE;
	return s;
}

/* Index of the offer whose pod is up for the least money, and that cost and time; -1: none fits. */
static int find_cheapest_start(const struct estimate *e, double *usd, double *s)
{
	int found = -1;

	for (size_t i = 0; i < e->count; i++) {
		double start_s = least_start_s(&e->machines[i].cold),
		       start_usd = e->machines[i].price_h * start_s / 3600;
		if (!has_enough_memory(e, i) || (found >= 0 && start_usd >= *usd))
			continue;
		found = (int)i;
		*usd = start_usd;
		*s = start_s;
	}
	return found;
}

/* Returns 0 if it is unknown. */
static int64_t cost_of_cheapest_start(const struct estimate *e)
{
	double usd = 0, s;

	return find_cheapest_start(e, &usd, &s) < 0 ? 0 : (int64_t)ceil(MIN(usd, 1e9) * 1e6);
}

/* ERR_CAP if max_cost is spent before the cheapest pod is up. */
static int refuse_budget(const struct order *o, const struct estimate *e, struct err *err)
{
	double least_usd = 0, s = 0;
	CLEANUP(free_text) char *cap = NULL;
	char offer[PLAN_TEXT], cost[32], budget[32], price[32], time[24];
	int at = find_cheapest_start(e, &least_usd, &s);
	bool lowered = o->cap_words[0];

	if (at < 0 || e->wish.budget_usd <= 0 || least_usd <= e->wish.budget_usd)
		return 0;
	plan_dollars(budget, e->wish.budget_usd);
	cap = lowered ? xasprintf("%s of %s is left, which", budget, o->cap_words)
		      : xasprintf("caps.max_cost = %s", budget);
	err_set(err, ERR_CAP,
		"%s is spent before a pod is ready: booting takes %s and %s at least (%s, %s an "
		"hour: %s); %s; nothing was rented",
		cap, duration_show(time, sizeof(time), (int64_t)(s * 1000)),
		plan_dollars(cost, least_usd), plan_offer(offer, &e->offers[at]),
		money_show(price, sizeof(price), e->offers[at].price_microusd_h),
		plan_source_name(cold_source(&e->machines[at].cold)),
		lowered ? "wait for the next day or month, or raise that cap" : "raise it");
	return lowered ? -1 : err_about(err, "caps.max_cost");
}

/* ERR_CAP if max_cost does not pay for the shortest life that the core gives a pod. */
static int refuse_cap(const struct order *order, const struct estimate *e, const struct plan *pick,
		      enum plan_verdict verdict, struct err *err)
{
	const struct offer *o = &e->offers[0];
	int64_t cap = (int64_t)llround(e->wish.budget_usd * 1e6);
	char offer[PLAN_TEXT], price[32];

	for (size_t i = 1; i < e->count; i++)
		if (e->offers[i].price_microusd_h < o->price_microusd_h)
			o = &e->offers[i];
	if (verdict != PLAN_NOTHING_FITS)
		o = &e->offers[pick->machine];
	if (core_pods_paid(cap, o->price_microusd_h, 1, 0))
		return 0;
	err_set(err, ERR_CAP,
		"%s does not pay for one pod that could end itself in time (%s, %s an hour): raise "
		"it, or choose a cheaper GPU; nothing was rented",
		order->cap_words[0] ? order->cap_words : "caps.max_cost", plan_offer(offer, o),
		money_show(price, sizeof(price), o->price_microusd_h));
	return err_about(err, "caps.max_cost");
}

/* ERR_CAP if caps.max_price_per_hour is below the lowest price of a wanted offer, which `provider`
 * has, unless the run waits for cheaper ones. floor 0: unknown. */
static int refuse_price(const struct order *o, int64_t floor_microusd_h, const char *provider,
			struct err *err)
{
	int64_t cap = o->max_price_microusd_h;
	char most[32], price[32];

	if (!cap || floor_microusd_h <= cap || o->retry_until_up)
		return 0;
	err_set(err, ERR_CAP,
		"caps.max_price_per_hour is %s, but the cheapest matching pod costs %s an hour "
		"(%s): raise the cap, or choose another GPU",
		money_show(most, sizeof(most), cap),
		money_show(price, sizeof(price), floor_microusd_h), provider);
	return err_about(err, "caps.max_price_per_hour");
}

static const char *advice_for_unfit(enum estimate_unfit kind)
{
	switch (kind) {
	case UNFIT_IMAGE: return "set pod.image to another image, or name other GPUs in gpu";
	case UNFIT_UNKNOWN: return "name GPUs in gpu; `burst gpus` lists those that burst knows";
	case UNFIT_BF16:
	case UNFIT_NAMED:
	case UNFIT_NOT: break;
	}
	return "name other GPUs in gpu; `burst gpus` lists them";
}

/* Refuses a run for which no card on offer is fit; the message names the first one. Returns -1. */
static int refuse_cards(const struct estimate *e, struct err *err)
{
	size_t first = 0;
	char offer[PLAN_TEXT];

	while (first + 1 < e->count && !e->unfit[first][0])
		first++;
	err_set(err, ERR_NO_CAPACITY, "no card on offer can run the job: %s: %s; %s",
		plan_offer(offer, &e->offers[first]), e->unfit[first],
		advice_for_unfit(e->unfit_kind[first]));
	return err_about(err, "gpu");
}

/* How many of the kept pods last for this plan. */
static int count_lasting(struct launch *l, const struct estimate *e, const struct plan *p)
{
	return !e->kept ? 0
			: keep_warm_pods(l, &e->offers[e->count],
					 (int64_t)(p->makespan_p50_s * 1000));
}

enum plan_verdict choose_plan(struct launch *l, const struct estimate *e, struct plan *pick)
{
	enum plan_verdict verdict = estimate_choose(e, pick);
	struct plan on_kept;

	if (verdict == PLAN_FOUND || !estimate_choose_kept(e, (int)e->kept, &on_kept) ||
	    !estimate_choose_kept(e, count_lasting(l, e, &on_kept), &on_kept))
		return verdict;
	*pick = on_kept;
	return PLAN_FOUND;
}

int plan_take_kept(struct launch *l, const struct estimate *e, struct plan *pick)
{
	int kept = count_lasting(l, e, pick);

	estimate_take_kept(e, pick, kept);
	return kept;
}

int refuse_run(const struct launch *l, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, struct err *err)
{
	if (!e->open || !e->count || (verdict == PLAN_FOUND && estimate_is_on_kept(e, pick)))
		return 0;
	if (e->none_can_run)
		return refuse_cards(e, err);
	if (l->choice.row.deadline_ms && refuse_deadline(&l->choice.row, e, pick, verdict, err) < 0)
		return -1;
	return refuse_budget(&l->order, e, err) < 0 ? -1
						    : refuse_cap(&l->order, e, pick, verdict, err);
}

/* ---- decide ---- */

/* Why there is no plan. */
#define NO_SPEED "no estimate: how fast the job renders was not known"
#define NO_OFFER "no estimate: no provider offered a pod when the run began"

enum {
	DECIDE_MS = 8000, /* how long a slow provider may delay a run */
	BETTER_MS = 2000, /* the same, for a line of advice */
};

struct fetched_offers {
	struct wanted wanted;
	/* The lowest price of a wanted offer, even if sold out, and its provider; 0: a provider has
	 * not reported it. */
	int64_t floor_microusd_h;
	const char *floor_at;
};

/* Fetches what the run would rent. A provider that fails counts as one without offers: the run
 * itself asks again and reports the error. */
static void fetch_offers(struct launch *l, struct fetched_offers *out)
{
	bool all_have_price = true;

	*out = (struct fetched_offers){.wanted = {.order = &l->order, .store = l->ctx->store}};
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		struct op_result result = {0};
		struct err ignored = {0};
		if (offers_fetch(&l->order, &l->run.setup.providers[i], OFFERS_ANYWHERE, DECIDE_MS,
				 &result, &ignored) < 0) {
			all_have_price = false;
			continue;
		}
		all_have_price = all_have_price && result.floor_microusd_h > 0;
		if (!out->floor_at || result.floor_microusd_h < out->floor_microusd_h) {
			out->floor_microusd_h = result.floor_microusd_h;
			out->floor_at = l->run.setup.providers[i].ops->name;
		}
		wanted_add(&out->wanted, result.offers, result.offer_count);
		prices_note(l->ctx->store, result.offers, result.offer_count, clock_wall_ms());
		op_result_free(&result);
	}
	wanted_end(&out->wanted);
	if (!all_have_price)
		out->floor_microusd_h = 0;
}

void kept_pods_add(struct launch *l, struct wanted *w)
{
	struct offer *kept;
	size_t count = keep_warm_offers(l, &kept);

	wanted_add_kept(w, kept, count);
	free(kept);
}

/* Names each wish that the plan does not follow to the letter. */
static void say_wishes(const struct estimate *e, const struct plan *pick)
{
	CLEANUP(str_free) struct str lines = STR_INIT;
	const char *line;
	size_t len;

	plan_wishes(&lines, e, pick);
	for (const char *at = str_text(&lines); (line = str_next_line(&at, &len));)
		log_line(LOG_NOTE, "%.*s", (int)len, line);
}

/* Warns before renting if max_cost pays for fewer pods at a time than the run would have. */
static void say_pods_paid(const struct launch *l, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	const struct offer *o = &e->offers[pick->machine];
	int64_t cold_ms =
		cold_source(&m->cold) == PLAN_MEASURED ? (int64_t)(cold_p50_s(&m->cold) * 1000) : 0;
	int pods = (int)MIN((size_t)MAX(l->choice.row.pods, 1), e->open);
	int paid = core_pods_paid((int64_t)llround(e->wish.budget_usd * 1e6), o->price_microusd_h,
				  pods, cold_ms);
	char offer[PLAN_TEXT], cap[32], price[32];

	if (paid < pods)
		output_line(
			stderr,
			"%s = %s pays for %d of %d pods at a time (%s, %s an hour): booting may "
			"take a fifth of each pod's share; raise it for more",
			l->order.cap_words[0] ? l->order.cap_words : "caps.max_cost",
			plan_dollars(cap, e->wish.budget_usd), paid, pods, plan_offer(offer, o),
			money_show(price, sizeof(price), o->price_microusd_h));
}

/* Stores the plan as the run's choice and forecast. Prints it, and a better one if there is one. */
static void adopt_plan(struct launch *l, const struct estimate *e, const struct plan *pick)
{
	char sentence[256], promise[PLAN_TEXT], source[PLAN_SOURCE];

	run_choose(&l->choice, e, pick, l->run.setup.job_ops->needs(l->run.setup.job));
	struct plan with_kept = *pick;
	int kept = plan_take_kept(l, e, &with_kept);
	plan_sentence(sentence, sizeof(sentence), e, &with_kept);
	snprintf(l->choice.row.why, sizeof(l->choice.row.why), "%s; %s (batch times: %s%s)",
		 sentence, plan_promise(promise, sizeof(promise), e, &with_kept),
		 plan_speed_source(source, &e->machines[with_kept.machine]),
		 kept ? "; with pods that are kept" : "");
	l->run.row.planned_ms = (int64_t)llround(with_kept.makespan_p50_s * 1000);
	l->run.row.planned_microusd = (int64_t)llround(with_kept.pods_usd * 1e6);
	l->run.row.promised_ms = (int64_t)llround(with_kept.makespan_p90_s * 1000);
	/* what the pods cost: a run books no more */
	l->run.row.promised_microusd = (int64_t)llround(
		(with_kept.cost_p90_usd - with_kept.cost_usd + with_kept.pods_usd) * 1e6);
	if (l->ctx->quiet)
		return;
	say_wishes(e, pick);
	output_line(stderr, "plan: %s", l->choice.row.why);
	say_pods_paid(l, e, pick);
	struct better better;
	better_find(&better, l, e, pick, BETTER_MS);
	if (better.found)
		output_line(stderr, "better: %s", better.line);
}

/* Logs each card that the plan leaves out, once, with the reason. */
static void say_left_out(const struct estimate *e)
{
	char offer[PLAN_TEXT];

	for (size_t i = 0; i < e->count; i++) {
		bool said = false;
		for (size_t k = 0; k < i; k++)
			said |= !strcmp(e->offers[k].gpu, e->offers[i].gpu) &&
				!strcmp(e->offers[k].provider, e->offers[i].provider);
		if (e->unfit[i][0] && !said)
			log_line(LOG_NOTE, "%s: %s: %s", plan_unfit_name(e->unfit_kind[i]),
				 plan_offer(offer, &e->offers[i]), e->unfit[i]);
	}
}

enum decide_round {
	MAY_WARM,   /* may fill the volume first */
	AFTER_WARM, /* the volume is ready */
};

/* Plans with the offers of now. Returns 0; -1 with *err; 1 if it filled the volume instead: pods
 * now start sooner, so the caller decides again. */
static int decide_once(struct launch *l, enum decide_round round, struct err *err)
{
	bool may_warm = round == MAY_WARM;
	struct fetched_offers fetched;
	struct estimate e = {0};
	struct plan pick;
	int64_t warming_microusd;

	fetch_offers(l, &fetched);
	/* a run in the ledger records why a stage could not run */
	int status =
		l->stage ? 0
			 : refuse_price(&l->order, fetched.floor_microusd_h, fetched.floor_at, err);
	if (!l->stage)
		kept_pods_add(l, &fetched.wanted);
	if (status == 0)
		status = estimate_wanted(&e, l, &fetched.wanted, err);
	if (status == 0 && e.open) {
		if (may_warm) {
			wanted_log_needs(&fetched.wanted);
			say_left_out(&e);
		}
		enum plan_verdict verdict = choose_plan(l, &e, &pick);
		l->least_microusd = verdict == PLAN_FOUND && estimate_is_on_kept(&e, &pick)
					    ? 0
					    : cost_of_cheapest_start(&e);
		bool has_plan = verdict != PLAN_NOTHING_FITS;
		status = l->stage ? 0 : refuse_run(l, &e, &pick, verdict, err);
		if (status == 0 && has_plan && may_warm)
			status = warm_first(l, &e, &pick, &warming_microusd, err);
		if (status == 0 && has_plan)
			adopt_plan(l, &e, &pick);
		else if (status == 0)
			COPY_TEXT(l->choice.row.why, e.count ? NO_SPEED : NO_OFFER);
	}
	estimate_free(&e);
	wanted_free(&fetched.wanted);
	return status;
}

int launch_decide(struct launch *l, struct err *err)
{
	int status = wish_read(l, err) < 0 ? -1 : decide_once(l, MAY_WARM, err);

	return status == 1 ? decide_once(l, AFTER_WARM, err) : status;
}

int launch_read_decision(struct launch *l, const struct run_row *row, struct err *err)
{
	bool given = opt_has(l->ctx, "deadline");
	size_t pods;
	char at[32];

	if (run_choice_read(&l->choice, l->ctx->store, row->id, err) < 0 ||
	    renew_deadline(l, given, err) < 0 ||
	    run_open_pods(&l->ctx->runs, row->id, &pods, err) < 0)
		return -1;
	l->run.choice = &l->choice;
	if (!run_choice_is_late(&l->choice, pods > 0, clock_wall_ms()))
		return 0;
	if (given)
		return err_set(
			err, ERR_CAP,
			"--deadline %s: booting a pod alone takes longer; nothing was rented",
			l->choice.row.deadline);
	log_line(LOG_WARN,
		 "run %s: its deadline (%s: %s) cannot be kept any more: it continues without one "
		 "(--deadline sets another)",
		 row->id, l->choice.row.deadline,
		 clock_rfc3339(at, sizeof(at), l->choice.row.deadline_ms));
	l->choice.row.deadline_ms = 0;
	return 0;
}
