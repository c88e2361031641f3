/* clients.c - the connections of `attach` to `serve`: the hello, and the requests of a client. */
#include "agent.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/path.h"
#include "base/str.h"
#include "files.h"
#include "json.h"

/* ---- the hello ---- */

void add_gpus(struct agent *a, struct str *b)
{
	js_key(b, "gpus");
	str_addc(b, '[');
	for (int i = 0; i < a->gpu_count; i++) {
		js_key(b, NULL);
		str_addc(b, '{');
		js_text(b, "name", a->gpus[i]);
		str_addc(b, '}');
	}
	str_addc(b, ']');
}

void read_switch(struct agent *a, char *to, size_t room)
{
	CLEANUP(free_text) char *file = xasprintf("%s/switch", a->place.home);
	CLEANUP(str_free) struct str text = {0};
	if (read_file(file, room - 1, &text) == 0 && text.len)
		text.s[strcspn(text.s, "\n")] = 0;
	snprintf(to, room, "%s", str_text(&text));
}

/* Appends how many workers are alive and which segments they hold, for a client that reconnects. */
static void add_work_state(const struct agent *a, struct str *b)
{
	int standing = 0;
	for (int i = 0; i < a->worker_count; i++)
		standing += a->workers[i].state != WORKER_FAILED;
	js_int(b, "workers", standing);
	js_key(b, "running");
	str_addc(b, '[');
	for (const struct batch *q = a->queue; q; q = q->next)
		for (size_t i = 0; q->begun && i < q->n; i++)
			if (!q->seg[i].settled)
				js_text(b, NULL, q->seg[i].id);
	str_addc(b, ']');
}

/* Answers `attach`. A hello that is due holds back requests and events. */
static void hello_send(struct agent *a, struct client *c)
{
	char zstd[PATH_MAX];
	c->hello_due = false;
	read_switch(a, a->switch_line, sizeof(a->switch_line));
	struct str *b = notice_begin(a, "hello");
	js_text(b, "run", a->run);
	js_int(b, "began_s", a->began_s);
	js_int(b, "next", (int64_t)a->next);
	js_text(b, "switch", a->switch_line);
	js_int(b, "lease_left_s", lease_left_s(a));
	add_gpus(a, b);
	js_bool(b, "zstd", find_program("zstd", zstd));
	js_text(b, "mode", a->detached ? "detached" : "attached");
	js_bool(b, "separate", a->separate);
	add_work_state(a, b);
	add_image_envs(a, b);
	str_add(b, "}\n");
	str_addn(&c->out, b->s, b->len);
}

/* ---- requests ---- */

enum {
	HALT_GRACE_MS = 5000, /* for a command to end itself */
	HALT_MOST_MS = 60000,
	SEGMENT_ID_MOST = 200, /* bytes */
};

/* Fills *s. Returns false if the request is not valid. */
static bool segment_read(const struct agent *a, struct segment *s, const struct json *task)
{
	const char *id = json_text(task, "id", "");
	s->id = xstrdup(id);
	s->file = copy_json_text(task, "file");
	s->run = copy_json_text(task, "run");
	s->index = json_int(task, "index", 0);
	s->count = json_int(task, "count", 1);
	s->task = xstrndup(task->raw, task->raw_len);
	for (char *p = s->task; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	/* files of a command are named after its id; a segment of speech names its file itself */
	return a->command ? name_safe(s->id) && s->run
			  : path_is_safe(s->id) && strlen(s->id) <= SEGMENT_ID_MOST;
}

/* Queues the batch, unless it is known: the client sends a batch again after a reconnect. */
static void op_batch(struct agent *a, const struct json *op)
{
	const char *id = json_text(op, "id", "");
	struct batch *b = xcalloc(1, sizeof(*b));
	b->id = xstrdup(id);
	b->estimate_s = json_number(op, "estimate_s", 0);
	for (const struct batch *known = a->queue; known; known = known->next)
		if (!strcmp(known->id, id)) {
			batch_free(b);
			return;
		}
	bool fine = name_safe(id);
	for (const struct json *m = json_items(op, "segments"); m && fine; m = m->next) {
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
}

/* Takes back the batches that have not begun. */
static void op_revoke(struct agent *a, const struct json *op)
{
	(void)op;
	struct str *e = event_begin(a, "revoked");
	js_key(e, "ids");
	str_addc(e, '[');
	for (struct batch *b = a->queue, *next; b; b = next) {
		next = b->next;
		if (b->begun)
			continue;
		js_text(e, NULL, b->id);
		batch_unlink(a, b);
		batch_free(b);
	}
	str_addc(e, ']');
	event_end(a);
}

/* `handover` and `takeover`. */
static void op_mode(struct agent *a, const struct json *op)
{
	bool detached = a->detached = !strcmp(json_text(op, "op", ""), "handover");
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

/* Revokes batches that have not begun, and asks commands to end. */
static void op_halt(struct agent *a, const struct json *op)
{
	op_revoke(a, op);
	commands_halt(a, MIN(MAX(json_int(op, "grace_ms", HALT_GRACE_MS), (int64_t)0),
			     (int64_t)HALT_MOST_MS));
}

static void op_renew(struct agent *a, const struct json *op)
{
	lease_renew(a, json_int(op, "lease_s", 600));
	lease_report(a);
}

static void op_sync(struct agent *a, const struct json *op)
{
	int turn = (int)MIN(MAX(json_int(op, "turn", 0), (int64_t)0), (int64_t)INT_MAX);
	if (a->sync_pid)
		a->sync_next_turn = turn;
	else
		sync_start(a, turn);
}

static void op_end(struct agent *a, const struct json *op)
{
	stop_work(a);
	end_pod(a, json_text(op, "reason", "the client says so"));
}

static const struct {
	const char *name;
	void (*run)(struct agent *a, const struct json *op);
	bool waits; /* wait for the setup or install that runs */
} ops[] = {
	{"renew", op_renew, false},   {"setup", op_task, true},     {"install", op_task, true},
	{"start", op_start, true},    {"batch", op_batch, false},   {"revoke", op_revoke, false},
	{"handover", op_mode, false}, {"takeover", op_mode, false}, {"end", op_end, false},
	{"sync", op_sync, false},     {"halt", op_halt, false},
};

static void defer_request(struct agent *a, const char *line, size_t len)
{
	struct deferred *d = xcalloc(1, sizeof(*d)), **at = &a->deferred;
	d->line = xstrndup(line, len);
	while (*at)
		at = &(*at)->next;
	*at = d;
}

void obey_request(struct agent *a, const char *line, size_t len)
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
		defer_request(a, line, len);
	else
		ops[i].run(a, op);
	json_free(&doc);
}

void obey_deferred_requests(struct agent *a)
{
	while (a->deferred && !a->task.kind) {
		struct deferred *d = a->deferred, *rest = d->next;
		a->deferred = NULL;
		obey_request(a, d->line, strlen(d->line));
		a->deferred = rest;
		free(d->line);
		free(d);
	}
}

/* ---- connections ---- */

enum { DEAF_MS = 100 };

void client_close(struct client *c)
{
	close_fd(&c->fd);
	str_free(&c->in);
	str_free(&c->out);
	*c = (struct client){.fd = -1};
}

static void client_write(struct client *c)
{
	while (c->fd >= 0 && c->out.len) {
		ssize_t n = write(c->fd, c->out.s, c->out.len);
		if (n <= 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			return client_close(c);
		str_drop(&c->out, (size_t)n);
	}
}

/* Switches the pod to another run. Keeps idle workers and stops unfinished work of the last run.
 * Events start again at 1, in the new run's folder. */
static void switch_run(struct agent *a, const char *run)
{
	if (running_something(a) || a->queue)
		stop_work(a);
	events_sync(a);
	close_fd(&a->events);
	close_fd(&a->dir_fd);
	free(a->run);
	a->run = xstrdup(run);
	a->next = 0;
	a->events_size = 0;
	a->spill.len = 0;
	a->events_dirty = a->detached = false;
	a->log_total = 0;
	bool fine = open_run_folder(a);
	events_open(a);
	if (a->fatal) {
		js_text(event_begin(a, "fatal"), "error", a->fatal_error);
		event_end(a);
	} else if (!fine || a->events < 0) {
		fatal(a, "%s cannot be written", a->place.volume);
	}
}

/* Handles the first line of a connection; anything but `attach` closes it. */
static void client_attach(struct agent *a, struct client *c, const char *line, size_t len)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, line, len);
	int64_t from = json_int(op, "from", 0);
	const char *run = json_text(op, "run", a->run);
	if (strcmp(json_text(op, "op", ""), "attach")) {
		c->closing = true;
	} else {
		if (strcmp(run, a->run) && name_safe(run))
			switch_run(a, run);
		c->attached = c->hello_due = true;
		c->cursor = from < 0 ? 1 : MIN((uint64_t)from + 1, a->next);
	}
	json_free(&doc);
}

/* Obeys the complete lines. Lines behind `attach` wait until the hello is sent. */
static void client_lines(struct agent *a, struct client *c)
{
	size_t from = 0;
	char *nl;
	while (c->fd >= 0 && !c->closing && !c->hello_due && c->in.len > from &&
	       (nl = memchr(c->in.s + from, '\n', c->in.len - from))) {
		const char *line = c->in.s + from;
		size_t len = (size_t)(nl - line);
		from += len + 1;
		if (!c->attached)
			client_attach(a, c, line, len);
		else
			obey_request(a, line, len);
	}
	if (c->fd >= 0)
		str_drop(&c->in, from);
	if (c->in.len > LINE_MAX_BYTES && !memchr(c->in.s, '\n', c->in.len))
		c->closing = true;
}

void client_read(struct client *c)
{
	char part[64 << 10];
	if (c->in.len > 2 * LINE_MAX_BYTES)
		return;
	ssize_t n = read(c->fd, part, sizeof(part));
	if (n > 0)
		str_addn(&c->in, part, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		client_close(c);
}

void client_accept(struct agent *a)
{
	int fd = accept4(a->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			a->deaf_until_ms = now_ms(a) + DEAF_MS; /* else poll() would not wait */
		return;
	}
	client_close(&a->client); /* the new one takes its place */
	a->client = (struct client){.fd = fd};
}

void client_send(struct agent *a)
{
	if (a->client.fd < 0)
		return;
	events_send(a, &a->client);
	client_write(&a->client);
}

void client_turn(struct agent *a)
{
	struct client *c = &a->client;
	if (c->fd < 0)
		return;
	client_lines(a, c);
	if (c->hello_due && (!a->gpu_pid || now_ms(a) > a->gpu_until_ms)) {
		hello_send(a, c);
		client_lines(a, c); /* lines behind `attach` were held back until now */
	}
	client_send(a);
	if (c->fd >= 0 && c->closing)
		client_close(c);
}
