/* events.c - events: numbered ones are kept in P/events.jsonl and sent from there; the others go
 * only to the attached client. */
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds.h"
#include "files.h"
#include "json.h"

enum {
	/* read more events from the file while fewer bytes than this are unsent */
	OUT_LOW = 256 << 10,
	OUT_MAX = 4 << 20,
};

void events_index(struct agent *a, off_t offset)
{
	if (a->next == a->offsets_cap) {
		a->offsets_cap = a->offsets_cap ? a->offsets_cap * 2 : 256;
		a->offsets = xrealloc(a->offsets, a->offsets_cap * sizeof(off_t));
	}
	a->offsets[a->next++] = offset;
}

void events_open(struct agent *a)
{
	events_index(a, 0);
	a->events =
		openat(a->dir_fd, "events.jsonl", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (a->events < 0)
		return;
	char *part = xcalloc(1, SLICE);
	off_t at = 0, line = 0;
	ssize_t n;
	while ((n = pread(a->events, part, SLICE, at)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (part[i] == '\n') {
				events_index(a, line);
				line = at + i + 1;
			}
		at += n;
	}
	free(part);
	a->events_size = line;
	if (ftruncate(a->events, line) < 0)
		close_fd(&a->events);
}

void events_sync(struct agent *a)
{
	if (a->events >= 0 && a->events_dirty)
		fdatasync(a->events);
	a->events_dirty = false;
}

struct str *event_begin(struct agent *a, const char *name)
{
	a->text.len = 0;
	str_addf(&a->text, "{\"n\":%llu,\"t\":%lld", (unsigned long long)a->next,
		 (long long)now_ms(a));
	js_text(&a->text, "ev", name);
	return &a->text;
}

static int events_append(struct agent *a)
{
	size_t done = 0;
	while (a->events >= 0 && done < a->text.len) {
		ssize_t n = pwrite(a->events, a->text.s + done, a->text.len - done,
				   a->events_size + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return a->events >= 0 ? 0 : -1;
}

void event_end(struct agent *a)
{
	str_add(&a->text, "}\n");
	if (events_append(a) == 0) {
		events_index(a, a->events_size);
		a->events_size += (off_t)a->text.len;
		a->events_dirty = true;
		return;
	}
	/* the volume accepts no more, so events stay in memory and this pod's work ends */
	int saved = errno;
	bool first = a->events >= 0;
	if (first && ftruncate(a->events, a->events_size) < 0)
		saved = errno;
	close_fd(&a->events);
	events_index(a, -1 - (off_t)a->spill.len);
	str_addn(&a->spill, a->text.s, a->text.len);
	if (first)
		fatal(a, "the event log cannot be written: %s", strerror(saved));
}

struct client *attached_client(struct agent *a)
{
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (a->clients[i].fd >= 0 && a->clients[i].attached && !a->clients[i].closing)
			return &a->clients[i];
	return NULL;
}

struct str *notice_begin(struct agent *a, const char *name)
{
	a->text.len = 0;
	str_addf(&a->text, "{\"t\":%lld", (long long)now_ms(a));
	js_text(&a->text, "ev", name);
	return &a->text;
}

void notice_end(struct agent *a)
{
	struct client *c = attached_client(a);
	str_add(&a->text, "}\n");
	if (c && !c->hello_due && c->out.len < OUT_MAX)
		str_addn(&c->out, a->text.s, a->text.len);
}

void notice_error(struct agent *a, const char *error)
{
	js_text(notice_begin(a, "error"), "error", error);
	notice_end(a);
}

void events_send(struct agent *a, struct client *c)
{
	while (c->attached && !c->hello_due && c->out.len < OUT_LOW && c->cursor < a->next) {
		off_t at = a->offsets[c->cursor];
		if (at < 0) {
			const char *line = a->spill.s + (-1 - at);
			str_addn(&c->out, line, (size_t)(strchr(line, '\n') + 1 - line));
			c->cursor++;
			continue;
		}
		/* read consecutive lines of the file at once */
		uint64_t upto = c->cursor + 1;
		while (upto < a->next && a->offsets[upto] >= 0 && a->offsets[upto] - at < OUT_LOW)
			upto++;
		off_t end =
			upto < a->next && a->offsets[upto] >= 0 ? a->offsets[upto] : a->events_size;
		size_t len = (size_t)(end - at);
		int fd = a->events >= 0 ? dup(a->events)
					: openat(a->dir_fd, "events.jsonl", O_RDONLY | O_CLOEXEC);
		char *lines = xmalloc(len);
		ssize_t n = fd < 0 ? -1 : pread(fd, lines, len, at);
		close_fd(&fd);
		if (n == (ssize_t)len)
			str_addn(&c->out, lines, len);
		else
			c->closing = true; /* the volume cannot return what it accepted */
		free(lines);
		if (c->closing)
			return;
		c->cursor = upto;
	}
}

void fatal(struct agent *a, const char *fmt, ...)
{
	if (a->fatal)
		return;
	a->fatal = true;
	va_list args;
	char error[400];
	va_start(args, fmt);
	vsnprintf(error, sizeof(error), fmt, args);
	va_end(args);
	js_text(event_begin(a, "fatal"), "error", error);
	event_end(a);
	/* callers still use what a stop would free, so the loop stops the work later */
	snprintf(a->fatal_error, sizeof(a->fatal_error), "%s", error);
	a->stop_due = true;
}
