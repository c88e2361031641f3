/* secrets.c - finds a provider's keys in the environment, the user's file, a command, or the
 * vendor's own file */
#include "secrets.h"

#include <ctype.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/folders.h"
#include "base/guard.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "state.h"

/* ---- toml ---- */

struct reader {
	const char *at;
	const char *shown;
	int line;
	struct str table;
	struct toml *to;
	struct err *err;
};

void toml_free(struct toml *toml)
{
	for (size_t i = 0; i < toml->count; i++) {
		free(toml->list[i].table);
		free(toml->list[i].key);
		text_wipe(toml->list[i].value);
	}
	free(toml->list);
	*toml = (struct toml){0};
}

static inline void toml_free_cleanup(struct toml *toml)
{
	toml_free(toml);
}

static int toml_error(const struct reader *t, const char *what)
{
	return err_set(t->err, ERR_CREDENTIALS, "%s:%d: %s", t->shown, t->line, what);
}

static void skip_blanks(struct reader *t)
{
	t->at += strspn(t->at, " \t");
}

/* Moves to the end of the line; only blanks and a comment may be left on it. */
static int expect_end_of_line(struct reader *t)
{
	skip_blanks(t);
	t->at += *t->at == '\r' && t->at[1] == '\n';
	if (*t->at && *t->at != '#' && *t->at != '\n')
		return toml_error(t, "unexpected text after the value");
	t->at += strcspn(t->at, "\n");
	return 0;
}

/* Appends the string at the opening quote, and moves behind the closing one. */
static int read_quoted(struct reader *t, struct str *to)
{
	char quote = *t->at++;

	if (t->at[0] == quote && t->at[1] == quote)
		return toml_error(t, "multi-line strings are not supported");
	for (; *t->at != quote; t->at++) {
		if (*t->at == '\\' && quote == '"' && !strchr("\"\\", *++t->at))
			return toml_error(t, "an unknown \\ sequence");
		if (!*t->at || *t->at == '\n')
			return toml_error(t, "a string without its closing quote");
		str_addc(to, *t->at);
	}
	t->at++;
	return 0;
}

/* Appends a name, as a, a.b or "a b", and moves behind the blanks after it. */
static int read_name(struct reader *t, struct str *to)
{
	static const char bare[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	skip_blanks(t);
	size_t n = strspn(t->at, bare);
	if (*t->at == '"' || *t->at == '\'') {
		if (read_quoted(t, to) < 0)
			return -1;
	} else if (!n) {
		return toml_error(t, "a name is missing");
	}
	str_addn(to, t->at, n);
	t->at += n;
	skip_blanks(t);
	return 0;
}

static int read_header(struct reader *t)
{
	t->at++;
	if (*t->at == '[')
		return toml_error(t, "arrays of tables are not supported");
	str_reset(&t->table);
	if (read_name(t, &t->table) < 0)
		return -1;
	if (*t->at++ != ']')
		return toml_error(t, "a table's name must end with ]");
	return expect_end_of_line(t);
}

/* Appends true, a number or a date. Sets *known to false for a list or an inline table, which is
 * skipped and must end on its line. */
static int read_plain(struct reader *t, struct str *to, bool *known)
{
	size_t n = strcspn(t->at, "#\r\n");

	*known = *t->at != '[' && *t->at != '{';
	while (n && (t->at[n - 1] == ' ' || t->at[n - 1] == '\t'))
		n--;
	if (!n)
		return toml_error(t, "a value is missing");
	if (!*known && t->at[n - 1] != (*t->at == '[' ? ']' : '}'))
		return toml_error(t, "multi-line values are not supported");
	str_addn(to, t->at, n);
	t->at += n;
	return 0;
}

/* Adds a key and its value to the table of the last header. */
static int read_pair(struct reader *t)
{
	CLEANUP(str_free) struct str key = STR_INIT;
	CLEANUP(str_wipe) struct str value = STR_INIT;
	bool known = true;

	if (read_name(t, &key) < 0)
		return -1;
	if (*t->at++ != '=')
		return toml_error(t, "= is missing");
	skip_blanks(t);
	bool quoted = *t->at == '"' || *t->at == '\'';
	if ((quoted ? read_quoted(t, &value) : read_plain(t, &value, &known)) < 0 ||
	    expect_end_of_line(t) < 0)
		return -1;
	if (!known)
		return 0;
	GROW(t->to->list, t->to->count, t->to->cap);
	t->to->list[t->to->count++] = (struct toml_pair){
		xstrdup(str_text(&t->table)), xstrdup(str_text(&key)), xstrdup(str_text(&value))};
	return 0;
}

static int read_line(struct reader *t)
{
	skip_blanks(t);
	if (!*t->at || strchr("#\r\n", *t->at))
		return expect_end_of_line(t);
	return *t->at == '[' ? read_header(t) : read_pair(t);
}

int toml_read(struct toml *out, const char *text, size_t len, const char *shown, struct err *err)
{
	struct reader t = {.at = text, .shown = shown, .line = 1, .to = out, .err = err};
	int result = 0;

	if (memchr(text, '\0', len) || !utf8_valid(text, len))
		return toml_error(&t, "not a text file");
	for (; result == 0 && *t.at; t.line++) {
		result = read_line(&t);
		if (result == 0)
			t.at += *t.at == '\n';
	}
	str_free(&t.table);
	return result;
}

/* ---- secrets ---- */

#define SECRET_MAX_BYTES 16384
#define COMMAND_LIMIT_MS 30000
#define SIGNAL_MOST      64

/* Files of the vendors' own tools. A key is read under burst's name or under its other name. */
static const struct vendor_file {
	const char *provider, *below_home;
	const char *path_env, *profile_env;
	const char *keys[5];
	const char *key_other; /* another name of keys[0] */
	const char *login;     /* the command that writes the file */
	/* The file holds keys[0] and nothing else. It is below $XDG_CONFIG_HOME, or below_home;
	 * older versions of the tool wrote another one, in the home folder. */
	const char *below_config, *older;
} vendor_files[] = {
	{"runpod", ".runpod/config.toml", NULL, NULL, {"api_key"}, "apikey", "runpodctl config"},
	{"modal",
	 ".modal.toml",
	 "MODAL_CONFIG_PATH",
	 "MODAL_PROFILE",
	 {"token_id", "token_secret", "server_url", "environment"},
	 NULL,
	 "modal token new"},
	{.provider = "vast",
	 .below_home = ".config/vastai/vast_api_key",
	 .keys = {"api_key"},
	 .login = "vastai set api-key",
	 .below_config = "vastai/vast_api_key",
	 .older = ".vast_api_key"},
};

char *secret_env_name(const char *provider, const char *key)
{
	char *name = xasprintf("%s_%s", provider, key);

	for (char *p = name; *p; p++)
		*p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
	return name;
}

void secrets_hide(const struct provider_ops *const *providers)
{
	for (; *providers; providers++)
		for (const struct option_spec *spec = (*providers)->options; spec->key; spec++) {
			CLEANUP(free_text)
			char *name = secret_env_name((*providers)->name, spec->key);
			if (spec->flags & OPTION_SECRET)
				guard_hide(name);
		}
}

/* ---- a command ---- */

/* Sets ERR_CREDENTIALS if the command fails or takes too long. */
static int run_secret_command(const char *command, int64_t limit_ms, struct str *output,
			      struct err *err)
{
	const char *const argv[] = {"/bin/sh", "-c", command, NULL};
	struct program p = {.argv = argv, .limit_ms = limit_ms, .prompts = true};
	int status = program_run(&p, output, NULL, err);

	if (status < 0)
		return err && err->kind == ERR_TRANSIENT
			       ? err_set(err, ERR_CREDENTIALS,
					 "the command did not finish within %d s",
					 (int)(limit_ms / 1000))
			       : -1;
	if (status > 128 && status <= 128 + SIGNAL_MOST)
		return err_set(err, ERR_CREDENTIALS, "the command was killed by signal %d",
			       status - 128);
	if (status)
		return err_set(err, ERR_CREDENTIALS, "the command failed with exit status %d",
			       status);
	return 0;
}

/* Refuses an empty text, and control characters: one could end the header that carries the key. */
static int check_secret(const char *text, struct err *err)
{
	if (!*text)
		return err_set(err, ERR_CREDENTIALS, "it is empty");
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return err_set(err, ERR_CREDENTIALS,
				       "it contains a blank or a control character");
	return 0;
}

/* The first line that is not blank, without blanks around it. The caller frees it. */
static char *trim_first_line(const char *text)
{
	text += strspn(text, " \t\r\n");
	size_t len = strcspn(text, "\n");
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	return xstrndup(text, len);
}

int secret_from_command(char **out, const char *command, int64_t limit_ms, struct err *err)
{
	CLEANUP(str_wipe) struct str output = STR_MAX(SECRET_MAX_BYTES);

	if (run_secret_command(command, limit_ms, &output, err) < 0)
		return -1;
	CLEANUP(free_text) char *secret = trim_first_line(str_text(&output));
	log_secret(secret);
	if (check_secret(secret, err) < 0)
		return err_wrap(err, "the command's output is not a key");
	*out = TAKE(secret);
	return 0;
}

/* ---- a vendor's file ---- */

/* Without a named profile: the active one, else "default", else the only one, else "". */
static const char *choose_profile(const struct toml *toml)
{
	const char *only = toml->count ? toml->list[0].table : "";
	bool has_default = false;

	for (const struct toml_pair *p = toml->list; p < toml->list + toml->count; p++) {
		if (!strcmp(p->key, "active") && !strcmp(p->value, "true"))
			return p->table;
		has_default |= !strcmp(p->table, "default");
		if (strcmp(p->table, only) != 0)
			only = "";
	}
	return has_default ? "default" : only;
}

/* Leaves *out empty if the file is missing. */
static int read_vendor_file(struct toml *out, const char *path, struct err *err)
{
	CLEANUP(str_wipe) struct str text = STR_INIT;
	CLEANUP(free_text) char *shown = home_shorten(path);
	struct err why = {0};

	if (path_read(path, 1 << 20, &text, &why) < 0)
		return why.kind == ERR_NOT_FOUND ? 0 : err_set(err, ERR_CREDENTIALS, "%s", why.msg);
	return toml_read(out, str_text(&text), text.len, shown, err);
}

int secret_from_file(char **out, const char *path, const char *profile, const char *key,
		     struct err *err)
{
	CLEANUP(toml_free) struct toml toml = {0};

	*out = NULL;
	if (read_vendor_file(&toml, path, err) < 0)
		return -1;
	if (!profile)
		profile = choose_profile(&toml);
	for (size_t i = 0; i < toml.count && !*out; i++)
		if (!strcmp(toml.list[i].table, profile) && !strcmp(toml.list[i].key, key))
			*out = xstrdup(toml.list[i].value);
	return 0;
}

/* NULL: the provider has no tool of its own. */
static const struct vendor_file *find_vendor_file(const char *provider)
{
	for (size_t i = 0; i < ARRAY_LEN(vendor_files); i++)
		if (!strcmp(vendor_files[i].provider, provider))
			return &vendor_files[i];
	return NULL;
}

/* NULL: no home folder. The caller frees it. */
static char *path_of_vendor_file(const struct vendor_file *file)
{
	const char *own = file->path_env ? getenv(file->path_env) : NULL;
	CLEANUP(free_text) char *home = home_dir();

	if (own && *own)
		return xstrdup(own);
	const char *config = file->below_config ? getenv("XDG_CONFIG_HOME") : NULL;
	CLEANUP(free_text) char *older = file->older && home ? path_join(home, file->older) : NULL;
	char *path = config && *config ? path_join(config, file->below_config)
		     : home            ? path_join(home, file->below_home)
				       : NULL;
	if (!path || !older || access(path, F_OK) == 0 || access(older, F_OK) < 0)
		return path;
	free(path);
	return TAKE(older);
}

size_t secrets_file_count(void)
{
	return ARRAY_LEN(vendor_files);
}

char *secrets_file(size_t index)
{
	return path_of_vendor_file(&vendor_files[index]);
}

static bool vendor_file_has(const struct vendor_file *file, const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(file->keys) && file->keys[i]; i++)
		if (!strcmp(file->keys[i], key))
			return true;
	return false;
}

/* Warns, once per process, of a file that other users can read. */
static void warn_if_open(const char *path)
{
	static bool said;
	CLEANUP(free_text) char *shown = home_shorten(path);
	struct stat st;

	if (said || stat(path, &st) < 0 || !(st.st_mode & (S_IRGRP | S_IROTH)))
		return;
	said = true;
	log_line(LOG_WARN, "%s contains keys, and other users can read it: chmod 600 %s", shown,
		 shown);
}

/* The key in a file that holds nothing else. *out is NULL if there is no file, or an empty one. */
static int read_only_line(char **out, const char *path, struct err *err)
{
	CLEANUP(str_wipe) struct str text = STR_INIT;
	CLEANUP(free_text) char *shown = home_shorten(path);
	struct err why = {0};

	if (path_read(path, SECRET_MAX_BYTES, &text, &why) < 0)
		return why.kind == ERR_NOT_FOUND ? 0 : err_set(err, ERR_CREDENTIALS, "%s", why.msg);
	CLEANUP(free_text) char *key = trim_first_line(str_text(&text));
	if (!*key)
		return 0;
	if (check_secret(key, err) < 0)
		return err_wrap(err, "%s", shown);
	*out = TAKE(key);
	return 0;
}

/* Reads a key, by either name, from the vendor tool's file. *out is NULL if it lacks it. */
static int read_secret_of_vendor(char **out, const char *provider, const char *key, struct err *err)
{
	const struct vendor_file *file = find_vendor_file(provider);
	CLEANUP(free_text)
	char *path = file && vendor_file_has(file, key) ? path_of_vendor_file(file) : NULL;

	*out = NULL;
	if (!path)
		return 0;
	const char *profile = file->profile_env ? getenv(file->profile_env) : NULL;
	if (profile && !*profile)
		profile = NULL;
	warn_if_open(path);
	if (file->below_config)
		return read_only_line(out, path, err);
	if (secret_from_file(out, path, profile, key, err) < 0)
		return -1;
	if (!*out && file->key_other && !strcmp(key, file->keys[0]))
		return secret_from_file(out, path, profile, file->key_other, err);
	return 0;
}

/* ---- a section ---- */

/* The user's command that prints the key; NULL: none. */
static const char *find_command_for(const struct section *s, const char *key)
{
	CLEANUP(free_text) char *name = xasprintf("%s_command", key);
	const struct option_spec *spec = value_spec(section_table(s), name);

	return spec && spec->type == OPTION_TEXT ? section_text(s, name) : NULL;
}

/* Finds the first place that has the key. The caller frees *where, which names it. *out is NULL if
 * no place has it. */
static int find_secret(char **out, char **where, const char *provider, const struct section *s,
		       const struct option_spec *spec, struct err *err)
{
	bool secret = spec->flags & OPTION_SECRET;
	CLEANUP(free_text) char *env = secret_env_name(provider, spec->key);
	const char *value = secret ? getenv(env) : NULL;
	const char *command = secret ? find_command_for(s, spec->key) : NULL;

	*out = NULL;
	if (value && *value) {
		*out = trim_first_line(value);
		*where = xstrdup(env);
		return 0;
	}
	if (section_has(s, spec->key))
		return 0;
	if (command && *command) {
		*where = xasprintf("%s_command", spec->key);
		if (secret_from_command(out, command, COMMAND_LIMIT_MS, err) == 0)
			return 0;
		return err_wrap(err, "%s: %s", section_where(s, *where), *where);
	}
	*where = xasprintf("the file of %s's own tool", provider);
	return read_secret_of_vendor(out, provider, spec->key, err);
}

/* Whether any profile of the vendor's file has the key, active or not. */
static bool is_in_any_profile(const struct vendor_file *file, const char *key)
{
	CLEANUP(free_text) char *path = path_of_vendor_file(file);
	CLEANUP(toml_free) struct toml toml = {0};
	bool found = false;

	if (!path || read_vendor_file(&toml, path, NULL) < 0)
		return false;
	for (size_t i = 0; i < toml.count; i++)
		found |= !strcmp(toml.list[i].key, key) && toml.list[i].value[0];
	return found;
}

/* Whether some required secrets exist: then the user has an account, and may have pods. */
static bool has_account(const char *provider, const struct section *s)
{
	const struct vendor_file *file = find_vendor_file(provider);

	for (const struct option_spec *spec = section_table(s); spec->key; spec++)
		if ((spec->flags & OPTION_SECRET) && (spec->flags & OPTION_REQUIRED) &&
		    (section_text(s, spec->key) || (file && vendor_file_has(file, spec->key) &&
						    is_in_any_profile(file, spec->key))))
			return true;
	return false;
}

/* Sets the error that names the ways to give the key: ERR_NO_ACCOUNT, or ERR_CREDENTIALS if the
 * user has an account. Returns -1. */
static int err_missing(const char *provider, const struct section *s, const char *key,
		       const char *user_shown, struct err *err)
{
	const struct vendor_file *file = find_vendor_file(provider);
	CLEANUP(free_text) char *env = secret_env_name(provider, key);
	CLEANUP(free_text) char *command = xasprintf("%s_command", key);
	CLEANUP(str_free) struct str ways = STR_INIT;

	str_addf(&ways, "set %s", env);
	if (value_spec(section_table(s), command))
		str_addf(&ways, ", or providers.%s.%s in %s", provider, command, user_shown);
	if (file && vendor_file_has(file, key))
		str_addf(&ways, ", or log in with `%s` (~/%s)", file->login, file->below_home);
	return err_set(err, has_account(provider, s) ? ERR_CREDENTIALS : ERR_NO_ACCOUNT,
		       "%s: no %s: %s", provider, key, str_text(&ways));
}

/* Sets the key to its value if some place has it. */
static int fill_key(const char *provider, struct section *s, const struct option_spec *spec,
		    struct err *err)
{
	CLEANUP(free_text) char *where = NULL;
	char *value = NULL;
	int result = find_secret(&value, &where, provider, s, spec, err);

	if (result == 0 && value) {
		if (spec->flags & OPTION_SECRET) {
			log_secret(value);
			result = check_secret(value, err) < 0
					 ? err_wrap(err, "%s: %s", where, spec->key)
					 : 0;
		}
		if (result == 0)
			section_set_text(s, spec->key, value, where);
	}
	text_wipe(value);
	return result;
}

int secrets_fill(const char *provider, struct section *s, const char *user_shown, struct err *err)
{
	const struct vendor_file *file = find_vendor_file(provider);
	const char *first_missing = NULL;

	for (const struct option_spec *spec = section_table(s); spec->key; spec++) {
		bool secret = spec->flags & OPTION_SECRET;
		if (spec->type != OPTION_TEXT ||
		    (!secret && !(file && vendor_file_has(file, spec->key))))
			continue;
		if (fill_key(provider, s, spec, err) < 0)
			return -1;
		if (!secret)
			continue;
		log_secret(section_text(s, spec->key));
		if ((spec->flags & OPTION_REQUIRED) && !section_text(s, spec->key) &&
		    !first_missing)
			first_missing = spec->key;
	}
	return first_missing ? err_missing(provider, s, first_missing, user_shown, err) : 0;
}
