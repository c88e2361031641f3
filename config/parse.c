/* parse.c - reads the text of a config: what libconfig accepts without a warning, its parser, the
 * tables of keys, checks of several keys */
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
#include "trust.h"

/* ---- state ----
 * What all files that read a config ask of it. */

const char *const config_run_caps[CONFIG_RUN_CAPS] = {"per_day", "per_month"};

struct account *config_find_account(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->account_count; i++)
		if (!strcmp(c->accounts[i].ops->name, name))
			return &c->accounts[i];
	return NULL;
}

/* Returns 0 and warns if the config only serves to release pods, else -1. */
static int config_mistake(const struct config *c, struct err *err)
{
	if (!c->lenient)
		return -1;
	log_line(LOG_WARN, "%s; continuing without it", err->msg);
	err_clear(err);
	return 0;
}

/* ERR_CONFIG: no provider has that name. `before` begins the message ("burst.cfg:3"). */
static int config_no_provider(const struct config *c, const char *before, const char *name,
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

/* Whether the project's file sets the key or leaves its default. A flag is the user's own choice.
 * Only for a config with a project's file. */
static bool config_is_projects_word(const struct config *c, const struct section *s,
				    const char *key)
{
	const char *where = section_where(s, key);

	return !section_has(s, key) ||
	       (starts_with(where, c->project_shown) && where[strlen(c->project_shown)] == ':');
}

bool config_is_read(const struct config *c, const struct section *s, const struct option_spec *spec)
{
	return spec->type == OPTION_PATH && strcmp(spec->key, "output") &&
	       section_text(s, spec->key) && config_is_projects_word(c, s, spec->key);
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

/* ---- check ----
 * Checks that need several keys, and what a project's file may not do. */

static int check_providers(const struct config *c, struct mistakes *m, struct err *err)
{
	size_t count = section_count(c->top, "provider");
	const char *where = section_where(c->top, "provider");

	for (size_t i = 0; i < count; i++) {
		const char *name = section_item(c->top, "provider", i);
		if (!config_find_account(c, name) && config_no_provider(c, where, name, err) < 0 &&
		    mistakes_note(m, "provider", err) < 0)
			return -1;
	}
	if (count)
		return 0;
	err_set(err, ERR_CONFIG, "%s: provider is empty; name at least one, like [\"local\"]",
		where);
	return mistakes_note(m, "provider", err);
}

/* The folders that the user allows, for trust.h. Free with allowed_free(). */
static char **allowed_folders(const struct config *c)
{
	size_t count = section_count(c->top, "allow_paths");
	char **list = xcalloc(count + 1, sizeof(*list));

	for (size_t i = 0; i < count; i++) {
		CLEANUP(free_text)
		char *path = value_path("/", section_item(c->top, "allow_paths", i));
		list[i] = real_path(path);
	}
	return list;
}

static void allowed_free(char **list)
{
	for (char **at = list; *at; at++)
		free(*at);
	free(list);
}

/* Notes everything that a project may not do. Returns 0 if reading continues. */
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
	return c->project_shown && config_is_projects_word(c, s, key);
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
		    !config_is_projects_word(c, s, spec->key))
			continue;
		CLEANUP(free_text) char *path = path_join(c->dir, section_text(s, spec->key));
		if (check_path(c, s, group, spec->key, path, err) < 0 && note_trust(c, err) < 0)
			return -1;
	}
	return 0;
}

int config_may_read(const struct config *c, const char *key, const char *real, struct err *err)
{
	if (!c->project_shown || !c->job || !config_is_projects_word(c, c->job, key))
		return 0;
	return check_path(c, c->job, "job", key, real, err);
}

/* Refuses a file that another user owns: its owner could change what is spent and which variables
 * are sent to pods. */
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
	bool may_have = c->job && value_spec(section_table(c->job), "then");
	for (size_t i = 0; may_have && i < section_count(c->job, "then"); i++)
		if (trust_env("job.then.", section_group_at(c->job, "then", i), "env", c->providers,
			      err) < 0 &&
		    mistakes_note(c->mistakes, NULL, err) < 0)
			return -1;
	if (trust_env("deliver.", deliver, "env", c->providers, err) < 0 &&
	    mistakes_note(c->mistakes, NULL, err) < 0)
		return -1;
	if (check_allowed(c, err) < 0)
		return -1;
	/* the user may have wanted to allow these paths */
	if (!c->project_shown || c->out_of_bounds)
		return 0;
	if (check_owner(c, err) < 0 && note_trust(c, err) < 0)
		return -1;
	if (c->job && check_paths_of(c, c->job, "job", err) < 0)
		return -1;
	return check_paths_of(c, section_group(c->top, "code"), "code", err);
}

/* For commands that only release pods. A mistake in the user's own file is then a warning. An
 * unknown provider in a flag stays an error. */
static int check_leniently(const struct config *c, struct err *err)
{
	bool by_flag = starts_with(section_where(c->top, "provider"), "--");

	if (keys_check(c->top, NULL, err) < 0 && config_mistake(c, err) < 0)
		return -1;
	if (check_providers(c, NULL, err) == 0)
		return 0;
	return by_flag ? -1 : config_mistake(c, err);
}

bool config_in_bounds(const struct config *c)
{
	return !c->out_of_bounds;
}

int config_check(struct config *c, struct err *err)
{
	if (c->lenient)
		return check_leniently(c, err);
	if (keys_check(c->top, c->mistakes, err) < 0)
		return -1;
	if (c->job && keys_check_ranges(c->job, "job.", c->mistakes, err) < 0)
		return -1;
	if (check_providers(c, c->mistakes, err) < 0 || check_trusted(c, err) < 0)
		return -1;
	if (c->job && c->job_ops->check_conf &&
	    c->job_ops->check_conf(c->job, c->mistakes, err) < 0)
		return -1;
	return mistakes_end(c->mistakes, err);
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
