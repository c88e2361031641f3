/* pod_events.h - turns what an agent reports into events for the core. */
#ifndef BURST_ENGINE_POD_EVENTS_H
#define BURST_ENGINE_POD_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct engine;

/* What the agent of one pod has reported. Its events have numbers that only grow, also across
 * connections; older ones are ignored. When the event log is read again from the volume, last_event
 * begins at 0 once more, and what live events have counted stands in counted_to. Only pod_events.c
 * writes it. */
struct reports {
	int64_t last_event;    /* the number of the last one that was dealt with */
	int64_t counted_to;    /* batches up to this event are counted already */
	int64_t logged_bytes;  /* of its log lines */
	int64_t empty_events;  /* since the last event that advanced the work */
	int rendered;          /* segments it has finished */
	struct err distrusted; /* why its connection is about to end; kind 0: it is not */
};

/* One event of an agent, live or from the log on the volume. */
void pod_event_take(struct engine *e, int pod, const json_t *event);
/* Whether an event reports new work. */
bool pod_event_advances(const struct engine *e, int pod, const char *what, const json_t *event);
/* how: what the agent reports of the dead-man's switch. A test still under way is no failure. */
bool pod_switch_works(struct engine *e, int pod, const char *how);
/* Notes that the pod reports what no agent of ours would: pod_distrusted() then returns true, and
 * podlink.c ends the connection. */
void pod_distrust(struct engine *e, int pod, const char *what);
/* True, once, after pod_distrust(): *why is the reason. */
bool pod_distrusted(struct engine *e, int pod, struct err *why);
/* The pod's event log will be passed again from its first event, as its volume has it. Segments
 * that are known are skipped, and so are batches that are counted. */
void pod_events_reread(struct engine *e, int pod);

#endif
