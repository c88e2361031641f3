/* registry.c - lists the providers. To add one, add a folder and its name here. */
#include <string.h>

#include "provider.h"

#include "providers/kubernetes/kubernetes.h"
#include "providers/local/local.h"
#include "providers/modal/modal.h"
#include "providers/runpod/runpod.h"
#include "providers/slurm/slurm.h"
#include "providers/ssh/ssh.h"
#include "providers/vast/vast.h"

enum { LOCAL, RUNPOD, MODAL, SLURM, SSH, KUBERNETES, VAST, BUILT_IN };

const struct provider_ops *provider_registry[BUILT_IN + PLUGINS_MAX + 1] = {
	[LOCAL] = &provider_local, [RUNPOD] = &provider_runpod, [MODAL] = &provider_modal,
	[SLURM] = &provider_slurm, [SSH] = &provider_ssh,       [KUBERNETES] = &provider_kubernetes,
	[VAST] = &provider_vast,
};

const struct provider_ops *provider_find(const char *name)
{
	for (size_t i = 0; provider_registry[i]; i++)
		if (!strcmp(provider_registry[i]->name, name))
			return provider_registry[i];
	return NULL;
}
