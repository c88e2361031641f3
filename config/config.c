/* config.c - all of libconfig: its trees become sections here, checked against the key tables. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libconfig.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "keys.h"
#include "places.h"
#include "scan.h"
#include "secrets.h"
#include "trust.h"
#include "value.h"

#define FILE_MAX_BYTES (1 << 20)
#define PLAIN          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .:-"
#define GENERATED      "generated burst.cfg" /* what messages call a text that is not a file */

static const char *const run_caps[] = {"per_day", "per_month"}; /* of `caps` */

struct account {
	const struct provider_ops *ops;
	struct section *section;
	bool looked_up;
};

struct config {
	struct section *top, *job;
	const struct job_ops *job_ops;
	char *path, *dir, *job_name, *user_shown;
	char *read_path, *read_dir; /* the path that is read: with a tree, the one in its copy */
	const struct config_tree *tree; /* the asker's */
	char *project_shown; /* NULL: there is no project's file, or it is the user's own */
	uid_t project_owner;
	const struct provider_ops *const *providers;
	struct account *accounts;
	size_t account_count;
	const struct job_ops *const *jobs;
	struct mistakes *mistakes; /* the caller's; NULL: reading ends at the first mistake */
	struct config_cap user_caps[ARRAY_LEN(
		run_caps)]; /* like run_caps; `where` is the config's own copy */
	bool out_of_bounds; /* it is a link to a place that its project may not use */
	bool lenient; /* only to release pods: wrong settings for renting must not prevent that */
};

/* One file while it is read. */
struct source {
	char *path;       /* real path of the file that is read */
	char *name;       /* the same in the working tree; it identifies the project */
	char *shown;      /* what messages call it */
	char *dir;        /* of name */
	bool trusted;     /* the user's own */
	bool has_job;     /* it may have the `job` group */
	const char *text; /* NULL: it is read from the file */
	int handed_fd;    /* above 2: the text is read from this descriptor, not from the path */
	uid_t owner;
	bool open_to_others; /* users other than its owner can read it */
	/* a link leads to it: its text may belong to someone else, so messages quote none of it */
	bool elsewhere;
	const char *user_shown;
	struct mistakes *mistakes; /* of the config */
};

static void source_free(struct source *s)
{
	free(s->path);
	free(s->name);
	free(s->shown);
	free(s->dir);
}

static inline void source_free_cleanup(struct source *s)
{
	source_free(s);
}

static inline void config_destroy_cleanup(config_t *tree)
{
	config_destroy(tree);
}

/* ---- one setting ---- */

struct place { /* where a key stands, for messages; the path is that of its group: "caps." */
	const struct source *source;
	const char *path;
};

static char *where_of(const struct source *source, const config_setting_t *setting)
{
	return xasprintf("%s:%u", source->shown, config_setting_source_line(setting));
}

static int complain(const struct place *at, const config_setting_t *setting, struct err *err,
		    const char *fmt, ...) PRINTF(4, 5);
static int complain(const struct place *at, const config_setting_t *setting, struct err *err,
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

static const char *name_of(const config_setting_t *setting)
{
	const char *name = config_setting_name(setting);

	return name ? name : "";
}

/* "the text "two"": the value as written. */
static char *found(const struct place *at, char *to, size_t room, const config_setting_t *setting)
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

	return complain(at, setting, err, "%s%s must be %s; found %s", at->path, spec->key,
			value_wanted(wanted, sizeof(wanted), spec),
			found(at, is, sizeof(is), setting));
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

static const char *text_of(const config_setting_t *setting)
{
	return config_setting_type(setting) == CONFIG_TYPE_STRING
		       ? config_setting_get_string(setting)
		       : NULL;
}

static int read_items(const struct place *at, const config_setting_t *setting, struct section *s,
		      const struct option_spec *spec, const char *where, struct err *err)
{
	const char *only = text_of(setting);
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
		if (!text_of(element))
			return complain(at, element, err,
					"%s%s: entry %d is %s; it must be a string in quotes",
					at->path, spec->key, i + 1,
					found(at, is, sizeof(is), element));
		if ((spec->flags & OPTION_AUTO) && !strcmp(text_of(element), VALUE_AUTO))
			return complain(at, element, err,
					"%s%s: \"auto\" cannot be combined with other values",
					at->path, spec->key);
		section_add_item(s, spec->key, text_of(element), where);
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
		return complain(at, setting, err, "%s%s: %g is not an amount in dollars", at->path,
				spec->key, dollars);
	section_set_int(s, spec->key, (int64_t)(dollars * 1e6 + 0.5), where);
	return 0;
}

/* The value already stands in quotes: report what is wrong with the text inside. */
static int wrong_duration(const struct place *at, const config_setting_t *setting,
			  const struct option_spec *spec, const struct err *why, struct err *err)
{
	const char *text = text_of(setting);

	if (at->source->elsewhere || strspn(text, PLAIN) < strlen(text) || strlen(text) > 40)
		return wrong_type(at, setting, spec, err);
	return complain(at, setting, err, "%s%s: %s", at->path, spec->key, why->msg);
}

static int read_text(const struct place *at, const config_setting_t *setting, struct section *s,
		     const struct option_spec *spec, const char *where, struct err *err)
{
	struct err why = {0};

	if (!text_of(setting))
		return wrong_type(at, setting, spec, err);
	if (value_set(s, spec, text_of(setting), at->source->dir, where, &why) < 0)
		return wrong_duration(at, setting, spec, &why, err);
	return 0;
}

static int read_group(const struct place *at, const config_setting_t *group, struct section *s,
		      struct err *err);

static int read_inner(const struct place *at, const config_setting_t *setting, struct section *s,
		      const struct option_spec *spec, const char *where, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s.", at->path, spec->key);
	struct place inner = {at->source, path};

	if (config_setting_type(setting) != CONFIG_TYPE_GROUP)
		return wrong_type(at, setting, spec, err);
	return read_group(&inner, setting, section_set_group(s, spec->key, where), err);
}

/* "auto", or ["auto"] */
static bool is_auto(const config_setting_t *setting)
{
	if (config_setting_is_aggregate(setting) && !config_setting_is_group(setting) &&
	    config_setting_length(setting) == 1)
		setting = config_setting_get_elem(setting, 0);
	return text_of(setting) && !strcmp(text_of(setting), VALUE_AUTO);
}

static int read_value(const struct place *at, const config_setting_t *setting, struct section *s,
		      const struct option_spec *spec, struct err *err)
{
	CLEANUP(free_text) char *where = where_of(at->source, setting);

	if ((spec->flags & OPTION_AUTO) && is_auto(setting)) {
		section_unset(s, spec->key); /* also what an earlier file set */
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
	}
	return 0;
}

/* ---- groups ---- */

static void warn_of_open_key(const struct place *at, const config_setting_t *setting)
{
	log_line(LOG_WARN,
		 "%s:%u: %s%s is a secret, and other users can read this file: chmod "
		 "600 %s",
		 at->source->shown, config_setting_source_line(setting), at->path, name_of(setting),
		 at->source->shown);
}

/* After a mistake in AT.KEY: 0 to continue, if all mistakes are wanted; else -1. */
static int note(const struct place *at, const char *key, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s", at->path, key);

	return mistakes_note(at->source->mistakes, path, err);
}

static int unknown(const struct place *at, const config_setting_t *setting, const char *near,
		   struct err *err)
{
	if (near)
		return complain(at, setting, err, "unknown key \"%s%.60s\", did you mean \"%s\"?",
				at->path, name_of(setting), near);
	return complain(at, setting, err, "unknown key \"%s%.60s\"", at->path, name_of(setting));
}

static int check_trust(const struct place *at, const config_setting_t *setting,
		       const struct option_spec *spec, struct err *err)
{
	if (at->source->trusted || !(spec->flags & (OPTION_USER_ONLY | OPTION_SECRET)))
		return 0;
	return complain(at, setting, err,
			"%s%s is allowed only in your own %s: a project must not run commands "
			"here, redirect keys or grant itself access",
			at->path, spec->key, at->source->user_shown);
}

/* An error; the other kind is a warning. */
static int mistake(const struct config *c, struct err *err)
{
	if (!c->lenient)
		return -1;
	log_line(LOG_WARN, "%s; continuing without it", err->msg);
	err_clear(err);
	return 0;
}

static int read_group(const struct place *at, const config_setting_t *group, struct section *s,
		      struct err *err)
{
	const struct option_spec *table = section_table(s);

	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		const struct option_spec *spec = value_spec(table, name_of(setting));
		if (!spec) {
			const char *near = value_nearest(table, NULL, NULL, name_of(setting));
			unknown(at, setting, near, err);
			if (note(at, near ? near : "", err) < 0)
				return -1;
			continue;
		}
		if ((check_trust(at, setting, spec, err) < 0 ||
		     read_value(at, setting, s, spec, err) < 0) &&
		    note(at, spec->key, err) < 0)
			return -1;
		if ((spec->flags & OPTION_SECRET) && at->source->open_to_others)
			warn_of_open_key(at, setting);
	}
	return 0;
}

static struct account *find_account(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->account_count; i++)
		if (!strcmp(c->accounts[i].ops->name, name))
			return &c->accounts[i];
	return NULL;
}

/* `before` begins the message ("burst.cfg:3"). */
static int no_provider(const struct config *c, const char *before, const char *name,
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

static int want_group(const struct place *at, const config_setting_t *setting, const char *example,
		      struct err *err)
{
	char is[200];

	if (config_setting_type(setting) == CONFIG_TYPE_GROUP)
		return 0;
	return complain(at, setting, err, "%s%s must be a group, like %s; found %s", at->path,
			name_of(setting), example, found(at, is, sizeof(is), setting));
}

static int read_providers(struct config *c, const struct place *at, const config_setting_t *group,
			  struct err *err)
{
	if (want_group(at, group, "{ local = { ... }; }", err) < 0)
		return -1;
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		struct account *account = find_account(c, name_of(setting));
		struct place outer = {at->source, "providers."};
		CLEANUP(free_text) char *where = where_of(at->source, setting);
		if (!account) {
			no_provider(c, where, name_of(setting), err);
			if (mistake(c, err) < 0 && note(&outer, name_of(setting), err) < 0)
				return -1;
			continue;
		}
		if (want_group(&outer, setting, "{ key = value; }", err) < 0) {
			if (note(&outer, name_of(setting), err) < 0)
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
		return complain(at, group, err,
				"job belongs in a project's burst.cfg, not in your defaults");
	if (want_group(at, group, "{ type = \"tts\"; ... }", err) < 0)
		return -1;
	list_types(c, &types);
	const config_setting_t *type = config_setting_get_member(group, "type");
	if (!type)
		return complain(at, group, err, "job.type is missing: it must be %s",
				str_text(&types));
	c->job_ops = text_of(type) ? find_type(c, text_of(type)) : NULL;
	if (!c->job_ops)
		return complain(at, type, err, "job.type must be %s; found %s", str_text(&types),
				found(at, is, sizeof(is), type));
	CLEANUP(free_text) char *where = where_of(at->source, group);
	c->job = section_new(c->job_ops->options, where);
	return read_group(&inner, group, c->job, err);
}

static int check_required(const struct config *c, const struct section *s, const char *path,
			  struct err *err)
{
	char wanted[160];

	for (const struct option_spec *spec = section_table(s); spec->key; spec++) {
		CLEANUP(free_text) char *key = xasprintf("%s%s", path, spec->key);
		if (!(spec->flags & OPTION_REQUIRED) || (spec->flags & OPTION_SECRET) ||
		    section_has(s, spec->key) || mistakes_about(c->mistakes, key))
			continue;
		err_set(err, ERR_CONFIG, "%s: %s is missing: %s (%s)", section_where(s, NULL), key,
			spec->help, value_wanted(wanted, sizeof(wanted), spec));
		if (mistakes_note(c->mistakes, key, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- a file ---- */

static int read_root(struct config *c, const struct source *source, const config_setting_t *root,
		     struct err *err)
{
	struct place at = {source, ""};

	for (int i = 0; i < config_setting_length(root); i++) {
		const config_setting_t *setting = config_setting_get_elem(root, (unsigned)i);
		const char *name = name_of(setting);
		const struct option_spec *spec = value_spec(config_keys, name);
		int result;
		if (!strcmp(name, "providers"))
			result = read_providers(c, &at, setting, err);
		else if (!strcmp(name, "job"))
			result = read_job(c, &at, setting, err);
		else if (!spec)
			result = unknown(&at, setting,
					 value_nearest(config_keys, "job", "providers", name), err);
		else if (check_trust(&at, setting, spec, err) < 0)
			result = -1;
		else
			result = read_value(&at, setting, c->top, spec, err);
		if (result < 0 && (!strcmp(name, "providers") || mistake(c, err) < 0) &&
		    note(&at, name, err) < 0)
			return -1;
	}
	return 0;
}

/* A file that others can write must not run commands. */
static int check_own(const struct source *source, const struct stat *st, struct err *err)
{
	if ((st->st_uid != geteuid() && st->st_uid != 0) || (st->st_mode & S_IWOTH))
		return err_set(err, ERR_CONFIG, "%s: other users can write it: chmod 600 %s",
			       source->shown, source->shown);
	return 0;
}

/* The path has no links. O_NOFOLLOW refuses one that was put there since. */
static int read_file(struct source *source, struct str *text, struct err *err)
{
	const char *shown = source->shown;
	bool handed = source->handed_fd > STDERR_FILENO;
	CLEANUP(fd_close)
	int fd = handed ? dup(source->handed_fd)
			: path_open_plain_at(AT_FDCWD, source->path, shown, err);
	struct stat st;

	if (fd < 0)
		return handed ? err_set(err, ERR_CONFIG, "%s: %s", shown, strerror(errno)) : -1;
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
		str_addn(text, buf, (size_t)n);
		if (text->over)
			return err_set(err, ERR_CONFIG,
				       "%s: larger than 1 MiB: this is not a burst.cfg", shown);
		if (n == 0)
			return 0;
	}
}

/* The line of the text, without blanks around it, made printable. */
static void show_line(struct str *to, const char *text, int line)
{
	for (int i = 1; i < line && *text; i++) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	text += strspn(text, " \t");
	size_t len = strcspn(text, "\r\n");
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	str_add_printable(to, text, len, 60);
}

/* A value without quotes is the most frequent mistake. */
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
static int read_source(struct config *c, struct source *source, struct err *err)
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

/* ---- which files ---- */

static void source_set(struct source *s, const char *real, const char *shown)
{
	s->path = xstrdup(real);
	s->name = xstrdup(real);
	s->shown = xstrdup(shown);
	s->dir = path_dir(real);
}

/* 1: it exists, 0: it does not. */
static int find_user(struct source *s)
{
	CLEANUP(free_text) char *path = config_user_file();
	char real[PATH_MAX];

	if (!path || !realpath(path, real))
		return 0;
	CLEANUP(free_text) char *shown = places_show(path);
	source_set(s, real, shown);
	s->trusted = true;
	return 1;
}

/* The user's own file, however its path is written. It may be a link, as to a folder of dotfiles.
 */
static bool is_user_file(const char *path)
{
	CLEANUP(free_text) char *file = config_user_file();
	CLEANUP(free_text) char *its = file ? path_dir(file) : NULL;
	CLEANUP(free_text) char *above = path_dir(path);
	char a[PATH_MAX], b[PATH_MAX];

	return file && realpath(its, a) && realpath(above, b) && !strcmp(a, b) &&
	       !strcmp(path_base(file), path_base(path));
}

/* A repository can contain a link, and its target's folder would count as the project. Burst's
 * state folder holds copies of projects' files, which must not run as projects. */
static int check_place(const char *path, bool is_link, const char *real, struct err *err)
{
	CLEANUP(free_text) char *state = places_state();
	CLEANUP(free_text) char *above = path_dir(path);
	char folder[PATH_MAX];

	if (is_link && !realpath(above, folder))
		return err_set(err, ERR_CONFIG, "%s: %s", above, strerror(errno));
	if (is_link && !is_user_file(path)) {
		CLEANUP(free_text) char *root = trust_root(folder);
		if (!trust_is_below(real, root))
			return err_set(err, ERR_CONFIG,
				       "%s is a link to %.200s, out of the project: copy it, or "
				       "name that file itself",
				       path, real);
	}
	if (state && trust_is_below(real, state))
		return err_set(err, ERR_CONFIG,
			       "%s is in burst's own folder (%.200s), where projects are not "
			       "allowed",
			       path, state);
	return 0;
}

/* NULL: there is no current folder. To be freed. */
static char *path_here(const char *path)
{
	CLEANUP(free_text) char *here = getcwd(NULL, 0);

	return here || path[0] == '/' ? path_join(here ? here : "/", path) : NULL;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The same file of the commit. The working tree may not have it any more. */
static int find_in_tree(const struct config_tree *tree, const char *path, struct source *s,
			struct err *err)
{
	CLEANUP(free_text) char *named = trust_real(path);
	CLEANUP(free_text) char *copied = trust_move(named, tree->top, tree->copy);
	bool folder = is_folder(copied);
	CLEANUP(free_text) char *name = folder ? path_join(named, "burst.cfg") : TAKE(named);
	CLEANUP(free_text) char *copy = folder ? path_join(copied, "burst.cfg") : TAKE(copied);
	char real[PATH_MAX];

	if (!trust_is_below(name, tree->top))
		return err_set(err, ERR_CONFIG, "%s lies outside of the repository %s", path,
			       tree->top);
	if (!realpath(copy, real))
		return err_set(err, ERR_CONFIG, "%s: the commit has no such file", path);
	if (!trust_is_below(real, tree->copy))
		return err_set(err, ERR_CONFIG,
			       "%s is a link out of the commit: name that file itself", path);
	source_set(s, name, path);
	free(s->path);
	s->path = xstrdup(real);
	return check_place(name, false, name, err) < 0 ? -1 : 1;
}

static int find_project(const struct config_ask *ask, struct source *s, struct err *err)
{
	CLEANUP(free_text) char *path = xstrdup(ask->file ? ask->file : "burst.cfg");
	char real[PATH_MAX];
	struct stat st;

	if (ask->user_only)
		return 0;
	s->has_job = true;
	if (ask->text) {
		s->text = ask->text;
		source_set(s, ask->file, GENERATED);
		return 1;
	}
	if (ask->handed_fd > STDERR_FILENO) {
		s->handed_fd = ask->handed_fd;
		source_set(s, realpath(path, real) ? real : path, path);
		return 1;
	}
	if (ask->tree) {
		CLEANUP(free_text) char *here = path_here(path);
		return here ? find_in_tree(ask->tree, here, s, err)
			    : err_set(err, ERR_LOCAL, "cannot read the current folder: %s",
				      strerror(errno));
	}
	if (is_folder(path)) {
		char *inside = path_join(path, "burst.cfg");
		free(path);
		path = inside;
	}
	if (!realpath(path, real)) {
		if (errno == ENOENT && !ask->file)
			return 0;
		return err_set(err, ERR_CONFIG, "%s: %s", path, strerror(errno));
	}
	source_set(s, real, path);
	s->elsewhere = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	return check_place(path, s->elsewhere, real, err) < 0 ? -1 : 1;
}

int config_find(const char *file, char **path, struct err *err)
{
	CLEANUP(source_free) struct source s = {0};
	int found = find_project(&(struct config_ask){.file = file}, &s, err);

	if (found > 0)
		*path = xstrdup(s.path);
	return found;
}

char *config_named(const char *file)
{
	CLEANUP(free_text) char *inside = path_join(file ? file : ".", "burst.cfg");
	CLEANUP(free_text) char *path = path_here(!file || is_folder(file) ? inside : file);

	return path ? trust_real(path) : xstrdup(inside);
}

int config_here(char **path, struct err *err)
{
	return config_find(NULL, path, err);
}

static void set_project(struct config *c, const struct source *project)
{
	free(c->dir);
	c->path = xstrdup(project->name);
	c->dir = xstrdup(project->dir);
	c->read_path = xstrdup(project->path);
	c->read_dir = path_dir(project->path);
}

static bool is_projects_word(const struct config *c, const struct section *s, const char *key);

/* Whether the key is a path that the job reads and that the project's file names. */
static bool is_read(const struct config *c, const struct section *s, const struct option_spec *spec)
{
	return spec->type == OPTION_PATH && strcmp(spec->key, "output") &&
	       section_text(s, spec->key) && is_projects_word(c, s, spec->key);
}

/* The project reads the commit's files, under the same names. */
static void move_paths_of(struct config *c, struct section *s)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++) {
		if (!is_read(c, s, spec))
			continue;
		CLEANUP(free_text) char *named = path_join(c->dir, section_text(s, spec->key));
		CLEANUP(free_text) char *plain = trust_plain(named);
		CLEANUP(free_text) char *moved = trust_move(plain, c->tree->top, c->tree->copy);
		CLEANUP(free_text) char *where = xstrdup(section_where(s, spec->key));
		section_set_text(s, spec->key, moved, where);
	}
}

static void move_paths(struct config *c)
{
	if (c->job)
		move_paths_of(c, c->job);
	if (section_has(c->top, "code"))
		move_paths_of(
			c, section_set_group(c->top, "code",
					     section_where(section_group(c->top, "code"), NULL)));
}

/* A project's file would otherwise replace the user's cap by a higher one. */
static void keep_user_caps(struct config *c)
{
	const struct section *caps = section_group(c->top, "caps");

	for (size_t i = 0; i < ARRAY_LEN(run_caps); i++)
		if (section_has(caps, run_caps[i]))
			c->user_caps[i] =
				(struct config_cap){true, section_int(caps, run_caps[i]),
						    xstrdup(section_where(caps, run_caps[i]))};
}

static int read_both(struct config *c, const struct config_ask *ask, struct err *err)
{
	CLEANUP(source_free) struct source user = {0};
	CLEANUP(source_free) struct source project = {0};
	int has_user = find_user(&user);
	int has_project = find_project(ask, &project, err);

	if (has_project < 0)
		return -1;
	if (has_project)
		set_project(c, &project);
	if (has_user && has_project && !project.text && !strcmp(user.path, project.path)) {
		user.has_job = true; /* `burst run FILE` with a file of the user's own */
		has_project = 0;
	}
	user.user_shown = project.user_shown = c->user_shown;
	user.mistakes = project.mistakes = c->mistakes;
	if (has_project && !project.text && project.handed_fd <= STDERR_FILENO)
		c->project_shown = xstrdup(project.shown);
	if (has_user && read_source(c, &user, err) < 0)
		return -1;
	keep_user_caps(c);
	if (has_project && read_source(c, &project, err) < 0)
		return -1;
	c->project_owner = project.owner;
	if (c->tree && c->project_shown)
		move_paths(c);
	return 0;
}

/* ---- the environment ---- */

static bool ends_in_command(const char *key)
{
	return ends_with(key, "_command");
}

/* RUNPOD_API_URL for `api_url` of "runpod"; secrets wait until the account is used. */
static int read_environment(struct account *account, struct mistakes *m, struct err *err)
{
	for (const struct option_spec *spec = account->ops->options; spec->key; spec++) {
		if (!(spec->flags & OPTION_USER_ONLY) || (spec->flags & OPTION_SECRET) ||
		    spec->type == OPTION_GROUP || ends_in_command(spec->key))
			continue;
		CLEANUP(free_text) char *name = secret_env_name(account->ops->name, spec->key);
		const char *value = getenv(name);
		if (value && *value &&
		    value_set(account->section, spec, value, "/", name, err) < 0) {
			err->kind = ERR_CONFIG;
			err_wrap(err, "%s", name);
			if (mistakes_note(m, NULL, err) < 0)
				return -1;
		}
	}
	return 0;
}

static void open_accounts(struct config *c, const struct provider_ops *const *providers)
{
	size_t cap = 0;

	for (; *providers; providers++) {
		const char *name = (*providers)->name;
		CLEANUP(free_text) char *where = xasprintf("providers.%s", name);
		GROW(c->accounts, c->account_count, cap);
		c->accounts[c->account_count++] = (struct account){
			.ops = *providers, .section = section_new((*providers)->options, where)};
	}
}

static int read_environments(struct config *c, struct err *err)
{
	for (size_t i = 0; i < c->account_count; i++)
		if (read_environment(&c->accounts[i], c->mistakes, err) < 0)
			return -1;
	return 0;
}

/* ---- the outside ---- */

static int name_job(struct config *c, struct err *err)
{
	bool given = value_spec(c->job_ops->options, "name") && section_has(c->job, "name");
	const char *name = given ? section_text(c->job, "name") : path_base(c->dir);

	if (!given && !*name)
		name = "job";
	c->job_name = xstrdup(name);
	if (path_is_safe(name) && !strchr(name, '/') && strlen(name) < 64)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s: the job's name must be a plain file name of less than 64 bytes%s",
		       section_where(c->job, given ? "name" : NULL),
		       given ? "" : "; the folder's name is not one: set job.name");
}

static int finish(struct config *c, const struct config_ask *ask, struct err *err)
{
	if (read_environments(c, err) < 0)
		return -1;
	if (c->job)
		return check_required(c, c->job, "job.", err) < 0 ||
				       (name_job(c, err) < 0 &&
					mistakes_note(c->mistakes, "job.name", err) < 0)
			       ? -1
			       : 0;
	if (!ask->need_job || mistakes_about(c->mistakes, "job"))
		return 0;
	if (c->path) {
		err_set(err, ERR_CONFIG,
			"%s: no job: add a job group that says what to render (see `burst help "
			"init`)",
			ask->file ? ask->file : "burst.cfg");
		return mistakes_note(c->mistakes, "job", err);
	}
	return err_set(err, ERR_CONFIG,
		       "no burst.cfg in this folder: write one with `burst init`, name it, or name "
		       "a text to speak (`burst run book.md`)");
}

static int load(struct config *c, const struct config_ask *ask, struct err *err)
{
	CLEANUP(free_text) char *user = config_user_file();

	c->user_shown = user ? places_show(user) : xstrdup("~/.config/burst/burst.cfg");
	c->dir = getcwd(NULL, 0);
	if (!c->dir)
		return err_set(err, ERR_LOCAL, "cannot read the current folder: %s",
			       strerror(errno));
	c->top = section_new(config_keys, "burst.cfg");
	c->jobs = ask->jobs;
	c->providers = ask->providers;
	c->lenient = ask->user_only;
	c->mistakes = ask->mistakes;
	c->tree = ask->tree;
	open_accounts(c, ask->providers);
	return read_both(c, ask, err) < 0 ? -1 : finish(c, ask, err);
}

int config_open(struct config **out, const struct config_ask *ask, struct err *err)
{
	struct config *c = xcalloc(1, sizeof(*c));

	if (load(c, ask, err) < 0) {
		config_free(c);
		return -1;
	}
	*out = c;
	return 0;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->account_count; i++)
		section_free(c->accounts[i].section);
	free(c->accounts);
	section_free(c->top);
	section_free(c->job);
	for (size_t i = 0; i < ARRAY_LEN(run_caps); i++)
		free((char *)c->user_caps[i].where);
	free(c->path);
	free(c->dir);
	free(c->read_path);
	free(c->read_dir);
	free(c->job_name);
	free(c->user_shown);
	free(c->project_shown);
	free(c);
}

/* ---- flags ---- */

/* Walks "a.b.c" down to the section of the last part; *key is that part. */
static struct section *descend(struct section *s, const char **key, const char *flag)
{
	for (const char *dot; (dot = strchr(*key, '.')); *key = dot + 1) {
		CLEANUP(free_text) char *group = xstrndup(*key, (size_t)(dot - *key));
		const struct option_spec *spec = value_spec(section_table(s), group);
		if (!spec || spec->type != OPTION_GROUP)
			return NULL;
		s = section_set_group(s, group, flag);
	}
	return s;
}

static struct section *root_of(const struct config *c, const char **key)
{
	if (starts_with(*key, "job.")) {
		*key += strlen("job.");
		return c->job;
	}
	if (!starts_with(*key, "providers."))
		return c->top;
	const char *name = *key + strlen("providers.");
	size_t len = strcspn(name, ".");
	CLEANUP(free_text) char *provider = xstrndup(name, len);
	struct account *account = find_account(c, provider);
	*key = name + len + (name[len] == '.');
	return account ? account->section : NULL;
}

struct mistakes *config_mistakes(const struct config *c)
{
	return c->mistakes;
}

void config_place_error(const struct config *c, struct err *err)
{
	const char *key = err->key;
	const struct section *s = key[0] ? root_of(c, &key) : NULL;

	for (const char *dot; s && (dot = strchr(key, '.')); key = dot + 1) {
		CLEANUP(free_text) char *group = xstrndup(key, (size_t)(dot - key));
		const struct option_spec *spec = value_spec(section_table(s), group);
		s = spec && spec->type == OPTION_GROUP ? section_group(s, group) : NULL;
	}
	if (!s || !value_spec(section_table(s), key) || !section_has(s, key))
		return;
	err_wrap(err, "%s", section_where(s, key));
	err->key[0] = '\0';
}

void config_set_output(struct config *c, const char *path)
{
	section_set_text(c->job, "output", path, section_where(c->job, "output"));
}

bool config_adds(const char *key)
{
	return !strcmp(key, "allow_paths") || !strcmp(key, "volumes");
}

char *config_added(const char *key, const char *text)
{
	CLEANUP(free_text) char *here = getcwd(NULL, 0);
	CLEANUP(str_free) struct str all = STR_INIT;

	if (strcmp(key, "allow_paths") != 0)
		return xstrdup(text);
	for (size_t len; *text; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		CLEANUP(free_text) char *item = xstrndup(text, len);
		CLEANUP(free_text) char *path = *item ? value_path(here ? here : "/", item) : NULL;
		if (path)
			str_addf(&all, "%s%s", all.len ? "," : "", path);
	}
	return xstrdup(str_text(&all));
}

/* Flags add to what the user's file allows. */
static int add_to(struct config *c, const char *key, const char *text, const char *flag,
		  struct err *err)
{
	CLEANUP(free_text) char *added = config_added(key, text);
	CLEANUP(str_free) struct str all = STR_INIT;

	for (size_t i = 0; i < section_count(c->top, key); i++)
		str_addf(&all, "%s,", section_item(c->top, key, i));
	str_add(&all, added);
	return value_set(c->top, value_spec(config_keys, key), str_text(&all), "/", flag, err);
}

int config_override(struct config *c, const char *key, const char *text, const char *flag,
		    struct err *err)
{
	const char *rest = key;
	struct section *s = root_of(c, &rest);
	CLEANUP(free_text) char *here = getcwd(NULL, 0);

	if (config_adds(key))
		return add_to(c, key, text, flag, err);
	if (!s && mistakes_about(c->mistakes, "job"))
		return 0; /* config_check() reports why it could not be read */
	if (!s)
		return err_set(err, ERR_USAGE, "%s: no job in this config, so %s cannot be set",
			       flag, key);
	s = descend(s, &rest, flag);
	const struct option_spec *spec = s ? value_spec(section_table(s), rest) : NULL;
	if (!spec)
		return err_set(err, ERR_USAGE, "%s: this job type has no %s", flag, key);
	if (value_set(s, spec, text, here ? here : "/", flag, err) < 0)
		return err_wrap(err, "%s", flag);
	return 0;
}

static int check_providers(const struct config *c, struct mistakes *m, struct err *err)
{
	size_t count = section_count(c->top, "provider");
	const char *where = section_where(c->top, "provider");

	for (size_t i = 0; i < count; i++) {
		const char *name = section_item(c->top, "provider", i);
		if (!find_account(c, name) && no_provider(c, where, name, err) < 0 &&
		    mistakes_note(m, "provider", err) < 0)
			return -1;
	}
	if (count)
		return 0;
	err_set(err, ERR_CONFIG, "%s: provider is empty; name at least one, like [\"local\"]",
		where);
	return mistakes_note(m, "provider", err);
}

/* Whether the project's file sets the key or leaves it at its default. A flag is the user's own
 * choice. */
static bool is_projects_word(const struct config *c, const struct section *s, const char *key)
{
	const char *where = section_where(s, key);

	return !section_has(s, key) ||
	       (starts_with(where, c->project_shown) && where[strlen(c->project_shown)] == ':');
}

/* The folders that the user allows, in the form of trust.h; free with allowed_free(). */
static char **allowed_folders(const struct config *c)
{
	size_t count = section_count(c->top, "allow_paths");
	char **list = xcalloc(count + 1, sizeof(*list));

	for (size_t i = 0; i < count; i++) {
		CLEANUP(free_text)
		char *path = value_path("/", section_item(c->top, "allow_paths", i));
		list[i] = trust_real(path);
	}
	return list;
}

static void allowed_free(char **list)
{
	for (char **at = list; *at; at++)
		free(*at);
	free(list);
}

/* Notes each thing that a project may not do; 0: reading continues. */
static int note_trust(struct config *c, struct err *err)
{
	c->out_of_bounds = true;
	return mistakes_note(c->mistakes, NULL, err);
}

static int check_allowed(struct config *c, struct err *err)
{
	for (size_t i = 0; i < section_count(c->top, "allow_paths"); i++) {
		CLEANUP(free_text)
		char *path = value_path("", section_item(c->top, "allow_paths", i));
		if (trust_check_allowed(path, c->dir, err) == 0)
			continue;
		err_wrap(err, "%s: allow_paths", section_where(c->top, "allow_paths"));
		if (note_trust(c, err) < 0)
			return -1;
	}
	return 0;
}

bool config_is_project(const struct config *c)
{
	return c->project_shown != NULL;
}

bool config_is_users(const struct config *c, const struct section *s, const char *key)
{
	const char *where = section_where(s, key);

	return section_has(s, key) && starts_with(where, c->user_shown) &&
	       where[strlen(c->user_shown)] == ':';
}

bool config_is_projects(const struct config *c, const struct section *s, const char *key)
{
	return c->project_shown && is_projects_word(c, s, key);
}

static int check_path(const struct config *c, const struct section *s, const char *group,
		      const char *name, const char *path, struct err *err)
{
	CLEANUP(free_text) char *key = xasprintf("%s.%s", group, name);
	char **allowed = allowed_folders(c);
	struct trust trust = {.project = c->dir, .allowed = (const char *const *)allowed};

	if (c->tree) {
		trust.top = c->tree->top;
		trust.copy = c->tree->copy;
	}

	int result = trust_path(&trust, key, path, !strcmp(name, "output"), err);
	allowed_free(allowed);
	return result < 0 ? err_wrap(err, "%s", section_where(s, name)) : 0;
}

static int check_paths_of(struct config *c, const struct section *s, const char *group,
			  struct err *err)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++) {
		if (spec->type != OPTION_PATH || !section_text(s, spec->key) ||
		    !is_projects_word(c, s, spec->key))
			continue;
		CLEANUP(free_text) char *path = path_join(c->dir, section_text(s, spec->key));
		if (check_path(c, s, group, spec->key, path, err) < 0 && note_trust(c, err) < 0)
			return -1;
	}
	return 0;
}

int config_may_read(const struct config *c, const char *key, const char *real, struct err *err)
{
	if (!c->project_shown || !c->job || !is_projects_word(c, c->job, key))
		return 0;
	return check_path(c, c->job, "job", key, real, err);
}

/* The owner of the file can change what is spent and which variables are sent to pods. */
static int check_owner(const struct config *c, struct err *err)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	uid_t owner = c->project_owner;
	char **allowed = allowed_folders(c);
	bool fine = owner == geteuid() || owner == 0 ||
		    (sudo && (uid_t)strtoul(sudo, NULL, 10) == owner);

	for (char **folder = allowed; *folder && !fine; folder++)
		fine = trust_is_below(c->dir, *folder);
	allowed_free(allowed);
	if (fine)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s belongs to another user (%lu), who can change what you spend and send "
		       "to pods: copy it, or allow its folder with "
		       "--allow-path %.200s",
		       c->project_shown, (unsigned long)owner, c->dir);
}

static int check_trusted(struct config *c, struct err *err)
{
	const struct section *deliver = section_group(c->top, "deliver");

	if (c->job && trust_env("job.", c->job, "env", c->providers, err) < 0 &&
	    mistakes_note(c->mistakes, NULL, err) < 0)
		return -1;
	if (trust_env("deliver.", deliver, "env", c->providers, err) < 0 &&
	    mistakes_note(c->mistakes, NULL, err) < 0)
		return -1;
	if (check_allowed(c, err) < 0)
		return -1;
	/* these paths may be the ones that the user wanted to allow */
	if (!c->project_shown || c->out_of_bounds)
		return 0;
	if (check_owner(c, err) < 0 && note_trust(c, err) < 0)
		return -1;
	if (c->job && check_paths_of(c, c->job, "job", err) < 0)
		return -1;
	return check_paths_of(c, section_group(c->top, "code"), "code", err);
}

/* Renting keys of the user's own file do not matter here; a flag does. */
static int check_leniently(const struct config *c, struct err *err)
{
	bool by_flag = starts_with(section_where(c->top, "provider"), "--");

	if (keys_check_ranges(c->top, NULL, err) < 0 && mistake(c, err) < 0)
		return -1;
	return check_providers(c, NULL, err) < 0 && (by_flag || mistake(c, err) < 0) ? -1 : 0;
}

bool config_in_bounds(const struct config *c)
{
	return !c->out_of_bounds;
}

int config_check(struct config *c, struct err *err)
{
	if (c->lenient)
		return check_leniently(c, err);
	if (keys_check_ranges(c->top, c->mistakes, err) < 0)
		return -1;
	if (check_providers(c, c->mistakes, err) < 0 || check_trusted(c, err) < 0)
		return -1;
	if (c->job && c->job_ops->check_conf &&
	    c->job_ops->check_conf(c->job, c->mistakes, err) < 0)
		return -1;
	return mistakes_end(c->mistakes, err);
}

/* ---- getters ---- */

const struct section *config_top(const struct config *c)
{
	return c->top;
}

struct config_cap config_cap(const struct config *c, const char *key, bool project)
{
	const struct section *caps = section_group(c->top, "caps");
	size_t i = 0;

	while (strcmp(run_caps[i], key) != 0)
		i++;
	const struct config_cap *user = &c->user_caps[i];
	if (!project)
		return *user;
	if (!section_has(caps, key) ||
	    (user->set && !strcmp(user->where, section_where(caps, key))))
		return (struct config_cap){0};
	return (struct config_cap){true, section_int(caps, key), section_where(caps, key)};
}

const struct section *config_job(const struct config *c)
{
	return c->job;
}

const struct job_ops *config_job_ops(const struct config *c)
{
	return c->job_ops;
}

const char *config_job_name(const struct config *c)
{
	return c->job_name;
}

const char *config_path(const struct config *c)
{
	return c->path;
}

const char *config_dir(const struct config *c)
{
	return c->dir;
}

const char *config_read_dir(const struct config *c)
{
	return c->read_dir ? c->read_dir : c->dir;
}

struct inputs {
	char **list;
	size_t count, cap;
};

/* Replaces the path by the one in the tree. */
static void add_input(const struct config *c, struct inputs *in, const char *path)
{
	size_t len = strlen(c->tree->copy);

	if (strncmp(path, c->tree->copy, len) || (path[len] && path[len] != '/'))
		return;
	GROW(in->list, in->count, in->cap);
	in->list[in->count++] = xstrdup(path[len] && path[len + 1] ? path + len + 1 : ".");
}

static void add_inputs_of(const struct config *c, struct inputs *in, const struct section *s)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++)
		if (is_read(c, s, spec))
			add_input(c, in, section_text(s, spec->key));
}

char **config_inputs(const struct config *c)
{
	struct inputs in = {0};

	if (c->tree && c->path) {
		CLEANUP(free_text) char *file = trust_move(c->path, c->tree->top, c->tree->copy);
		add_input(c, &in, file);
		add_input(c, &in, c->read_path);
	}
	if (c->tree && c->job)
		add_inputs_of(c, &in, c->job);
	if (c->tree)
		add_inputs_of(c, &in, section_group(c->top, "code"));
	GROW(in.list, in.count, in.cap);
	in.list[in.count] = NULL;
	return in.list;
}

void config_inputs_free(char **inputs)
{
	for (char **path = inputs; path && *path; path++)
		free(*path);
	free(inputs);
}

const struct section *config_provider(const struct config *c, const char *name)
{
	const struct account *account = find_account(c, name);

	return account ? account->section : NULL;
}

const struct section *config_account(struct config *c, const char *name, struct err *err)
{
	struct account *account = find_account(c, name);

	if (!account) {
		err_set(err, ERR_CONFIG, "unknown provider \"%.40s\"", name);
		return NULL;
	}
	if (!account->looked_up && secrets_fill(name, account->section, c->user_shown, err) < 0)
		return NULL;
	account->looked_up = true;
	return account->section;
}
