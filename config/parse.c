/* parse.c - reads the text of a config into sections: what libconfig accepts without a warning, its
 * parser, the tables of keys */
#include "state.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file_kind.h"
#include "base/path.h"
#include "base/str.h"
#include "config.h"

/* ---- state ----
 * What all files that read a config ask of it. */

struct account *config_find_account(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->account_count; i++)
		if (!strcmp(c->accounts[i].ops->name, name))
			return &c->accounts[i];
	return NULL;
}

int config_mistake(const struct config *c, struct err *err)
{
	if (!c->lenient)
		return -1;
	log_line(LOG_WARN, "%s; continuing without it", err->msg);
	err_clear(err);
	return 0;
}

int config_no_provider(const struct config *c, const char *before, const char *name,
		       struct err *err)
{
	CLEANUP(str_free) struct str there = STR_INIT;
	const char *names[64];
	size_t n = MIN(c->account_count, ARRAY_LEN(names) - 1);

	for (size_t i = 0; i < n; i++) {
		names[i] = c->accounts[i].ops->name;
		str_addf(&there, "%s%s", i ? ", " : "", names[i]);
	}
	names[n] = NULL;
	const char *near = nearest_word(name, names);
	if (near)
		return err_set(err, ERR_CONFIG,
			       "%s: unknown provider \"%.40s\", did you mean "
			       "\"%s\"?",
			       before, name, near);
	return err_set(err, ERR_CONFIG,
		       "%s: unknown provider \"%.40s\" (known: %s; BURST_PROVIDER_PATH adds "
		       "others)",
		       before, name, str_text(&there));
}

/* ---- scan ----
 * Finds in a config's text what libconfig accepts without a warning. */

struct scan {
	const char *at, *end; /* the text is NUL-terminated at end */
	const char *shown;
	int line;
	struct err *err;
};

static int complain(const struct scan *s, int line, const char *what)
{
	return err_set(s->err, ERR_CONFIG, "%s:%d: %s", s->shown, line, what);
}

static void step(struct scan *s, size_t n)
{
	for (; n && s->at < s->end; n--)
		if (*s->at++ == '\n')
			s->line++;
}

static int check_bytes(struct scan *s)
{
	while (s->at < s->end) {
		size_t n = utf8_sequence((const unsigned char *)s->at, (size_t)(s->end - s->at));
		if (!n)
			return complain(s, s->line, "a byte that is not UTF-8");
		if (!*s->at)
			return complain(s, s->line, "a NUL byte: not a text file");
		step(s, n);
	}
	return 0;
}

/* libconfig obeys @include only at the start of a line. */
static int check_include(struct scan *s)
{
	const char *start;
	size_t len;

	for (int line = 1; (start = bytes_next_line(&s->at, s->end, &len)); line++)
		if (starts_with(start + strspn(start, " \t"), "@include"))
			return complain(s, line,
					"@include is not supported: write the settings in this "
					"file");
	return 0;
}

static int skip_string(struct scan *s)
{
	int began = s->line;

	for (step(s, 1); s->at < s->end && *s->at != '"';)
		step(s, *s->at == '\\' ? 2 : 1);
	if (s->at == s->end)
		return complain(s, began, "this string has no closing quote");
	step(s, 1);
	return 0;
}

static int skip_long_comment(struct scan *s)
{
	int began = s->line;
	const char *close = strstr(s->at + 2, "*/");

	if (!close)
		return complain(s, began, "this comment is never closed");
	step(s, (size_t)(close + 2 - s->at));
	return 0;
}

/* Whether libconfig can hold the number; it would cut a larger one without an error. */
static bool fits(const char *number, size_t len)
{
	CLEANUP(free_text) char *text = xstrndup(number, len);
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	bool real = !hex && strpbrk(text, ".eE");
	size_t n = strlen(text);

	errno = 0;
	if (real)
		return isfinite(strtod(text, NULL));
	if (text[n - 1] == 'L') {
		strtoull(text, NULL, 0);
		return errno == 0;
	}
	unsigned long long value = hex ? strtoull(text, NULL, 16) : strtoull(text, NULL, 10);
	return errno == 0 && value <= (hex ? 0xffffffffULL : 0x7fffffffULL);
}

static int check_number(struct scan *s)
{
	const char *p = s->at;

	while (isalnum((unsigned char)*p) || *p == '.' ||
	       ((*p == '+' || *p == '-') && strchr("eE", p[-1])))
		p++;
	size_t len = (size_t)(p - s->at);
	if (!fits(s->at, len))
		return err_set(s->err, ERR_CONFIG, "%s:%d: the number %.*s is too large", s->shown,
			       s->line, (int)MIN(len, 40), s->at);
	step(s, len);
	return 0;
}

static int check_token(struct scan *s)
{
	unsigned char c = (unsigned char)*s->at;

	if (c == '"')
		return skip_string(s);
	if (starts_with(s->at, "/*"))
		return skip_long_comment(s);
	if (c == '#' || starts_with(s->at, "//"))
		step(s, strcspn(s->at, "\n"));
	else if (isalpha(c) || c == '*')
		step(s, MAX(strspn(s->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123"
					  "456789-_*"),
			    1));
	else if (isdigit(c))
		return check_number(s);
	else
		step(s, 1);
	return 0;
}

/* ERR_CONFIG with "shown:line: ..." */
static int scan_text(const char *text, size_t len, const char *shown, struct err *err)
{
	struct scan s = {.at = text, .end = text + len, .shown = shown, .line = 1, .err = err};

	if (check_bytes(&s) < 0)
		return -1;
	s.at = text;
	if (check_include(&s) < 0)
		return -1;
	s.at = text;
	s.line = 1;
	while (s.at < s.end)
		if (check_token(&s) < 0)
			return -1;
	return 0;
}

/* ---- setting ----
 * Turns a setting of libconfig's tree into a value of a section, checked against its key table.
 */

struct place { /* Place of a key, for messages. path is its group's: "caps." */
	const struct source *source;
	const char *path;
};

static int setting_read_group(const struct place *at, const config_setting_t *group,
			      struct section *s, struct err *err);

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .:-"

static char *setting_where(const struct source *source, const config_setting_t *setting)
{
	return xasprintf("%s:%u", source->shown, config_setting_source_line(setting));
}

static int setting_complain(const struct place *at, const config_setting_t *setting,
			    struct err *err, const char *fmt, ...) PRINTF(4, 5);
static int setting_complain(const struct place *at, const config_setting_t *setting,
			    struct err *err, const char *fmt, ...)
{
	char what[320];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(err, ERR_CONFIG, "%s:%u: %s", at->source->shown,
		       config_setting_source_line(setting), what);
}

static const char *setting_name(const config_setting_t *setting)
{
	const char *name = config_setting_name(setting);

	return name ? name : "";
}

static char *setting_found(const struct place *at, char *to, size_t room,
			   const config_setting_t *setting)
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

static const char *setting_text(const config_setting_t *setting)
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

static int setting_read(const struct place *at, const config_setting_t *setting, struct section *s,
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

static int setting_note(const struct place *at, const char *key, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s", at->path, key);

	return mistakes_note(at->source->mistakes, path, err);
}

static int setting_unknown(const struct place *at, const config_setting_t *setting,
			   const char *near, struct err *err)
{
	if (near)
		return setting_complain(at, setting, err,
					"unknown key \"%s%.60s\", did you mean \"%s\"?", at->path,
					setting_name(setting), near);
	return setting_complain(at, setting, err, "unknown key \"%s%.60s\"", at->path,
				setting_name(setting));
}

static int setting_check_trust(const struct place *at, const config_setting_t *setting,
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

static int setting_want_group(const struct place *at, const config_setting_t *setting,
			      const char *example, struct err *err)
{
	char is[200];

	if (config_setting_type(setting) == CONFIG_TYPE_GROUP)
		return 0;
	return setting_complain(at, setting, err, "%s%s must be a group, like %s; found %s",
				at->path, setting_name(setting), example,
				setting_found(at, is, sizeof(is), setting));
}

static int setting_read_group(const struct place *at, const config_setting_t *group,
			      struct section *s, struct err *err)
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

/* ---- parse ----
 * Reads a config's text: libconfig parses it, and the key tables check it. */

#define FILE_MAX_BYTES (1 << 20)

static inline void config_destroy_cleanup(config_t *tree)
{
	config_destroy(tree);
}

/* ---- providers ---- */

static int read_providers(struct config *c, const struct place *at, const config_setting_t *group,
			  struct err *err)
{
	if (setting_want_group(at, group, "{ local = { ... }; }", err) < 0)
		return -1;
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		struct account *account = config_find_account(c, setting_name(setting));
		struct place outer = {at->source, "providers."};
		CLEANUP(free_text) char *where = setting_where(at->source, setting);
		if (!account) {
			config_no_provider(c, where, setting_name(setting), err);
			if (config_mistake(c, err) < 0 &&
			    setting_note(&outer, setting_name(setting), err) < 0)
				return -1;
			continue;
		}
		if (setting_want_group(&outer, setting, "{ key = value; }", err) < 0) {
			if (setting_note(&outer, setting_name(setting), err) < 0)
				return -1;
			continue;
		}
		CLEANUP(free_text) char *path = xasprintf("providers.%s.", account->ops->name);
		struct place inner = {at->source, path};
		if (setting_read_group(&inner, setting, account->section, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the job ---- */

static void list_types(const struct config *c, struct str *to)
{
	for (size_t i = 0; c->jobs[i]; i++)
		str_addf(to, "%s\"%s\"", i ? " or " : "", c->jobs[i]->type);
}

static const struct job_ops *find_type(const struct config *c, const char *type)
{
	for (size_t i = 0; c->jobs[i]; i++)
		if (!strcmp(c->jobs[i]->type, type))
			return c->jobs[i];
	return NULL;
}

static int read_job(struct config *c, const struct place *at, const config_setting_t *group,
		    struct err *err)
{
	struct place inner = {at->source, "job."};
	CLEANUP(str_free) struct str types = STR_INIT;
	char is[200];

	if (!at->source->has_job)
		return setting_complain(
			at, group, err,
			"job belongs in a project's burst.cfg, not in your defaults");
	if (setting_want_group(at, group, "{ type = \"tts\"; ... }", err) < 0)
		return -1;
	list_types(c, &types);
	const config_setting_t *type = config_setting_get_member(group, "type");
	if (!type)
		return setting_complain(at, group, err, "job.type is missing: it must be %s",
					str_text(&types));
	c->job_ops = setting_text(type) ? find_type(c, setting_text(type)) : NULL;
	if (!c->job_ops)
		return setting_complain(at, type, err, "job.type must be %s; found %s",
					str_text(&types), setting_found(at, is, sizeof(is), type));
	CLEANUP(free_text) char *where = setting_where(at->source, group);
	c->job = section_new(c->job_ops->options, where);
	return setting_read_group(&inner, group, c->job, err);
}

/* ---- a file ---- */

static int read_root(struct config *c, const struct source *source, const config_setting_t *root,
		     struct err *err)
{
	struct place at = {source, ""};

	for (int i = 0; i < config_setting_length(root); i++) {
		const config_setting_t *setting = config_setting_get_elem(root, (unsigned)i);
		const char *name = setting_name(setting);
		const struct option_spec *spec = value_spec(config_keys, name);
		int result;
		if (!strcmp(name, "providers"))
			result = read_providers(c, &at, setting, err);
		else if (!strcmp(name, "job"))
			result = read_job(c, &at, setting, err);
		else if (!spec)
			result = setting_unknown(
				&at, setting, value_nearest(config_keys, "job", "providers", name),
				err);
		else if (setting_check_trust(&at, setting, spec, err) < 0)
			result = -1;
		else
			result = setting_read(&at, setting, c->top, spec, err);
		if (result < 0 && (!strcmp(name, "providers") || config_mistake(c, err) < 0) &&
		    setting_note(&at, name, err) < 0)
			return -1;
	}
	return 0;
}

/* A file that other users can write must not run commands. */
static int check_own(const struct source *source, const struct stat *st, struct err *err)
{
	if ((st->st_uid != geteuid() && st->st_uid != 0) || (st->st_mode & S_IWOTH))
		return err_set(err, ERR_CONFIG, "%s: other users can write it: chmod 600 %s",
			       source->shown, source->shown);
	return 0;
}

/* O_NOFOLLOW refuses a link that replaced the file since its path was resolved. */
static int read_file(struct source *source, struct str *text, struct err *err)
{
	const char *shown = source->shown;
	CLEANUP(fd_close) int fd = path_open_plain_at(AT_FDCWD, source->path, shown, err);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s: is not a regular file", shown);
	source->owner = st.st_uid;
	source->open_to_others = source->trusted && (st.st_mode & (S_IRGRP | S_IROTH));
	if (source->trusted && check_own(source, &st, err) < 0)
		return -1;
	text->max = FILE_MAX_BYTES;
	for (char buf[16384];;) {
		ssize_t n = read(fd, buf, sizeof(buf));
		if (n < 0)
			return err_set(err, ERR_CONFIG, "%s: %s", shown, strerror(errno));
		if (!text->len && !source->trusted &&
		    file_kind_check_config(shown, buf, (size_t)n, err) < 0)
			return -1;
		str_addn(text, buf, (size_t)n);
		if (text->over)
			return err_set(err, ERR_CONFIG,
				       "%s: larger than 1 MiB: this is not a burst.cfg", shown);
		if (n == 0)
			return 0;
	}
}

/* Appends a line of the text, trimmed and printable. */
static void show_line(struct str *to, const char *text, int line)
{
	size_t len;

	for (int i = 1; i < line; i++)
		str_next_line(&text, &len);
	text += strspn(text, " \t");
	len = strcspn(text, "\r\n");
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	str_add_printable(to, text, len, 60);
}

/* A missing pair of quotes is the most common mistake. */
static const char *syntax_hint(const char *line)
{
	const char *sign = strpbrk(line, "=:");

	if (!sign)
		return " (write a setting as key = value;)";
	const char *word = sign + 1 + strspn(sign + 1, " \t");
	return isalpha((unsigned char)*word) ? " (strings and durations need quotes)" : "";
}

static int explain_syntax(const config_t *tree, const char *text, const struct source *source,
			  struct err *err)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	int number = config_error_line(tree);
	const char *what = config_error_text(tree), *shown = source->shown;

	if (source->elsewhere)
		return err_set(err, ERR_CONFIG, "%s:%d: %s (it is a link to %.200s)", shown, number,
			       what ? what : "syntax error", source->path);
	show_line(&line, text, number);
	if (what && strstr(what, "duplicate"))
		return err_set(err, ERR_CONFIG, "%s:%d: a key is set a second time: %s", shown,
			       number, str_text(&line));
	if (what && strstr(what, "mismatched"))
		return err_set(err, ERR_CONFIG,
			       "%s:%d: the entries of one list must all be of one kind: %s", shown,
			       number, str_text(&line));
	return err_set(err, ERR_CONFIG, "%s:%d: %s at or just before: %s%s", shown, number,
		       what ? what : "syntax error",
		       line.len ? str_text(&line) : "the end of the file",
		       syntax_hint(str_text(&line)));
}

static int parse(struct config *c, const struct source *source, const char *text, struct err *err)
{
	CLEANUP(config_destroy) config_t tree;

	config_init(&tree);
	if (config_read_string(&tree, text) != CONFIG_TRUE)
		return explain_syntax(&tree, text, source, err);
	return read_root(c, source, config_root_setting(&tree), err);
}

/* Windows editors begin a file with a byte order mark, and some files lack the last newline.
 * libconfig accepts neither. */
int config_read_source(struct config *c, struct source *source, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (source->text)
		str_add(&text, source->text);
	else if (read_file(source, &text, err) < 0)
		return -1;
	if (starts_with(str_text(&text), "\xef\xbb\xbf"))
		str_drop(&text, 3);
	if (scan_text(str_text(&text), text.len, source->shown, err) < 0)
		return -1;
	text.max = 0;
	if (!ends_with(str_text(&text), "\n"))
		str_addc(&text, '\n');
	return parse(c, source, str_text(&text), err);
}
