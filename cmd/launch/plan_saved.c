/* plan_saved.c - plans with saved offers or list prices, without a provider. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "cmd/show/plan_parts.h"
#include "launch.h"
#include "plan/prior.h"
#include "plan_offers.h"

enum { OFFERS_MAX_BYTES = 4 << 20 };

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

int plan_from_file(struct launch *l, const char *path, struct plan_words *words, struct err *err)
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
	int status = plan_offers(l, offers, count, words, NULL, err);
	free(offers);
	return status;
}

static bool is_wished_for(const char *const *wishes, const char *gpu)
{
	for (int i = 0; wishes && wishes[i]; i++)
		if (gpu_satisfies(wishes[i], gpu))
			return true;
	return !wishes || !wishes[0];
}

/* Modal also bills the cores and memory that a pod requests. */
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

int plan_from_lists(struct launch *l, struct plan_words *words, struct err *err)
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
	int status = plan_offers(l, offers, count, words, NULL, err);
	free(offers);
	return status;
}
