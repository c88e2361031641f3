/* probe.h - what workers measured, kept for the next pod: cache/probe.jsonl on the volume. */
#ifndef BURST_JOBS_AGENT_PROBE_H
#define BURST_JOBS_AGENT_PROBE_H

#include <stdbool.h>

#include "agent.h"
#include "base/str.h"
#include "json.h"

#define PROBE_LIST_MOST (64 << 10) /* bytes of the file: some hundred cards and versions */

/* Adds a line unless it exists; the oldest lines make room for it. False: it existed. */
bool probe_add(struct str *list, const char *line);

/* Workers may not read the volume: they get a copy of the list on the container's disk. */
void probe_bring(struct agent *a);

/* A worker's hello reports what it measured. If the list cannot be written, the next pod measures
 * again. */
void probe_keep(struct agent *a, const struct json *hello);

#endif
