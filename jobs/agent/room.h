/* room.h - whether the volume and the disk have room: tried, because free space means nothing under
 * a quota. */
#ifndef BURST_JOBS_AGENT_ROOM_H
#define BURST_JOBS_AGENT_ROOM_H

#include <stdbool.h>

#include "agent.h"

/* The failed file was removed and its space is free again: there must be room for a file like the
 * others, or for a far larger one if the error said that there was no room. Keeps errno: callers
 * report it. */
void check_volume_for(struct agent *a, const char *words);
void check_volume(struct agent *a);

/* On a full volume every attempt fails. That ends this pod's work, and the segment is not to blame:
 * another pod can render it. */
bool volume_is_to_blame(struct agent *a, const char *words);

#endif
