/* mistakes.c - collects all mistakes of one file. */
#include "mistakes.h"

#include <stdlib.h>

enum { LISTED_MOST = 50 };

static bool is_noted(const struct mistakes *m, const char *msg)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->list[i].err.msg, msg))
			return true;
	return false;
}

int mistakes_note(struct mistakes *m, const char *key, struct err *err)
{
	if (!m)
		return -1;
	if (m->count >= LISTED_MOST) {
		m->more++;
	} else if (!is_noted(m, err->msg)) {
		GROW(m->list, m->count, m->cap);
		m->list[m->count++] = (struct mistake){*err, key ? xstrdup(key) : NULL};
	}
	err_clear(err);
	return 0;
}

bool mistakes_about(const struct mistakes *m, const char *key)
{
	for (size_t i = 0; m && i < m->count; i++)
		if (m->list[i].key && !strcmp(m->list[i].key, key))
			return true;
	return false;
}

bool mistakes_any(const struct mistakes *m)
{
	return m && m->count;
}

/* The line of "burst.cfg:12: ..." when both are of one file, else 0. */
static long line_of(const struct mistake *m, const struct mistake *other)
{
	size_t file = strcspn(m->err.msg, ":");

	if (m->err.msg[file] != ':' || strncmp(m->err.msg, other->err.msg, file + 1))
		return 0;
	return strtol(m->err.msg + file + 1, NULL, 10);
}

/* Sorts by line: readers find mistakes key by key, but users correct a file from top to bottom.
 * Mistakes of other files keep their place. */
static void sort_mistakes(struct mistakes *m)
{
	for (size_t i = 1; i < m->count; i++)
		for (size_t k = i; k > 0; k--) {
			struct mistake *a = &m->list[k - 1], *b = &m->list[k], swap = *a;
			if (line_of(a, b) <= line_of(b, a))
				break;
			*a = *b;
			*b = swap;
		}
}

int mistakes_end(struct mistakes *m, struct err *err)
{
	if (!mistakes_any(m))
		return 0;
	sort_mistakes(m);
	*err = m->list[0].err;
	return -1;
}

void mistakes_move(struct mistakes *m, struct mistakes *from)
{
	for (size_t i = 0; i < from->count; i++)
		mistakes_note(m, from->list[i].key, &from->list[i].err);
	m->more += from->more;
	mistakes_free(from);
}

void mistakes_free(struct mistakes *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->list[i].key);
	free(m->list);
	*m = (struct mistakes){0};
}
