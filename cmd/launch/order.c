/* order.c - reads from a config what its run rents, for what, and what it may cost. */
#include "order.h"

#include <stdlib.h>

#include "base/clock.h"
#include "core/core.h"

size_t order_count(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

static const char **copy(const char *const *list)
{
	size_t count = order_count(list);
	const char **to = xcalloc(count + 1, sizeof(*to));

	if (count)
		memcpy(to, list, count * sizeof(*to));
	return to;
}

static const char **items(const struct section *s, const char *key)
{
	const char **list = xcalloc(section_count(s, key) + 1, sizeof(*list));

	for (size_t i = 0; i < section_count(s, key); i++)
		list[i] = section_item(s, key, i);
	return list;
}

void order_providers(struct order *o, const char *const *names)
{
	free(o->providers);
	o->providers = copy(names);
}

void order_gpus(struct order *o, const char *const *names)
{
	free(o->gpus);
	o->gpus = names && names[0] ? copy(names) : NULL;
}

void order_copy(struct order *out, const struct order *from)
{
	*out = *from;
	out->providers = copy(from->providers);
	out->gpus = from->gpus ? copy(from->gpus) : NULL;
	out->stages = from->stages ? copy(from->stages) : NULL;
}

void order_free(struct order *o)
{
	free(o->providers);
	free(o->gpus);
	free(o->stages);
	*o = (struct order){0};
}

/* A value that is no time was refused when the config was checked. */
static int64_t keep_warm_ms(const char *text)
{
	int64_t ms = 0;

	if (text && !strcmp(text, "auto"))
		return KEEP_WARM_AUTO;
	return text && duration_parse(text, &ms, NULL) == 0 ? ms : 0;
}

static void read_rest(struct order *o, const struct section *top)
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
	}
	out->providers = items(top, "provider");
	out->gpus = section_count(top, "gpu") ? items(top, "gpu") : NULL;
	out->pods = section_has(top, "pods") ? section_int(top, "pods") : 0;
	out->spot = section_bool(top, "spot");
	out->retry_until_up = section_bool(top, "retry_until_up");
	out->wait_ms = section_int(top, "wait");
	out->lease_ms = section_int(top, "lease");
	out->boot_limit_ms = section_int(top, "boot_limit");
	out->keep_on_failure_ms = section_int(top, "keep_on_failure");
	out->keep_warm_ms = keep_warm_ms(section_text(top, "keep_warm"));
	out->stages = stage_names(config);
	read_rest(out, top);
}
