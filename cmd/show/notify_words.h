/* notify_words.h - what a notification says: which event the end of a run is, and a template with
 * the run's fields. No I/O. */
#ifndef BURST_CMD_SHOW_NOTIFY_WORDS_H
#define BURST_CMD_SHOW_NOTIFY_WORDS_H

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
/* NOTIFY_NONE: there is none of that name. */
enum notify_event notify_event_named(const char *name);
/* Of a run that ended so (a status of struct run_row); failed_before: the one before it had failed.
 * A run that its user stopped, and one that goes on, is no event. */
enum notify_event notify_event_of(enum run_status status, bool failed_before);

/* Appends the template with each {field} replaced by what the run's JSON says; "{" that begins no
 * name stands for itself. In a template that is JSON, like {"text": "{job}: {error}", "rendered":
 * {rendered}}, values are escaped. ERR_CONFIG names a field that there is none of. */
int notify_fill(struct str *to, const char *template, enum notify_event event, const json_t *run,
		struct err *err);
bool notify_is_json(const char *template);
/* The address belongs to an ntfy server (ntfy.sh, ntfy.example.org), which shows what it gets to
 * people. */
bool notify_is_for_people(const char *url);
/* "burst: quiz: failed"; "the worker died; 2 rendered, ...". One line each. */
void notify_title(struct str *to, enum notify_event event, const json_t *run);
void notify_summary(struct str *to, const json_t *run);

#endif
