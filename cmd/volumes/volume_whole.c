/* volume_whole.c - `burst volume ls`, `create`, `rm` and `warm`: whole volumes. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/volume_make.h"
#include "cmd/launch/volume_trust.h"
#include "cmd/launch/volume_warm.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "engine/volume_intent.h"
#include "volume_find.h"
#include "volume_whole.h"

int volume_whole_list(struct launch *l, struct err *err)
{
	int count =
		volume_refresh(l, err) < 0 ? -1 : report_volumes(l->ctx->store, stdout, NULL, err);

	if (!count)
		log_line(LOG_NOTE, "no volume");
	return count < 0 ? -1 : 0;
}

int volume_whole_create(struct launch *l, const char *name, struct err *err)
{
	struct volume_row row;
	char price[32];

	if (volume_trust_size(l, name, err) < 0)
		return -1;
	int made = volume_make(l, &l->run.setup.providers[0], name, launch_gpus(l), &row, err);
	if (made < 0)
		return -1;
	output_line(stdout, "volume %s of %s: %lld GB, %s a month", row.name, row.provider,
		    (long long)row.size_gb,
		    money_show(price, sizeof(price), row.price_microusd_month));
	/* an existing volume may belong to another project, so leave the question to a run */
	return made ? volume_trust_note(l, row.provider, name, err) : 0;
}

static int in_use(struct launch *l, const struct volume_row *v, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int used = 0;

	if (store_pods(l->ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		used += !strcmp(pods[i].volume_id, v->id);
	free(pods);
	return used ? err_set(err, ERR_USAGE, "volume %s: a pod uses it now (see `burst ps`)",
			      v->name)
		    : 0;
}

int volume_whole_remove(struct launch *l, const char *name, struct err *err)
{
	struct volume_row v;
	struct op_want want = {0};
	struct op_result result = {0};

	if (volume_find(l, name, &v, err) < 0 || in_use(l, &v, err) < 0)
		return -1;
	if (!cmd_confirm(l->ctx, "remove volume %s of %s and all that is on it?", v.name,
			 v.provider))
		return err_set(err, ERR_USAGE, "volume %s is kept (-y removes it without asking)",
			       v.name);
	COPY_TEXT(want.id, v.id);
	if (volume_perform(volume_provider(l, v.provider), OP_VOLUME_REMOVE, &want, &result, err) <
	    0)
		return -1;
	op_result_free(&result);
	store_remove_volume(l->ctx->store, v.provider, v.id, NULL);
	volume_intent_drop(l->ctx->store, volume_provider(l, v.provider), v.name);
	volume_trust_forget(l, v.provider, v.name, NULL);
	output_line(stdout, "volume %s of %s: removed", v.name, v.provider);
	return 0;
}

int volume_whole_warm(struct launch *l, const char *name, struct err *err)
{
	struct volume_row v;
	int64_t memory_gb = 0;

	if (opt_int(l->ctx, "memory", 1, 65536, &memory_gb, err) < 0)
		return -1;
	if (volume_find(l, name, &v, err) < 0 || volume_trust_note(l, v.provider, v.name, err) < 0)
		return -1;
	return volume_warm(l, &v, memory_gb, stdout, err);
}
