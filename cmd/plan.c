/* plan.c - `burst plan` and `burst run -n`: shows what a run would rent, from live offers, saved
 * ones or price lists */
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "cmd/launch/decide.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/stages.h"
#include "cmd/launch/variant.h"
#include "cmd/launch/volume.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "engine/caller.h"
#include "engine/prices.h"
#include "plan/cost.h"

/* ---- live offers ----
 * Plans with the providers' offers, and prints the planner's choice. */

static void warn_of_volumes(struct launch *l)
{
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		struct err why = {0};
		if (volume_trust_check(l->ctx, &l->order, &l->run.setup.providers[i], &why) < 0 &&
		    why.kind == ERR_CONFIG)
			log_line(LOG_WARN, "%s", why.msg);
	}
}

/* Sets *err to how much GPU memory is missing on the largest offer: by the cards' labels if the job
 * states its need in GB, else by the engine's known need. Returns -1. */
static int refuse_memory(const struct job_needs *needs, const struct estimate *e, struct err *err)
{
	const struct offer *largest = &e->offers[0];
	char offer[PLAN_TEXT], need[CHECK_NEED];

	for (size_t i = 1; i < e->count; i++)
		if (e->offers[i].vram_gb * MAX(e->offers[i].gpus, 1) >
		    largest->vram_gb * MAX(largest->gpus, 1))
			largest = &e->offers[i];
	int has_gb = largest->vram_gb * MAX(largest->gpus, 1);
	double need_gib = e->need.base_gib + e->need.each_gib,
	       usable_gib = estimate_usable_gib(largest);
	plan_offer(offer, largest);
	check_describe_need(need, needs);
	if (e->need_gb > has_gb)
		err_set(err, ERR_NO_CAPACITY,
			"no offer has enough GPU memory: the job needs %d GB, and the most that is "
			"offered is %d GB (%s): %d GB are missing%s%s%s; name larger GPUs in gpu",
			e->need_gb, has_gb, offer, e->need_gb - has_gb, need[0] ? " (" : "", need,
			need[0] ? ")" : "");
	else
		err_set(err, ERR_NO_CAPACITY,
			"no offer has enough GPU memory: the job needs %.1f GiB for one segment, "
			"and the most that can be used is %.1f GiB (%s): %.1f GiB are missing; "
			"name larger GPUs in gpu",
			need_gib, usable_gib, offer, MAX(need_gib - usable_gib, 0.0));
	return err_about(err, "gpu");
}

/* The first of the order's GPUs that is no card's name; NULL: all are. */
static const char *first_unknown_gpu(const struct order *o)
{
	char name[GPU_MAX];
	int count;

	for (size_t i = 0; o->gpus && o->gpus[i]; i++)
		if (!gpu_parse(o->gpus[i], name, sizeof(name), &count) ||
		    (!gpu_is_none(name) && !gpu_find(name)))
			return o->gpus[i];
	return NULL;
}

/* Sets *err to why there is no offer. A provider says itself that it has no such card. Returns -1.
 */
static int refuse_no_offer(const struct launch *l, struct err *err)
{
	const char *unknown = l->run.setup.provider_count ? NULL : first_unknown_gpu(&l->order);
	const char *near = unknown ? gpu_nearest(unknown) : NULL;

	if (!unknown)
		return err_set(err, ERR_NO_CAPACITY,
			       "no provider offers what the job needs now (see gpu, "
			       "job.needs, spot, caps.max_price_per_hour; `burst offers`)");
	err_set(err, ERR_CONFIG,
		"gpu = \"%.40s\": none of these offers has it, and no card has this name%s%s%s",
		unknown, near ? ", did you mean \"" : "; `burst gpus` lists them", near ? near : "",
		near ? "\"?" : "");
	return err_about(err, "gpu");
}

/* Like refuse_run(), for a plan, which has nothing to show without a fitting offer or an estimate.
 * A run would wait for the offer, and measure the speed. */
static int refuse_plan(const struct launch *l, const struct estimate *e, const struct plan *pick,
		       enum plan_verdict verdict, struct err *err)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);

	if (!e->open || (verdict == PLAN_FOUND && estimate_is_on_kept(e, pick)))
		return 0;
	if (!e->count)
		return refuse_no_offer(l, err);
	if (e->never_fits)
		return refuse_memory(needs, e, err);
	if (refuse_run(l, e, pick, verdict, err) < 0)
		return -1;
	if (e->known && verdict != PLAN_NOTHING_FITS)
		return 0;
	if (l->ctx->cmd == &cmd_run) /* `burst run -n` shows the offers without an estimate */
		return 0;
	const struct offer *unknown = NULL;
	char offer[PLAN_TEXT] = "";
	for (size_t i = 0; i < e->count && !unknown; i++)
		unknown = e->unfit_kind[i] == UNFIT_NAMED ? &e->offers[i] : NULL;
	return err_set(err, ERR_CONFIG,
		       "no estimate: the speed of %s%s%s is not known on %s yet; `burst calibrate` "
		       "measures it, and so does `burst run`",
		       needs->command ? "this command" : "engine \"",
		       needs->command ? "" : needs->engine, needs->command ? "" : "\"",
		       unknown ? plan_offer(offer, unknown) : "any of these offers");
}

static void print_cheaper_hours(const struct forecast_cheaper *c, const struct offer *o)
{
	printf("%s at %s: from %02d:00 to %02d:00 usually %.0f%% cheaper than at other hours (%d "
	       "of %d days)\n",
	       gpu_is_none(o->gpu) ? "no GPU" : o->gpu, o->provider, c->from_hour, c->to_hour,
	       100 * c->saving, c->cheaper, c->days);
}

/* What the key prewarm means for a pod with this cold start. */
static struct cold_ahead find_ahead(const char *prewarm, const struct cold *cold)
{
	int64_t ms = 0;

	if (!prewarm || !strcmp(prewarm, "off") ||
	    (strcmp(prewarm, "auto") != 0 && duration_parse(prewarm, &ms, NULL) < 0))
		return (struct cold_ahead){0};
	return cold_ahead(cold, strcmp(prewarm, "auto") ? (double)ms / 1000 : -1);
}

/* Prints the planner's choice among these offers, as text or JSON. caps: what caps over runs leave;
 * NULL for offers that are not live. Returns 0, or -1 if the run could not begin. */
static int choose_and_print(struct launch *l, const struct wanted *wanted,
			    const struct plan_words *words, const struct caps *caps,
			    struct err *err)
{
	struct estimate e;
	struct plan pick;
	struct better better = {0};
	struct variant variant = {0};

	if (estimate_wanted(&e, l, wanted, err) < 0) {
		estimate_free(&e);
		return -1;
	}
	if (words->prices[0]) {
		COPY_TEXT(e.price_from, words->prices);
		e.price_source = words->price_source;
	}
	e.in_any_order = words->in_any_order;
	enum plan_verdict verdict = choose_plan(l, &e, &pick);
	int status = refuse_plan(l, &e, &pick, verdict, err), warm = 0;
	if (status == 0 && caps && e.open)
		status = caps_refuse_least(caps, l->least_microusd, err);
	if (status == 0 && e.open && verdict != PLAN_NOTHING_FITS)
		warm = plan_take_kept(l, &e, &pick);
	if (status == 0 && verdict != PLAN_NOTHING_FITS)
		better_find(&better, l, &e, &pick, caps ? OFFERS_ASK_MS : 0);
	if (status == 0 && verdict == PLAN_FOUND)
		variant_find(&variant, l, &e, &pick);
	struct plan_stage *stages = NULL;
	size_t stage_count = stages_plan(l, &stages);
	struct forecast_cheaper hours;
	struct cold_ahead ahead = {0};
	if (verdict != PLAN_NOTHING_FITS)
		ahead = find_ahead(l->order.prewarm, &e.machines[pick.machine].cold);
	bool cheaper = caps && verdict != PLAN_NOTHING_FITS &&
		       prices_cheaper(&hours, l->ctx->store, &e.offers[pick.machine]);
	const struct plan_result r = {.job_ops = l->run.setup.job_ops,
				      .job = l->run.setup.job,
				      .estimate = &e,
				      .pick = &pick,
				      .verdict = verdict,
				      .better = &better,
				      .variant = &variant,
				      .caps = caps,
				      .keep_ms = l->order.keep_warm_ms,
				      .ahead = ahead,
				      .due_ms = run_choice_due_ms(&l->choice.row),
				      .cheaper = cheaper ? &hours : NULL,
				      .warm = warm,
				      .stages = stages,
				      .stage_count = stage_count,
				      .words = words};
	if (status < 0)
		config_place_error(l->ctx->config, err);
	if (l->ctx->json) {
		output_json(plan_result_json(&r, status < 0 ? err : NULL));
		l->ctx->json_printed = true;
	} else {
		plan_result_print(&r, status < 0);
		if (cheaper)
			print_cheaper_hours(&hours, &e.offers[pick.machine]);
	}
	free(stages);
	estimate_free(&e);
	return status < 0 ? -1 : cmd_flush(err);
}

/* Adds offers whose GPUs are too small for the job, so that the plan can say so. */
static void add_too_small(struct launch *l, struct wanted *wanted)
{
	struct op_want want;

	order_fill_want(&l->order, &want);
	const int needed_gb = want.offers.vram_gb;
	want.offers.vram_gb = 0;
	for (int i = 0; needed_gb && i < l->run.setup.provider_count; i++) {
		struct op_result result = {0};
		struct err ignored = {0};
		if (caller_perform(&l->run.setup.providers[i], OP_OFFERS, &want, OFFERS_ASK_MS,
				   &result, &ignored) < 0)
			continue;
		for (size_t k = 0; k < result.offer_count; k++)
			if (result.offers[k].vram_gb && result.offers[k].vram_gb < needed_gb)
				wanted_add(wanted, &result.offers[k], 1);
		op_result_free(&result);
	}
}

/* Asks the providers, prints their offers, and plans with those that the run would consider. */
static int plan_with_live_offers(struct launch *l, const struct plan_words *words, struct err *err)
{
	struct known_offer *known = NULL;
	CLEANUP(wanted_free)
	struct wanted wanted = {.order = &l->order, .store = l->ctx->store};
	struct caps caps;
	size_t count = 0;

	if (launch_open_providers(&l->order, &l->run, err) < 0 ||
	    caps_plan(&caps, l, run_open_segments(&l->run) > 0, err) < 0 ||
	    offer_list_fetch(&l->order, &l->run, OFFERS_AT_VOLUME, &known, &count, err) < 0)
		return -1;
	warn_of_volumes(l);
	wanted_add_known(&wanted, known, count);
	wanted_end(&wanted);
	wanted_log_left_out(&wanted);
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
	kept_pods_add(l, &wanted);
	return choose_and_print(l, &wanted, words, &caps, err);
}

/* ---- saved offers and list prices ----
 * Plans with saved offers or list prices, without a provider. */

enum { OFFERS_MAX_BYTES = 4 << 20, COUNTS_MOST = 64 };

struct saved {
	struct offer *offers;
	bool *avoided; /* of each offer: whether a run would avoid it still, as the file says */
	size_t count;
};

static void saved_free(struct saved *s)
{
	free(s->offers);
	free(s->avoided);
	*s = (struct saved){0};
}

/* Returns -1 if provider, gpu or price_usd_hour is missing or wrong. */
static int parse_offer(const json_t *from, struct offer *o)
{
	bool unpriced = json_is_null(json_object_get(from, "price_usd_hour"));
	double price = unpriced ? 0 : jsonx_number(from, "price_usd_hour", -1);

	*o = (struct offer){.gpus = (int)jsonx_bounded(from, "gpus", 0, 64),
			    .vram_gb = (int)jsonx_bounded(from, "vram_gb", 0, 100000),
			    .pods_max = (int)jsonx_bounded(from, "pods_max", 0, INT_MAX),
			    .spot = jsonx_bool(from, "spot", false)};
	COPY_TEXT(o->provider, jsonx_text(from, "provider", ""));
	COPY_TEXT(o->id, jsonx_text(from, "id", ""));
	COPY_TEXT(o->gpu, jsonx_text(from, "gpu", ""));
	COPY_TEXT(o->region, jsonx_text(from, "region", ""));
	COPY_TEXT(o->with, jsonx_text(from, "with", ""));
	COPY_TEXT(o->stock, jsonx_text(from, "stock", ""));
	if (!o->provider[0] || !o->gpu[0] || !(price >= 0 && price < 1e6))
		return -1;
	o->price_microusd_h = (int64_t)(price * 1e6 + 0.5);
	return 0;
}

/* Whether a run avoids the offer until a time that has not come yet. Both times are UTC in one
 * format, so comparing their texts compares them. */
static bool is_avoided(const json_t *from)
{
	const json_t *avoided = json_object_get(from, "avoided");
	char now[32];

	return json_is_object(avoided) &&
	       strcmp(jsonx_text(avoided, "until", ""),
		      clock_rfc3339(now, sizeof(now), clock_wall_ms())) > 0;
}

/* Reads what `burst offers --json` printed. Free with saved_free(). */
static int read_offers_file(const char *path, struct saved *out, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (path_read(path, OFFERS_MAX_BYTES, &text, err) < 0) {
		err->kind = ERR_USAGE;
		return err_wrap(err, "--offers");
	}
	CLEANUP(json_decref)
	json_t *list = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_array(list))
		return err_set(err, ERR_CONFIG,
			       "%s: not a JSON list of offers; `burst offers --json` prints one",
			       path);
	out->offers = xcalloc(json_array_size(list) + 1, sizeof(*out->offers));
	out->avoided = xcalloc(json_array_size(list) + 1, sizeof(*out->avoided));
	for (; out->count < json_array_size(list); ++out->count) {
		const json_t *item = json_array_get(list, out->count);
		out->avoided[out->count] = is_avoided(item);
		if (parse_offer(item, &out->offers[out->count]) == 0)
			continue;
		err_set(err, ERR_CONFIG,
			"%s: offer %zu: provider, gpu or price_usd_hour is missing or wrong", path,
			out->count + 1);
		saved_free(out);
		return -1;
	}
	return 0;
}

/* ERR_NO_CAPACITY: all offers are of providers that the config does not name, or too expensive. */
static int check_provider_named(const struct section *top, const struct wanted *w,
				const struct offer *first, size_t count, struct err *err)
{
	if (!w->count && count && w->left_out[NOT_ITS_PROVIDER] == count)
		return err_set(err, ERR_NO_CAPACITY,
			       "%s: none of these offers is at a provider of this job; name "
			       "another one, as in -p %s",
			       section_where(top, "provider"), first->provider);
	return wanted_check_price(w, err);
}

/* The accounts are opened to know whose pods are kept; none is asked. */
static void add_kept_unasked(struct launch *l, struct wanted *wanted)
{
	struct err ignored = {0};

	if (keep_has_any(l->ctx->store) && launch_open_providers(&l->order, &l->run, &ignored) == 0)
		kept_pods_add(l, wanted);
}

/* Where offers without live prices come from. */
enum offers_from {
	FROM_FILE,
	FROM_PRICE_LISTS, /* these have all GPUs, so it is not reported which the config leaves out
			   */
};

/* Plans with those of these offers that a run would rent. Asks no provider. */
static int plan_with_given_offers(struct launch *l, const struct saved *saved,
				  enum offers_from from, struct plan_words *words, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	CLEANUP(wanted_free)
	struct wanted wanted = {.order = &l->order, .store = l->ctx->store};

	words->in_any_order = !section_has(top, "provider");
	wanted_add_unasked(&wanted, l->ctx->config, saved->offers, saved->count, saved->avoided);
	wanted_end(&wanted);
	if (check_provider_named(top, &wanted, saved->offers, saved->count, err) < 0)
		return -1;
	if (from == FROM_PRICE_LISTS)
		wanted.left_out[NOT_ITS_PROVIDER] = wanted.left_out[NOT_ITS_PLACE] =
			wanted.left_out[NOT_ITS_GPU] = 0;
	wanted_log_left_out(&wanted);
	add_kept_unasked(l, &wanted);
	return choose_and_print(l, &wanted, words, NULL, err);
}

static int plan_from_file(struct launch *l, const char *path, struct plan_words *words,
			  struct err *err)
{
	struct saved saved = {0};
	struct stat st;
	char day[32];

	if (read_offers_file(path, &saved, err) < 0)
		return -1;
	if (stat(path, &st) == 0)
		snprintf(words->prices, sizeof(words->prices), "offers saved on %.10s",
			 clock_rfc3339(day, sizeof(day), (int64_t)st.st_mtime * 1000));
	words->price_source = "saved offer";
	int status = plan_with_given_offers(l, &saved, FROM_FILE, words, err);
	saved_free(&saved);
	return status;
}

/* Adds to a Modal offer the price of the cores and memory that the pod requests, which Modal bills
 * beside the GPU. */
static void add_cores_and_memory(const struct order *order, struct offer *o)
{
	int64_t cores = order->cpu ? order->cpu : PRIOR_MODAL_CORES;
	int64_t memory_gb = order->memory_gb ? order->memory_gb : PRIOR_MODAL_MEMORY_GB;

	o->price_microusd_h +=
		cores * PRIOR_MODAL_CORE_MICROUSD_H + memory_gb * PRIOR_MODAL_GB_MICROUSD_H;
	snprintf(o->with, sizeof(o->with), "%lld cores, %lld GB", (long long)cores,
		 (long long)memory_gb);
}

/* Sets *o to a pod with `count` of the GPU at the market's list price. Returns false if the market
 * lists no price. */
static bool list_offer(const struct order *order, const struct gpu *gpu, int count,
		       enum market market, struct offer *o)
{
	double price = prior_list_price(gpu->name, market, NULL);

	*o = (struct offer){.gpus = count,
			    .vram_gb = gpu->vram_gb,
			    .price_microusd_h = (int64_t)(price * count * 1e6 + 0.5)};
	COPY_TEXT(o->provider, market == MARKET_MODAL ? "modal" : "runpod");
	COPY_TEXT(o->gpu, gpu->name);
	if (market == MARKET_COMMUNITY)
		COPY_TEXT(o->id, "COMMUNITY/");
	if (market == MARKET_MODAL)
		add_cores_and_memory(order, o);
	return price > 0;
}

/* The numbers of GPUs per pod that the config asks for, as bits: bit 0 is one GPU. */
static uint64_t counts_wanted(const char *const *wishes)
{
	uint64_t counts = 0;
	char name[GPU_MAX];
	int count;

	for (int i = 0; wishes && wishes[i]; i++)
		if (gpu_parse(wishes[i], name, sizeof(name), &count))
			counts |= UINT64_C(1) << (count - 1);
	return counts ? counts : 1;
}

static int plan_from_lists(struct launch *l, struct plan_words *words, struct err *err)
{
	const uint64_t counts = counts_wanted(l->order.gpus);
	size_t rows;
	const struct gpu *gpus = gpu_catalog(&rows);
	struct saved list = {.offers = xcalloc(rows * MARKETS * COUNTS_MOST, sizeof(*list.offers))};

	for (size_t i = 0; i < rows; i++)
		for (int count = 1; count <= COUNTS_MOST; count++)
			for (int m = MARKET_SECURE; m < MARKETS; m++)
				if (counts >> (count - 1) & 1 &&
				    list_offer(&l->order, &gpus[i], count, (enum market)m,
					       &list.offers[list.count]))
					list.count++;
	COPY_TEXT(words->prices, "list prices, " PRIOR_PRICES_SEEN);
	words->price_source = "list price";
	int status = plan_with_given_offers(l, &list, FROM_PRICE_LISTS, words, err);
	saved_free(&list);
	return status;
}

/* ---- the commands ---- */

/* Loads the job without locks, and warns of what a run would lack on this machine. */
static int load_job_to_plan(struct launch *l, struct err *err)
{
	return launch_peek_job(l, err) < 0 || launch_foresee(l, err) < 0 ? -1
									 : travel_report(l, err);
}

int plan_dry_run(struct launch *l, struct err *err)
{
	return load_job_to_plan(l, err) < 0
		       ? -1
		       : plan_with_live_offers(l, &(struct plan_words){0}, err);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct plan_words words = {.explain = opt_has(ctx, "explain"),
				   .what_if = opt_has(ctx, "what-if")};
	struct launch l;

	if (quick_show_or_save(ctx, err) < 0)
		return -1;
	launch_init(&l, ctx);
	int status = load_job_to_plan(&l, err);
	if (status == 0 && opt_has(ctx, "offers") && opt_has(ctx, "list-prices"))
		status = err_set(err, ERR_USAGE, "give --offers or --list-prices, not both");
	if (status == 0 && opt_has(ctx, "list-prices"))
		status = plan_from_lists(&l, &words, err);
	else if (status == 0 && opt_has(ctx, "offers"))
		status = plan_from_file(&l, opt_text(ctx, "offers"), &words, err);
	else if (status == 0)
		status = plan_with_live_offers(&l, &words, err);
	launch_free(&l);
	return status;
}

/* Prints the object of a plan that failed. */
static void plan_failed(struct cmd_context *ctx, const struct err *err)
{
	output_json(plan_failure_json(&ctx->mistakes, err));
	cmd_flush(NULL);
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "ask these providers", "provider"},
	{0, "gpu", "GPU", "only these GPUs, in order of preference; auto: any", "gpu"},
	{0, "pods", "N|auto", "plan for at most this many pods; auto: burst chooses", "pods"},
	{0, "spot", NULL, "plan with spot offers too", "spot"},
	{0, "goal", "GOAL", "what to minimize: cost, time or balanced", "goal"},
	{0, "deadline", "WHEN", "deadline: 20m from the start, or a time of day (07:00)",
	 "deadline"},
	{0, "max-cost", "USD", "the most that the run may cost", "caps.max_cost"},
	{0, "budget", "USD", "the same", "caps.max_cost"},
	{0, "value-of-time", "USD", "what an hour of waiting costs, for --goal balanced",
	 "value_of_time"},
	{0, "offers", "FILE",
	 "plan with what a run would rent of offers saved by `burst offers --json`"},
	{0, "list-prices", NULL,
	 "plan with RunPod's and Modal's list prices (-p, gpu and spot hold as in a run)"},
	{0, "engine", "ENGINE", "what speaks", "job.engine"},
	{0, "voice", "VOICE", "voice of the lines that name none", "job.voice"},
	{0, "save", "FILE",
	 "without a burst.cfg: write the one that does the same (default burst.cfg)", NULL, true},
	{0, "commit", "COMMIT", "plan for this git commit instead of the current files"},
	{0, "explain", NULL, "show every input of the plan and where it comes from"},
	{0, "what-if", NULL, "show plans for twice and ten times as many segments"},
	ALLOW_OPTS,
	{0},
};

const struct cmd cmd_plan = {
	.name = "plan",
	.args = "[CONFIG|TEXT] [-- COMMAND...]",
	.max_args = 1,
	.takes_command = true,
	.summary = "show what a run would rent, do and cost",
	.details =
		"Rents nothing. TEXT and COMMAND stand for a burst.cfg, as in `burst help run`. "
		"Chooses the offer, the number of pods and the batch size for the goal, the "
		"deadline and the cost cap, and shows what limits the run. Batch times and cold "
		"starts are measured by earlier runs, carried over from another GPU, or a prior; "
		"the plan says which. TIME is the median; nine runs in ten stay within 90%.",
	.opts = opts,
	.json = true,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG | CHECKS_ALL,
	.group = CMD_GROUP_RENDER,
	.run = run,
	.failed = plan_failed,
};
