/* offers.c - what the providers offer now, and which of it a run would rent */
#include "offers.h"

#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/gpus.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "cmd/show/report.h"
#include "engine/caller.h"
#include "engine/prices.h"

/* ---- offer list ---- */

static int compare_numbers(int64_t x, int64_t y)
{
	return (x > y) - (x < y);
}

/* In the order in which a run would take those of one provider. */
static int compare_of_provider(const struct offer *x, const struct offer *y)
{
	int way = compare_numbers(x->wish, y->wish);

	way = way ? way : compare_numbers(x->price_microusd_h, y->price_microusd_h);
	way = way ? way : strcmp(x->region, y->region);
	return way ? way : strcmp(x->id, y->id);
}

/* In the order in which a run would take them; those to avoid come last. */
static int compare_by_turn(const void *a, const void *b)
{
	const struct known_offer *x = a, *y = b;
	int way = compare_numbers(x->avoided, y->avoided);

	way = way ? way : compare_numbers(x->provider, y->provider);
	return way ? way : compare_of_provider(&x->offer, &y->offer);
}

/* The cheapest first, whatever the provider; those to avoid come last. */
static int compare_by_price(const void *a, const void *b)
{
	const struct known_offer *x = a, *y = b;
	int way = compare_numbers(x->avoided, y->avoided);

	way = way ? way : compare_numbers(x->offer.price_microusd_h, y->offer.price_microusd_h);
	return way ? way : compare_by_turn(a, b);
}

/* Appends the offers of one provider with their history. provider: its index in the config. */
static void append_known(struct store *store, int provider, const struct op_result *from,
			 struct known_offer **out, size_t *count)
{
	int64_t now = clock_wall_ms();
	struct offer_past *past = past_of_offers(store, NULL, from->offers, from->offer_count, now);

	*out = xrealloc(*out, (*count + from->offer_count + 1) * sizeof(**out));
	for (size_t i = 0; i < from->offer_count; i++)
		(*out)[(*count)++] = (struct known_offer){from->offers[i], past[i], provider,
							  offer_avoided(&past[i], now)};
	free(past);
}

static void warn_remarks(const char *provider, const char *text)
{
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len)))
		log_line(LOG_WARN, "%s: %.*s", provider, (int)len, line);
}

/* Describes the run's volume, which ties its pods to a place. Leaves *out empty if the run has
 * none, and sets only the name if the run would create it. ERR_CONFIG: it is missing and must not
 * be created, so the run cannot rent there. */
static int find_volume(const struct order *o, const struct engine_provider *p, struct volume *out,
		       struct err *err)
{
	struct op_want want = {.volume.name = o->volume};
	struct op_result result = {0};

	if (!want.volume.name || !want.volume.name[0])
		return 0;
	if (caller_perform(p, OP_VOLUME, &want, OFFERS_ASK_MS, &result, err) == 0) {
		if (result.volume_count)
			*out = result.volumes[0];
		op_result_free(&result);
		return 0;
	}
	if (err->kind != ERR_NOT_FOUND)
		return -1;
	if (!o->volume_create) {
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

int offers_fetch(const struct order *o, const struct engine_provider *p, enum offers_where where,
		 int64_t most_ms, struct op_result *out, struct err *err)
{
	struct op_want want;

	order_fill_want(o, &want);
	if (where == OFFERS_AT_VOLUME && find_volume(o, p, &want.offers.volume, err) < 0)
		return -1;
	return caller_perform(p, OP_OFFERS, &want, most_ms, out, err);
}

int offer_list_fetch(const struct order *o, const struct run *run, enum offers_where where,
		     struct known_offer **out, size_t *count, struct err *err)
{
	const struct engine_setup *s = &run->setup;
	enum err_kind why = ERR_NONE;
	int failed = 0;

	*out = NULL;
	*count = 0;
	for (int i = 0; i < s->provider_count; i++) {
		const char *name = s->providers[i].ops->name;
		struct op_result result = {0};
		if (offers_fetch(o, &s->providers[i], where, OFFERS_ASK_MS, &result, err) < 0) {
			if (s->provider_count == 1 && err->kind != ERR_NO_CAPACITY)
				return err_wrap(err, "%s", name);
			log_line(LOG_WARN, "%s: %s", name, err->msg);
			failed += err->kind != ERR_NO_CAPACITY;
			why = err->kind;
			err_clear(err);
			continue;
		}
		warn_remarks(name, str_text(&result.text));
		append_known(run->runs->store, i, &result, out, count);
		prices_note(run->runs->store, result.offers, result.offer_count, clock_wall_ms());
		op_result_free(&result);
	}
	if (failed && failed == s->provider_count)
		return err_set(err, why, "none of the %d providers is ready to rent from", failed);
	if (*count)
		qsort(*out, *count, sizeof(**out),
		      where == OFFERS_AT_VOLUME ? compare_by_turn : compare_by_price);
	return 0;
}

void offer_list_print(FILE *to, const struct known_offer *offers, size_t count)
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
		table_cell(t, "%s",
			   price_is_given(o->provider, o->price_microusd_h)
				   ? money_show(text, sizeof(text), o->price_microusd_h)
				   : "no price given");
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

json_t *known_offer_json(const struct known_offer *k)
{
	const struct offer *o = &k->offer;

	return json_pack("{s:o,s:o,s:o,s:i,s:i,s:o,s:b,s:o,s:o,s:o,s:o,s:o}", "provider",
			 report_text(o->provider), "id", report_text(o->id), "gpu",
			 report_text(o->gpu), "gpus", o->gpus, "vram_gb", o->vram_gb, "region",
			 report_text(o->region), "spot", o->spot, "stock", report_text(o->stock),
			 "pods_max", o->pods_max ? json_integer(o->pods_max) : json_null(),
			 "price_usd_hour", price_json(o->provider, o->price_microusd_h), "with",
			 o->with[0] ? report_text(o->with) : json_null(), "avoided",
			 avoided_json(k));
}

/* ---- wanted ---- */

/* ---- what a provider narrows by itself ---- */

/* Whether `provider` of the config names it. If the config does not set `provider`, any will do. */
static bool config_admits_provider(const struct section *top, const char *provider)
{
	return !section_has(top, "provider") || !section_count(top, "provider") ||
	       section_has_item(top, "provider", provider);
}

/* Whether cloud and datacenters of providers.runpod admit the offer; other providers' offers
 * always pass. RunPod's volumes, and data centers by name, are in its secure cloud only. */
static bool config_admits_place(const struct wanted *w, const struct config *config,
				const struct offer *o)
{
	const struct section *conf = config_provider(config, o->provider);
	const char *name = w->order->volume;
	bool community = starts_with(o->id, "COMMUNITY/");

	if (strcmp(o->provider, "runpod") != 0 || !conf)
		return true;
	if (!strcmp(section_text(conf, "cloud"), community ? "SECURE" : "COMMUNITY") ||
	    (community && ((name && name[0]) || section_count(conf, "datacenters"))))
		return false;
	return !o->region[0] || !section_count(conf, "datacenters") ||
	       section_has_item(conf, "datacenters", o->region);
}

/* Reads from the ledger, once, where the config's volume is. */
static void load_volumes(struct wanted *w)
{
	const char *name = w->order->volume;
	size_t count = 0;

	if (w->volumes || !name || !name[0] ||
	    store_volumes(w->store, &w->volumes, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(w->volumes[i].name, name) && w->volumes[i].region[0])
			w->volumes[w->volume_count++] = w->volumes[i];
}

/* A volume cannot leave its region. One that is not made yet, or is everywhere, ties no offer. */
static bool is_at_volume(const struct wanted *w, const struct offer *o)
{
	bool tied = false;

	for (size_t i = 0; i < w->volume_count; i++) {
		if (strcmp(w->volumes[i].provider, o->provider) != 0)
			continue;
		if (!strcmp(w->volumes[i].region, o->region))
			return true;
		tied = true;
	}
	return !tied || !o->region[0];
}

/* Index of the first wish for a GPU that the offer fulfils; -1: none. Without wishes, any offer
 * with at most one card fulfils wish 0. */
static int index_of_wish(const char *const *wishes, const struct offer *o)
{
	char name[GPU_MAX];
	int count;

	for (int i = 0; wishes && wishes[i]; i++)
		if (gpu_parse(wishes[i], name, sizeof(name), &count) &&
		    (count == o->gpus || gpu_is_none(o->gpu)) && gpu_satisfies(name, o->gpu))
			return i;
	return (!wishes || !wishes[0]) && o->gpus <= 1 ? 0 : -1;
}

/* ---- what holds for all ---- */

/* Whether the offer's card lacks what job.needs names. Memory that no provider states is no lack.
 */
static bool lacks_needs(const struct order *order, const struct offer *o)
{
	const char *why;

	return card_needs_lack(&order->card, o->gpu, order->gpus != NULL, &why) ||
	       (o->vram_gb && o->vram_gb < order->card.vram_gb);
}

/* Checks what no source of offers has checked. Sets *why in any case. */
static bool is_unwanted(const struct order *order, const struct offer *o, enum not_wanted *why)
{
	int64_t most = order->max_price_microusd_h;

	*why = o->spot && !order->spot              ? NOT_SPOT
	       : !strcasecmp(o->stock, "none")      ? NOT_IN_STOCK
	       : lacks_needs(order, o)              ? NOT_WITH_NEEDS
	       : most && o->price_microusd_h > most ? NOT_AT_PRICE
						    : NOT_WANTED_KINDS;
	return *why != NOT_WANTED_KINDS;
}

/* Counts an offer that is left out; remembers the cheapest one above the price cap. */
static void leave_out(struct wanted *w, enum not_wanted why, const struct offer *o)
{
	bool first = !w->left_out[why]++;

	if (why == NOT_AT_PRICE && (first || o->price_microusd_h < w->cheapest.price_microusd_h))
		w->cheapest = *o;
}

static void append_offer(struct offer **list, size_t *count, const struct offer *o)
{
	*list = xrealloc(*list, (*count + 1) * sizeof(**list));
	(*list)[(*count)++] = *o;
}

/* Adds the offer to the list, to those to avoid, or to those left out. */
static void add_offer(struct wanted *w, const struct offer *o, bool avoided)
{
	enum not_wanted why;

	if (is_unwanted(w->order, o, &why))
		leave_out(w, why, o);
	else if (avoided)
		append_offer(&w->avoided, &w->avoided_count, o);
	else
		append_offer(&w->list, &w->count, o);
}

/* The ledger says which offers to avoid. avoided: further ones; NULL: none. */
static void add_with_history(struct wanted *w, const struct offer *from, size_t count,
			     const bool *avoided)
{
	int64_t now = clock_wall_ms();
	struct offer_past *past = past_of_offers(w->store, NULL, from, count, now);

	for (size_t i = 0; i < count; i++)
		add_offer(w, &from[i], offer_avoided(&past[i], now) || (avoided && avoided[i]));
	free(past);
}

void wanted_add(struct wanted *w, const struct offer *from, size_t count)
{
	add_with_history(w, from, count, NULL);
}

void wanted_add_known(struct wanted *w, const struct known_offer *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_offer(w, &from[i].offer, from[i].avoided);
}

void wanted_add_unasked(struct wanted *w, const struct config *config, const struct offer *from,
			size_t count, const bool *avoided)
{
	const struct section *top = config_top(config);
	struct offer *kept = xcalloc(count + 1, sizeof(*kept));
	bool *bad = xcalloc(count + 1, sizeof(*bad));
	size_t n = 0;

	w->unasked = true;
	load_volumes(w);
	for (size_t i = 0; i < count; i++) {
		struct offer o = from[i];
		o.wish = index_of_wish(w->order->gpus, &o);
		if (!config_admits_provider(top, o.provider)) {
			leave_out(w, NOT_ITS_PROVIDER, &o);
		} else if (!config_admits_place(w, config, &o)) {
			leave_out(w, NOT_ITS_PLACE, &o);
		} else if (!is_at_volume(w, &o)) {
			leave_out(w, NOT_AT_VOLUME, &o);
		} else if (o.wish < 0) {
			leave_out(w, NOT_ITS_GPU, &o);
		} else {
			bad[n] = avoided && avoided[i];
			kept[n++] = o;
		}
	}
	add_with_history(w, kept, n, bad);
	free(kept);
	free(bad);
}

/* The place of the offer's provider in the order's list; behind it if the list lacks it. */
static int turn_of_provider(const struct order *order, const struct offer *o)
{
	int i = 0;

	while (order->providers && order->providers[i] &&
	       strcmp(order->providers[i], o->provider) != 0)
		i++;
	return i;
}

static int compare_wanted(const void *a, const void *b, void *order)
{
	int way = compare_numbers(turn_of_provider(order, a), turn_of_provider(order, b));

	return way ? way : compare_of_provider(a, b);
}

void wanted_end(struct wanted *w)
{
	if (w->count) {
		w->left_out[NOT_AFTER_FAILURE] = w->avoided_count;
	} else {
		free(w->list);
		w->list = TAKE(w->avoided);
		w->count = w->avoided_count;
		w->avoided_count = 0;
	}
	if (w->count)
		qsort_r(w->list, w->count, sizeof(*w->list), compare_wanted, (void *)w->order);
}

void wanted_add_kept(struct wanted *w, const struct offer *kept, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t end = w->count + w->kept++;
		append_offer(&w->list, &end, &kept[i]);
	}
}

/* ---- words ---- */

#define NEEDS_WORDS "without what job.needs names"

static void log_left_out(size_t count, const char *why)
{
	if (count)
		log_line(LOG_NOTE, "%zu offer%s left out: %s", count, count == 1 ? " is" : "s are",
			 why);
}

/* Whether the provider can be asked for hosts with a version of CUDA: it has the key min_cuda. */
static bool filters_cuda(const char *provider)
{
	const struct provider_ops *ops = provider_find(provider);
	const struct option_spec *o = ops ? ops->options : NULL;

	while (o && o->key && strcmp(o->key, "min_cuda") != 0)
		o++;
	return o && o->key;
}

/* Says of which offers the version of CUDA is unknown: they stay. */
static void note_cuda(const struct wanted *w)
{
	CLEANUP(str_free) struct str names = STR_INIT;

	if (!w->order->card.cuda[0])
		return;
	if (w->unasked) {
		log_line(LOG_NOTE,
			 "job.needs: saved offers and list prices do not say which hosts support "
			 "CUDA %s: none is left out for it",
			 w->order->card.cuda);
		return;
	}
	for (size_t i = 0; i < w->count; i++) {
		const char *name = w->list[i].provider;
		if (!filters_cuda(name) && !strstr(str_text(&names), name))
			str_addf(&names, "%s%s", names.len ? ", " : "", name);
	}
	if (names.len)
		log_line(LOG_NOTE,
			 "job.needs: %s: its hosts' version of CUDA is unknown; its offers stay, "
			 "whether or not they support CUDA %s",
			 str_text(&names), w->order->card.cuda);
}

void wanted_log_needs(const struct wanted *w)
{
	log_left_out(w->left_out[NOT_WITH_NEEDS], NEEDS_WORDS);
	note_cuda(w);
}

void wanted_log_left_out(const struct wanted *w)
{
	CLEANUP(str_free) struct str volume = STR_INIT;

	if (w->volume_count)
		str_addf(&volume, "not where volume \"%s\" is:", w->volumes[0].name);
	for (size_t i = 0; i < w->volume_count; i++)
		str_addf(&volume, "%s %s", i ? "," : "", w->volumes[i].region);
	const char *const whys[NOT_WANTED_KINDS] = {
		[NOT_ITS_PROVIDER] = "at a provider that is not in provider",
		[NOT_ITS_PLACE] = "not in the cloud or data centers of providers.runpod",
		[NOT_AT_VOLUME] = str_text(&volume),
		[NOT_ITS_GPU] = "not of a GPU, or a number of them, that gpu asks for",
		[NOT_SPOT] = "a spot pod, and spot is false (--spot)",
		[NOT_IN_STOCK] = "out of stock",
		[NOT_AT_PRICE] = "above caps.max_price_per_hour",
		[NOT_AFTER_FAILURE] = "avoided, since its last pod was bad",
	};

	for (int i = 0; i < NOT_WANTED_KINDS; i++)
		if (whys[i])
			log_left_out(w->left_out[i], whys[i]);
	wanted_log_needs(w);
}

void offer_list_keep_fitting(const struct order *o, struct known_offer *offers, size_t *count)
{
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++)
		if (!lacks_needs(o, &offers[i].offer))
			offers[kept++] = offers[i];
	log_left_out(*count - kept, NEEDS_WORDS);
	*count = kept;
}

int wanted_check_price(const struct wanted *w, struct err *err)
{
	char price[32], offer[PLAN_TEXT];

	if (w->count || !w->left_out[NOT_AT_PRICE])
		return 0;
	err_set(err, ERR_CAP,
		"every offer is above caps.max_price_per_hour: the cheapest costs %s an hour (%s); "
		"raise the cap, or choose another GPU",
		money_show(price, sizeof(price), w->cheapest.price_microusd_h),
		plan_offer(offer, &w->cheapest));
	return err_about(err, "caps.max_price_per_hour");
}

void wanted_free(struct wanted *w)
{
	free(w->list);
	free(w->avoided);
	free(w->volumes);
	*w = (struct wanted){0};
}
