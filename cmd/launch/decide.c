/* decide.c - plans a run before anything is rented: number of pods, order of GPUs, expected time
 * and cost. */
#include "decide.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "better.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "refuse.h"
#include "wanted.h"
#include "warm_first.h"
#include "wish.h"

/* Why there is no plan. */
#define NO_SPEED "no estimate: how fast the job renders was not known"
#define NO_OFFER "no estimate: no provider offered a pod when the run began"

enum {
	DECIDE_MS = 8000, /* how long a slow provider may delay a run */
	BETTER_MS = 2000, /* the same, for a line of advice */
};

struct asked {
	struct wanted wanted;
	/* The lowest price of a wanted offer, even if sold out, and its provider; 0: a provider has
	 * not reported it. */
	int64_t floor_microusd_h;
	const char *floor_at;
};

/* Reports no error: the run itself asks again and reports it. */
static void fetch_all_offers(struct launch *l, struct asked *out)
{
	bool all_say = true;

	*out = (struct asked){0};
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		struct op_result result = {0};
		struct err ignored = {0};
		if (launch_fetch_offers(l, i, false, DECIDE_MS, &result, &ignored) < 0) {
			all_say = false;
			continue;
		}
		all_say = all_say && result.floor_microusd_h > 0;
		if (!out->floor_at || result.floor_microusd_h < out->floor_microusd_h) {
			out->floor_microusd_h = result.floor_microusd_h;
			out->floor_at = l->run.setup.providers[i].ops->name;
		}
		wanted_add(l, &out->wanted, result.offers, result.offer_count);
		op_result_free(&result);
	}
	wanted_end(&out->wanted);
	if (!all_say)
		out->floor_microusd_h = 0;
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

/* Says so before renting if max_cost leaves fewer pods than were asked for. */
static void say_paid(const struct launch *l, const struct estimate *e, const struct plan *pick)
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
			l->cap_words[0] ? l->cap_words : "caps.max_cost",
			plan_dollars(cap, e->wish.budget_usd), paid, pods, plan_offer(offer, o),
			money_show(price, sizeof(price), o->price_microusd_h));
}

static void act_on(struct launch *l, const struct estimate *e, const struct plan *pick)
{
	const char *source = plan_source_name(e->machines[pick->machine].speed_source);
	char sentence[256];

	plan_sentence(sentence, sizeof(sentence), e, pick);
	run_choose(&l->choice, e, pick, l->run.setup.job_ops->needs(l->run.setup.job));
	snprintf(l->choice.row.why, sizeof(l->choice.row.why), "%s (batch times: %s)", sentence,
		 source);
	l->run.row.planned_ms = (int64_t)llround(pick->makespan_p50_s * 1000);
	l->run.row.planned_microusd = (int64_t)llround(pick->pods_usd * 1e6);
	if (l->ctx->quiet)
		return;
	say_wishes(e, pick);
	output_line(stderr, "plan: %s", l->choice.row.why);
	say_paid(l, e, pick);
	struct better better;
	better_find(&better, l, e, pick, BETTER_MS);
	if (better.found)
		output_line(stderr, "better: %s", better.line);
}

/* Names each card that is not planned with, once. */
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

/* Returns 1 if the volume was filled first: its pods now start sooner than planned. */
static int decide_once(struct launch *l, bool may_warm, struct err *err)
{
	struct asked asked;
	struct estimate e = {0};
	struct plan pick;
	int64_t warming_microusd;

	fetch_all_offers(l, &asked);
	/* a run in the ledger records why a stage could not run */
	int status = l->stage ? 0 : refuse_price(l, asked.floor_microusd_h, asked.floor_at, err);
	if (status == 0)
		status = estimate_make(&e, l, asked.wanted.list, asked.wanted.count, err);
	if (status == 0 && e.open) {
		if (may_warm)
			say_left_out(&e);
		l->least_microusd = refuse_least_microusd(&e);
		enum plan_verdict verdict = estimate_choose(&e, &pick);
		bool found = verdict != PLAN_NOTHING_FITS;
		status = l->stage ? 0 : refuse_run(l, &e, &pick, verdict, err);
		if (status == 0 && found && may_warm && warm_first_due(l, &e, &pick))
			status = warm_first(l, &e, &pick, &warming_microusd, err);
		if (status == 0 && found)
			act_on(l, &e, &pick);
		else if (status == 0)
			COPY_TEXT(l->choice.row.why, e.count ? NO_SPEED : NO_OFFER);
	}
	estimate_free(&e);
	wanted_free(&asked.wanted);
	return status;
}

int launch_decide(struct launch *l, struct err *err)
{
	int status = wish_read(l, err) < 0 ? -1 : decide_once(l, true, err);

	return status == 1 ? decide_once(l, false, err) : status;
}
