/* volume_tidy.c - `burst volume gc`: tidies one volume or all. */
#include "volume_tidy.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "engine/caller.h"
#include "runs/volume_gc.h"
#include "volume_find.h"

#define KEEP_MS (INT64_C(14) * 24 * 3600 * 1000)

/* Tidies each volume that can be; a named volume must be tidied. */
static int tidy_all(struct launch *l, const struct gc_want *want, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0;
	int status = 0;

	if (volume_refresh(l, err) < 0 || store_volumes(l->ctx->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct engine_provider *p = volume_provider(l, rows[i].provider);
		struct err why = {0};
		struct volume v = {0};
		COPY_TEXT(v.id, rows[i].id);
		COPY_TEXT(v.region, rows[i].region);
		if (p && !provider_can_tidy(p->ops, p->handle, &v))
			log_line(LOG_NOTE,
				 "volume %s: %s cannot remove files %s without a pod%s: not "
				 "changed",
				 rows[i].name, rows[i].provider,
				 rows[i].region[0] ? rows[i].region : "there",
				 p->ops->can_tidy
					 ? " unless it has keys for that (see `burst doctor`)"
					 : "");
		else if (p && volume_gc(&l->ctx->runs, p, &rows[i], want, &why) < 0 &&
			 status == 0) {
			/* tidy the others all the same */
			*err = why;
			status = -1;
		} else if (why.kind) {
			log_line(LOG_WARN, "%s", why.msg);
		}
	}
	free(rows);
	return status;
}

static void print_line(void *ctx, const char *line)
{
	(void)ctx;
	output_line(stdout, "%s", line);
}

int volume_tidy(struct launch *l, const char *name, struct err *err)
{
	struct gc_want want = {.age_ms = KEEP_MS,
			       .force = opt_has(l->ctx, "force"),
			       .dry_run = opt_has(l->ctx, "dry-run"),
			       .tell = print_line};
	struct volume_row v;

	if (opt_duration(l->ctx, "older-than", &want.age_ms, err) < 0)
		return -1;
	if (want.force && !want.dry_run &&
	    !cmd_confirm(l->ctx,
			 "also remove what other machines left there, and outputs that are not "
			 "fetched?"))
		return err_set(err, ERR_USAGE,
			       "nothing was removed (-y with --force removes without asking; -n "
			       "shows what)");
	if (!name)
		return tidy_all(l, &want, err);
	return volume_find(l, name, &v, err) < 0
		       ? -1
		       : volume_gc(&l->ctx->runs, volume_provider(l, v.provider), &v, &want, err);
}
