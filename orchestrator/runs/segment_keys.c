/* segment_keys.c - keeps the identity of each segment from the run's begin. */
#include "segment_keys.h"

#include <stdlib.h>

#include "base/path.h"
#include "base/str.h"

enum { KEYS_MAX_BYTES = 512 << 20, KEY_CHARS = SHA256_HEX - 1 };

struct run_keys {
	struct str text;   /* lines, each ended by a zero byte */
	const char **list; /* sorted by id */
	size_t count;
};

static const char *id_of(const char *line)
{
	return line + KEY_CHARS + 1;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(id_of(*(const char *const *)a), id_of(*(const char *const *)b));
}

static int split(struct run_keys *keys, struct err *err)
{
	size_t cap = 0, line = 0;

	for (char *at = keys->text.s, *end = at + keys->text.len; at < end;) {
		char *stop = memchr(at, '\n', (size_t)(end - at));
		line++;
		if (!stop || stop - at <= KEY_CHARS + 1 || at[KEY_CHARS] != ' ')
			return err_set(err, ERR_LOCAL, "line %zu is not \"KEY ID\"", line);
		*stop = '\0';
		GROW(keys->list, keys->count, cap);
		keys->list[keys->count++] = at;
		at = stop + 1;
	}
	if (keys->count)
		qsort(keys->list, keys->count, sizeof(*keys->list), by_id);
	return 0;
}

int run_keys_read(struct run_keys **out, const char *run_dir, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(run_dir, "keys");
	struct run_keys *keys = xcalloc(1, sizeof(*keys));

	*out = NULL;
	keys->text = STR_INIT;
	if (path_read(path, KEYS_MAX_BYTES, &keys->text, err) < 0) {
		run_keys_free(keys);
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err);
		return 0;
	}
	if (split(keys, err) < 0) {
		run_keys_free(keys);
		return err_wrap(err, "%s", path);
	}
	*out = keys;
	return 0;
}

void run_keys_free(struct run_keys *keys)
{
	if (!keys)
		return;
	str_free(&keys->text);
	free(keys->list);
	free(keys);
}

static const char *find(const struct run_keys *keys, const char *id)
{
	CLEANUP(free_text) char *wanted = xasprintf("%*s %s", KEY_CHARS, "", id);
	const char *line = wanted;
	const char **found = keys && keys->count ? bsearch(&line, keys->list, keys->count,
							   sizeof(*keys->list), by_id)
						 : NULL;

	return found ? *found : NULL;
}

bool run_keys_fit(const struct run_keys *keys, const struct segment *segment)
{
	const char *line = find(keys, segment->id);

	return !line || !strncmp(line, segment->key, KEY_CHARS);
}

int run_keys_write(const struct run_keys *old, const char *run_dir, const struct segment *segments,
		   size_t count, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(run_dir, "keys");
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; old && i < old->count; i++)
		str_addf(&text, "%s\n", old->list[i]);
	for (size_t i = 0; i < count; i++)
		if (!find(old, segments[i].id))
			str_addf(&text, "%s %s\n", segments[i].key, segments[i].id);
	return path_write(path, str_text(&text), text.len, 0600, err);
}
