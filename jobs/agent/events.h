/* events.h - events: numbered ones are kept in P/events.jsonl and sent from there; the others go
 * only to the attached client. */
#ifndef BURST_JOBS_AGENT_EVENTS_H
#define BURST_JOBS_AGENT_EVENTS_H

#include <sys/types.h>

#include "agent.h"
#include "base/str.h"

void events_index(struct agent *a, off_t offset);

/* Counts the events that an earlier agent wrote, and cuts off a torn last line. Numbers start at 1.
 */
void events_open(struct agent *a);
void events_sync(struct agent *a);
struct str *event_begin(struct agent *a, const char *name);
void event_end(struct agent *a);
struct client *attached_client(struct agent *a);
struct str *notice_begin(struct agent *a, const char *name);

/* Ends an unnumbered event. It goes only to the attached client and is not kept. */
void notice_end(struct agent *a);
void notice_error(struct agent *a, const char *error);

/* Moves events that the client has not received from the file into its buffer. */
void events_send(struct agent *a, struct client *c);
void fatal(struct agent *a, const char *fmt, ...) PRINTF(2, 3);

#endif
