/* volumes.c - finds the run's volume at a provider, or has it made. */
#include "volumes.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/clock.h"
#include "base/path.h"
#include "impl.h"
#include "post.h"
#include "request.h"
#include "stage.h"
#include "volume_intent.h"

enum { VOLUME_LOCK_MS = 300, REGIONS_MOST = 64 };

static void request_volume(void *ctx);

/* The create of an earlier client may still surface: looks again until it cannot. */
static bool looks_again(struct request *a, const struct err *err)
{
	if (!a->looks || !err || err->kind != ERR_NOT_FOUND)
		return false;
	a->looks = false;
	a->want.volume.create = true;
	a->timer = loop_timer(a->e->loop, VOLUME_LOOK_MS, request_volume, a);
	return true;
}

static void volume_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct engine *e = a->e;
	char price[32];

	if (looks_again(a, err))
		return;
	if (a->want.volume.create)
		volume_intent_answered(e->setup->store, &e->setup->providers[a->provider],
				       a->want.volume.name, err);
	if (result && result->volume_count) {
		const struct volume *v = &result->volumes[0];
		e->volumes[a->provider] = *v;
		e->volumes[a->provider].apart =
			provider_can_fetch(e->setup->providers[a->provider].ops,
					   e->setup->providers[a->provider].handle, v);
		struct volume_row row = {.size_gb = v->size_gb,
					 .price_microusd_month = v->price_microusd_month,
					 .seen_ms = clock_wall_ms()};
		COPY_TEXT(row.provider, e->setup->providers[a->provider].ops->name);
		COPY_TEXT(row.id, v->id);
		COPY_TEXT(row.name, v->name);
		COPY_TEXT(row.region, v->region);
		store_put_volume(e->setup->store, &row, NULL);
		if (v->price_microusd_month)
			engine_log(e, LOG_NOTE,
				   "volume %s: %lld GB, %s a month until it is removed", v->name,
				   (long long)v->size_gb,
				   money_show(price, sizeof(price), v->price_microusd_month));
		stage_volume(e, a->provider);
	} else {
		struct event ev = {.type = EV_VOLUME, .provider = a->provider};
		struct err none;
		if (!err)
			err_set(&none, ERR_TRANSIENT, "%s named no volume",
				e->setup->providers[a->provider].ops->name);
		post(e, &ev, err ? err : &none);
	}
	request_free(a);
}

int engine_lock_volumes(const char *state_dir, int *lock, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(state_dir, "volume.lock");

	return path_lock(path, "makes a volume\n", lock, err);
}

/* Sends the create only if none of its name can surface any more, and once it is on disk. Returns
 * false with *err if the ledger cannot be written. */
static bool may_create(struct request *a, struct err *err)
{
	const struct engine_provider *p = &a->e->setup->providers[a->provider];
	const char *name = a->want.volume.name;
	int64_t wait_ms = volume_intent_wait_ms(a->e->setup->store, p, name);
	char wait[24];

	if (!wait_ms)
		return volume_intent_put(a->e->setup->store, p, name, err) == 0;
	if (!a->told)
		engine_log(a->e, LOG_NOTE,
			   "volume %s: %s was told to create it a moment ago; looking for it for "
			   "%s before another one is created",
			   name, p->ops->name, duration_show(wait, sizeof(wait), wait_ms));
	a->told = a->looks = true;
	a->want.volume.create = false;
	return true;
}

static void request_volume(void *ctx)
{
	struct request *a = ctx;
	const char *run_dir = a->e->setup->run_dir;
	CLEANUP(free_text) char *state_dir = run_dir ? xasprintf("%s/../..", run_dir) : NULL;
	struct err err;

	a->timer = NULL;
	if (state_dir && a->want.volume.create && !a->lock &&
	    engine_lock_volumes(state_dir, &a->lock, &err) < 0 && err.kind == ERR_BUSY) {
		a->timer = loop_timer(a->e->loop, VOLUME_LOCK_MS, request_volume, a);
		return;
	}
	if (a->want.volume.create && !may_create(a, &err)) {
		struct event ev = {.type = EV_VOLUME, .provider = a->provider};
		post(a->e, &ev, &err);
		request_free(a);
		return;
	}
	request_begin(a, OP_VOLUME, volume_done);
}

/* Kept until it is made: the offers may have changed by then. */
static void add_regions(struct request *a)
{
	const char *names[REGIONS_MOST];
	size_t count = core_offer_regions(a->e->core, a->provider, names, ARRAY_LEN(names));

	if (!count)
		return;
	a->regions = xcalloc(count + 1, sizeof(*a->regions));
	for (size_t i = 0; i < count; i++)
		a->regions[i] = xstrdup(names[i]);
	a->want.regions = (const char *const *)a->regions;
}

void volumes_get(struct engine *e, int provider, bool create)
{
	struct request *a = request_new(e, provider, -1);

	if (create)
		add_regions(a);

	a->want.volume.name = e->setup->volume_name;
	a->want.volume.size_gb = e->setup->volume_gb;
	a->want.volume.create = create;
	a->want.volume.gpus = e->setup->gpus;
	request_volume(a);
}
