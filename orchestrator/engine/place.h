/* place.h - records fetched files and renames them into place. */
#ifndef BURST_ENGINE_PLACE_H
#define BURST_ENGINE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

/* Answered by EV_SAFE, or EV_HOME_FAILED. suspect: they failed their check. */
void place_files(struct engine *e, uint32_t segment, bool suspect);

#endif
