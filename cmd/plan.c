/* plan.c - `burst plan`: asks the providers for offers and shows what a run would rent and cost. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "base/path.h"
#include "better.h"
#include "caps.h"
#include "engine/caller.h"
#include "engine/past.h"
#include "keep.h"
#include "launch.h"
#include "output.h"
#include "plan_parts.h"
#include "quick.h"
#include "refuse.h"
#include "prior.h"
#include "report.h"
#include "table.h"
#include "volume_trust.h"

enum { OFFERS_MAX_BYTES = 4 << 20 };

struct known_offer {
	struct offer offer;
	struct offer_past past;
	int provider; /* which of the config's */
	bool avoided;
};

static int by_number(int64_t x, int64_t y)
{
	return (x > y) - (x < y);
}

/* As a run would take them. */
static int by_turn(const void *a, const void *b)
{
	const struct known_offer *x = a, *y = b;
	int way = by_number(x->avoided, y->avoided);

	way = way ? way : by_number(x->provider, y->provider);
	way = way ? way : by_number(x->offer.wish, y->offer.wish);
	way = way ? way : by_number(x->offer.price_microusd_h, y->offer.price_microusd_h);
	way = way ? way : strcmp(x->offer.region, y->offer.region);
	return way ? way : strcmp(x->offer.id, y->offer.id);
}

/* All vendors side by side. */
static int by_price(const void *a, const void *b)
{
	const struct known_offer *x = a, *y = b;
	int way = by_number(x->avoided, y->avoided);

	way = way ? way : by_number(x->offer.price_microusd_h, y->offer.price_microusd_h);
	return way ? way : by_turn(a, b);
}

static void add_offers(struct launch *l, int provider, const struct op_result *from,
		       struct known_offer **out, size_t *count)
{
	int64_t now = clock_wall_ms();
	struct offer_past *past =
		past_of_offers(l->ctx->store, NULL, from->offers, from->offer_count, now);

	*out = xrealloc(*out, (*count + from->offer_count + 1) * sizeof(**out));
	for (size_t i = 0; i < from->offer_count; i++)
		(*out)[(*count)++] = (struct known_offer){from->offers[i], past[i], provider,
							  offer_avoided(&past[i], now)};
	free(past);
}

static void tell_remarks(const char *provider, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		log_line(LOG_WARN, "%s: %.*s", provider, (int)n, text);
		text += n + (text[n] == '\n');
	}
}

/* A run's volume ties its pods to where it is; one that is missing keeps it from renting there at
 * all. */
static int find_volume(struct launch *l, const struct engine_provider *p, struct volume *out,
		       struct err *err)
{
	const struct section *conf = section_group(config_top(l->ctx->config), "volume");
	struct op_want want = {.volume.name = section_text(conf, "name")};
	struct op_result result = {0};

	if (!want.volume.name || !want.volume.name[0])
		return 0;
	if (caller_ask(p, OP_VOLUME, &want, LAUNCH_ASK_MS, &result, err) == 0) {
		if (result.volume_count)
			*out = result.volumes[0];
		op_result_free(&result);
		return 0;
	}
	if (err->kind != ERR_NOT_FOUND)
		return -1;
	if (!section_bool(conf, "create")) {
		err->kind = ERR_CONFIG;
		return -1;
	}
	err_clear(err);
	COPY_TEXT(out->name, want.volume.name);
	log_line(LOG_NOTE,
		 "%s: a run would create volume \"%s\", and then rent only where that "
		 "is",
		 p->ops->name, want.volume.name);
	return 0;
}

void launch_want_offers(struct launch *l, struct op_want *want)
{
	const struct section *top = config_top(l->ctx->config), *pod = section_group(top, "pod");

	*want = (struct op_want){0};
	want->offers.gpus = launch_gpus(l);
	want->offers.spot = section_bool(top, "spot");
	want->offers.cpu = section_int(pod, "cpu");
	want->offers.memory_gb = section_int(pod, "memory_gb");
	want->offers.disk_gb = section_int(pod, "disk_gb");
	want->offers.image = section_text(pod, "image");
	if (l->run.setup.job)
		want->offers.vram_gb = l->run.setup.job_ops->needs(l->run.setup.job)->vram_gb;
}

void launch_keep_offers(const struct launch *l, struct op_result *from, struct offer **all,
			size_t *count)
{
	int64_t most = section_int(section_group(config_top(l->ctx->config), "caps"),
				   "max_price_per_hour");

	*all = xrealloc(*all, (*count + from->offer_count + 1) * sizeof(**all));
	for (size_t i = 0; i < from->offer_count; i++)
		if (!most || from->offers[i].price_microusd_h <= most)
			(*all)[(*count)++] = from->offers[i];
	op_result_free(from);
}

int launch_ask_offers(struct launch *l, int provider, bool as_run, int64_t most_ms,
		      struct op_result *out, struct err *err)
{
	const struct engine_provider *p = &l->run.setup.providers[provider];
	struct op_want want;

	launch_want_offers(l, &want);
	if (as_run && find_volume(l, p, &want.offers.volume, err) < 0)
		return -1;
	return caller_ask(p, OP_OFFERS, &want, most_ms, out, err);
}

static int ask_offers(struct launch *l, bool as_run, struct known_offer **out, size_t *count,
		      struct err *err)
{
	enum err_kind why = ERR_NONE;
	int failed = 0;

	*out = NULL;
	*count = 0;
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		const char *name = l->run.setup.providers[i].ops->name;
		struct op_result result = {0};
		if (launch_ask_offers(l, i, as_run, LAUNCH_ASK_MS, &result, err) < 0) {
			if (l->run.setup.provider_count == 1 && err->kind != ERR_NO_CAPACITY)
				return err_wrap(err, "%s", name);
			log_line(LOG_WARN, "%s: %s", name, err->msg);
			failed += err->kind != ERR_NO_CAPACITY;
			why = err->kind;
			err_clear(err);
			continue;
		}
		tell_remarks(name, str_text(&result.text));
		add_offers(l, i, &result, out, count);
		op_result_free(&result);
	}
	if (failed && failed == l->run.setup.provider_count)
		return err_set(err, why, "none of the %d providers is ready to rent from", failed);
	if (*count)
		qsort(*out, *count, sizeof(**out), as_run ? by_turn : by_price);
	return 0;
}

static void print_offers(FILE *to, const struct known_offer *offers, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32], why[160];
	bool any_avoided = count && offers[count - 1].avoided;

	table_column(t, "PROVIDER", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "GPU", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "VRAM", TABLE_RIGHT, 1);
	table_column(t, "REGION", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "KIND", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "STOCK", TABLE_LEFT, 2);
	table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "WITH", TABLE_LEFT, 3);
	if (any_avoided)
		table_column(t, "AVOIDED", TABLE_LEFT, TABLE_SHRINKS);
	for (size_t i = 0; i < count; i++) {
		const struct offer *o = &offers[i].offer;
		table_cell(t, "%s", o->provider);
		table_cell(t, o->gpus > 1 ? "%s x%d" : "%s", o->gpu, o->gpus);
		table_cell(t, o->vram_gb ? "%d GB" : "-", o->vram_gb);
		table_cell(t, "%s", o->region);
		table_cell(t, "%s", o->spot ? "spot" : "on demand");
		table_cell(t, "%s", o->stock[0] ? o->stock : "-");
		table_cell(t, "%s", money_show(text, sizeof(text), o->price_microusd_h));
		table_cell(t, "%s", o->with[0] ? o->with : "-");
		if (any_avoided)
			table_cell(t, "%s",
				   offer_past_show(why, sizeof(why), &offers[i].past,
						   clock_wall_ms()));
	}
	table_print(t, to, terminal_width(to));
}

static json_t *avoided_json(const struct known_offer *k)
{
	char at[32], until[32];

	if (!k->avoided)
		return json_null();
	return json_pack("{s:s,s:s,s:o}", "given_up_at",
			 clock_rfc3339(at, sizeof(at), k->past.bad_at_ms), "until",
			 clock_rfc3339(until, sizeof(until), k->past.bad_until_ms), "reason",
			 report_text(k->past.bad_why));
}

static json_t *offer_json(const struct known_offer *k)
{
	const struct offer *o = &k->offer;

	return json_pack("{s:o,s:o,s:o,s:i,s:i,s:o,s:b,s:o,s:o,s:o,s:o}", "provider",
			 report_text(o->provider), "id", report_text(o->id), "gpu",
			 report_text(o->gpu), "gpus", o->gpus, "vram_gb", o->vram_gb, "region",
			 report_text(o->region), "spot", o->spot, "stock", report_text(o->stock),
			 "price_usd_hour", report_dollars(o->price_microusd_h), "with",
			 o->with[0] ? report_text(o->with) : json_null(), "avoided",
			 avoided_json(k));
}

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
		if (volume_trust_look(l, i, &why) < 0 && why.kind == ERR_CONFIG)
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

/* caps: over runs; NULL: offers that are compared, not rented. */
static int show_plan(struct launch *l, const struct offer *offers, size_t count,
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
		if (caller_ask(&l->run.setup.providers[i], OP_OFFERS, &want, LAUNCH_ASK_MS, &result,
			       &ignored) < 0)
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

	if (caps_plan(&caps, l, err) < 0 || ask_offers(l, true, &known, &count, err) < 0)
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
		print_offers(stdout, known, count);
		if (count)
			putchar('\n');
	}
	count = add_too_small(l, &offers, count);
	int status = show_plan(l, offers, count, words, &caps, err);
	free(offers);
	free(known);
	return status;
}

/* ---- offers that were saved ---- */

static int read_offer(const json_t *from, struct offer *o)
{
	double price = jsonx_number(from, "price_usd_hour", -1);

	*o = (struct offer){.gpus = (int)jsonx_bounded(from, "gpus", 0, 64),
			    .vram_gb = (int)jsonx_bounded(from, "vram_gb", 0, 100000),
			    .spot = jsonx_bool(from, "spot", false)};
	COPY_TEXT(o->provider, jsonx_text(from, "provider", ""));
	COPY_TEXT(o->id, jsonx_text(from, "id", ""));
	COPY_TEXT(o->gpu, jsonx_text(from, "gpu", ""));
	COPY_TEXT(o->region, jsonx_text(from, "region", ""));
	COPY_TEXT(o->with, jsonx_text(from, "with", ""));
	if (!o->provider[0] || !o->gpu[0] || !(price >= 0 && price < 1e6))
		return -1;
	o->price_microusd_h = (int64_t)(price * 1e6 + 0.5);
	return 0;
}

static int read_offers(const char *path, struct offer **out, size_t *count, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (path_read(path, OFFERS_MAX_BYTES, &text, err) < 0)
		return -1;
	CLEANUP(json_decref)
	json_t *list = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_array(list))
		return err_set(err, ERR_CONFIG,
			       "%s: not a JSON list of offers; `burst offers --json` prints one",
			       path);
	*out = xcalloc(json_array_size(list) + 1, sizeof(**out));
	for (*count = 0; *count < json_array_size(list); ++*count)
		if (read_offer(json_array_get(list, *count), &(*out)[*count]) < 0) {
			free(TAKE(*out));
			return err_set(err, ERR_CONFIG,
				       "%s: offer %zu: provider, gpu or price_usd_hour is missing "
				       "or wrong",
				       path, *count + 1);
		}
	return 0;
}

static int plan_from_file(struct launch *l, const char *path, struct plan_words *words,
			  struct err *err)
{
	struct offer *offers = NULL;
	struct stat st;
	size_t count = 0;
	char day[32];

	if (read_offers(path, &offers, &count, err) < 0)
		return -1;
	if (stat(path, &st) == 0)
		snprintf(words->prices, sizeof(words->prices), "measured: offers saved on %.10s",
			 clock_rfc3339(day, sizeof(day), (int64_t)st.st_mtime * 1000));
	int status = show_plan(l, offers, count, words, NULL, err);
	free(offers);
	return status;
}

/* ---- list prices ---- */

static bool is_wished_for(const char *const *wishes, const char *gpu)
{
	for (int i = 0; wishes && wishes[i]; i++)
		if (gpu_satisfies(wishes[i], gpu))
			return true;
	return !wishes || !wishes[0];
}

/* Modal bills what a pod asks for beside its GPU. */
static void add_rest(struct launch *l, struct offer *o)
{
	const struct section *pod = section_group(config_top(l->ctx->config), "pod");
	int64_t cores = section_int(pod, "cpu") ? section_int(pod, "cpu") : PRIOR_MODAL_CORES;
	int64_t memory_gb = section_int(pod, "memory_gb") ? section_int(pod, "memory_gb")
							  : PRIOR_MODAL_MEMORY_GB;

	o->price_microusd_h +=
		cores * PRIOR_MODAL_CORE_MICROUSD_H + memory_gb * PRIOR_MODAL_GB_MICROUSD_H;
	snprintf(o->with, sizeof(o->with), "%lld cores, %lld GB", (long long)cores,
		 (long long)memory_gb);
}

static int plan_from_lists(struct launch *l, struct plan_words *words, struct err *err)
{
	const char *const *wishes = launch_gpus(l);
	size_t rows, count = 0;
	const struct gpu *gpus = gpu_catalog(&rows);
	struct offer *offers = xcalloc(rows * 2 + 1, sizeof(*offers));

	for (size_t i = 0; i < rows; i++)
		for (int k = 0; k < 2; k++) {
			double price = prior_list_price(gpus[i].name,
							k ? MARKET_MODAL : MARKET_SECURE, NULL);
			if (price <= 0 || !is_wished_for(wishes, gpus[i].name))
				continue;
			struct offer *o = &offers[count++];
			*o = (struct offer){.gpus = 1,
					    .vram_gb = gpus[i].vram_gb,
					    .price_microusd_h = (int64_t)(price * 1e6 + 0.5)};
			COPY_TEXT(o->provider, k ? "modal" : "runpod");
			COPY_TEXT(o->gpu, gpus[i].name);
			if (k)
				add_rest(l, o);
		}
	COPY_TEXT(words->prices, "prior: list prices, " PRIOR_PRICES_SEEN);
	int status = show_plan(l, offers, count, words, NULL, err);
	free(offers);
	return status;
}

static int run_plan(struct cmd_context *ctx, struct err *err)
{
	struct plan_words words = {.explain = opt_has(ctx, "explain"),
				   .what_if = opt_has(ctx, "what-if")};
	struct launch l;

	if (quick_tell(ctx, err) < 0)
		return -1;
	launch_init(&l, ctx);
	int status = launch_look_at_job(&l, err);
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

/* What a job needs narrows the offers; without one, or with one that cannot be read yet, all are
 * shown. */
static void read_need(struct launch *l)
{
	struct err err = {0};

	if (config_job(l->ctx->config) && launch_read_job(l, &err) < 0)
		log_line(LOG_NOTE, "the job's needs are unknown, so all offers are shown: %s",
			 err.msg);
	mistakes_free(&l->ctx->mistakes); /* no mistake of this command */
}

static void say_cautions(const struct launch *l, const struct known_offer *offers, size_t count)
{
	bool said[CORE_PROVIDERS_MAX] = {false};

	for (size_t i = 0; i < count; i++) {
		int k = offers[i].provider;
		const char *caution = l->run.setup.providers[k].ops->caution;
		if (!strcmp(offers[i].offer.gpu, "none"))
			continue;
		if (caution && !said[k])
			log_line(LOG_NOTE, "%s", caution);
		said[k] = true;
	}
}

static int run_offers(struct cmd_context *ctx, struct err *err)
{
	struct launch l;
	struct known_offer *offers = NULL;
	size_t count = 0;

	launch_init(&l, ctx);
	read_need(&l);
	int status = launch_open_providers(&l, err);
	if (status == 0)
		status = ask_offers(&l, false, &offers, &count, err);
	if (status == 0 && ctx->json) {
		json_t *list = json_array();
		for (size_t i = 0; i < count; i++)
			json_array_append_new(list, offer_json(&offers[i]));
		output_json(list);
	} else if (status == 0) {
		print_offers(stdout, offers, count);
	}
	if (status == 0)
		say_cautions(&l, offers, count);
	free(offers);
	launch_free(&l);
	return status < 0 ? -1 : cmd_flush(err);
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
	{0, "allow-path", "DIR", "let the project read, sync and write to this folder, too",
	 "allow_paths", false},
	{0, "allow-volume", "NAME", "let the project use this volume, which is not its own",
	 "volumes", false},
	{0, "max-volume-gb", "GB", "let the project create a volume of up to this size",
	 "max_volume_gb", false},
	{0},
};

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "ask these providers", "provider", false},
	{0, "gpu", "GPU", "only these GPUs, in order of preference; auto: any", "gpu", false},
	{0, "pods", "N|auto", "pods at most; auto: burst chooses", "pods", false},
	{0, "spot", NULL, "show spot offers too", "spot", false},
	{0, "allow-path", "DIR", "let the project read, sync and write to this folder, too",
	 "allow_paths", false},
	{0, "allow-volume", "NAME", "let the project use this volume, which is not its own",
	 "volumes", false},
	{0, "max-volume-gb", "GB", "let the project create a volume of up to this size",
	 "max_volume_gb", false},
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

const struct cmd cmd_offers = {
	.name = "offers",
	.summary = "show what the providers would rent now",
	.details = "All providers' offers that are large enough for the job, cheapest first, at "
		   "the price of a pod with the requested cores and memory. `burst plan` shows "
		   "them in the order in which a run tries them.",
	.opts = opts,
	.json = true,
	.needs = NEED_CONFIG | NEED_LEDGER,
	.group = CMD_GROUP_RENDER,
	.run = run_offers,
};
