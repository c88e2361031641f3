/* volume_intent.c - makes a volume of one name once: what the ledger knows of its create. */
#include "volume_intent.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "store/facts.h"

/* As of a pod whose create was not answered: lists lag by less. */
enum { SURFACE_MS = 60 * 1000 };

static void key_of(const struct engine_provider *p, const char *name, char key[SHA256_NAME])
{
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%s\n%s", p->ops->name, p->ops->account(p->handle), name);

	sha256_name(text, key);
}

static int put(struct store *s, const struct engine_provider *p, const char *name, int64_t wall_ms,
	       struct err *err)
{
	char key[SHA256_NAME], value[24];

	key_of(p, name, key);
	snprintf(value, sizeof(value), "%lld", (long long)wall_ms);
	return fact_put(s, FACT_VOLUME_CREATE, key, NULL, value, err);
}

int64_t volume_intent_wait_ms(struct store *s, const struct engine_provider *p, const char *name)
{
	char key[SHA256_NAME], value[24];
	int64_t now = clock_wall_ms();

	key_of(p, name, key);
	if (!fact_get(s, FACT_VOLUME_CREATE, key, NULL, value, sizeof(value)))
		return 0;
	int64_t sent = strtoll(value, NULL, 10);
	if (sent > now) { /* the clock was set back: count from now on */
		put(s, p, name, now, NULL);
		return SURFACE_MS;
	}
	return MAX(sent + SURFACE_MS - now, (int64_t)0);
}

int volume_intent_put(struct store *s, const struct engine_provider *p, const char *name,
		      struct err *err)
{
	return put(s, p, name, clock_wall_ms(), err) < 0
		       ? err_wrap(err, "volume %s: not created", name)
		       : 0;
}

void volume_intent_answered(struct store *s, const struct engine_provider *p, const char *name,
			    const struct err *err)
{
	/* made, or lost: from now on it may surface */
	bool may_surface = !err || err->kind == ERR_AMBIGUOUS;

	put(s, p, name, may_surface ? clock_wall_ms() : 0, NULL);
}

void volume_intent_drop(struct store *s, const struct engine_provider *p, const char *name)
{
	put(s, p, name, 0, NULL);
}
