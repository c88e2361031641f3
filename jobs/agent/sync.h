/* sync.h - makes what was written outlive the pod, and ends the pod. */
#ifndef BURST_JOBS_AGENT_SYNC_H
#define BURST_JOBS_AGENT_SYNC_H

#include <stdbool.h>

#include "agent.h"

/* For a pod without a client. True once everything is durable. A failed sync is retried for
 * SYNC_PATIENCE_MS, since hours of work may be at stake; then fatal() ends the pod's work. Blocks
 * while the volume syncs. */
bool sync_alone(struct agent *a);

/* Syncs, then asks the start script to end the pod. The first call counts. */
void end_pod(struct agent *a, const char *reason);

/* Syncs in a child, since the pod has more to do. `turn` is the client's number for it. */
void sync_start(struct agent *a, int turn);

/* That child has exited with `status`, as waitpid() gives it. */
void sync_ended(struct agent *a, int status);

#endif
