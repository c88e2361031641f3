/* volumes.h - asks a provider for the run's volume, and has it made. */
#ifndef BURST_ENGINE_VOLUMES_H
#define BURST_ENGINE_VOLUMES_H

#include <stdbool.h>
#include "base/err.h"

struct engine;

/* create: makes it where there is none. */
void volumes_get(struct engine *e, int provider, bool create);

/* Of clients that would make a volume at once only one finds that there is none: who holds this
 * lock. path_lock()'s rules. */
int engine_lock_volumes(const char *state_dir, int *lock, struct err *err);

#endif
