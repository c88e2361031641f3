/* probe.h - keeps workers' measurements for the next pod, in cache/probe.jsonl on the volume. */
#ifndef BURST_JOBS_AGENT_PROBE_H
#define BURST_JOBS_AGENT_PROBE_H

#include <stdbool.h>

#include "agent.h"
#include "base/str.h"
#include "json.h"

#define PROBE_LIST_MOST                                                                            \
	(64 << 10) /* limit of the file in bytes: some hundred cards and versions                  \
		    */

/* Adds a line and drops the oldest lines to make room. Returns false if the line existed. */
bool probe_add(struct str *list, const char *line);

/* Copies the list to the container's disk, because workers may not read the volume. */
void probe_bring(struct agent *a);

/* Keeps the measurement in a worker's hello. If the write fails, the next pod measures again. */
void probe_keep(struct agent *a, const struct json *hello);

#endif
