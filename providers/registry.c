/* registry.c - adding a vendor is one folder and one line here. */
#include "provider.h"

#include "local/local.h"
#include "modal/modal.h"
#include "runpod/runpod.h"

const struct provider_ops *const provider_registry[] = {
	&provider_local,
	&provider_runpod,
	&provider_modal,
	NULL,
};
