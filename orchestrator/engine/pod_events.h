/* pod_events.h - turns what an agent reports into events for the core. */
#ifndef BURST_ENGINE_POD_EVENTS_H
#define BURST_ENGINE_POD_EVENTS_H

#include <jansson.h>
#include <stdbool.h>

struct engine;

/* One event of an agent, live or from the log on the volume. */
void pod_event_take(struct engine *e, int pod, const json_t *event);
/* Whether an event reports new work. */
bool pod_event_advances(const struct engine *e, int pod, const char *what, const json_t *event);
/* how: what the agent reports of the dead-man's switch. A test still under way is no failure. */
bool pod_switch_works(struct engine *e, int pod, const char *how);
/* Notes (epod.distrusted) that the pod reports what no agent of ours would; the caller ends the
 * connection. */
void pod_distrust(struct engine *e, int pod, const char *what);

#endif
