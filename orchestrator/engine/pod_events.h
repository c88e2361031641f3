/* pod_events.h - what an agent reports becomes events for the core. */
#ifndef BURST_ENGINE_POD_EVENTS_H
#define BURST_ENGINE_POD_EVENTS_H

#include <jansson.h>
#include <stdbool.h>

struct engine;

/* One event of an agent, live or from the log on the volume. */
void pod_event_take(struct engine *e, int pod, const json_t *event);
/* What it says of its work that was not known. */
bool pod_event_advances(const struct engine *e, int pod, const char *what, const json_t *event);
/* how: what the agent says of the dead-man's switch. Nothing yet is not bad: it is still asking. */
bool pod_switch_works(struct engine *e, int pod, const char *how);
/* The pod says what no agent of ours would say. Only notes that (epod.distrusted): the caller ends
 * the connection. */
void pod_distrust(struct engine *e, int pod, const char *what);

#endif
