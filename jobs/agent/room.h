/* room.h - whether the volume and the disk have room: tried, because free space means nothing under
 * a quota. */
#ifndef BURST_JOBS_AGENT_ROOM_H
#define BURST_JOBS_AGENT_ROOM_H

#include <stdbool.h>

#include "agent.h"

/* What failed is gone again, and with it what it took: there has to be room for a file like the
 * others, or for a far larger one where it was said that there was none. Leaves errno as it is:
 * callers have something to tell. */
void check_volume_for(struct agent *a, const char *words);
void check_volume(struct agent *a);

/* On a full volume every attempt fails. That ends this pod and is no fault of the segment, which
 * another pod can render. */
bool volume_is_to_blame(struct agent *a, const char *words);

#endif
