/* value.c - values as the user, a flag or the environment writes them, and as burst.cfg has them */
#include "state.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/folders.h"
#include "base/path.h"
#include "base/str.h"

/* ---- write ---- */

void config_quote(struct str *to, const char *text)
{
	str_addc(to, '"');
	for (; *text; text++) {
		if (*text == '\n') {
			str_add(to, "\\n");
			continue;
		}
		if (*text == '"' || *text == '\\')
			str_addc(to, '\\');
		str_addc(to, *text);
	}
	str_addc(to, '"');
}

void config_add_duration(struct str *to, int64_t ms)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	size_t i = 0;

	while (ms % units[i].ms)
		i++;
	str_addf(to, "\"%lld%s\"", (long long)(ms / units[i].ms), ms ? units[i].unit : "s");
}

/* ---- value ---- */

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

const struct value_type value_types[] = {
	[OPTION_TEXT] = {"text", "a string in quotes", "\"", "abc", "\"", "\"\""},
	[OPTION_PATH] = {"path", "a path in quotes", "\"", "folder/file", "\"", "\"\""},
	[OPTION_INT] = {"whole number", "a whole number", "", "2", "", "1"},
	[OPTION_DECIMAL] = {"number", "a number", "", "0.5", "", "1.00"},
	[OPTION_BOOL] = {"true or false", "true or false", "", NULL, "", "false"},
	[OPTION_DURATION] = {"duration", "a duration in quotes", "\"", "90s", "\"", "\"0s\""},
	[OPTION_MONEY] = {"dollars", "an amount in dollars", "", "0.69", "", "1.00"},
	[OPTION_TEXTS] = {"list of texts", "a list of strings", "[\"", "abc", "\"]", "[]"},
	[OPTION_GROUP] = {"group", "a group", "{ ", NULL, " = ...; }", "{}"},
	[OPTION_GROUPS] = {"list of groups", "a list of groups", "({ ", NULL, " = ...; }, ...)",
			   "()"},
};

char *value_wanted(char *to, size_t room, const struct option_spec *spec)
{
	const struct value_type *type = &value_types[spec->type];
	const char *like = spec->group                           ? spec->group[0].key
			   : spec->def && strcmp(spec->def, "0") ? spec->def
								 : type->example;

	if (spec->type == OPTION_BOOL)
		snprintf(to, room, "%s", type->wanted);
	else
		snprintf(to, room, "%s, like %s%s%s%s", type->wanted, type->before, like,
			 type->behind, spec->flags & OPTION_AUTO ? ", or \"auto\"" : "");
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

/* Replaces the list by the items of a text with commas. Blanks around an item do not count. */
static void set_comma_list(struct section *s, const char *key, const char *text, const char *where)
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

/* "auto" has its meaning only as the whole value. */
static int check_no_auto(const struct section *s, const char *key, struct err *err)
{
	return section_has_item(s, key, VALUE_AUTO)
		       ? err_set(err, ERR_USAGE, "\"auto\" cannot be combined with other values")
		       : 0;
}

static int err_unlike_type(const struct option_spec *spec, const char *text, struct err *err)
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
			return err_unlike_type(spec, text, err);
		section_set_int(s, spec->key, value, where);
		return 0;
	}
	double value = strtod(text, &end);
	if (end == text || *end || !isfinite(value))
		return err_unlike_type(spec, text, err);
	section_set_decimal(s, spec->key, value, where);
	return 0;
}

static int set_bool(struct section *s, const struct option_spec *spec, const char *text,
		    const char *where, struct err *err)
{
	bool yes = !strcmp(text, "true") || !strcmp(text, "yes") || !strcmp(text, "1");

	if (!yes && strcmp(text, "false") && strcmp(text, "no") && strcmp(text, "0"))
		return err_unlike_type(spec, text, err);
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
		set_comma_list(s, spec->key, text, where);
		return spec->flags & OPTION_AUTO ? check_no_auto(s, spec->key, err) : 0;
	case OPTION_GROUP:
	case OPTION_GROUPS: return err_unlike_type(spec, text, err);
	}
	return 0;
}
