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

/* ---- providers of a config ---- */

struct account *config_find_account(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->account_count; i++)
		if (!strcmp(c->accounts[i].ops->name, name))
			return &c->accounts[i];
	return NULL;
}

int config_warn_if_lenient(const struct config *c, struct err *err)
{
	if (!c->lenient)
		return -1;
	log_line(LOG_WARN, "%s; continuing without it", err->msg);
	err_clear(err);
	return 0;
}

int config_err_unknown_provider(const struct config *c, const char *before, const char *name,
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

static int scan_error(const struct scan *s, int line, const char *what)
{
	return err_set(s->err, ERR_CONFIG, "%s:%d: %s", s->shown, line, what);
}

/* Moves n bytes on, at most to the end, and counts lines. */
static void advance(struct scan *s, size_t n)
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
			return scan_error(s, s->line, "a byte that is not UTF-8");
		if (!*s->at)
			return scan_error(s, s->line, "a NUL byte: not a text file");
		advance(s, n);
	}
	return 0;
}

/* Refuses @include, which libconfig obeys only at the start of a line. */
static int check_include(struct scan *s)
{
	const char *start;
	size_t len;

	for (int line = 1; (start = bytes_next_line(&s->at, s->end, &len)); line++)
		if (starts_with(start + strspn(start, " \t"), "@include"))
			return scan_error(s, line,
					  "@include is not supported: write the settings in this "
					  "file");
	return 0;
}

/* At an opening quote: moves behind the closing one. */
static int skip_string(struct scan *s)
{
	int began = s->line;

	for (advance(s, 1); s->at < s->end && *s->at != '"';)
		advance(s, *s->at == '\\' ? 2 : 1);
	if (s->at == s->end)
		return scan_error(s, began, "this string has no closing quote");
	advance(s, 1);
	return 0;
}

static int skip_long_comment(struct scan *s)
{
	int began = s->line;
	const char *close = strstr(s->at + 2, "*/");

	if (!close)
		return scan_error(s, began, "this comment is never closed");
	advance(s, (size_t)(close + 2 - s->at));
	return 0;
}

/* libconfig would cut a larger number without an error. */
static bool is_number_libconfig_can_hold(const char *number, size_t len)
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
	if (!is_number_libconfig_can_hold(s->at, len))
		return err_set(s->err, ERR_CONFIG, "%s:%d: the number %.*s is too large", s->shown,
			       s->line, (int)MIN(len, 40), s->at);
	advance(s, len);
	return 0;
}

/* Checks one string, comment, word, number or other character, and moves behind it. */
static int check_token(struct scan *s)
{
	unsigned char c = (unsigned char)*s->at;

	if (c == '"')
		return skip_string(s);
	if (starts_with(s->at, "/*"))
		return skip_long_comment(s);
	if (c == '#' || starts_with(s->at, "//"))
		advance(s, strcspn(s->at, "\n"));
	else if (isalpha(c) || c == '*')
		advance(s,
			MAX(strspn(s->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123"
					  "456789-_*"),
			    1));
	else if (isdigit(c))
		return check_number(s);
	else
		advance(s, 1);
	return 0;
}

/* Refuses what libconfig would accept and misread. ERR_CONFIG with "shown:line: ..." */
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

static int read_group(const struct place *at, const config_setting_t *group, struct section *s,
		      struct err *err);

/* Characters of a text that a message may quote. */
#define QUOTABLE "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .:-"

static char *setting_where(const struct source *source, const config_setting_t *setting)
{
	return xasprintf("%s:%u", source->shown, config_setting_source_line(setting));
}

static int setting_error(const struct place *at, const config_setting_t *setting, struct err *err,
			 const char *fmt, ...) PRINTF(4, 5);
static int setting_error(const struct place *at, const config_setting_t *setting, struct err *err,
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

static const char *setting_name(const config_setting_t *setting)
{
	const char *name = config_setting_name(setting);

	return name ? name : "";
}

/* "the number 3", "a list": the value as a message shows it. Returns `to`. */
static char *describe_value(const struct place *at, char *to, size_t room,
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

static int err_wrong_type(const struct place *at, const config_setting_t *setting,
			  const struct option_spec *spec, struct err *err)
{
	char is[200], wanted[160];

	return setting_error(at, setting, err, "%s%s must be %s; found %s", at->path, spec->key,
			     value_wanted(wanted, sizeof(wanted), spec),
			     describe_value(at, is, sizeof(is), setting));
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

static double setting_number(const config_setting_t *setting)
{
	return is_integer(setting) ? (double)config_setting_get_int64(setting)
				   : config_setting_get_float(setting);
}

/* NULL: the setting is no string. */
static const char *setting_text(const config_setting_t *setting)
{
	return config_setting_type(setting) == CONFIG_TYPE_STRING
		       ? config_setting_get_string(setting)
		       : NULL;
}

/* Reads a list of strings; a single string counts as a list of one. */
static int read_texts(const struct place *at, const config_setting_t *setting, struct section *s,
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
		return err_wrong_type(at, setting, spec, err);
	section_add_item(s, spec->key, NULL, where);
	for (int i = 0; i < config_setting_length(setting); i++) {
		const config_setting_t *element = config_setting_get_elem(setting, (unsigned)i);
		char is[200];
		if (!setting_text(element))
			return setting_error(at, element, err,
					     "%s%s: entry %d is %s; it must be a string in quotes",
					     at->path, spec->key, i + 1,
					     describe_value(at, is, sizeof(is), element));
		if ((spec->flags & OPTION_AUTO) && !strcmp(setting_text(element), VALUE_AUTO))
			return setting_error(at, element, err,
					     "%s%s: \"auto\" cannot be combined with other values",
					     at->path, spec->key);
		section_add_item(s, spec->key, setting_text(element), where);
	}
	return 0;
}

static int read_money(const struct place *at, const config_setting_t *setting, struct section *s,
		      const struct option_spec *spec, const char *where, struct err *err)
{
	if (!is_number(setting))
		return err_wrong_type(at, setting, spec, err);
	double dollars = setting_number(setting);
	if (dollars < 0 || dollars > 1e9)
		return setting_error(at, setting, err, "%s%s: %g is not an amount in dollars",
				     at->path, spec->key, dollars);
	section_set_int(s, spec->key, (int64_t)(dollars * 1e6 + 0.5), where);
	return 0;
}

/* Sets the error for a string that is no value of the key: *why says what is wrong with the text,
 * unless the text must not be quoted in a message. */
static int err_wrong_text(const struct place *at, const config_setting_t *setting,
			  const struct option_spec *spec, const struct err *why, struct err *err)
{
	const char *text = setting_text(setting);

	if (at->source->elsewhere || strspn(text, QUOTABLE) < strlen(text) || strlen(text) > 40)
		return err_wrong_type(at, setting, spec, err);
	return setting_error(at, setting, err, "%s%s: %s", at->path, spec->key, why->msg);
}

static int read_text(const struct place *at, const config_setting_t *setting, struct section *s,
		     const struct option_spec *spec, const char *where, struct err *err)
{
	struct err why = {0};

	if (!setting_text(setting))
		return err_wrong_type(at, setting, spec, err);
	if (value_set(s, spec, setting_text(setting), at->source->dir, where, &why) < 0)
		return err_wrong_text(at, setting, spec, &why, err);
	return 0;
}

static int read_group_value(const struct place *at, const config_setting_t *setting,
			    struct section *s, const struct option_spec *spec, const char *where,
			    struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s.", at->path, spec->key);
	struct place inner = {at->source, path};

	if (config_setting_type(setting) != CONFIG_TYPE_GROUP)
		return err_wrong_type(at, setting, spec, err);
	return read_group(&inner, setting, section_set_group(s, spec->key, where), err);
}

/* Reads a list of groups; a single group counts as a list of one. */
static int read_groups(const struct place *at, const config_setting_t *setting, struct section *s,
		       const struct option_spec *spec, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s.", at->path, spec->key);
	struct place inner = {at->source, path};
	bool one = config_setting_is_group(setting);
	int count = one ? 1 : config_setting_length(setting);

	if (!config_setting_is_aggregate(setting))
		return err_wrong_type(at, setting, spec, err);
	section_clear_items(s, spec->key);
	for (int i = 0; i < count; i++) {
		const config_setting_t *element =
			one ? setting : config_setting_get_elem(setting, (unsigned)i);
		CLEANUP(free_text) char *there = setting_where(at->source, element);
		if (!config_setting_is_group(element))
			return err_wrong_type(at, element, spec, err);
		struct section *group = section_add_group(s, spec->key, there);
		if (read_group(&inner, element, group, err) < 0)
			return -1;
	}
	return 0;
}

/* Whether the value is "auto" or ["auto"]. */
static bool is_auto(const config_setting_t *setting)
{
	if (config_setting_is_aggregate(setting) && !config_setting_is_group(setting) &&
	    config_setting_length(setting) == 1)
		setting = config_setting_get_elem(setting, 0);
	return setting_text(setting) && !strcmp(setting_text(setting), VALUE_AUTO);
}

/* Reads a value of any type, of which `spec` is the key, into the section. */
static int read_setting(const struct place *at, const config_setting_t *setting, struct section *s,
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
			return err_wrong_type(at, setting, spec, err);
		section_set_int(s, spec->key, config_setting_get_int64(setting), where);
		return 0;
	case OPTION_DECIMAL:
		if (!is_number(setting))
			return err_wrong_type(at, setting, spec, err);
		section_set_decimal(s, spec->key, setting_number(setting), where);
		return 0;
	case OPTION_BOOL:
		if (config_setting_type(setting) != CONFIG_TYPE_BOOL)
			return err_wrong_type(at, setting, spec, err);
		section_set_bool(s, spec->key, config_setting_get_bool(setting), where);
		return 0;
	case OPTION_MONEY: return read_money(at, setting, s, spec, where, err);
	case OPTION_TEXTS: return read_texts(at, setting, s, spec, where, err);
	case OPTION_GROUP: return read_group_value(at, setting, s, spec, where, err);
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

/* Notes the mistake *err about this key of the group. Returns 0 if reading continues. */
static int note_mistake_at(const struct place *at, const char *key, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s", at->path, key);

	return mistakes_note(at->source->mistakes, path, err);
}

/* near: the key that was probably meant; NULL: unknown. */
static int err_unknown_key(const struct place *at, const config_setting_t *setting,
			   const char *near, struct err *err)
{
	if (near)
		return setting_error(at, setting, err,
				     "unknown key \"%s%.60s\", did you mean \"%s\"?", at->path,
				     setting_name(setting), near);
	return setting_error(at, setting, err, "unknown key \"%s%.60s\"", at->path,
			     setting_name(setting));
}

/* Refuses a key in a project's file that only the user's own file may set. */
static int check_may_set(const struct place *at, const config_setting_t *setting,
			 const struct option_spec *spec, struct err *err)
{
	if (at->source->trusted || !(spec->flags & (OPTION_USER_ONLY | OPTION_SECRET)))
		return 0;
	return setting_error(at, setting, err,
			     "%s%s is allowed only in your own %s: a project must not run commands "
			     "here, redirect keys or grant itself access",
			     at->path, spec->key, at->source->user_shown);
}

static int check_is_group(const struct place *at, const config_setting_t *setting,
			  const char *example, struct err *err)
{
	char is[200];

	if (config_setting_type(setting) == CONFIG_TYPE_GROUP)
		return 0;
	return setting_error(at, setting, err, "%s%s must be a group, like %s; found %s", at->path,
			     setting_name(setting), example,
			     describe_value(at, is, sizeof(is), setting));
}

static int read_group(const struct place *at, const config_setting_t *group, struct section *s,
		      struct err *err)
{
	const struct option_spec *table = section_table(s);

	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		const struct option_spec *spec = value_spec(table, setting_name(setting));
		if (!spec) {
			const char *near = value_nearest(table, NULL, NULL, setting_name(setting));
			err_unknown_key(at, setting, near, err);
			if (note_mistake_at(at, near ? near : "", err) < 0)
				return -1;
			continue;
		}
		if ((check_may_set(at, setting, spec, err) < 0 ||
		     read_setting(at, setting, s, spec, err) < 0) &&
		    note_mistake_at(at, spec->key, err) < 0)
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
	if (check_is_group(at, group, "{ local = { ... }; }", err) < 0)
		return -1;
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		struct account *account = config_find_account(c, setting_name(setting));
		struct place outer = {at->source, "providers."};
		CLEANUP(free_text) char *where = setting_where(at->source, setting);
		if (!account) {
			config_err_unknown_provider(c, where, setting_name(setting), err);
			if (config_warn_if_lenient(c, err) < 0 &&
			    note_mistake_at(&outer, setting_name(setting), err) < 0)
				return -1;
			continue;
		}
		if (check_is_group(&outer, setting, "{ key = value; }", err) < 0) {
			if (note_mistake_at(&outer, setting_name(setting), err) < 0)
				return -1;
			continue;
		}
		CLEANUP(free_text) char *path = xasprintf("providers.%s.", account->ops->name);
		struct place inner = {at->source, path};
		if (read_group(&inner, setting, account->section, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the job ---- */

static void add_job_types(const struct config *c, struct str *to)
{
	for (size_t i = 0; c->jobs[i]; i++)
		str_addf(to, "%s\"%s\"", i ? " or " : "", c->jobs[i]->type);
}

static const struct job_ops *find_job_type(const struct config *c, const char *type)
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
		return setting_error(at, group, err,
				     "job belongs in a project's burst.cfg, not in your defaults");
	if (check_is_group(at, group, "{ type = \"tts\"; ... }", err) < 0)
		return -1;
	add_job_types(c, &types);
	const config_setting_t *type = config_setting_get_member(group, "type");
	if (!type)
		return setting_error(at, group, err, "job.type is missing: it must be %s",
				     str_text(&types));
	c->job_ops = setting_text(type) ? find_job_type(c, setting_text(type)) : NULL;
	if (!c->job_ops)
		return setting_error(at, type, err, "job.type must be %s; found %s",
				     str_text(&types), describe_value(at, is, sizeof(is), type));
	CLEANUP(free_text) char *where = setting_where(at->source, group);
	c->job = section_new(c->job_ops->options, where);
	return read_group(&inner, group, c->job, err);
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
			result = err_unknown_key(
				&at, setting, value_nearest(config_keys, "job", "providers", name),
				err);
		else if (check_may_set(&at, setting, spec, err) < 0)
			result = -1;
		else
			result = read_setting(&at, setting, c->top, spec, err);
		if (result < 0 &&
		    (!strcmp(name, "providers") || config_warn_if_lenient(c, err) < 0) &&
		    note_mistake_at(&at, name, err) < 0)
			return -1;
	}
	return 0;
}

/* Refuses a user's file that others can write, because its commands are run. */
static int check_only_owner_writes(const struct source *source, const struct stat *st,
				   struct err *err)
{
	if ((st->st_uid != geteuid() && st->st_uid != 0) || (st->st_mode & S_IWOTH))
		return err_set(err, ERR_CONFIG, "%s: other users can write it: chmod 600 %s",
			       source->shown, source->shown);
	return 0;
}

/* Reads the file, and notes its owner and who can read it. Refuses a link put there since. */
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
	if (source->trusted && check_only_owner_writes(source, &st, err) < 0)
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

/* What is probably wrong with this line: most often a pair of quotes is missing. "" if unknown. */
static const char *syntax_hint(const char *line)
{
	const char *sign = strpbrk(line, "=:");

	if (!sign)
		return " (write a setting as key = value;)";
	const char *word = sign + 1 + strspn(sign + 1, " \t");
	return isalpha((unsigned char)*word) ? " (strings and durations need quotes)" : "";
}

/* Sets libconfig's error with the line that it is about, unless that may be another user's text. */
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

static int parse_text(struct config *c, const struct source *source, const char *text,
		      struct err *err)
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
	return parse_text(c, source, str_text(&text), err);
}
