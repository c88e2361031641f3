/* config.c - opens a config (its files, then the environment) and looks up its values. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/path.h"
#include "config_keys.h"
#include "real_path.h"
#include "secrets.h"
#include "state.h"
#include "trust.h"
#include "value.h"

/* ---- the environment ---- */

static bool ends_in_command(const char *key)
{
	return ends_with(key, "_command");
}

/* Reads RUNPOD_API_URL for `api_url` of "runpod". Secrets are read only when the account is used.
 */
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

/* ---- open ---- */

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

static int finish(struct config *c, const struct config_source *ask, struct err *err)
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

static int load(struct config *c, const struct config_source *ask, struct err *err)
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
	open_accounts(c, ask->providers);
	return config_read_both(c, ask, err) < 0 ? -1 : finish(c, ask, err);
}

int config_open(struct config **out, const struct config_source *ask, struct err *err)
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

struct config_cap config_cap(const struct config *c, const char *key, bool project)
{
	const struct section *caps = section_group(c->top, "caps");
	size_t i = 0;

	while (strcmp(config_run_caps[i], key) != 0)
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
		if (config_is_read(c, s, spec))
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

void config_inputs_free(char **inputs)
{
	for (char **path = inputs; path && *path; path++)
		free(*path);
	free(inputs);
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
