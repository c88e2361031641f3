/* sync.h - makes written files durable, and ends the pod. */
#ifndef BURST_JOBS_AGENT_SYNC_H
#define BURST_JOBS_AGENT_SYNC_H

#include <stdbool.h>

#include "agent.h"

/* Syncs on a pod without a client. Returns true once everything is durable. Hours of work may be at
 * stake, so it retries a failed sync for SYNC_PATIENCE_MS; then fatal() ends the pod's work. Blocks
 * while the volume syncs. */
bool sync_alone(struct agent *a);

/* Syncs, then asks the start script to end the pod. Later calls do nothing. */
void end_pod(struct agent *a, const char *reason);

/* Syncs in a child, so that the pod works on. `turn` is the client's number for this sync. */
void sync_start(struct agent *a, int turn);

/* Handles the exit of that child; `status` is from waitpid(). */
void sync_ended(struct agent *a, int status);

#endif
