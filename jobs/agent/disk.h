/* disk.h - the folders that `serve` works in. */
#ifndef BURST_JOBS_AGENT_DISK_H
#define BURST_JOBS_AGENT_DISK_H

#include <stdbool.h>

#include "agent.h"

/* Opens the volume, and P of the run. */
bool serve_folder(struct agent *a);

/* Opens P, or a folder on the container's disk if the volume accepts no files. Returns false in
 * that case. */
bool run_folder(struct agent *a);

/* Removes everything that an earlier agent left on the container's disk. */
void serve_disk(struct agent *a);

/* Makes a folder for the agent alone, with the same name in all containers. Removes what an earlier
 * agent left there. */
void serve_env(struct agent *a);

#endif
