/* config.c - opens a config (the files of the user and the project, then the environment and the
 * flags) and looks up its values */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/path.h"
#include "state.h"
#include "trust.h"
#include "secrets.h"

static const char *const run_cap_keys[CONFIG_RUN_CAPS] = {"per_day", "per_month"};

/* ---- sources ----
 * Finds and reads the files of a config: the user's, then the project's. */

/* The name in messages of a text that is not a file. */
#define GENERATED "generated burst.cfg"

/* For CLEANUP(source_free). */
static void source_free_cleanup(struct source *s)
{
	free(s->path);
	free(s->name);
	free(s->shown);
	free(s->dir);
}

/* real: the file's real path; shown: its name in messages. */
static void set_source_paths(struct source *s, const char *real, const char *shown)
{
	s->path = xstrdup(real);
	s->name = xstrdup(real);
	s->shown = xstrdup(shown);
	s->dir = path_dir(real);
}

/* Returns 1 if there is such a file, 0 if not. */
static int find_user_file(struct source *s)
{
	CLEANUP(free_text) char *path = config_user_file();
	char real[PATH_MAX];

	if (!path || !realpath(path, real))
		return 0;
	CLEANUP(free_text) char *shown = home_shorten(path);
	set_source_paths(s, real, shown);
	s->trusted = true;
	return 1;
}

/* Recognizes the user's file by any path: it may be a link into a folder of dotfiles. */
static bool is_users_own_file(const char *path)
{
	CLEANUP(free_text) char *file = config_user_file();
	CLEANUP(free_text) char *its = file ? path_dir(file) : NULL;
	CLEANUP(free_text) char *above = path_dir(path);
	char a[PATH_MAX], b[PATH_MAX];

	return file && realpath(its, a) && realpath(above, b) && !strcmp(a, b) &&
	       !strcmp(path_base(file), path_base(path));
}

/* Refuses a link out of its repository, whose target's folder would count as the project, and
 * burst's state folder, whose copies of projects' files must not run as projects. */
static int check_place_of_project(const char *path, bool is_link, const char *real, struct err *err)
{
	CLEANUP(free_text) char *state = places_state();
	CLEANUP(free_text) char *above = path_dir(path);
	char folder[PATH_MAX];

	if (is_link && !realpath(above, folder))
		return err_set(err, ERR_CONFIG, "%s: %s", above, strerror(errno));
	if (is_link && !is_users_own_file(path)) {
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

/* Returns NULL if the path is relative and there is no current folder. The caller frees it. */
static char *absolute_path(const char *path)
{
	CLEANUP(free_text) char *here = getcwd(NULL, 0);

	return here || path[0] == '/' ? path_join(here ? here : "/", path) : NULL;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Finds the file in the commit; the working tree may lack it. Returns 1, or -1 with *err. */
static int find_project_in_commit(const struct config_tree *tree, const char *path,
				  struct source *s, struct err *err)
{
	CLEANUP(free_text) char *named = real_path(path);
	CLEANUP(free_text) char *copied = real_path_move(named, tree->top, tree->copy);
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
	set_source_paths(s, name, path);
	free(s->path);
	s->path = xstrdup(real);
	return check_place_of_project(name, false, name, err) < 0 ? -1 : 1;
}

/* Returns 1, 0 if the folder has no burst.cfg and none was named, -1 with *err. */
static int find_project_file(const struct config_source *ask, struct source *s, struct err *err)
{
	CLEANUP(free_text) char *path = xstrdup(ask->file ? ask->file : "burst.cfg");
	char real[PATH_MAX];
	struct stat st;

	if (ask->user_only)
		return 0;
	s->has_job = true;
	if (ask->text) {
		s->text = ask->text;
		set_source_paths(s, ask->file, GENERATED);
		return 1;
	}
	if (ask->tree) {
		CLEANUP(free_text) char *here = absolute_path(path);
		return here ? find_project_in_commit(ask->tree, here, s, err)
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
		if (errno == ENOENT && is_folder(ask->file))
			return err_set(err, ERR_CONFIG,
				       "%s has no burst.cfg: `burst init %s` writes one; or name a "
				       "text in it",
				       ask->file, ask->file);
		return err_set(err, ERR_CONFIG, "%s: %s", path, strerror(errno));
	}
	set_source_paths(s, real, path);
	s->elsewhere = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	return check_place_of_project(path, s->elsewhere, real, err) < 0 ? -1 : 1;
}

int config_find(const char *file, char **path, struct err *err)
{
	CLEANUP(source_free) struct source s = {0};
	int found = find_project_file(&(struct config_source){.file = file}, &s, err);

	if (found > 0)
		*path = xstrdup(s.path);
	return found;
}

char *config_named(const char *file)
{
	CLEANUP(free_text) char *inside = path_join(file ? file : ".", "burst.cfg");
	CLEANUP(free_text) char *path = absolute_path(!file || is_folder(file) ? inside : file);

	return path ? real_path(path) : xstrdup(inside);
}

static void set_project_paths(struct config *c, const struct source *project)
{
	free(c->dir);
	c->path = xstrdup(project->name);
	c->dir = xstrdup(project->dir);
	c->read_path = xstrdup(project->path);
	c->read_dir = path_dir(project->path);
}

/* Replaces the paths in s that the project reads by those of the commit's copy. */
static void read_section_from_commit(struct config *c, struct section *s)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++) {
		if (!config_is_input_path(c, s, spec))
			continue;
		CLEANUP(free_text) char *named = path_join(c->dir, section_text(s, spec->key));
		CLEANUP(free_text) char *plain = real_path_plain(named);
		CLEANUP(free_text) char *moved = real_path_move(plain, c->tree->top, c->tree->copy);
		CLEANUP(free_text) char *where = xstrdup(section_where(s, spec->key));
		section_set_text(s, spec->key, moved, where);
	}
}

static void read_paths_from_commit(struct config *c)
{
	if (c->job)
		read_section_from_commit(c, c->job);
	if (section_has(c->top, "code"))
		read_section_from_commit(
			c, section_set_group(c->top, "code",
					     section_where(section_group(c->top, "code"), NULL)));
}

/* Keeps the user's caps: a project's file could otherwise raise them. */
static void keep_user_caps(struct config *c)
{
	const struct section *caps = section_group(c->top, "caps");

	for (size_t i = 0; i < CONFIG_RUN_CAPS; i++)
		if (section_has(caps, run_cap_keys[i]))
			c->user_caps[i] =
				(struct config_cap){true, section_int(caps, run_cap_keys[i]),
						    xstrdup(section_where(caps, run_cap_keys[i]))};
}

/* Finds and reads the user's file and the project's. ERR_CONFIG. */
static int read_both_files(struct config *c, const struct config_source *ask, struct err *err)
{
	CLEANUP(source_free) struct source user = {0};
	CLEANUP(source_free) struct source project = {0};
	int has_user = ask->project_only ? 0 : find_user_file(&user);
	int has_project = find_project_file(ask, &project, err);

	if (has_project < 0)
		return -1;
	if (has_project)
		set_project_paths(c, &project);
	if (has_user && has_project && !project.text && !strcmp(user.path, project.path)) {
		user.has_job = true; /* `burst run FILE` with the user's own file */
		has_project = 0;
	}
	user.user_shown = project.user_shown = c->user_shown;
	user.mistakes = project.mistakes = c->mistakes;
	if (has_project && !project.text)
		c->project_shown = xstrdup(project.shown);
	if (has_user && config_read_source(c, &user, err) < 0)
		return -1;
	keep_user_caps(c);
	if (has_project && config_read_source(c, &project, err) < 0)
		return -1;
	c->project_owner = project.owner;
	if (c->tree && c->project_shown)
		read_paths_from_commit(c);
	return 0;
}

/* ---- flags ----
 * Sets keys from the command line over those of the files. */

/* Descends from s along "a.b.c", making groups; *key becomes "c". flag: where they are set.
 * Returns NULL if the tables have no such group. */
static struct section *section_of_last_part(struct section *s, const char **key, const char *flag)
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

/* Returns the section in which the path begins, and moves *key behind "job." or "providers.NAME.";
 * NULL: there is no job, or no such provider. */
static struct section *section_of_first_part(const struct config *c, const char **key)
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
	struct account *account = config_find_account(c, provider);
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
	const struct section *s = key[0] ? section_of_first_part(c, &key) : NULL;

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

bool config_key_accumulates(const char *key)
{
	return !strcmp(key, "allow_paths") || !strcmp(key, "volumes");
}

char *config_absolute_items(const char *key, const char *text)
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

/* Adds the items of a flag to those that the user's file allows. */
static int add_items_to_key(struct config *c, const char *key, const char *text, const char *flag,
			    struct err *err)
{
	CLEANUP(free_text) char *added = config_absolute_items(key, text);
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
	struct section *s = section_of_first_part(c, &rest);
	CLEANUP(free_text) char *here = getcwd(NULL, 0);

	if (config_key_accumulates(key))
		return add_items_to_key(c, key, text, flag, err);
	if (!s && mistakes_about(c->mistakes, "job"))
		return 0; /* config_check() reports an unreadable one */
	if (!s)
		return err_set(err, ERR_USAGE, "%s: no job in this config, so %s cannot be set",
			       flag, key);
	s = section_of_last_part(s, &rest, flag);
	const struct option_spec *spec = s ? value_spec(section_table(s), rest) : NULL;
	if (!spec)
		return err_set(err, ERR_USAGE, "%s: this job type has no %s", flag, key);
	if (value_set(s, spec, text, here ? here : "/", flag, err) < 0)
		return err_wrap(err, "%s", flag);
	return 0;
}

/* ---- config ----
 * Opens a config (its files, then the environment) and looks up its values. */

/* ---- the environment ---- */

static bool ends_in_command(const char *key)
{
	return ends_with(key, "_command");
}

/* Reads RUNPOD_API_URL for `api_url` of "runpod", but no secrets: not every account is used. */
static int read_account_environment(struct account *account, struct mistakes *m, struct err *err)
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

static void make_accounts(struct config *c, const struct provider_ops *const *providers)
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
		if (read_account_environment(&c->accounts[i], c->mistakes, err) < 0)
			return -1;
	return 0;
}

/* ---- open ---- */

/* Notes each required key that is missing. path: of the section, "job.". */
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

/* Takes job.name, else the folder's name. ERR_CONFIG: not a plain file name. */
static int set_job_name(struct config *c, struct err *err)
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

/* Reads the environment. Checks required keys, and whether there is a job. */
static int complete_config(struct config *c, const struct config_source *ask, struct err *err)
{
	if (read_environments(c, err) < 0)
		return -1;
	if (c->job)
		return check_required(c, c->job, "job.", err) < 0 ||
				       (set_job_name(c, err) < 0 &&
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

static int read_config(struct config *c, const struct config_source *ask, struct err *err)
{
	CLEANUP(free_text) char *user = config_user_file();

	c->user_shown = user ? home_shorten(user) : xstrdup("~/.config/burst/burst.cfg");
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
	make_accounts(c, ask->providers);
	return read_both_files(c, ask, err) < 0 ? -1 : complete_config(c, ask, err);
}

int config_open(struct config **out, const struct config_source *ask, struct err *err)
{
	struct config *c = xcalloc(1, sizeof(*c));

	if (read_config(c, ask, err) < 0) {
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
	for (size_t i = 0; i < CONFIG_RUN_CAPS; i++)
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

/* ---- getters ---- */

const struct section *config_top(const struct config *c)
{
	return c->top;
}

struct config_cap config_user_cap(const struct config *c, const char *key)
{
	size_t i = 0;

	while (strcmp(run_cap_keys[i], key) != 0)
		i++;
	return c->user_caps[i];
}

struct config_cap config_project_cap(const struct config *c, const char *key)
{
	const struct section *caps = section_group(c->top, "caps");
	struct config_cap user = config_user_cap(c, key);

	if (!section_has(caps, key) || (user.set && !strcmp(user.where, section_where(caps, key))))
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

/* Adds a path below the tree's copy, by its name there. Skips other paths. */
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
		if (config_is_input_path(c, s, spec))
			add_input(c, in, section_text(s, spec->key));
}

char **config_inputs(const struct config *c)
{
	struct inputs in = {0};

	if (c->tree && c->path) {
		CLEANUP(free_text)
		char *file = real_path_move(c->path, c->tree->top, c->tree->copy);
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

const struct section *config_provider(const struct config *c, const char *name)
{
	const struct account *account = config_find_account(c, name);

	return account ? account->section : NULL;
}

const struct section *config_account(struct config *c, const char *name, struct err *err)
{
	struct account *account = config_find_account(c, name);

	if (!account) {
		err_set(err, ERR_CONFIG, "unknown provider \"%.40s\"", name);
		return NULL;
	}
	if (!account->looked_up && secrets_fill(name, account->section, c->user_shown, err) < 0)
		return NULL;
	account->looked_up = true;
	return account->section;
}
