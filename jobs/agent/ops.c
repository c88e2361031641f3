/* ops.c - handles the client's requests. */
#include "ops.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "command.h"
#include "events.h"
#include "files.h"
#include "json.h"
#include "lease.h"
#include "lines.h"
#include "queue.h"
#include "setup.h"
#include "start.h"
#include "stop.h"
#include "sync.h"

enum {
	HALT_GRACE_MS = 5000, /* for a command to end itself */
	HALT_MOST_MS = 60000,
};

/* Fills *s. Returns false if the request is not valid. */
static bool segment_read(const struct agent *a, struct segment *s, const struct json *task)
{
	const char *id = json_text(task, "id", "");
	s->id = xstrdup(id);
	s->file = put_text(task, "file");
	s->run = put_text(task, "run");
	s->index = json_int(task, "index", 0);
	s->count = json_int(task, "count", 1);
	s->task = xstrndup(task->raw, task->raw_len);
	for (char *p = s->task; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	return name_safe(s->id) && (a->command ? s->run != NULL : true);
}

static void op_batch(struct agent *a, const struct json *op)
{
	const struct json *list = json_get(op, "segments");
	const char *id = json_text(op, "id", "");
	struct batch *b = xcalloc(1, sizeof(*b));
	b->id = xstrdup(id);
	b->estimate_s = json_number(op, "estimate_s", 0);
	for (const struct batch *known = a->queue; known; known = known->next)
		if (!strcmp(known->id, id)) { /* the client sends a batch again after a reconnect */
			batch_free(b);
			return;
		}
	bool fine = name_safe(id) && list && list->type == J_LIST;
	for (const struct json *m = fine ? list->first : NULL; m && fine; m = m->next) {
		b->seg = xrealloc(b->seg, (b->n + 1) * sizeof(struct segment));
		b->seg[b->n] = (struct segment){0};
		fine = segment_read(a, &b->seg[b->n++], m);
	}
	if (!fine || !b->n || a->fatal) {
		notice_error(a,
			     a->fatal ? "this pod takes no more work"
				      : "a batch without a safe id, or with a segment without one");
		batch_free(b);
		return;
	}
	struct part *p = part_new(b->n, 0);
	for (size_t i = 0; i < b->n; i++)
		p->at[i] = i;
	b->parts = p;
	struct batch **at = &a->queue;
	while (*at)
		at = &(*at)->next;
	*at = b;
	a->idle = false;
}

static void op_revoke(struct agent *a, const struct json *op)
{
	const struct json *list = json_get(op, "ids");
	struct str taken = {0};
	str_addc(&taken, '[');
	for (struct batch *b = json_yes(op, "all") ? a->queue : NULL, *next; b; b = next) {
		next = b->next;
		if (b->begun)
			continue;
		js_text(&taken, NULL, b->id);
		batch_unlink(a, b);
		batch_free(b);
	}
	for (const struct json *m = list && list->type == J_LIST ? list->first : NULL; m;
	     m = m->next) {
		struct batch *b = a->queue;
		while (b && (m->type != J_TEXT || strcmp(b->id, m->text) || b->begun))
			b = b->next;
		if (!b)
			continue;
		js_text(&taken, NULL, b->id);
		batch_unlink(a, b);
		batch_free(b);
	}
	str_addc(&taken, ']');
	struct str *e = event_begin(a, "revoked");
	js_key(e, "ids");
	str_add(e, taken.s);
	event_end(a);
	str_free(&taken);
}

static void op_mode(struct agent *a, const struct json *op, bool detached)
{
	a->detached = detached;
	if (detached) {
		a->lease_s = MAX(json_int(op, "lease_s", 600), (int64_t)10);
		lease_renew(a, a->lease_s);
	}
	struct str *b = event_begin(a, "mode");
	js_text(b, "mode", detached ? "detached" : "attached");
	js_text(b, "id", json_text(op, "id", ""));
	event_end(a);
	events_sync(a);
}

/* Batches that have not begun are taken back at once. */
static void op_halt(struct agent *a, const struct json *op)
{
	op_revoke(a, op);
	commands_halt(a, MIN(MAX(json_int(op, "grace_ms", HALT_GRACE_MS), (int64_t)0),
			     (int64_t)HALT_MOST_MS));
}

static void op_renew(struct agent *a, const struct json *op)
{
	lease_renew(a, json_int(op, "lease_s", 600));
	lease_say(a);
}

static void op_drain(struct agent *a, const struct json *op)
{
	(void)op;
	a->draining = true;
	a->drained = false;
}

static void op_note(struct agent *a, const struct json *op)
{
	const char *text = json_text(op, "text", "");
	event_log(a, 0, "note", text, strlen(text));
}

static void op_sync(struct agent *a, const struct json *op)
{
	int turn = (int)MIN(MAX(json_int(op, "turn", 0), (int64_t)0), (int64_t)INT_MAX);
	if (a->sync_pid)
		a->sync_next_turn = turn;
	else
		sync_start(a, turn);
}

static void op_stop(struct agent *a, const struct json *op)
{
	(void)op;
	stop_work(a);
	event_begin(a, "stopped");
	event_end(a);
	events_sync(a);
}

static void op_end(struct agent *a, const struct json *op)
{
	op_stop(a, op);
	end_pod(a, json_text(op, "reason", "the client says so"));
}

static void op_handover(struct agent *a, const struct json *op)
{
	op_mode(a, op, true);
}

static void op_takeover(struct agent *a, const struct json *op)
{
	op_mode(a, op, false);
}

static void op_setup(struct agent *a, const struct json *op)
{
	task_start(a, "setup", op);
}

static void op_install(struct agent *a, const struct json *op)
{
	task_start(a, "install", op);
}

static const struct {
	const char *name;
	void (*run)(struct agent *a, const struct json *op);
	bool waits; /* wait for the setup or install that runs */
} ops[] = {
	{"renew", op_renew, false},       {"setup", op_setup, true},
	{"install", op_install, true},    {"start", op_start, true},
	{"batch", op_batch, false},       {"revoke", op_revoke, false},
	{"drain", op_drain, false},       {"handover", op_handover, false},
	{"takeover", op_takeover, false}, {"note", op_note, false},
	{"stop", op_stop, false},         {"end", op_end, false},
	{"sync", op_sync, false},         {"halt", op_halt, false},
};

static void defer(struct agent *a, const char *line, size_t len)
{
	struct deferred *d = xcalloc(1, sizeof(*d)), **at = &a->deferred;
	d->line = xstrndup(line, len);
	d->len = len;
	while (*at)
		at = &(*at)->next;
	*at = d;
}

void obey(struct agent *a, const char *line, size_t len)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, line, len);
	const char *name = json_text(op, "op", "");
	size_t i = 0;
	while (i < ARRAY_LEN(ops) && strcmp(ops[i].name, name))
		i++;
	if (i == ARRAY_LEN(ops))
		notice_error(a, op ? "no such operation" : "not a line of JSON");
	else if (ops[i].waits && (a->task.kind || a->deferred))
		defer(a, line, len);
	else
		ops[i].run(a, op);
	json_free(&doc);
}

void obey_deferred(struct agent *a)
{
	while (a->deferred && !a->task.kind) {
		struct deferred *d = a->deferred, *rest = d->next;
		a->deferred = NULL;
		obey(a, d->line, d->len);
		a->deferred = rest;
		free(d->line);
		free(d);
	}
}
