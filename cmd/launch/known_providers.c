/* known_providers.c - the providers that the configs and the ledger know. */
#include "known_providers.h"

#include <stdlib.h>

enum { NAMES_MAX = 32 };

static bool names_have(char *const *names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

void names_free(char **names)
{
	for (char **at = names; at && *at; at++)
		free(*at);
	free(names);
}

static void add(char **names, const char *name)
{
	size_t count = 0;

	while (names[count])
		count++;
	if (count < NAMES_MAX && !names_have(names, name))
		names[count] = xstrdup(name);
}

static void add_section(char **names, const struct section *top)
{
	for (size_t i = 0; i < section_count(top, "provider"); i++)
		add(names, section_item(top, "provider", i));
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

	add_section(names, config_top(ctx->config));
	if (config_open(&project, &ask, &why) == 0)
		add_section(names, config_top(project));
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
			add(names, pods[i].provider);
	if (store_volumes(ctx->store, &volumes, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			add(names, volumes[i].provider);
	free(pods);
	free(volumes);
	return names;
}
