/* stop.h - stops all work. */
#ifndef BURST_JOBS_AGENT_STOP_H
#define BURST_JOBS_AGENT_STOP_H

#include <stdbool.h>

#include "agent.h"

void stop_workers_only(struct agent *a);
bool running_something(const struct agent *a);

/* Ends all workers, commands and scripts and empties the queue: the state before the first `start`.
 */
void stop_work(struct agent *a);

#endif
