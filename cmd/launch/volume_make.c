/* volume_make.c - creates a volume once, even if several clients need it at the same time. */
#include <poll.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/err.h"
#include "engine/caller.h"
#include "volume_make.h"
#include "volume_trust.h"

enum { MAKE_MS = 60000, LOCK_PAUSE_MS = 100 };

void volume_remember(struct cmd_context *ctx, const char *provider, const struct volume *v,
		     struct volume_row *row)
{
	struct volume_row seen = {.size_gb = v->size_gb,
				  .price_microusd_month = v->price_microusd_month,
				  .seen_ms = clock_wall_ms()};

	COPY_TEXT(seen.provider, provider);
	COPY_TEXT(seen.id, v->id);
	COPY_TEXT(seen.name, v->name);
	COPY_TEXT(seen.region, v->region);
	store_put_volume(ctx->store, &seen, NULL);
	if (row)
		*row = seen;
}

/* A run that starts now may create the same one. */
static int lock_volumes(const struct cmd_context *ctx, int *lock, struct err *err)
{
	int64_t until = clock_boot_ms() + MAKE_MS;

	while (engine_lock_volumes(ctx->state_dir, lock, err) < 0) {
		if (err->kind != ERR_BUSY || clock_boot_ms() >= until)
			return -1;
		poll(NULL, 0, LOCK_PAUSE_MS);
	}
	return 0;
}

/* Returns 1 if it is there, 0 if it may be made: no earlier create of it can surface any more. */
static int look_for(struct launch *l, const struct engine_provider *p, const char *name,
		    struct err *err)
{
	char wait[24];

	for (bool told = false;; told = true) {
		int there = volume_is_there(p, name, err);
		int64_t wait_ms = volume_intent_wait_ms(l->ctx->store, p, name);
		if (there || !wait_ms)
			return there;
		if (!told)
			log_line(LOG_NOTE,
				 "volume %s: %s was told to create it a moment ago; looking for it "
				 "for %s before another one is created",
				 name, p->ops->name, duration_show(wait, sizeof(wait), wait_ms));
		poll(NULL, 0, VOLUME_LOOK_MS);
	}
}

int volume_make(struct launch *l, const struct engine_provider *p, const char *name,
		const char *const *gpus, struct volume_row *row, struct err *err)
{
	struct op_want want = {.volume = {.name = name, .create = true, .gpus = gpus}};
	struct op_result result = {0};
	CLEANUP(fd_close) int lock = -1;

	if (lock_volumes(l->ctx, &lock, err) < 0)
		return -1;
	int was_there = look_for(l, p, name, err);
	if (was_there < 0 || (!was_there && volume_intent_put(l->ctx->store, p, name, err) < 0))
		return -1;
	want.volume.size_gb = l->order.volume_gb;
	int status = caller_perform(p, OP_VOLUME, &want, MAKE_MS, &result, err);
	if (!was_there)
		volume_intent_answered(l->ctx->store, p, name, status < 0 ? err : NULL);
	if (status < 0)
		return err_wrap(err, "%s", p->ops->name);
	if (!result.volume_count)
		return err_set(err, ERR_TRANSIENT, "%s named no volume", p->ops->name);
	volume_remember(l->ctx, p->ops->name, &result.volumes[0], row);
	op_result_free(&result);
	return !was_there;
}
