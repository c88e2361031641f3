/* plan_offers.c - plans with the providers' offers, and prints the planner's choice. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "better.h"
#include "caps.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "engine/caller.h"
#include "keep_pool.h"
#include "launch.h"
#include "offer_list.h"
#include "plan_offers.h"
#include "refuse.h"
#include "stages.h"
#include "volume_trust.h"
#include "wanted.h"

static void warn_of_volumes(struct launch *l)
{
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		struct err why = {0};
		if (volume_trust_check(l, i, &why) < 0 && why.kind == ERR_CONFIG)
			log_line(LOG_WARN, "%s", why.msg);
	}
}

/* Pods of other runs that the run would take over instead of renting. */
static int warm_pods(struct launch *l, const struct estimate *e, const struct plan *pick,
		     enum plan_verdict verdict)
{
	if (!e->open || verdict == PLAN_NOTHING_FITS)
		return 0;
	return keep_warm_pods(l, (int64_t)(pick->makespan_p50_s * 1000));
}

int plan_offers(struct launch *l, const struct offer *offers, size_t count,
		const struct plan_words *words, const struct caps *caps, struct err *err)
{
	struct estimate e;
	struct plan pick;
	struct better better = {0};

	if (estimate_make(&e, l, offers, count, err) < 0) {
		estimate_free(&e);
		return -1;
	}
	if (words->prices[0])
		COPY_TEXT(e.price_from, words->prices);
	e.in_any_order = words->in_any_order;
	enum plan_verdict verdict = estimate_choose(&e, &pick);
	int status = refuse_plan(l, &e, &pick, verdict, err);
	if (status == 0 && caps && e.open)
		status = caps_refuse(caps, l, err);
	int warm = status == 0 && caps ? warm_pods(l, &e, &pick, verdict) : 0;
	if (status == 0 && verdict != PLAN_NOTHING_FITS)
		better_find(&better, l, &e, &pick, LAUNCH_ASK_MS);
	struct plan_stage *stages = NULL;
	size_t stage_count = stages_plan(l, &stages);
	const struct plan_result r = {.job_ops = l->run.setup.job_ops,
				      .job = l->run.setup.job,
				      .estimate = &e,
				      .pick = &pick,
				      .verdict = verdict,
				      .better = &better,
				      .caps = caps,
				      .keep_ms = l->order.keep_warm_ms,
				      .warm = warm,
				      .stages = stages,
				      .stage_count = stage_count,
				      .words = words};
	if (l->ctx->json) {
		output_json(plan_result_json(&r, status < 0 ? err : NULL));
		l->ctx->json_printed = true;
	} else {
		plan_result_print(&r, status < 0);
	}
	free(stages);
	estimate_free(&e);
	return status < 0 ? -1 : cmd_flush(err);
}

/* Adds offers whose GPUs are too small for the job, so that the plan can say so. */
static void add_too_small(struct launch *l, struct wanted *wanted)
{
	struct op_want want;

	launch_want_offers(l, &want);
	const int needed_gb = want.offers.vram_gb;
	want.offers.vram_gb = 0;
	for (int i = 0; needed_gb && i < l->run.setup.provider_count; i++) {
		struct op_result result = {0};
		struct err ignored = {0};
		if (caller_perform(&l->run.setup.providers[i], OP_OFFERS, &want, LAUNCH_ASK_MS,
				   &result, &ignored) < 0)
			continue;
		for (size_t k = 0; k < result.offer_count; k++)
			if (result.offers[k].vram_gb && result.offers[k].vram_gb < needed_gb)
				wanted_add(l, wanted, &result.offers[k], 1);
		op_result_free(&result);
	}
}

int launch_plan(struct launch *l, const struct plan_words *words, struct err *err)
{
	struct known_offer *known = NULL;
	CLEANUP(wanted_free) struct wanted wanted = {0};
	struct caps caps;
	size_t count = 0;

	if (caps_plan(&caps, l, run_open_segments(&l->run) > 0, err) < 0 ||
	    offer_list_fetch(l, true, &known, &count, err) < 0)
		return -1;
	warn_of_volumes(l);
	struct offer *offers = xcalloc(count + 1, sizeof(*offers));
	for (size_t i = 0; i < count; i++)
		offers[i] = known[i].offer;
	wanted_add(l, &wanted, offers, count);
	free(offers);
	wanted_end(&wanted);
	wanted_tell(&wanted);
	int status = wanted_check_price(&wanted, err);
	if (status == 0 && !l->ctx->json) {
		offer_list_print(stdout, known, count);
		if (count)
			putchar('\n');
	}
	free(known);
	if (status < 0)
		return -1;
	add_too_small(l, &wanted);
	return plan_offers(l, wanted.list, wanted.count, words, &caps, err);
}
