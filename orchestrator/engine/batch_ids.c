/* batch_ids.c - what agents call a batch, or a turn of the handover. */
#include "batch_ids.h"

#include <stdlib.h>

#include "impl.h"

char *batch_id(const struct engine *e, uint32_t number)
{
	return xasprintf("%s-%u", e->client.life, number);
}

uint32_t batch_id_number(const struct engine *e, const char *id)
{
	size_t len = strlen(e->client.life);

	if (strncmp(id, e->client.life, len) || id[len] != '-')
		return UINT32_MAX;
	return (uint32_t)strtoul(id + len + 1, NULL, 10);
}
