/* volume_find.h - which volume a name means, as the providers say now. */
#ifndef BURST_CMD_VOLUMES_VOLUME_FIND_H
#define BURST_CMD_VOLUMES_VOLUME_FIND_H

#include "cmd/launch/launch.h"

/* The open provider of this name; NULL: none. */
struct engine_provider *volume_provider(struct launch *l, const char *name);
/* One call to a provider. op_result_free(result) on success. */
int volume_perform(const struct engine_provider *p, enum op_kind kind, const struct op_want *want,
		   struct op_result *result, struct err *err);
/* What the providers say replaces what we remember of them. */
int volume_refresh(struct launch *l, struct err *err);
/* By id or name. ERR_USAGE: there is none, or several providers have one. */
int volume_find(struct launch *l, const char *name, struct volume_row *out, struct err *err);
/* The volume that "NAME:PATH" names; without NAME the one of the config. */
int volume_find_place(struct launch *l, const char *text, struct volume_row *v, const char **path,
		      struct err *err);

#endif
