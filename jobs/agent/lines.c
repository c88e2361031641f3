/* lines.c - turns program output into log events, line by line, within limits per second and in
 * total. */
#include "lines.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "events.h"
#include "json.h"

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

const char *last_state(const char *line, size_t *len)
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
	line = last_state(line, &len);
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

void written_over(struct str *b, size_t most)
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
	written_over(b, 4 * LOG_LINE_MAX);
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

void note_line(struct agent *a, char *result)
{
	char *line = strchr(result, '\n');
	if (!line)
		return;
	*line++ = 0;
	event_log(a, -1, NULL, line, strlen(line));
}
