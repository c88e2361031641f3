/* disk.h - the folders that `serve` works in. */
#ifndef BURST_JOBS_AGENT_DISK_H
#define BURST_JOBS_AGENT_DISK_H

#include <stdbool.h>

#include "agent.h"

/* The volume, and P of the run. */
bool serve_folder(struct agent *a);

/* P; on the container's own disk when the volume takes nothing. False then. */
bool run_folder(struct agent *a);

/* The container's disk: nothing of an agent before us counts any more. */
void serve_disk(struct agent *a);

/* A folder that is ours alone, by a name that is the same in all containers. What an agent before
 * us left there is removed. */
void serve_env(struct agent *a);

#endif
