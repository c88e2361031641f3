/* events.c - the numbered log of events, and program output as log events. */
#include "agent.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "files.h"
#include "json.h"

enum {
	/* read more events from the file while fewer bytes than this are unsent */
	OUT_LOW = 256 << 10,
	OUT_MAX = 4 << 20,
};

int64_t now_ms(const struct agent *a)
{
	return clock_boot_ms() - a->began_ms;
}

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

/* Returns -1 with errno, also if the file was closed after a failure. */
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
	struct client *c = &a->client;
	return c->fd >= 0 && c->attached && !c->closing ? c : NULL;
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

/* ---- program output, line by line, within limits per second and in total ---- */

enum {
	LOG_LINE_MAX = 4096,
	LOG_BYTES_PER_S = 64 << 10,
	LOG_EVENTS_MAX = 64 << 20, /* of all log events together */
};

static void log_flush_dropped(struct agent *a)
{
	if (!a->log_dropped)
		return;
	char line[80];
	snprintf(line, sizeof(line), "(%ld lines were not kept)", a->log_dropped);
	a->log_dropped = 0;
	js_text(event_begin(a, "log"), "line", line);
	event_end(a);
}

/* Returns false, and counts the line as dropped, if the log must not grow by len bytes now. */
static bool log_room(struct agent *a, size_t len)
{
	int64_t second = now_ms(a) / 1000;
	if (second != a->log_second) {
		a->log_second = second;
		a->log_bytes = 0;
		log_flush_dropped(a);
	}
	if (a->log_bytes + (int64_t)len > LOG_BYTES_PER_S || a->log_total > LOG_EVENTS_MAX) {
		a->log_dropped++;
		return false;
	}
	a->log_bytes += (int64_t)len;
	a->log_total += (int64_t)len;
	return true;
}

const char *last_shown_state(const char *line, size_t *len)
{
	while (*len && (line[*len - 1] == '\r' || line[*len - 1] == '\n'))
		--*len;
	const char *cr = *len ? memrchr(line, '\r', *len) : NULL;
	if (!cr)
		return line;
	*len -= (size_t)(cr + 1 - line);
	return cr + 1;
}

void event_log(struct agent *a, int w, const char *id, const char *line, size_t len)
{
	line = last_shown_state(line, &len);
	len = MIN(len, (size_t)LOG_LINE_MAX);
	if (!len || !log_room(a, len + 48))
		return;
	struct str *b = event_begin(a, "log");
	if (id)
		js_text(b, "id", id);
	else if (w >= 0)
		js_int(b, "w", w);
	js_textn(b, "line", line, len);
	event_end(a);
}

void drop_overwritten(struct str *b, size_t most)
{
	const char *cr = b->len > most ? memrchr(b->s, '\r', b->len - 1) : NULL;
	if (cr)
		str_drop(b, (size_t)(cr - b->s));
}

void log_lines(struct agent *a, struct str *b, bool *skipping, int w, const char *id)
{
	size_t from = 0;
	const char *nl;
	while (b->len && (nl = memchr(b->s + from, '\n', b->len - from))) {
		if (!*skipping)
			event_log(a, w, id, b->s + from, (size_t)(nl - b->s) - from);
		*skipping = false;
		from = (size_t)(nl - b->s) + 1;
	}
	str_drop(b, from);
	drop_overwritten(b, 4 * LOG_LINE_MAX);
	if (b->len > 4 * LOG_LINE_MAX) {
		if (!*skipping)
			event_log(a, w, id, b->s, b->len);
		*skipping = true;
		b->len = 0;
	}
}

void keep_tail(char *tail, size_t room, const char *bytes, size_t len)
{
	size_t have = strlen(tail);
	if (len >= room) {
		bytes += len - room + 1;
		len = room - 1;
	}
	size_t drop = have + len > room - 1 ? have + len - (room - 1) : 0;
	memmove(tail, tail + drop, have - drop);
	memcpy(tail + have - drop, bytes, len);
	tail[have - drop + len] = 0;
	for (char *p = tail; p < tail + have - drop + len; p++)
		if (!*p)
			*p = ' ';
}

const char *last_line(char *tail)
{
	size_t len = strlen(tail);
	while (len && isspace((unsigned char)tail[len - 1]))
		tail[--len] = 0;
	char *nl = strrchr(tail, '\n');
	return nl ? nl + 1 : tail;
}
