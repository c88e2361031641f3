/* volume_find.h - finds a volume by name, as the providers list it now. */
#ifndef BURST_CMD_VOLUMES_VOLUME_FIND_H
#define BURST_CMD_VOLUMES_VOLUME_FIND_H

#include "cmd/launch/launch.h"

/* The open provider of this name; NULL: none. */
struct engine_provider *volume_provider(struct launch *l, const char *name);
/* Performs one operation at a provider. op_result_free(result) on success. */
int volume_perform(const struct engine_provider *p, enum op_kind kind, const struct op_want *want,
		   struct op_result *result, struct err *err);
/* Replaces the ledger's volumes by what the providers list. */
int volume_refresh(struct launch *l, struct err *err);
/* Finds by id or name. ERR_USAGE: there is none, or several providers have one. */
int volume_find(struct launch *l, const char *name, struct volume_row *out, struct err *err);
/* Finds the volume of "NAME:PATH"; without NAME the config's. */
int volume_find_place(struct launch *l, const char *text, struct volume_row *v, const char **path,
		      struct err *err);

#endif
