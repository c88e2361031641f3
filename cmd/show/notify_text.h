/* notify_text.h - which event the end of a run is, and what a notification says of it. */
#ifndef BURST_CMD_SHOW_NOTIFY_TEXT_H
#define BURST_CMD_SHOW_NOTIFY_TEXT_H

#include <jansson.h>

#include "base/err.h"
#include "base/states.h"
#include "base/str.h"

enum notify_event {
	NOTIFY_DONE,
	NOTIFY_RECOVERED,
	NOTIFY_FAILED,
	NOTIFY_CAPPED,
	NOTIFY_UNRELEASED,
	NOTIFY_EVENTS,
	NOTIFY_NONE = NOTIFY_EVENTS
};

const char *notify_event_name(enum notify_event event); /* "done", ... */
/* NOTIFY_NONE: no event has this name. */
enum notify_event notify_event_named(const char *name);
/* The event of a run's end (a status of struct run_row). failed_before: the previous run failed. A
 * run that its user stopped, or that continues, is no event. */
enum notify_event notify_event_of(enum run_status status, bool failed_before);

/* Appends the template with each {field} replaced from the run's JSON. A "{" that begins no name
 * stays. In a JSON template, such as {"text": "{job}: {error}", "rendered": {rendered}}, values are
 * escaped. ERR_CONFIG names an unknown field. */
int notify_fill(struct str *to, const char *template, enum notify_event event, const json_t *run,
		struct err *err);
/* Whether the filled template is JSON. */
bool notify_is_json(const char *template);
/* Whether the URL is an ntfy server's (ntfy.sh, ntfy.example.org), which shows messages to people.
 */
bool notify_is_for_people(const char *url);
/* Append a line without newline: "burst: quiz: failed"; "the worker died; 2 rendered, ...". */
void notify_title(struct str *to, enum notify_event event, const json_t *run);
void notify_summary(struct str *to, const json_t *run);

#endif
