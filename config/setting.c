/* setting.c - a value as libconfig, the user or the environment writes it, and as burst.cfg
 * writes it */
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

/* ---- write ----
 * Writes a text in burst.cfg's syntax. */

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

/* ---- value ----
 * Reads a value, as the user or the environment writes it, into a section. */

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

/* ---- setting ----
 * Turns a setting of libconfig's tree into a value of a section, checked against its key table.
 */

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .:-"

char *setting_where(const struct source *source, const config_setting_t *setting)
{
	return xasprintf("%s:%u", source->shown, config_setting_source_line(setting));
}

int setting_complain(const struct place *at, const config_setting_t *setting, struct err *err,
		     const char *fmt, ...)
{
	char what[320];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(err, ERR_CONFIG, "%s:%u: %s", at->source->shown,
		       config_setting_source_line(setting), what);
}

const char *setting_name(const config_setting_t *setting)
{
	const char *name = config_setting_name(setting);

	return name ? name : "";
}

char *setting_found(const struct place *at, char *to, size_t room, const config_setting_t *setting)
{
	bool elsewhere = at->source->elsewhere;
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *s;

	switch (config_setting_type(setting)) {
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		snprintf(to, room, "the number %lld", config_setting_get_int64(setting));
		break;
	case CONFIG_TYPE_FLOAT:
		snprintf(to, room, "the number %g", config_setting_get_float(setting));
		break;
	case CONFIG_TYPE_BOOL:
		snprintf(to, room, "%s", config_setting_get_bool(setting) ? "true" : "false");
		break;
	case CONFIG_TYPE_STRING:
		s = config_setting_get_string(setting);
		str_add_printable(&text, s, strlen(s), 40);
		if (elsewhere)
			snprintf(to, room, "a string");
		else
			snprintf(to, room, "the string \"%s\"", str_text(&text));
		break;
	case CONFIG_TYPE_GROUP: snprintf(to, room, "a group"); break;
	default: snprintf(to, room, "a list");
	}
	return to;
}

static int wrong_type(const struct place *at, const config_setting_t *setting,
		      const struct option_spec *spec, struct err *err)
{
	char is[200], wanted[160];

	return setting_complain(at, setting, err, "%s%s must be %s; found %s", at->path, spec->key,
				value_wanted(wanted, sizeof(wanted), spec),
				setting_found(at, is, sizeof(is), setting));
}

static bool is_integer(const config_setting_t *setting)
{
	int type = config_setting_type(setting);

	return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
}

static bool is_number(const config_setting_t *setting)
{
	return is_integer(setting) || (config_setting_type(setting) == CONFIG_TYPE_FLOAT &&
				       isfinite(config_setting_get_float(setting)));
}

static double number_of(const config_setting_t *setting)
{
	return is_integer(setting) ? (double)config_setting_get_int64(setting)
				   : config_setting_get_float(setting);
}

const char *setting_text(const config_setting_t *setting)
{
	return config_setting_type(setting) == CONFIG_TYPE_STRING
		       ? config_setting_get_string(setting)
		       : NULL;
}

static int read_items(const struct place *at, const config_setting_t *setting, struct section *s,
		      const struct option_spec *spec, const char *where, struct err *err)
{
	const char *only = setting_text(setting);
	int type = config_setting_type(setting);

	section_clear_items(s, spec->key);
	if (only) {
		section_add_item(s, spec->key, only, where);
		return 0;
	}
	if (type != CONFIG_TYPE_ARRAY && type != CONFIG_TYPE_LIST)
		return wrong_type(at, setting, spec, err);
	section_add_item(s, spec->key, NULL, where);
	for (int i = 0; i < config_setting_length(setting); i++) {
		const config_setting_t *element = config_setting_get_elem(setting, (unsigned)i);
		char is[200];
		if (!setting_text(element))
			return setting_complain(
				at, element, err,
				"%s%s: entry %d is %s; it must be a string in quotes", at->path,
				spec->key, i + 1, setting_found(at, is, sizeof(is), element));
		if ((spec->flags & OPTION_AUTO) && !strcmp(setting_text(element), VALUE_AUTO))
			return setting_complain(
				at, element, err,
				"%s%s: \"auto\" cannot be combined with other values", at->path,
				spec->key);
		section_add_item(s, spec->key, setting_text(element), where);
	}
	return 0;
}

static int read_money(const struct place *at, const config_setting_t *setting, struct section *s,
		      const struct option_spec *spec, const char *where, struct err *err)
{
	if (!is_number(setting))
		return wrong_type(at, setting, spec, err);
	double dollars = number_of(setting);
	if (dollars < 0 || dollars > 1e9)
		return setting_complain(at, setting, err, "%s%s: %g is not an amount in dollars",
					at->path, spec->key, dollars);
	section_set_int(s, spec->key, (int64_t)(dollars * 1e6 + 0.5), where);
	return 0;
}

/* The value is in quotes already: report what is wrong with the text inside. */
static int wrong_duration(const struct place *at, const config_setting_t *setting,
			  const struct option_spec *spec, const struct err *why, struct err *err)
{
	const char *text = setting_text(setting);

	if (at->source->elsewhere || strspn(text, PLAIN) < strlen(text) || strlen(text) > 40)
		return wrong_type(at, setting, spec, err);
	return setting_complain(at, setting, err, "%s%s: %s", at->path, spec->key, why->msg);
}

static int read_text(const struct place *at, const config_setting_t *setting, struct section *s,
		     const struct option_spec *spec, const char *where, struct err *err)
{
	struct err why = {0};

	if (!setting_text(setting))
		return wrong_type(at, setting, spec, err);
	if (value_set(s, spec, setting_text(setting), at->source->dir, where, &why) < 0)
		return wrong_duration(at, setting, spec, &why, err);
	return 0;
}

static int read_inner(const struct place *at, const config_setting_t *setting, struct section *s,
		      const struct option_spec *spec, const char *where, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s.", at->path, spec->key);
	struct place inner = {at->source, path};

	if (config_setting_type(setting) != CONFIG_TYPE_GROUP)
		return wrong_type(at, setting, spec, err);
	return setting_read_group(&inner, setting, section_set_group(s, spec->key, where), err);
}

static int read_groups(const struct place *at, const config_setting_t *setting, struct section *s,
		       const struct option_spec *spec, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s.", at->path, spec->key);
	struct place inner = {at->source, path};
	bool one = config_setting_is_group(setting);
	int count = one ? 1 : config_setting_length(setting);

	if (!config_setting_is_aggregate(setting))
		return wrong_type(at, setting, spec, err);
	section_clear_items(s, spec->key);
	for (int i = 0; i < count; i++) {
		const config_setting_t *element =
			one ? setting : config_setting_get_elem(setting, (unsigned)i);
		CLEANUP(free_text) char *there = setting_where(at->source, element);
		if (!config_setting_is_group(element))
			return wrong_type(at, element, spec, err);
		struct section *group = section_add_group(s, spec->key, there);
		if (setting_read_group(&inner, element, group, err) < 0)
			return -1;
	}
	return 0;
}

/* "auto", or ["auto"] */
static bool is_auto(const config_setting_t *setting)
{
	if (config_setting_is_aggregate(setting) && !config_setting_is_group(setting) &&
	    config_setting_length(setting) == 1)
		setting = config_setting_get_elem(setting, 0);
	return setting_text(setting) && !strcmp(setting_text(setting), VALUE_AUTO);
}

int setting_read(const struct place *at, const config_setting_t *setting, struct section *s,
		 const struct option_spec *spec, struct err *err)
{
	CLEANUP(free_text) char *where = setting_where(at->source, setting);

	if ((spec->flags & OPTION_AUTO) && is_auto(setting)) {
		section_unset(s, spec->key); /* also a value from an earlier file */
		return 0;
	}
	switch (spec->type) {
	case OPTION_TEXT:
	case OPTION_PATH:
	case OPTION_DURATION: return read_text(at, setting, s, spec, where, err);
	case OPTION_INT:
		if (!is_integer(setting))
			return wrong_type(at, setting, spec, err);
		section_set_int(s, spec->key, config_setting_get_int64(setting), where);
		return 0;
	case OPTION_DECIMAL:
		if (!is_number(setting))
			return wrong_type(at, setting, spec, err);
		section_set_decimal(s, spec->key, number_of(setting), where);
		return 0;
	case OPTION_BOOL:
		if (config_setting_type(setting) != CONFIG_TYPE_BOOL)
			return wrong_type(at, setting, spec, err);
		section_set_bool(s, spec->key, config_setting_get_bool(setting), where);
		return 0;
	case OPTION_MONEY: return read_money(at, setting, s, spec, where, err);
	case OPTION_TEXTS: return read_items(at, setting, s, spec, where, err);
	case OPTION_GROUP: return read_inner(at, setting, s, spec, where, err);
	case OPTION_GROUPS: return read_groups(at, setting, s, spec, err);
	}
	return 0;
}

static void warn_of_open_key(const struct place *at, const config_setting_t *setting)
{
	log_line(LOG_WARN,
		 "%s:%u: %s%s is a secret, and other users can read this file: chmod "
		 "600 %s",
		 at->source->shown, config_setting_source_line(setting), at->path,
		 setting_name(setting), at->source->shown);
}

int setting_note(const struct place *at, const char *key, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s", at->path, key);

	return mistakes_note(at->source->mistakes, path, err);
}

int setting_unknown(const struct place *at, const config_setting_t *setting, const char *near,
		    struct err *err)
{
	if (near)
		return setting_complain(at, setting, err,
					"unknown key \"%s%.60s\", did you mean \"%s\"?", at->path,
					setting_name(setting), near);
	return setting_complain(at, setting, err, "unknown key \"%s%.60s\"", at->path,
				setting_name(setting));
}

int setting_check_trust(const struct place *at, const config_setting_t *setting,
			const struct option_spec *spec, struct err *err)
{
	if (at->source->trusted || !(spec->flags & (OPTION_USER_ONLY | OPTION_SECRET)))
		return 0;
	return setting_complain(
		at, setting, err,
		"%s%s is allowed only in your own %s: a project must not run commands "
		"here, redirect keys or grant itself access",
		at->path, spec->key, at->source->user_shown);
}

int setting_want_group(const struct place *at, const config_setting_t *setting, const char *example,
		       struct err *err)
{
	char is[200];

	if (config_setting_type(setting) == CONFIG_TYPE_GROUP)
		return 0;
	return setting_complain(at, setting, err, "%s%s must be a group, like %s; found %s",
				at->path, setting_name(setting), example,
				setting_found(at, is, sizeof(is), setting));
}

int setting_read_group(const struct place *at, const config_setting_t *group, struct section *s,
		       struct err *err)
{
	const struct option_spec *table = section_table(s);

	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		const struct option_spec *spec = value_spec(table, setting_name(setting));
		if (!spec) {
			const char *near = value_nearest(table, NULL, NULL, setting_name(setting));
			setting_unknown(at, setting, near, err);
			if (setting_note(at, near ? near : "", err) < 0)
				return -1;
			continue;
		}
		if ((setting_check_trust(at, setting, spec, err) < 0 ||
		     setting_read(at, setting, s, spec, err) < 0) &&
		    setting_note(at, spec->key, err) < 0)
			return -1;
		if ((spec->flags & OPTION_SECRET) && at->source->open_to_others)
			warn_of_open_key(at, setting);
	}
	return 0;
}
