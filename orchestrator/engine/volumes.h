/* volumes.h - asks a provider for the run's volume, and has it made. */
#ifndef BURST_ENGINE_VOLUMES_H
#define BURST_ENGINE_VOLUMES_H

#include <stdbool.h>

struct engine;

/* create: makes it where there is none. */
void volumes_get(struct engine *e, int provider, bool create);

#endif
