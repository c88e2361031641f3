/* notify_text.c - which event the end of a run is, and what a notification says of it. */
#include "notify_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/mem.h"
#include "report.h"

static const char *const event_names[] = {
	[NOTIFY_DONE] = "done",     [NOTIFY_RECOVERED] = "recovered",   [NOTIFY_FAILED] = "failed",
	[NOTIFY_CAPPED] = "capped", [NOTIFY_UNRELEASED] = "unreleased", [NOTIFY_NONE] = "none",
};

const char *notify_event_name(enum notify_event event)
{
	return event_names[event];
}

enum notify_event notify_event_named(const char *name)
{
	int event = 0;

	while (event < NOTIFY_EVENTS && strcmp(event_names[event], name) != 0)
		event++;
	return (enum notify_event)event;
}

enum notify_event notify_event_of(enum run_status status, bool failed_before)
{
	switch (status) {
	case RUN_DONE: return failed_before ? NOTIFY_RECOVERED : NOTIFY_DONE;
	case RUN_PARTIAL:
	case RUN_FAILED: return NOTIFY_FAILED;
	case RUN_CAPPED: return NOTIFY_CAPPED;
	case RUN_UNRELEASED: return NOTIFY_UNRELEASED;
	case RUN_UNKNOWN:
	case RUN_RUNNING:
	case RUN_INTERRUPTED: break;
	}
	return NOTIFY_NONE;
}

/* ---- fields ---- */

enum field_kind {
	FIELD_TEXT,
	FIELD_NUMBER,
	FIELD_DOLLARS,
	FIELD_SECONDS,
	FIELD_COUNT,
	FIELD_SUMMARY
};

static const struct {
	const char *name, *group, *key; /* in the run's JSON; group NULL: at the top */
	enum field_kind kind;
} fields[] = {
	{"run", NULL, "run", FIELD_TEXT},
	{"job", NULL, "job", FIELD_TEXT},
	{"status", NULL, "status", FIELD_TEXT},
	{"commit", NULL, "commit", FIELD_TEXT},
	{"output", NULL, "output", FIELD_TEXT},
	{"started", NULL, "started_at", FIELD_TEXT},
	{"ended", NULL, "ended_at", FIELD_TEXT},
	{"error", "error", "message", FIELD_TEXT},
	{"code", "error", "code", FIELD_TEXT},
	{"total", "segments", "total", FIELD_NUMBER},
	{"rendered", "segments", "rendered", FIELD_NUMBER},
	{"cached", "segments", "cached", FIELD_NUMBER},
	{"failed", "segments", "failed", FIELD_NUMBER},
	{"cost", NULL, "cost_usd", FIELD_DOLLARS},
	{"billed", NULL, "billed_seconds", FIELD_SECONDS},
	{"compute", NULL, "compute_seconds", FIELD_SECONDS},
	{"pods", NULL, "pods", FIELD_COUNT},
	{"summary", NULL, NULL, FIELD_SUMMARY},
};

/* Appends the field's value from the run's JSON, as people read it. */
static void add_value(struct str *to, size_t field, const json_t *run)
{
	const json_t *object =
		fields[field].group ? json_object_get(run, fields[field].group) : run;
	const char *key = fields[field].key;
	char text[40];

	switch (fields[field].kind) {
	case FIELD_TEXT:
		str_add(to, json_is_object(object) ? jsonx_text(object, key, "") : "");
		return;
	case FIELD_NUMBER:
		str_addf(to, "%lld",
			 (long long)(json_is_object(object) ? jsonx_int(object, key, 0) : 0));
		return;
	case FIELD_DOLLARS:
		str_add(to,
			cost_show(text, sizeof(text),
				  (int64_t)(jsonx_number(object, key, 0) * 1e6 + .5),
				  (int64_t)(jsonx_number(object, "unpriced_seconds", 0) * 1000)));
		return;
	case FIELD_SECONDS:
		str_add(to, duration_show(text, sizeof(text),
					  (int64_t)(jsonx_number(object, key, 0) * 1000 + .5)));
		return;
	case FIELD_COUNT:
		str_addf(to, "%zu", json_array_size(json_object_get(object, key)));
		return;
	case FIELD_SUMMARY: notify_summary(to, run); return;
	}
}

/* Escapes text for the inside of a JSON text. */
static void add_escaped(struct str *to, const char *text)
{
	CLEANUP(json_decref) json_t *value = json_string(text);
	char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

	if (quoted)
		str_addn(to, quoted + 1, strlen(quoted) - 2);
	free(quoted);
}

enum form { AS_TEXT, AS_JSON };

/* Appends the value of the field. Returns false if no field has this name. */
static bool add_field(struct str *to, const char *name, size_t len, enum form form,
		      enum notify_event event, const json_t *run)
{
	CLEANUP(str_free) struct str value = STR_INIT;
	size_t i = 0;

	while (i < ARRAY_LEN(fields) &&
	       (strlen(fields[i].name) != len || strncmp(fields[i].name, name, len) != 0))
		i++;
	if (len == strlen("event") && !strncmp(name, "event", len))
		str_add(&value, notify_event_name(event));
	else if (i == ARRAY_LEN(fields))
		return false;
	else
		add_value(&value, i, run);
	if (form == AS_JSON)
		add_escaped(to, str_text(&value));
	else
		str_add(to, str_text(&value));
	return true;
}

static int err_unknown_field(const char *name, size_t len, struct err *err)
{
	CLEANUP(str_free) struct str there = STR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		str_addf(&there, ", %s", fields[i].name);
	return err_set(err, ERR_CONFIG, "{%.*s} is not a field; known: event%s",
		       (int)MIN(len, (size_t)40), name, str_text(&there));
}

static int fill_template(struct str *to, const char *template, enum form form,
			 enum notify_event event, const json_t *run, struct err *err)
{
	for (const char *at = template; *at;) {
		size_t len = *at == '{' ? strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;
		if (!len || at[len + 1] != '}') {
			str_addc(to, *at++);
			continue;
		}
		if (!add_field(to, at + 1, len, form, event, run))
			return err_unknown_field(at + 1, len, err);
		at += len + 2;
	}
	return 0;
}

bool notify_is_json(const char *template)
{
	/* words as values, which are no JSON outside of quotes: "[{job}]" is no template for JSON
	 */
	CLEANUP(json_decref)
	json_t *any =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s}}", "run", "x", "job",
			  "x", "status", "x", "commit", "x", "output", "x", "started_at", "x",
			  "ended_at", "x", "error", "message", "x", "code", "x");
	CLEANUP(str_free) struct str bare = STR_INIT;

	if (fill_template(&bare, template, AS_JSON, NOTIFY_DONE, any, NULL) < 0)
		return false;
	CLEANUP(json_decref) json_t *value = json_loadb(str_text(&bare), bare.len, 0, NULL);
	return value != NULL;
}

int notify_fill(struct str *to, const char *template, enum notify_event event, const json_t *run,
		struct err *err)
{
	return fill_template(to, template, notify_is_json(template) ? AS_JSON : AS_TEXT, event, run,
			     err);
}

/* ---- title and summary ---- */

/* Fills one line, without the line breaks and control characters of names and messages. */
static void fill_line(struct str *to, const char *template, enum notify_event event,
		      const json_t *run)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	notify_fill(&text, template, event, run, NULL);
	str_add_printable(to, str_text(&text), text.len, 400);
}

void notify_title(struct str *to, enum notify_event event, const json_t *run)
{
	fill_line(to, jsonx_text(run, "job", "")[0] ? "burst: {job}: {event}" : "burst: {event}",
		  event, run);
}

/* Appends pods that may still bill. The error of a run settled later does not mention them. */
static void add_unreleased_pods(struct str *to, const json_t *run)
{
	const json_t *pods = json_object_get(run, "pods"), *pod;
	size_t i;

	json_array_foreach ((json_t *)pods, i, pod) {
		CLEANUP(str_free) struct str line = STR_INIT;
		const char *id = jsonx_text(pod, "id", "");
		if (!*id || jsonx_bool(pod, "released", true))
			continue;
		str_addf(&line, "pod %s of %s may still be billing: burst reap %s --force; ", id,
			 jsonx_text(pod, "provider", "?"), id);
		str_add_printable(to, str_text(&line), line.len, 200);
	}
}

/* Puts the error first: a phone may show two lines. */
void notify_summary(struct str *to, const json_t *run)
{
	bool failed = json_is_object(json_object_get(run, "error")),
	     began = jsonx_text(run, "run", "")[0];

	if (failed && !began)
		fill_line(to, "{error}", NOTIFY_FAILED, run);
	else if (failed)
		fill_line(to,
			  "{error}; {rendered} rendered, {cached} cached, {failed} failed of "
			  "{total}; {cost}; run {run}",
			  NOTIFY_FAILED, run);
	if (failed)
		return;
	add_unreleased_pods(to, run);
	fill_line(to, "{rendered} rendered, {cached} cached of {total}; {cost}", NOTIFY_DONE, run);
}

bool notify_is_for_people(const char *url)
{
	const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
	const char *at = memchr(host, '@', strcspn(host, "/?#"));

	return starts_with(at ? at + 1 : host, "ntfy.");
}
