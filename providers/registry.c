/* registry.c - adding a vendor is one folder and one line here. */
#include <string.h>

#include "provider.h"

#include "providers/local/local.h"
#include "providers/modal/modal.h"
#include "providers/runpod/runpod.h"

enum { BUILT_IN = 3 };

const struct provider_ops *provider_registry[BUILT_IN + PLUGINS_MAX + 1] = {
	&provider_local,
	&provider_runpod,
	&provider_modal,
};

const struct provider_ops *provider_find(const char *name)
{
	for (size_t i = 0; provider_registry[i]; i++)
		if (!strcmp(provider_registry[i]->name, name))
			return provider_registry[i];
	return NULL;
}
