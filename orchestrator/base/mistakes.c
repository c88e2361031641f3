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

int mistakes_end(const struct mistakes *m, struct err *err)
{
	if (!mistakes_any(m))
		return 0;
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
