/* value.c - reads a value, as the user or the environment writes it, into a section. */
#include "value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/folders.h"
#include "base/path.h"
#include "base/str.h"

const struct option_spec *value_spec(const struct option_spec *table, const char *key)
{
	for (; table->key; table++)
		if (!strcmp(table->key, key))
			return table;
	return NULL;
}

const char *value_nearest(const struct option_spec *table, const char *more, const char *more2,
			  const char *key)
{
	const char *words[128];
	size_t n = 0;

	if (more)
		words[n++] = more;
	if (more2)
		words[n++] = more2;
	for (; table->key && n < ARRAY_LEN(words) - 1; table++)
		words[n++] = table->key;
	words[n] = NULL;
	return nearest_word(key, words);
}

char *value_wanted(char *to, size_t room, const struct option_spec *spec)
{
	const char *def = spec->def;

	switch (spec->type) {
	case OPTION_TEXT:
		snprintf(to, room, "a string in quotes, like \"%s\"", def ? def : "abc");
		break;
	case OPTION_PATH:
		snprintf(to, room, "a path in quotes, like \"%s\"", def ? def : "folder/file");
		break;
	case OPTION_INT:
		snprintf(to, room, "a whole number, like %s%s", def ? def : "2",
			 spec->flags & OPTION_AUTO ? ", or \"auto\"" : "");
		break;
	case OPTION_DECIMAL: snprintf(to, room, "a number, like %s", def ? def : "0.5"); break;
	case OPTION_BOOL: snprintf(to, room, "true or false"); break;
	case OPTION_DURATION:
		snprintf(to, room, "a duration in quotes, like \"%s\"",
			 def && strcmp(def, "0") ? def : "90s");
		break;
	case OPTION_MONEY:
		snprintf(to, room, "an amount in dollars, like %s", def ? def : "0.69");
		break;
	case OPTION_TEXTS:
		snprintf(to, room, "a list of strings, like [\"%s\", ...]%s", def ? def : "abc",
			 spec->flags & OPTION_AUTO ? ", or \"auto\"" : "");
		break;
	case OPTION_GROUP:
		snprintf(to, room, "a group, like { %s = ...; }", spec->group[0].key);
		break;
	case OPTION_GROUPS:
		snprintf(to, room, "a list of groups, like ({ %s = ...; }, ...)",
			 spec->group[0].key);
		break;
	}
	return to;
}

char *value_path(const char *dir, const char *path)
{
	if (path[0] == '~' && (path[1] == '/' || !path[1])) {
		CLEANUP(free_text) char *home = home_dir();
		if (home)
			return path[1] ? path_join(home, path + 2) : xstrdup(home);
	}
	return path_join(dir, path);
}

static void set_items(struct section *s, const char *key, const char *text, const char *where)
{
	section_clear_items(s, key);
	section_add_item(s, key, NULL, where);
	while (*text) {
		size_t len = strcspn(text, ",");
		const char *from = text, *to = text + len;
		while (from < to && isspace((unsigned char)*from))
			from++;
		while (to > from && isspace((unsigned char)to[-1]))
			to--;
		CLEANUP(free_text) char *item = xstrndup(from, (size_t)(to - from));
		if (*item)
			section_add_item(s, key, item, where);
		text += len + (text[len] == ',');
	}
}

static int check_items(const struct section *s, const char *key, struct err *err)
{
	for (size_t i = 0; i < section_count(s, key); i++)
		if (!strcmp(section_item(s, key, i), VALUE_AUTO))
			return err_set(err, ERR_USAGE,
				       "\"auto\" cannot be combined with other "
				       "values");
	return 0;
}

static int wrong(const struct option_spec *spec, const char *text, struct err *err)
{
	char wanted[160];

	return err_set(err, ERR_USAGE, "\"%.80s\" is not %s", text,
		       value_wanted(wanted, sizeof(wanted), spec));
}

static int set_number(struct section *s, const struct option_spec *spec, const char *text,
		      const char *where, struct err *err)
{
	char *end;

	errno = 0;
	if (spec->type == OPTION_INT) {
		long long value = strtoll(text, &end, 10);
		if (end == text || *end || errno)
			return wrong(spec, text, err);
		section_set_int(s, spec->key, value, where);
		return 0;
	}
	double value = strtod(text, &end);
	if (end == text || *end || !isfinite(value))
		return wrong(spec, text, err);
	section_set_decimal(s, spec->key, value, where);
	return 0;
}

static int set_bool(struct section *s, const struct option_spec *spec, const char *text,
		    const char *where, struct err *err)
{
	bool yes = !strcmp(text, "true") || !strcmp(text, "yes") || !strcmp(text, "1");

	if (!yes && strcmp(text, "false") && strcmp(text, "no") && strcmp(text, "0"))
		return wrong(spec, text, err);
	section_set_bool(s, spec->key, yes, where);
	return 0;
}

static void set_path(struct section *s, const char *key, const char *text, const char *dir,
		     const char *where)
{
	CLEANUP(free_text) char *path = value_path(dir, text);

	section_set_text(s, key, path, where);
}

int value_set(struct section *s, const struct option_spec *spec, const char *text, const char *dir,
	      const char *where, struct err *err)
{
	int64_t number;

	if ((spec->flags & OPTION_AUTO) && !strcmp(text, VALUE_AUTO)) {
		section_unset(s, spec->key);
		return 0;
	}
	switch (spec->type) {
	case OPTION_TEXT: section_set_text(s, spec->key, text, where); return 0;
	case OPTION_PATH: set_path(s, spec->key, text, dir, where); return 0;
	case OPTION_INT:
	case OPTION_DECIMAL: return set_number(s, spec, text, where, err);
	case OPTION_BOOL: return set_bool(s, spec, text, where, err);
	case OPTION_DURATION:
		if (duration_parse(text, &number, err) < 0)
			return -1;
		section_set_int(s, spec->key, number, where);
		return 0;
	case OPTION_MONEY:
		if (money_parse(text, &number, err) < 0)
			return -1;
		section_set_int(s, spec->key, number, where);
		return 0;
	case OPTION_TEXTS:
		set_items(s, spec->key, text, where);
		return spec->flags & OPTION_AUTO ? check_items(s, spec->key, err) : 0;
	case OPTION_GROUP:
	case OPTION_GROUPS: return wrong(spec, text, err);
	}
	return 0;
}
