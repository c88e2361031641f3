/* sources.c - finds and reads the files of a config: the user's, then the project's. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/path.h"
#include "places.h"
#include "real_path.h"
#include "state.h"
#include "trust.h"

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

static void source_set(struct source *s, const char *real, const char *shown)
{
	s->path = xstrdup(real);
	s->name = xstrdup(real);
	s->shown = xstrdup(shown);
	s->dir = path_dir(real);
}

/* Returns 1 if it exists, 0 if not. */
static int find_user(struct source *s)
{
	CLEANUP(free_text) char *path = config_user_file();
	char real[PATH_MAX];

	if (!path || !realpath(path, real))
		return 0;
	CLEANUP(free_text) char *shown = home_shorten(path);
	source_set(s, real, shown);
	s->trusted = true;
	return 1;
}

/* Recognizes the user's own file by any path. It may be a link, for example into a folder of
 * dotfiles. */
static bool is_user_file(const char *path)
{
	CLEANUP(free_text) char *file = config_user_file();
	CLEANUP(free_text) char *its = file ? path_dir(file) : NULL;
	CLEANUP(free_text) char *above = path_dir(path);
	char a[PATH_MAX], b[PATH_MAX];

	return file && realpath(its, a) && realpath(above, b) && !strcmp(a, b) &&
	       !strcmp(path_base(file), path_base(path));
}

/* Refuses a link out of its repository: its target's folder would count as the project. Refuses
 * burst's state folder: its copies of projects' files must not run as projects. */
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

/* NULL: no current folder. The caller frees it. */
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

/* Finds the same file in the commit. The working tree may lack it. */
static int find_in_tree(const struct config_tree *tree, const char *path, struct source *s,
			struct err *err)
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
	source_set(s, name, path);
	free(s->path);
	s->path = xstrdup(real);
	return check_place(name, false, name, err) < 0 ? -1 : 1;
}

static int find_project(const struct config_source *ask, struct source *s, struct err *err)
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
		if (errno == ENOENT && is_folder(ask->file))
			return err_set(err, ERR_CONFIG,
				       "%s has no burst.cfg: `burst init %s` writes one; or name a "
				       "text in it",
				       ask->file, ask->file);
		return err_set(err, ERR_CONFIG, "%s: %s", path, strerror(errno));
	}
	source_set(s, real, path);
	s->elsewhere = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	return check_place(path, s->elsewhere, real, err) < 0 ? -1 : 1;
}

int config_find(const char *file, char **path, struct err *err)
{
	CLEANUP(source_free) struct source s = {0};
	int found = find_project(&(struct config_source){.file = file}, &s, err);

	if (found > 0)
		*path = xstrdup(s.path);
	return found;
}

char *config_named(const char *file)
{
	CLEANUP(free_text) char *inside = path_join(file ? file : ".", "burst.cfg");
	CLEANUP(free_text) char *path = path_here(!file || is_folder(file) ? inside : file);

	return path ? real_path(path) : xstrdup(inside);
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

/* Makes the project read the commit's files, under the same names. */
static void move_paths_of(struct config *c, struct section *s)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++) {
		if (!config_is_read(c, s, spec))
			continue;
		CLEANUP(free_text) char *named = path_join(c->dir, section_text(s, spec->key));
		CLEANUP(free_text) char *plain = real_path_plain(named);
		CLEANUP(free_text) char *moved = real_path_move(plain, c->tree->top, c->tree->copy);
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

/* Keeps the user's caps: a project's file could otherwise raise them. */
static void keep_user_caps(struct config *c)
{
	const struct section *caps = section_group(c->top, "caps");

	for (size_t i = 0; i < CONFIG_RUN_CAPS; i++)
		if (section_has(caps, config_run_caps[i]))
			c->user_caps[i] = (struct config_cap){
				true, section_int(caps, config_run_caps[i]),
				xstrdup(section_where(caps, config_run_caps[i]))};
}

int config_read_both(struct config *c, const struct config_source *ask, struct err *err)
{
	CLEANUP(source_free) struct source user = {0};
	CLEANUP(source_free) struct source project = {0};
	int has_user = ask->project_only ? 0 : find_user(&user);
	int has_project = find_project(ask, &project, err);

	if (has_project < 0)
		return -1;
	if (has_project)
		set_project(c, &project);
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
		move_paths(c);
	return 0;
}
