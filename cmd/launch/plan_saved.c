/* plan_saved.c - plans with saved offers or list prices, without a provider. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "cmd/show/plan_show.h"
#include "launch.h"
#include "plan/cost.h"
#include "plan_offers.h"
#include "wanted.h"

enum { OFFERS_MAX_BYTES = 4 << 20, COUNTS_MOST = 64 };

struct saved {
	struct offer *offers;
	bool *avoided; /* as a run would have, when they were saved */
	size_t count;
};

static void saved_free(struct saved *s)
{
	free(s->offers);
	free(s->avoided);
	*s = (struct saved){0};
}

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
	COPY_TEXT(o->stock, jsonx_text(from, "stock", ""));
	if (!o->provider[0] || !o->gpu[0] || !(price >= 0 && price < 1e6))
		return -1;
	o->price_microusd_h = (int64_t)(price * 1e6 + 0.5);
	return 0;
}

/* The end of the time in which a run avoids the offer has not come yet. Times are in UTC, so their
 * texts compare as they do. */
static bool is_avoided(const json_t *from)
{
	const json_t *avoided = json_object_get(from, "avoided");
	char now[32];

	return json_is_object(avoided) &&
	       strcmp(jsonx_text(avoided, "until", ""),
		      clock_rfc3339(now, sizeof(now), clock_wall_ms())) > 0;
}

static int read_offers(const char *path, struct saved *out, struct err *err)
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
	out->offers = xcalloc(json_array_size(list) + 1, sizeof(*out->offers));
	out->avoided = xcalloc(json_array_size(list) + 1, sizeof(*out->avoided));
	for (; out->count < json_array_size(list); ++out->count) {
		const json_t *item = json_array_get(list, out->count);
		out->avoided[out->count] = is_avoided(item);
		if (read_offer(item, &out->offers[out->count]) == 0)
			continue;
		err_set(err, ERR_CONFIG,
			"%s: offer %zu: provider, gpu or price_usd_hour is missing or wrong", path,
			out->count + 1);
		saved_free(out);
		return -1;
	}
	return 0;
}

static int place_of(const struct section *top, const struct offer *o)
{
	int i = 0;

	while (i < (int)section_count(top, "provider") &&
	       strcmp(section_item(top, "provider", (size_t)i), o->provider) != 0)
		i++;
	return i;
}

/* As a run takes them; offers of one provider keep their order. */
static void in_order_of_providers(const struct section *top, struct offer *list, size_t count)
{
	struct offer *sorted = xcalloc(count + 1, sizeof(*sorted));
	size_t n = 0;

	for (int place = 0; place <= (int)section_count(top, "provider"); place++)
		for (size_t i = 0; i < count; i++)
			if (place_of(top, &list[i]) == place)
				sorted[n++] = list[i];
	memcpy(list, sorted, count * sizeof(*list));
	free(sorted);
}

static int check_any(const struct section *top, const struct wanted *w, const struct offer *first,
		     size_t count, struct err *err)
{
	if (!w->count && count && w->left_out[NOT_ITS_PROVIDER] == count)
		return err_set(
			err, ERR_NO_CAPACITY,
			"%s: none of these offers is at a provider of this job; name another "
			"one, as in -p %s",
			section_where(top, "provider"), first->provider);
	return wanted_check_price(w, err);
}

/* Plans with what a run would rent of these. lists: of all GPUs, so that it is no surprise which of
 * them the config does not name. */
static int plan_unasked(struct launch *l, const struct saved *saved, bool lists,
			struct plan_words *words, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	CLEANUP(wanted_free) struct wanted wanted = {0};

	words->in_any_order = !section_has(top, "provider");
	wanted_add_unasked(l, &wanted, saved->offers, saved->count, saved->avoided);
	wanted_end(&wanted);
	if (check_any(top, &wanted, saved->offers, saved->count, err) < 0)
		return -1;
	if (lists)
		wanted.left_out[NOT_ITS_PROVIDER] = wanted.left_out[NOT_ITS_PLACE] =
			wanted.left_out[NOT_ITS_GPU] = 0;
	wanted_tell(&wanted);
	in_order_of_providers(top, wanted.list, wanted.count);
	return plan_offers(l, wanted.list, wanted.count, words, NULL, err);
}

int plan_from_file(struct launch *l, const char *path, struct plan_words *words, struct err *err)
{
	struct saved saved = {0};
	struct stat st;
	char day[32];

	if (read_offers(path, &saved, err) < 0)
		return -1;
	if (stat(path, &st) == 0)
		snprintf(words->prices, sizeof(words->prices), "measured: offers saved on %.10s",
			 clock_rfc3339(day, sizeof(day), (int64_t)st.st_mtime * 1000));
	int status = plan_unasked(l, &saved, false, words, err);
	saved_free(&saved);
	return status;
}

/* Modal also bills the cores and memory that a pod requests. */
static void add_rest(struct launch *l, struct offer *o)
{
	int64_t cores = l->order.cpu ? l->order.cpu : PRIOR_MODAL_CORES;
	int64_t memory_gb = l->order.memory_gb ? l->order.memory_gb : PRIOR_MODAL_MEMORY_GB;

	o->price_microusd_h +=
		cores * PRIOR_MODAL_CORE_MICROUSD_H + memory_gb * PRIOR_MODAL_GB_MICROUSD_H;
	snprintf(o->with, sizeof(o->with), "%lld cores, %lld GB", (long long)cores,
		 (long long)memory_gb);
}

/* One pod with so many of the GPU by its list price there; false: it is not offered. */
static bool list_offer(struct launch *l, const struct gpu *gpu, int count, enum market market,
		       struct offer *o)
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
		add_rest(l, o);
	return price > 0;
}

/* The numbers of GPUs in a pod that the config asks for: each bit is one, from 1. */
static uint64_t counts_wanted(struct launch *l)
{
	const char *const *wishes = l->order.gpus;
	uint64_t counts = 0;
	char name[GPU_MAX];
	int count;

	for (int i = 0; wishes && wishes[i]; i++)
		if (gpu_parse(wishes[i], name, sizeof(name), &count))
			counts |= UINT64_C(1) << (count - 1);
	return counts ? counts : 1;
}

int plan_from_lists(struct launch *l, struct plan_words *words, struct err *err)
{
	const uint64_t counts = counts_wanted(l);
	size_t rows;
	const struct gpu *gpus = gpu_catalog(&rows);
	struct saved list = {.offers = xcalloc(rows * MARKETS * COUNTS_MOST, sizeof(*list.offers))};

	for (size_t i = 0; i < rows; i++)
		for (int count = 1; count <= COUNTS_MOST; count++)
			for (int m = MARKET_SECURE; m < MARKETS; m++)
				if (counts >> (count - 1) & 1 &&
				    list_offer(l, &gpus[i], count, (enum market)m,
					       &list.offers[list.count]))
					list.count++;
	COPY_TEXT(words->prices, "prior: list prices, " PRIOR_PRICES_SEEN);
	int status = plan_unasked(l, &list, true, words, err);
	saved_free(&list);
	return status;
}
