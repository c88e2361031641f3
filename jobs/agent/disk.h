/* disk.h - the folders that `serve` works in. */
#ifndef BURST_JOBS_AGENT_DISK_H
#define BURST_JOBS_AGENT_DISK_H

#include <stdbool.h>

#include "agent.h"

/* The volume, and P of the run. */
bool serve_folder(struct agent *a);

/* P; on the container's own disk if the volume accepts no files. False then. */
bool run_folder(struct agent *a);

/* Clears the container's disk of everything that an earlier agent left. */
void serve_disk(struct agent *a);

/* A folder for the agent alone, with the same name in all containers. What an earlier agent left
 * there is removed. */
void serve_env(struct agent *a);

#endif
