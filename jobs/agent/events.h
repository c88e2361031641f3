/* events.h - events: numbered ones are kept in P/events.jsonl and sent from there; others are for
 * who listens now. */
#ifndef BURST_JOBS_AGENT_EVENTS_H
#define BURST_JOBS_AGENT_EVENTS_H

#include <sys/types.h>

#include "agent.h"
#include "base/str.h"

void events_index(struct agent *a, off_t offset);

/* An agent before us may have written some: count them, cut off a torn last line. Event 0 does not
 * exist. */
void events_open(struct agent *a);
void events_sync(struct agent *a);
struct str *event_begin(struct agent *a, const char *name);
void event_end(struct agent *a);
struct client *attached_client(struct agent *a);
struct str *say_begin(struct agent *a, const char *name);

/* Unnumbered: for who listens now, never kept. */
void say_end(struct agent *a);
void say_error(struct agent *a, const char *error);

/* What the client has not seen yet, from the file into its buffer. */
void events_send(struct agent *a, struct client *c);
void fatal(struct agent *a, const char *fmt, ...) PRINTF(2, 3);

#endif
