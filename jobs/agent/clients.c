/* clients.c - the connections of `attach` to `serve`. */
#include "clients.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "bounds.h"
#include "disk.h"
#include "events.h"
#include "files.h"
#include "hello.h"
#include "json.h"
#include "ops.h"
#include "stop.h"

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
static void run_take(struct agent *a, const char *run)
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
	a->events_dirty = a->detached = a->draining = a->drained = false;
	a->log_total = 0;
	bool fine = run_folder(a);
	events_open(a);
	if (a->fatal) {
		js_text(event_begin(a, "fatal"), "error", a->fatal_error);
		event_end(a);
	} else if (!fine || a->events < 0) {
		fatal(a, "%s cannot be written", a->place.volume);
	}
}

static void client_attach(struct agent *a, struct client *c, const char *line, size_t len)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, line, len);
	int64_t from = json_int(op, "from", 0);
	const char *run = json_text(op, "run", a->run);
	if (strcmp(json_text(op, "op", ""), "attach")) {
		c->closing = true;
	} else {
		struct client *before = attached_client(a);
		if (before)
			client_close(before);
		if (strcmp(run, a->run) && name_safe(run))
			run_take(a, run);
		c->attached = c->hello_due = true;
		c->cursor = from < 0 ? 1 : MIN((uint64_t)from + 1, a->next);
	}
	json_free(&doc);
}

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
			obey(a, line, len);
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
	int slot = -1;
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (a->clients[i].fd < 0)
			slot = i;
	if (slot < 0) { /* drop a client that never sent `attach` */
		for (slot = 0; slot < CLIENTS_MAX - 1 && a->clients[slot].attached; slot++)
			;
		client_close(&a->clients[slot]);
	}
	a->clients[slot] = (struct client){.fd = fd};
}

void client_tell(struct agent *a, struct client *c)
{
	if (c->fd < 0)
		return;
	events_send(a, c);
	client_write(c);
}

void client_turn(struct agent *a, struct client *c)
{
	client_lines(a, c);
	if (c->hello_due && (!a->gpu_pid || now_ms(a) > a->gpu_until_ms)) {
		hello_send(a, c);
		client_lines(a, c); /* lines behind `attach` were held back until now */
	}
	client_tell(a, c);
	if (c->fd >= 0 && c->closing)
		client_close(c);
}
