/* volumes.h - finds the run's volume at a provider, or has it made. */
#ifndef BURST_ENGINE_VOLUMES_H
#define BURST_ENGINE_VOLUMES_H

#include <stdbool.h>
#include "base/err.h"

struct engine;

/* create: makes it if there is none. */
void volumes_get(struct engine *e, int provider, bool create);

/* Of several clients that would make a volume, the one with this lock makes it; the others then
 * find it. See path_lock() for its rules. */
int engine_lock_volumes(const char *state_dir, int *lock, struct err *err);

#endif
