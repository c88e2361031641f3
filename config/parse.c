/* parse.c - reads a config's text: libconfig parses it, and the key tables check it. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_kind.h"
#include "base/path.h"
#include "config_keys.h"
#include "scan.h"
#include "setting.h"
#include "value.h"

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
