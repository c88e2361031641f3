/* volume_intent.h - makes a volume of one name once. A volume bills until it is removed, vendors
 * let several have one name, and their lists may show a new one late. So its create is on disk
 * before it is sent, and for a minute after that no other one of its name and account is sent: it
 * may still surface. To be called with the lock of engine_lock_volumes(). */
#ifndef BURST_ENGINE_VOLUME_INTENT_H
#define BURST_ENGINE_VOLUME_INTENT_H

#include "caller.h"

enum { VOLUME_LOOK_MS = 3000 }; /* between two looks for one that may surface */

/* How long to look for the volume of an earlier create before another one may be sent; 0: send. */
int64_t volume_intent_wait_ms(struct store *s, const struct engine_provider *p, const char *name);
/* Before the request. On an error nothing may be sent. */
int volume_intent_put(struct store *s, const struct engine_provider *p, const char *name,
		      struct err *err);
/* err: how the create ended, NULL: well. If the vendor refused it, nothing can surface. */
void volume_intent_answered(struct store *s, const struct engine_provider *p, const char *name,
			    const struct err *err);
/* The volume is removed: one of its name may be made at once. */
void volume_intent_drop(struct store *s, const struct engine_provider *p, const char *name);

#endif
