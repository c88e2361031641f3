/* order.c - reads from a config what its run rents, for what, and what it may cost */
#include "order.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "engine/pooled.h"
#include "jobs/common.h"

size_t order_count(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* A new NULL-terminated list with the same texts. list: NULL for an empty one. */
static const char **copy_list(const char *const *list)
{
	size_t count = order_count(list);
	const char **to = xcalloc(count + 1, sizeof(*to));

	if (count)
		memcpy(to, list, count * sizeof(*to));
	return to;
}

/* The items of a list in the config, NULL-terminated. The caller frees the list, not its texts. */
static const char **list_items(const struct section *s, const char *key)
{
	const char **list = xcalloc(section_count(s, key) + 1, sizeof(*list));

	for (size_t i = 0; i < section_count(s, key); i++)
		list[i] = section_item(s, key, i);
	return list;
}

void order_providers(struct order *o, const char *const *names)
{
	free(o->providers);
	o->providers = copy_list(names);
}

void order_gpus(struct order *o, const char *const *names)
{
	free(o->gpus);
	o->gpus = names && names[0] ? copy_list(names) : NULL;
}

void order_copy(struct order *out, const struct order *from)
{
	*out = *from;
	out->providers = copy_list(from->providers);
	out->gpus = from->gpus ? copy_list(from->gpus) : NULL;
	out->stages = from->stages ? copy_list(from->stages) : NULL;
}

void order_free(struct order *o)
{
	free(o->providers);
	free(o->gpus);
	free(o->stages);
	*o = (struct order){0};
}

/* "auto" gives KEEP_WARM_AUTO. An invalid time was refused when the config was checked. */
static int64_t parse_keep_warm(const char *text)
{
	int64_t ms = 0;

	if (text && !strcmp(text, "auto"))
		return KEEP_WARM_AUTO;
	return text && duration_parse(text, &ms, NULL) == 0 ? ms : 0;
}

/* Reads the groups caps, volume, code and pod. */
static void read_groups(struct order *o, const struct section *top)
{
	const struct section *caps = section_group(top, "caps"), *pod = section_group(top, "pod"),
			     *volume = section_group(top, "volume");

	o->max_cost_microusd = section_int(caps, "max_cost");
	o->max_duration_ms = section_int(caps, "max_duration");
	o->max_price_microusd_h = section_int(caps, "max_price_per_hour");
	o->volume = section_text(volume, "name");
	o->volume_gb = section_int(volume, "size_gb");
	o->volume_create = section_bool(volume, "create");
	o->code = section_text(section_group(top, "code"), "path");
	o->image = section_text(pod, "image");
	o->disk_gb = section_int(pod, "disk_gb");
	o->cpu = section_int(pod, "cpu");
	o->memory_gb = section_int(pod, "memory_gb");
	o->worker_root = section_bool(pod, "worker_root");
	o->unproven_ok = section_bool(pod, "allow_unproven_switch");
}

/* Names of the stages in their order, "deliver" last; NULL: none. The caller frees the list. */
static const char **stage_names(const struct config *config)
{
	const struct section *job = config_job(config);
	size_t count = job ? section_count(job, "then") : 0, n = 0;
	bool delivers = section_has(config_top(config), "deliver");
	const char **list = count || delivers ? xcalloc(count + 2, sizeof(*list)) : NULL;

	for (size_t i = 0; i < count; i++) {
		const char *name = section_text(section_group_at(job, "then", i), "name");
		list[n++] = name ? name : "";
	}
	if (delivers)
		list[n++] = "deliver";
	return list;
}

void order_read(struct order *out, const struct config *config)
{
	const struct section *top = config ? config_top(config) : NULL;

	*out = (struct order){.config = "", .job = ""};
	if (!config)
		return;
	out->config = config_path(config) ? config_path(config) : "";
	if (config_job(config)) {
		out->job = config_job_name(config);
		out->output = section_text(config_job(config), "output");
		job_read_needs(&out->card, config_job(config), "needs");
	}
	out->providers = list_items(top, "provider");
	out->gpus = section_count(top, "gpu") ? list_items(top, "gpu") : NULL;
	out->pods = section_has(top, "pods") ? section_int(top, "pods") : 0;
	out->spot = section_bool(top, "spot");
	out->retry_until_up = section_bool(top, "retry_until_up");
	out->wait_ms = section_int(top, "wait");
	out->lease_ms = section_int(top, "lease");
	out->boot_limit_ms = section_int(top, "boot_limit");
	out->keep_on_failure_ms = section_int(top, "keep_on_failure");
	out->keep_warm_ms = parse_keep_warm(section_text(top, "keep_warm"));
	out->prewarm = section_text(top, "prewarm");
	out->stages = stage_names(config);
	read_groups(out, top);
}

void order_override_choice(const struct order *o, struct choice_row *row)
{
	CLEANUP(str_free) struct str gpus = STR_INIT;

	if (o->pods) {
		row->pods = (int)o->pods;
		row->pods_open = false;
		row->pods_most = 0;
	}
	if (!o->gpus)
		return;
	for (size_t i = 0; o->gpus[i]; i++)
		str_addf(&gpus, "%s%s", i ? "," : "", o->gpus[i]);
	COPY_TEXT(row->gpus, str_text(&gpus));
	row->gpus_open = false;
}

void order_fill_want(const struct order *o, struct op_want *want)
{
	*want = (struct op_want){.offers = {.gpus = o->gpus,
					    .vram_gb = MAX(o->vram_gb, o->card.vram_gb),
					    .spot = o->spot,
					    .cpu = o->cpu,
					    .memory_gb = o->memory_gb,
					    .disk_gb = o->disk_gb,
					    .image = o->image},
				 .least_cuda = o->card.cuda};
}

/* ---- known providers ---- */

enum { NAMES_MAX = 32 };

static bool names_have(char *const *names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

/* Does nothing if the list has the name, or is full. */
static void add_name(char **names, const char *name)
{
	size_t count = 0;

	while (names[count])
		count++;
	if (count < NAMES_MAX && !names_have(names, name))
		names[count] = xstrdup(name);
}

static void add_names_of_provider_key(char **names, const struct section *top)
{
	for (size_t i = 0; i < section_count(top, "provider"); i++)
		add_name(names, section_item(top, "provider", i));
}

char **providers_of_configs(const struct cmd_context *ctx)
{
	char **names = xcalloc(NAMES_MAX + 1, sizeof(*names));
	struct mistakes ignored = {0};
	struct config_source ask = {.project_only = true,
				    .mistakes = &ignored,
				    .providers = provider_registry,
				    .jobs = job_registry};
	struct config *project = NULL;
	struct err why = {0};

	add_names_of_provider_key(names, config_top(ctx->config));
	if (config_open(&project, &ask, &why) == 0)
		add_names_of_provider_key(names, config_top(project));
	config_free(project);
	mistakes_free(&ignored);
	return names;
}

char **providers_of_ledger(const struct cmd_context *ctx)
{
	char **names = xcalloc(NAMES_MAX + 1, sizeof(*names));
	struct volume_row *volumes = NULL;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (ctx->no_ledger.kind)
		return names;
	if (store_pods(ctx->store, NULL, false, &pods, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			add_name(names, pods[i].provider);
	if (store_volumes(ctx->store, &volumes, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			add_name(names, volumes[i].provider);
	free(pods);
	free(volumes);
	return names;
}
