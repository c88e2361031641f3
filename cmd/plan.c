/* plan.c - `burst plan`: asks the providers for offers and shows what a run would rent and cost. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/launch/better.h"
#include "cmd/launch/caps.h"
#include "cmd/launch/keep_pool.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/offer_list.h"
#include "cmd/launch/quick.h"
#include "cmd/launch/refuse.h"
#include "cmd/launch/volume_trust.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_parts.h"
#include "cmd/show/report.h"
#include "engine/caller.h"

/* Moves those that the cap on the price leaves to the front; *count: how many. ERR_CAP: it leaves
 * none. */
static int keep_within_price(struct launch *l, struct known_offer *offers, size_t *count,
			     struct err *err)
{
	int64_t most = section_int(section_group(config_top(l->ctx->config), "caps"),
				   "max_price_per_hour");
	const struct offer *least = NULL;
	size_t kept = 0, all = *count;
	char price[32], offer[PLAN_TEXT];

	for (size_t i = 0; i < all; i++)
		if (!least || offers[i].offer.price_microusd_h < least->price_microusd_h)
			least = &offers[i].offer;
	if (most && least && least->price_microusd_h > most) {
		err_set(err, ERR_CAP,
			"every offer is above caps.max_price_per_hour: the cheapest costs %s an "
			"hour (%s); raise the cap, or choose another GPU",
			money_show(price, sizeof(price), least->price_microusd_h),
			plan_offer(offer, least));
		return err_about(err, "caps.max_price_per_hour");
	}
	for (size_t i = 0; i < all; i++)
		if (!most || offers[i].offer.price_microusd_h <= most)
			offers[kept++] = offers[i];
	if (kept < all)
		log_line(LOG_NOTE, "%zu offer%s left out: above caps.max_price_per_hour",
			 all - kept, all - kept == 1 ? " is" : "s are");
	*count = kept;
	return 0;
}

static void warn_of_volumes(struct launch *l)
{
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		struct err why = {0};
		if (volume_trust_check(l, i, &why) < 0 && why.kind == ERR_CONFIG)
			log_line(LOG_WARN, "%s", why.msg);
	}
}

static json_t *better_json(const struct better *b)
{
	if (!b->found)
		return json_null();
	return json_pack("{s:o,s:o,s:b,s:i,s:f,s:f,s:o}", "provider",
			 report_text(b->offer.provider), "gpu", report_text(b->offer.gpu), "spot",
			 b->offer.spot, "pods", b->plan.pods, "makespan_p50_s",
			 b->plan.makespan_p50_s, "cost_usd", b->plan.cost_usd, "text",
			 report_text(b->line));
}

/* False: jobs of this type reuse nothing. */
static bool changes_of(const struct launch *l, struct job_changes *out)
{
	const struct job_ops *ops = l->run.setup.job_ops;

	*out = (struct job_changes){0};
	if (ops->changes)
		ops->changes(l->run.setup.job, out);
	return ops->changes != NULL;
}

static json_t *changes_json(const struct launch *l)
{
	struct job_changes c;

	if (!changes_of(l, &c))
		return json_null();
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "new", (json_int_t)c.added, "changed",
			 (json_int_t)c.changed, "gone", (json_int_t)c.gone, "reused",
			 (json_int_t)c.unchanged, "moved", (json_int_t)c.moved, "from_cache",
			 (json_int_t)c.from_cache, "stale_files", (json_int_t)c.stale);
}

/* A line, or "". */
static void add_left_out(struct str *to, const struct launch *l)
{
	if (l->run.setup.job_ops->left_out)
		l->run.setup.job_ops->left_out(l->run.setup.job, to);
}

static json_t *left_out_json(const struct launch *l)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	add_left_out(&text, l);
	return text.len ? report_text(str_text(&text)) : json_null();
}

/* How many there are, with the end of that line; then what changed since the output folder was
 * written. */
static void say_segments(const struct launch *l, const struct estimate *e, const char *tail)
{
	CLEANUP(str_free) struct str left_out = STR_INIT;
	struct job_changes c;

	if (e->open)
		printf("%zu segment%s, %zu to render%s\n", e->segments, e->segments == 1 ? "" : "s",
		       e->open, tail);
	else
		printf("all %zu segments are already rendered: a run would rent nothing\n",
		       e->segments);
	add_left_out(&left_out, l);
	if (left_out.len)
		puts(str_text(&left_out));
	if (!changes_of(l, &c) || !(c.changed + c.gone + c.unchanged + c.stale)) /* all is new */
		return;
	printf("+%zu ~%zu -%zu =%zu (new, changed, gone, reused)", c.added, c.changed, c.gone,
	       c.unchanged);
	if (c.from_cache)
		printf("; %zu from the render cache", c.from_cache);
	putchar('\n');
	if (c.stale)
		printf("%zu old output%s without a segment: `burst run --prune` removes %s\n",
		       c.stale, c.stale == 1 ? "" : "s", c.stale == 1 ? "it" : "them");
}

/* What keep_warm may cost beside the plan. Of "auto", which follows the cold start that is
 * measured, what is billed beside rendering stands for it. */
static void say_kept(const struct launch *l, const struct estimate *e, const struct plan *pick)
{
	int64_t ms = keep_warm_ms(l->ctx->config);
	bool by_start = ms == KEEP_WARM_AUTO;
	char time[24], money[32];

	if (by_start)
		ms = (int64_t)(MAX(pick->billed_s - pick->work_s, 0.0) * 1000 / MAX(pick->pods, 1));
	if (ms <= 0)
		return;
	plan_say(stdout, 2,
		 "keep_warm: afterwards each pod waits for the next run, for %s%s: at most %s more "
		 "for each, within the caps",
		 by_start ? "at most as long as its cold start took, about " : "at most ",
		 duration_show(time, sizeof(time), ms),
		 money_show(money, sizeof(money),
			    money_for((int64_t)(e->machines[pick->machine].price_h * 1e6), ms)));
}

/* Pods of other runs that the run would take over, and need not rent. */
static int warm_pods(struct launch *l, const struct estimate *e, const struct plan *pick,
		     enum plan_verdict verdict)
{
	if (!e->open || verdict == PLAN_NOTHING_FITS)
		return 0;
	return keep_warm_pods(l, (int64_t)(pick->makespan_p50_s * 1000));
}

static void say_warm(int warm)
{
	if (warm > 0)
		plan_say(stdout, 2,
			 "warm: %d pod%s kept for the next run: this one takes over what it needs "
			 "of them, without a cold start",
			 warm, warm == 1 ? " is" : "s are");
}

int plan_offers(struct launch *l, const struct offer *offers, size_t count,
		const struct plan_words *words, const struct caps *caps, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	struct estimate e;
	struct plan pick;

	if (estimate_make(&e, l, offers, count, err) < 0) {
		estimate_free(&e);
		return -1;
	}
	if (words->prices[0]) { /* saved offers and list prices are compared, not rented */
		COPY_TEXT(e.price_from, words->prices);
		e.in_any_order = true;
	}
	enum plan_verdict verdict = estimate_choose(&e, &pick);
	int status = refuse_plan(l, &e, &pick, verdict, err);
	if (status == 0 && caps && e.open)
		status = caps_refuse(caps, l, err);
	int warm = status == 0 && caps ? warm_pods(l, &e, &pick, verdict) : 0;
	struct better better = {0};
	if (status == 0 && verdict != PLAN_NOTHING_FITS)
		better_find(&better, l, &e, &pick, LAUNCH_ASK_MS);
	if (ctx->json) {
		json_t *object = plan_to_json(&e, &pick, verdict, status < 0 ? err : NULL);
		json_object_set_new(object, "better", better_json(&better));
		json_object_set_new(object, "changes", changes_json(l));
		json_object_set_new(object, "left_out", left_out_json(l));
		json_object_set_new(object, "caps", caps_to_json(caps));
		json_object_set_new(object, "warm_pods", json_integer(warm));
		output_json(object);
		ctx->json_printed = true;
	} else if (!e.open) {
		say_segments(l, &e, "");
	} else if (status == 0 && verdict == PLAN_NOTHING_FITS) {
		say_segments(l, &e, "; no estimate yet: the run measures it");
	} else if (verdict != PLAN_NOTHING_FITS) {
		say_segments(l, &e, "");
		putchar('\n');
		plan_show(stdout, &e, &pick, verdict, words);
		if (better.found)
			plan_say(stdout, 2, "better: %s", better.line);
	}
	if (!ctx->json)
		say_warm(warm);
	if (!ctx->json && caps && e.open && verdict != PLAN_NOTHING_FITS)
		say_kept(l, &e, &pick);
	if (!ctx->json)
		caps_show(stdout, caps);
	fflush(stdout); /* what stands in its way comes last */
	estimate_free(&e);
	return status < 0 ? -1 : cmd_flush(err);
}

/* Appends offers whose GPUs are too small for the job, so that the plan can say so. */
static size_t add_too_small(struct launch *l, struct offer **offers, size_t count)
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
		*offers = xrealloc(*offers, (count + result.offer_count + 1) * sizeof(**offers));
		for (size_t k = 0; k < result.offer_count; k++) {
			const struct offer *o = &result.offers[k];
			if (o->vram_gb && o->vram_gb < needed_gb)
				(*offers)[count++] = *o;
		}
		op_result_free(&result);
	}
	return count;
}

int launch_plan(struct launch *l, const struct plan_words *words, struct err *err)
{
	struct known_offer *known = NULL;
	struct caps caps;
	size_t count = 0;

	if (caps_plan(&caps, l, err) < 0 || offer_list_fetch(l, true, &known, &count, err) < 0)
		return -1;
	warn_of_volumes(l);
	if (keep_within_price(l, known, &count, err) < 0) {
		free(known);
		return -1;
	}
	struct offer *offers = xcalloc(count + 1, sizeof(*offers));
	for (size_t i = 0; i < count; i++)
		offers[i] = known[i].offer;
	if (!l->ctx->json) {
		offer_list_print(stdout, known, count);
		if (count)
			putchar('\n');
	}
	count = add_too_small(l, &offers, count);
	int status = plan_offers(l, offers, count, words, &caps, err);
	free(offers);
	free(known);
	return status;
}

/* ---- offers that were saved ---- */

/* ---- list prices ---- */

static int run_plan(struct cmd_context *ctx, struct err *err)
{
	struct plan_words words = {.explain = opt_has(ctx, "explain"),
				   .what_if = opt_has(ctx, "what-if")};
	struct launch l;

	if (quick_tell(ctx, err) < 0)
		return -1;
	launch_init(&l, ctx);
	int status = launch_peek_job(&l, err);
	if (status == 0 && opt_has(ctx, "offers") && opt_has(ctx, "list-prices"))
		status = err_set(err, ERR_USAGE, "give --offers or --list-prices, not both");
	if (status == 0 && opt_has(ctx, "list-prices"))
		status = plan_from_lists(&l, &words, err);
	else if (status == 0 && opt_has(ctx, "offers"))
		status = plan_from_file(&l, opt_text(ctx, "offers"), &words, err);
	else if (status == 0 && (status = launch_open_providers(&l, err)) == 0)
		status = launch_plan(&l, &words, err);
	launch_free(&l);
	return status;
}

/* The object of a plan that there is not. */
static void plan_failed(struct cmd_context *ctx, const struct err *err)
{
	output_json(plan_failure_json(&ctx->mistakes, err));
	cmd_flush(NULL);
}

static const struct opt plan_opts[] = {
	{'p', "provider", "PROVIDER", "ask these providers", "provider", false},
	{0, "gpu", "GPU", "only these GPUs, in order of preference; auto: any", "gpu", false},
	{0, "pods", "N|auto", "plan for exactly this many pods; auto: burst chooses", "pods",
	 false},
	{0, "spot", NULL, "plan with spot offers too", "spot", false},
	{0, "goal", "GOAL", "what to minimize: cost, time or balanced", "goal", false},
	{0, "deadline", "WHEN", "deadline: 20m from the start, or a time of day (07:00)",
	 "deadline", false},
	{0, "max-cost", "USD", "the most that the run may cost", "caps.max_cost", false},
	{0, "budget", "USD", "the same", "caps.max_cost", false},
	{0, "value-of-time", "USD", "what an hour of waiting costs, for --goal balanced",
	 "value_of_time", false},
	{0, "offers", "FILE", "plan with offers saved by `burst offers --json`, asking no provider",
	 NULL, false},
	{0, "list-prices", NULL, "plan with RunPod's and Modal's list prices, asking no provider",
	 NULL, false},
	{0, "engine", "ENGINE", "what speaks", "job.engine", false},
	{0, "voice", "VOICE", "voice of the lines that name none", "job.voice", false},
	{0, "save", "FILE",
	 "without a burst.cfg: write the one that does the same (default burst.cfg)", NULL, true},
	{0, "commit", "COMMIT", "plan for this git commit instead of the current files", NULL,
	 false},
	{0, "explain", NULL, "show every input of the plan and where it comes from", NULL, false},
	{0, "what-if", NULL, "show plans for twice and ten times as many segments", NULL, false},
	ALLOW_OPTS,
	{0},
};

const struct cmd cmd_plan = {
	.name = "plan",
	.args = "[CONFIG|TEXT] [-- COMMAND...]",
	.max_args = 1,
	.takes_command = true,
	.summary = "show what a run would rent, do and cost",
	.details = "Rents nothing. TEXT and COMMAND stand for a burst.cfg, as in `burst help run`. "
		   "Chooses the offer, the number of pods and the batch size for "
		   "the goal, the deadline and the cost cap, and "
		   "shows what limits the run. Batch times and cold starts are measured by earlier "
		   "runs, carried over from another GPU, or a prior; "
		   "the plan says which. TIME is the median; nine runs in ten stay within 90%.",
	.opts = plan_opts,
	.json = true,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG | CHECKS_ALL,
	.group = CMD_GROUP_RENDER,
	.run = run_plan,
	.failed = plan_failed,
};
