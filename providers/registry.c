/* registry.c - adding a vendor is one folder and one line here. */
#include "provider.h"

#include "local/local.h"

const struct provider_ops *const provider_registry[] = {
	&provider_local,
	NULL,
};
