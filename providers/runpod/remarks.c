/* remarks.c - explains a reply without a fitting offer: misspelt names, GPUs that are sold out or
 * out of reach. */
#include "impl.h"

#include <stdlib.h>

#include "base/gpus.h"
#include "base/jsonx.h"

/* Names what the catalog lacks, and its nearest name there. */
static void add_missing(struct str *to, const char *what, const char *word, const char *joint,
			const char *const *names)
{
	const char *near = nearest_word(word, names);

	str_addf(to, "catalog has no %s \"%.60s\"", what, word);
	if (near)
		str_addf(to, "%s did you mean \"%.60s\"?", joint, near);
}

static void add_unknown(struct str *to, const struct op *op, const char *wish)
{
	size_t count = json_array_size(op->kept), n = 0;
	const char **names = xcalloc(count + 1, sizeof(*names));

	for (size_t i = 0; i < count; i++) {
		const char *name = jsonx_text(json_array_get(op->kept, i), "name", NULL);
		if (name)
			names[n++] = name;
	}
	str_add(to, "RunPod's ");
	add_missing(to, "GPU called", wish, ";", names);
	free(names);
}

static int unknown_gpu(struct turn *t)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	add_unknown(&text, t->op, t->op->want->offers.gpus[cpu_wish(t->op) == 0]);
	err_set(t->err, ERR_CONFIG, "%s", str_text(&text));
	return err_about(t->err, "gpu");
}

/* The largest memory among the wanted GPUs; larger than any if a pod without a GPU is accepted. */
static int64_t most_vram_gb(const struct op *op)
{
	const char *const *wishes = op->want->offers.gpus;
	const json_t *gpu;
	int64_t most = 0;
	size_t i;

	for (int w = 0; wishes && wishes[w]; w++) {
		if (cpu_is_meant(wishes[w]))
			return INT64_MAX;
		json_array_foreach (op->kept, i, gpu)
			if (gpu_meant(wishes[w], jsonx_text(gpu, "id", ""),
				      jsonx_text(gpu, "name", "")))
				most = MAX(most, jsonx_int(gpu, "memory", 0));
	}
	return wishes && wishes[0] ? most : INT64_MAX;
}

static bool is_offered(const struct op *op, int wish)
{
	for (size_t i = 0; i < op->got.offer_count; i++)
		if (op->got.offers[i].wish == wish)
			return true;
	return false;
}

/* Where the catalog has it in stock. Returns false if the catalog lacks it. */
static bool find_wished(const struct op *op, const char *wish, struct str *places)
{
	const json_t *gpu, *item;
	bool known = false;
	size_t i, k;

	json_array_foreach (op->kept, i, gpu) {
		if (!gpu_meant(wish, jsonx_text(gpu, "id", ""), jsonx_text(gpu, "name", "")))
			continue;
		known = true;
		json_array_foreach (json_object_get(gpu, "dataCenters"), k, item) {
			const char *id = jsonx_text(item, "id", "");
			if (id[0] && !offers_sold_out(item) && !strstr(str_text(places), id) &&
			    places->len < 120)
				str_addf(places, "%s%.40s", places->len ? ", " : "", id);
		}
	}
	return known;
}

void add_remarks(struct op *op)
{
	const struct volume *volume = &op->want->offers.volume;
	const char *const *wishes = op->want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++) {
		CLEANUP(str_free) struct str places = STR_INIT;
		if (is_offered(op, i) || cpu_is_meant(wishes[i]))
			continue;
		bool known = find_wished(op, wishes[i], &places);
		if (!known && !gpu_find(wishes[i])) /* else it may be another vendor's */
			add_unknown(&op->got.text, op, wishes[i]);
		else if (known && places.len && volume->region[0])
			str_addf(&op->got.text,
				 "%.60s is available in %s, but not in %s, where volume \"%s\" "
				 "is: skipped",
				 wishes[i], str_text(&places), volume->region, volume->name);
		else
			continue;
		str_addc(&op->got.text, '\n');
	}
}

/* Names data centres of the config that the catalog lacks: they are probably misspelt. */
static void add_unknown_datacenters(struct str *to, const struct op *op)
{
	const char **ids = NULL;
	const json_t *gpu, *item;
	size_t n = 0, i, k;

	json_array_foreach (op->kept, i, gpu)
		json_array_foreach (json_object_get(gpu, "dataCenters"), k, item) {
			ids = xrealloc(ids, (n + 2) * sizeof(*ids));
			ids[n++] = jsonx_text(item, "id", "");
			ids[n] = NULL;
		}
	for (i = 0; n && i < section_count(op->provider->conf, "datacenters"); i++) {
		const char *id = section_item(op->provider->conf, "datacenters", i);
		for (k = 0; k < n && strcmp(ids[k], id) != 0; k++)
			;
		if (k < n)
			continue;
		str_add(to, "; its ");
		add_missing(to, "data centre", id, ",", ids);
	}
	free(ids);
}

static int nothing_free(struct turn *t)
{
	const struct op_want *want = t->op->want;
	const struct volume *volume = &want->offers.volume;
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; want->offers.gpus && want->offers.gpus[i] && i < 6; i++)
		str_addf(&text, "%s%.40s", i ? ", " : "",
			 cpu_is_meant(want->offers.gpus[i]) ? "CPU pod" : want->offers.gpus[i]);
	str_addf(&text, "%s is available at RunPod now", text.len ? "" : "GPU");
	if (volume->region[0])
		str_addf(&text, " in %s, where volume \"%s\" is", volume->region, volume->name);
	else if (section_count(t->op->provider->conf, "datacenters"))
		str_add(&text, " in the data centres of providers.runpod.datacenters");
	if (t->op->got.text.len)
		str_addf(&text, " (there is some in %s)", str_text(&t->op->got.text));
	add_unknown_datacenters(&text, t->op);
	if (volume->name[0] && !volume->id[0])
		str_addf(&text, "; volume \"%s\" is created only when there is one", volume->name);
	return err_set(t->err, ERR_NO_CAPACITY, "no %s", str_text(&text));
}

int nothing_offered(struct turn *t)
{
	const struct op *op = t->op;
	bool named = op->want->offers.gpus && op->want->offers.gpus[0];
	int64_t most_gb = most_vram_gb(op);

	if (named && !op->tries && json_array_size(op->kept))
		return unknown_gpu(t);
	if (named && op->tries && most_gb < op->want->offers.vram_gb) {
		err_set(t->err, ERR_CONFIG,
			"this job needs a GPU with %d GB of memory; those in gpu have %lld at most",
			op->want->offers.vram_gb, (long long)most_gb);
		return err_about(t->err, "gpu");
	}
	return nothing_free(t);
}
