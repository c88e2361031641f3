/* check.c - checks of several keys, and what a project's file may not do */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "state.h"
#include "trust.h"

/* Notes names in `provider` that no provider has, and an empty list. */
static int check_provider_names(const struct config *c, struct mistakes *m, struct err *err)
{
	size_t count = section_count(c->top, "provider");
	const char *where = section_where(c->top, "provider");

	for (size_t i = 0; i < count; i++) {
		const char *name = section_item(c->top, "provider", i);
		if (!config_find_account(c, name) &&
		    config_err_unknown_provider(c, where, name, err) < 0 &&
		    mistakes_note(m, "provider", err) < 0)
			return -1;
	}
	if (count)
		return 0;
	err_set(err, ERR_CONFIG, "%s: provider is empty; name at least one, like [\"local\"]",
		where);
	return mistakes_note(m, "provider", err);
}

/* The real paths of the folders in allow_paths, NULL-terminated. Free with texts_free(). */
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

/* Notes what a project may not do. Returns 0 if reading continues. */
static int note_out_of_bounds(struct config *c, struct err *err)
{
	c->out_of_bounds = true;
	return mistakes_note(c->mistakes, NULL, err);
}

/* Notes folders that even the user must not allow. */
static int check_allow_paths(struct config *c, struct err *err)
{
	for (size_t i = 0; i < section_count(c->top, "allow_paths"); i++) {
		CLEANUP(free_text)
		char *path = value_path("", section_item(c->top, "allow_paths", i));
		if (trust_check_allowed(path, c->dir, err) == 0)
			continue;
		err_wrap(err, "%s: allow_paths", section_where(c->top, "allow_paths"));
		if (note_out_of_bounds(c, err) < 0)
			return -1;
	}
	return 0;
}

/* Whether the project's file sets the key or leaves its default: neither the user's file nor a
 * flag sets it. Only for a config with a project's file. */
static bool is_not_users_choice(const struct config *c, const struct section *s, const char *key)
{
	const char *where = section_where(s, key);

	return !section_has(s, key) ||
	       (starts_with(where, c->project_shown) && where[strlen(c->project_shown)] == ':');
}

bool config_is_input_path(const struct config *c, const struct section *s,
			  const struct option_spec *spec)
{
	return spec->type == OPTION_PATH && strcmp(spec->key, "output") &&
	       section_text(s, spec->key) && is_not_users_choice(c, s, spec->key);
}

bool config_has_project_file(const struct config *c)
{
	return c->project_shown != NULL;
}

bool config_is_set_by_user(const struct config *c, const struct section *s, const char *key)
{
	const char *where = section_where(s, key);

	return section_has(s, key) && starts_with(where, c->user_shown) &&
	       where[strlen(c->user_shown)] == ':';
}

bool config_is_set_by_project(const struct config *c, const struct section *s, const char *key)
{
	return c->project_shown && is_not_users_choice(c, s, key);
}

/* ERR_CONFIG, with file and line, if the project may not name this absolute path. */
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
	texts_free(allowed);
	return result < 0 ? err_wrap(err, "%s", section_where(s, name)) : 0;
}

/* Notes the paths of a section that the project's file names and may not. */
static int check_paths_of(struct config *c, const struct section *s, const char *group,
			  struct err *err)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++) {
		if (spec->type != OPTION_PATH || !section_text(s, spec->key) ||
		    !is_not_users_choice(c, s, spec->key))
			continue;
		CLEANUP(free_text) char *path = path_join(c->dir, section_text(s, spec->key));
		if (check_path(c, s, group, spec->key, path, err) < 0 &&
		    note_out_of_bounds(c, err) < 0)
			return -1;
	}
	return 0;
}

int config_may_read(const struct config *c, const char *key, const char *real, struct err *err)
{
	if (!c->project_shown || !c->job || !is_not_users_choice(c, c->job, key))
		return 0;
	return check_path(c, c->job, "job", key, real, err);
}

/* Refuses a project's file that another user owns, who could change what is spent and which
 * variables are sent to pods. Root's files pass, and those below allow_paths. */
static int check_owner(const struct config *c, struct err *err)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	uid_t owner = c->project_owner;
	char **allowed = allowed_folders(c);
	bool fine = owner == geteuid() || owner == 0 ||
		    (sudo && (uid_t)strtoul(sudo, NULL, 10) == owner);

	for (char **folder = allowed; *folder && !fine; folder++)
		fine = trust_is_below(c->dir, *folder);
	texts_free(allowed);
	if (fine)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s belongs to another user (%lu), who can change what you spend and send "
		       "to pods: copy it, or allow its folder with "
		       "--allow-path %.200s",
		       c->project_shown, (unsigned long)owner, c->dir);
}

/* Notes a provider's key among the variables that `env` of a section sends to pods. path: "job." */
static int check_env_of(struct config *c, const struct section *s, const char *path,
			struct err *err)
{
	return trust_check_env(path, s, "env", c->providers, err) < 0
		       ? mistakes_note(c->mistakes, NULL, err)
		       : 0;
}

/* Notes what the config may not do with keys, paths and files of others. */
static int check_bounds(struct config *c, struct err *err)
{
	bool has_stages = c->job && value_spec(section_table(c->job), "then");

	if (c->job && check_env_of(c, c->job, "job.", err) < 0)
		return -1;
	for (size_t i = 0; has_stages && i < section_count(c->job, "then"); i++)
		if (check_env_of(c, section_group_at(c->job, "then", i), "job.then.", err) < 0)
			return -1;
	if (check_env_of(c, section_group(c->top, "deliver"), "deliver.", err) < 0 ||
	    check_allow_paths(c, err) < 0)
		return -1;
	/* the user may have wanted to allow these paths */
	if (!c->project_shown || c->out_of_bounds)
		return 0;
	if (check_owner(c, err) < 0 && note_out_of_bounds(c, err) < 0)
		return -1;
	if (c->job && check_paths_of(c, c->job, "job", err) < 0)
		return -1;
	return check_paths_of(c, section_group(c->top, "code"), "code", err);
}

/* The check for commands that only release pods: a mistake in the user's own file is a warning,
 * but an unknown provider in a flag stays an error. */
static int check_leniently(const struct config *c, struct err *err)
{
	bool by_flag = starts_with(section_where(c->top, "provider"), "--");

	if (keys_check(c->top, NULL, err) < 0 && config_warn_if_lenient(c, err) < 0)
		return -1;
	if (check_provider_names(c, NULL, err) == 0)
		return 0;
	return by_flag ? -1 : config_warn_if_lenient(c, err);
}

bool config_may_read_files(const struct config *c)
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
	if (check_provider_names(c, c->mistakes, err) < 0 || check_bounds(c, err) < 0)
		return -1;
	if (c->job && c->job_ops->check_conf &&
	    c->job_ops->check_conf(c->job, c->mistakes, err) < 0)
		return -1;
	return mistakes_end(c->mistakes, err);
}
