/* volume_find.c - finds a volume by name, as the providers list it now. */
#include <stdlib.h>

#include "cmd/launch/launch.h"
#include "cmd/launch/volume_make.h"
#include "engine/caller.h"
#include "volume_files.h"
#include "volume_find.h"

enum { ASK_MS = 60000 };

struct engine_provider *volume_provider(struct launch *l, const char *name)
{
	for (int i = 0; i < l->run.setup.provider_count; i++)
		if (!strcmp(l->run.setup.providers[i].ops->name, name))
			return &l->run.setup.providers[i];
	return NULL;
}

int volume_perform(const struct engine_provider *p, enum op_kind kind, const struct op_want *want,
		   struct op_result *result, struct err *err)
{
	return caller_perform(p, kind, want, ASK_MS, result, err) < 0
		       ? err_wrap(err, "%s", p->ops->name)
		       : 0;
}

int volume_refresh(struct launch *l, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0;

	if (store_volumes(l->ctx->store, &rows, &count, err) < 0)
		return -1;
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		const struct engine_provider *p = &l->run.setup.providers[i];
		struct op_result result = {0};
		if (volume_perform(p, OP_VOLUMES, NULL, &result, err) < 0) {
			free(rows);
			return -1;
		}
		for (size_t k = 0; k < count; k++)
			if (!strcmp(rows[k].provider, p->ops->name))
				store_remove_volume(l->ctx->store, rows[k].provider, rows[k].id,
						    NULL);
		for (size_t k = 0; k < result.volume_count; k++)
			volume_remember(l->ctx, p->ops->name, &result.volumes[k], NULL);
		op_result_free(&result);
	}
	free(rows);
	return 0;
}

int volume_find(struct launch *l, const char *name, struct volume_row *out, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0, hits = 0;

	if (volume_refresh(l, err) < 0 || store_volumes(l->ctx->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (volume_provider(l, rows[i].provider) &&
		    (!strcmp(rows[i].id, name) || !strcmp(rows[i].name, name))) {
			*out = rows[i];
			hits++;
		}
	free(rows);
	if (hits == 1)
		return 0;
	return err_set(err, ERR_USAGE,
		       hits ? "%s: several providers have a volume of that name; choose one "
			      "with -p"
			    : "%s: no such volume (see `burst volume ls`)",
		       name);
}

int volume_find_place(struct launch *l, const char *text, struct volume_row *v, const char **path,
		      struct err *err)
{
	CLEANUP(free_text) char *name = NULL;
	const char *own = section_text(section_group(config_top(l->ctx->config), "volume"), "name");

	if (volume_split(text, &name, path, err) < 0)
		return -1;
	if (!name && !own)
		return err_set(err, ERR_USAGE,
			       "volume: no burst.cfg here names a volume: write VOLUME:PATH");
	return volume_find(l, name ? name : own, v, err);
}
