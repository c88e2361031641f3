/* pause.c - finds "[pause 0.5s]" in a text and cuts the text there. */
#include "pause.h"

#include <ctype.h>
#include <stdlib.h>

#define WORD "[pause"

/* Finds the next pause at or after p, or NULL. *end: behind its bracket. "[pauses]" is text. */
static const char *find_pause_mark(const char *p, const char **end)
{
	for (; (p = strstr(p, WORD)); p++) {
		const char *after = p + strlen(WORD);
		const char *close = strchr(after, ']');
		if (close && (*after == ' ' || *after == ']')) {
			*end = close + 1;
			return p;
		}
	}
	return NULL;
}

/* Seconds of "[pause 0.5s]" or "[pause 500ms]"; negative if invalid. */
static double read_pause_mark(const char *mark, const char *end)
{
	const char *p = mark + strlen(WORD);
	char number[16], *rest;
	size_t len = 0;

	while (*p == ' ')
		p++;
	while ((isdigit((unsigned char)p[len]) || p[len] == '.') && len < sizeof(number) - 1)
		len++;
	memcpy(number, p, len);
	number[len] = '\0';
	double value = strtod(number, &rest);
	if (!len || *rest)
		return -1;
	p += len;
	while (*p == ' ')
		p++;
	double unit = !strncmp(p, "ms", 2) ? 0.001 : *p == 's' ? 1 : -1;
	p += unit == 1 ? 1 : 2;
	while (unit > 0 && p < end && *p == ' ')
		p++;
	return unit > 0 && p == end - 1 && value * unit <= PAUSE_MOST_S ? value * unit : -1;
}

static struct pause_part part_of(const char *from, const char *to, double before_s)
{
	while (from < to && *from == ' ')
		from++;
	while (to > from && to[-1] == ' ')
		to--;
	return (struct pause_part){from, (size_t)(to - from), before_s};
}

size_t pause_parts(const char *text, struct pause_part **out, const char **bad, size_t *bad_len)
{
	struct pause_part *list = NULL;
	size_t count = 0, cap = 0;
	const char *mark, *end;
	double before_s = 0;

	*bad = NULL;
	while ((mark = find_pause_mark(text, &end))) {
		double seconds = read_pause_mark(mark, end);
		if (seconds < 0 && !*bad) {
			*bad = mark;
			*bad_len = (size_t)(end - mark);
		}
		GROW(list, count, cap);
		list[count++] = part_of(text, mark, before_s);
		before_s = MAX(seconds, 0);
		text = end;
	}
	GROW(list, count, cap);
	list[count++] = part_of(text, text + strlen(text), before_s);
	*out = list;
	return count;
}
