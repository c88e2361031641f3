/* room.h - tests by writing whether volume and disk have room: statvfs ignores quotas. */
#ifndef BURST_JOBS_AGENT_ROOM_H
#define BURST_JOBS_AGENT_ROOM_H

#include <stdbool.h>

#include "agent.h"

/* Checks that the volume has room after a failed write, whose file is already removed: for a file
 * of usual size, or for a far larger one if the error was a lack of room. Keeps errno for the
 * caller. */
void check_volume_for(struct agent *a, const char *words);
void check_volume(struct agent *a);

/* Returns true if the volume is full, and ends this pod's work: every attempt would fail here, and
 * another pod can render the segment. */
bool volume_is_to_blame(struct agent *a, const char *words);

#endif
