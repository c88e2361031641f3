/* wanted.c - narrows offers to those that a run would rent, and says what it left out. */
#include "wanted.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/err.h"
#include "cmd/show/plan_show.h"
#include "engine/past.h"

/* ---- what a provider narrows by itself ---- */

static bool is_its_provider(const struct section *top, const char *provider)
{
	size_t count = section_has(top, "provider") ? section_count(top, "provider") : 0;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(section_item(top, "provider", i), provider))
			return true;
	return !count; /* the default is no wish */
}

static bool lists(const struct section *conf, const char *key, const char *text)
{
	for (size_t i = 0; i < section_count(conf, key); i++)
		if (!strcmp(section_item(conf, key, i), text))
			return true;
	return !section_count(conf, key);
}

/* RunPod's clouds and data centres; volumes are in its secure cloud alone. */
static bool is_its_place(const struct launch *l, const struct offer *o)
{
	const struct section *conf = config_provider(l->ctx->config, o->provider);
	const char *name = l->order.volume;
	bool community = starts_with(o->id, "COMMUNITY/");

	if (strcmp(o->provider, "runpod") != 0 || !conf)
		return true;
	if (!strcmp(section_text(conf, "cloud"), community ? "SECURE" : "COMMUNITY") ||
	    (community && name && name[0]))
		return false;
	return !o->region[0] || lists(conf, "datacenters", o->region);
}

static void find_volumes(const struct launch *l, struct wanted *w)
{
	const struct section *volume = section_group(config_top(l->ctx->config), "volume");
	const char *name = section_text(volume, "name");
	size_t count = 0;

	if (w->volumes || !name || !name[0] ||
	    store_volumes(l->ctx->store, &w->volumes, &count, NULL) < 0)
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

/* The first wish that the offer fulfils; -1: none. Without wishes, a pod has one card. */
static int wish_of(const char *const *wishes, const struct offer *o)
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

static bool fails(const struct launch *l, const struct offer *o, enum not_wanted *why)
{
	int64_t most = l->order.max_price_microusd_h;

	*why = o->spot && !l->order.spot            ? NOT_SPOT
	       : !strcasecmp(o->stock, "none")      ? NOT_IN_STOCK
	       : most && o->price_microusd_h > most ? NOT_AT_PRICE
						    : NOT_WANTED_KINDS;
	return *why != NOT_WANTED_KINDS;
}

static void leave_out(struct wanted *w, enum not_wanted why, const struct offer *o)
{
	bool first = !w->left_out[why]++;

	if (why == NOT_AT_PRICE && (first || o->price_microusd_h < w->cheapest.price_microusd_h))
		w->cheapest = *o;
}

static void keep(struct offer **list, size_t *count, const struct offer *o)
{
	*list = xrealloc(*list, (*count + 1) * sizeof(**list));
	(*list)[(*count)++] = *o;
}

static void add(const struct launch *l, struct wanted *w, const struct offer *o, bool avoided)
{
	enum not_wanted why;

	if (fails(l, o, &why))
		leave_out(w, why, o);
	else if (avoided)
		keep(&w->avoided, &w->avoided_count, o);
	else
		keep(&w->list, &w->count, o);
}

static void add_all(const struct launch *l, struct wanted *w, const struct offer *from,
		    size_t count, const bool *avoided)
{
	int64_t now = clock_wall_ms();
	struct offer_past *past = past_of_offers(l->ctx->store, NULL, from, count, now);

	for (size_t i = 0; i < count; i++)
		add(l, w, &from[i], offer_avoided(&past[i], now) || (avoided && avoided[i]));
	free(past);
}

void wanted_add(const struct launch *l, struct wanted *w, const struct offer *from, size_t count)
{
	add_all(l, w, from, count, NULL);
}

void wanted_add_unasked(struct launch *l, struct wanted *w, const struct offer *from, size_t count,
			const bool *avoided)
{
	const char *const *wishes = l->order.gpus;
	const struct section *top = config_top(l->ctx->config);
	struct offer *kept = xcalloc(count + 1, sizeof(*kept));
	bool *bad = xcalloc(count + 1, sizeof(*bad));
	size_t n = 0;

	find_volumes(l, w);
	for (size_t i = 0; i < count; i++) {
		struct offer o = from[i];
		o.wish = wish_of(wishes, &o);
		if (!is_its_provider(top, o.provider)) {
			leave_out(w, NOT_ITS_PROVIDER, &o);
		} else if (!is_its_place(l, &o)) {
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
	add_all(l, w, kept, n, bad);
	free(kept);
	free(bad);
}

void wanted_end(struct wanted *w)
{
	if (w->count) {
		w->left_out[NOT_AFTER_FAILURE] = w->avoided_count;
		return;
	}
	free(w->list);
	w->list = TAKE(w->avoided);
	w->count = w->avoided_count;
	w->avoided_count = 0;
}

/* ---- words ---- */

void wanted_tell(const struct wanted *w)
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
		if (w->left_out[i])
			log_line(LOG_NOTE, "%zu offer%s left out: %s", w->left_out[i],
				 w->left_out[i] == 1 ? " is" : "s are", whys[i]);
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
