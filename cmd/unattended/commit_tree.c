/* commit_tree.c - checks a commit out into a folder of its own. */
#include "commit_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/err.h"
#include "base/path.h"
#include "config/trust.h"

#define LFS_FIRST_LINE "version https://git-lfs.github.com/spec/"
enum { PATHS_MAX = 32, LFS_POINTER_MAX_BYTES = 1024 };

/* ---- the folder ---- */

/* Makes the folder t->place, locked, and t->copy in it, "files", beside git's own files. */
static int make_place(struct commit_tree *t, struct err *err)
{
	CLEANUP(free_text) char *dir = config_trees_dir();

	if (!dir)
		return err_set(
			err, ERR_LOCAL,
			"no home folder for the files of commits: set HOME or XDG_CACHE_HOME");
	t->copy = held_folder_new(dir, &t->lock, err);
	if (!t->copy)
		return -1;
	t->place = realpath(t->copy, NULL);
	if (!t->place)
		return err_set(err, ERR_LOCAL, "%s: %s", t->copy, strerror(errno));
	free(t->copy);
	t->copy = path_join(t->place, "files");
	return path_mkdirs(t->copy, 0700, err);
}

void commit_tree_free(struct commit_tree *t)
{
	if (!t)
		return;
	if (t->lock >= 0) {
		path_remove_closed_tree(t->place ? t->place : t->copy, NULL);
		close(t->lock);
	}
	repo_free(&t->repo);
	free(t->copy);
	free(t->place);
	free(t);
}

/* ---- files of the commit ---- */

struct listing {
	struct str text; /* from git ls-tree -z: "MODE TYPE ID\tPATH" each */
	bool links;
};

static void listing_free_cleanup(struct listing *l)
{
	str_free(&l->text);
}

/* Returns the next path whose mode begins with `mode` (NULL: any); NULL: no more. *at goes on; it
 * starts at the listing's text. */
static const char *next_path(const struct listing *l, const char **at, const char *mode)
{
	for (const char *stop = str_text(&l->text) + l->text.len; *at < stop;) {
		const char *entry = *at, *tab = strchr(entry, '\t');
		*at += strlen(entry) + 1;
		if (tab && (!mode || starts_with(entry, mode)))
			return tab + 1;
	}
	return NULL;
}

/* Lists the commit's files at and below these paths; paths[0] NULL: all files. */
static int list_paths(struct listing *l, const struct commit_tree *t, char *const *paths,
		      struct err *err)
{
	const char *words[PATHS_MAX + 10] = {"ls-tree", "-r", "-z", "--full-tree", t->commit, "--"};

	for (size_t count = 6; *paths; paths++)
		words[count++] = *paths;
	str_reset(&l->text);
	if (git_call(&t->repo, &l->text, err, words))
		return err_wrap(err, "commit %.12s", t->commit);
	const char *at = str_text(&l->text);
	l->links = next_path(l, &at, "120000 ") != NULL;
	return 0;
}

/* Whether path is folder, or lies below it. */
static bool is_within(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return !strcmp(folder, ".") ||
	       (!strncmp(path, folder, len) && (!path[len] || path[len] == '/'));
}

static bool has_path(const struct listing *l, const char *path)
{
	const char *at = str_text(&l->text);

	for (const char *name; (name = next_path(l, &at, NULL));)
		if (is_within(name, path))
			return true;
	return false;
}

/* Whether the commit has each path, and no link below them, which could lead elsewhere. false also
 * for ".", which needs all files. */
static bool has_all_and_no_link(const struct listing *l, char *const *paths)
{
	size_t count = 0;

	for (; paths[count]; count++)
		if (!strcmp(paths[count], ".") || !has_path(l, paths[count]))
			return false;
	return !l->links;
}

/* Whether the copy has a Git LFS pointer in the file's place: git-lfs has not fetched the file. */
static bool is_lfs_pointer(const struct commit_tree *t, const char *name)
{
	CLEANUP(free_text) char *path = path_join(t->copy, name);
	CLEANUP(str_free) struct str text = STR_INIT;
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size <= LFS_POINTER_MAX_BYTES &&
	       path_read(path, LFS_POINTER_MAX_BYTES, &text, NULL) == 0 &&
	       starts_with(str_text(&text), LFS_FIRST_LINE);
}

static void warn_of_submodule(const struct commit_tree *t, const struct listing *l,
			      char *const *paths)
{
	const char *at = str_text(&l->text);

	for (const char *name; (name = next_path(l, &at, "160000 "));)
		for (char *const *path = paths; *path; path++)
			if (is_within(name, *path) || is_within(*path, name)) {
				log_line(LOG_WARN,
					 "commit %.12s: %s is a submodule: its files are not in "
					 "the commit, and are not read",
					 t->commit, name);
				return;
			}
}

/* Warns once of all files that Git LFS has not fetched. */
static void warn_of_lfs(const struct commit_tree *t, const struct listing *l)
{
	const char *at = str_text(&l->text), *first = NULL;
	size_t count = 0;

	for (const char *name; (name = next_path(l, &at, "100"));) {
		if (!is_lfs_pointer(t, name))
			continue;
		first = first ? first : name;
		count++;
	}
	if (count)
		log_line(LOG_WARN,
			 "commit %.12s: %zu file%s of Git LFS %s not here (%s): `git lfs install` "
			 "once, then `git lfs fetch`",
			 t->commit, count, count == 1 ? "" : "s", count == 1 ? "is" : "are", first);
}

int commit_tree_add(struct commit_tree *t, char *const *paths, struct err *err)
{
	static char *const all_files[] = {NULL};
	CLEANUP(listing_free) struct listing l = {.text = STR_INIT};
	size_t count = 0;

	while (paths[count])
		count++;
	if (t->whole || !count)
		return 0;
	if (list_paths(&l, t, count > PATHS_MAX ? all_files : paths, err) < 0)
		return -1;
	t->whole = count > PATHS_MAX || !has_all_and_no_link(&l, paths);
	if (git_export(&t->repo, t->commit, t->copy, t->place,
		       t->whole ? NULL : (const char *const *)paths, err) < 0 ||
	    (t->whole && list_paths(&l, t, all_files, err) < 0))
		return -1;
	warn_of_submodule(t, &l, paths);
	warn_of_lfs(t, &l);
	return 0;
}

bool commit_tree_suffices(const struct commit_tree *t, char *const *paths)
{
	CLEANUP(listing_free) struct listing l = {.text = STR_INIT};
	size_t count = 0;
	struct err none;

	while (paths[count])
		count++;
	return count <= PATHS_MAX && list_paths(&l, t, paths, &none) == 0 &&
	       (!strcmp(paths[count - 1], ".") || has_all_and_no_link(&l, paths));
}

/* ---- open ---- */

/* The path of the config in the commit: `file` as a path below the repository's top or, if the
 * commit has a folder there, burst.cfg in that folder. The caller frees it. NULL with *err: the
 * commit has neither. */
static char *config_path_in_commit(const struct commit_tree *t, const char *file, struct err *err)
{
	CLEANUP(free_text) char *below = real_path_move(file, t->repo.top, "");
	const char *name = below[0] == '/' ? below + 1 : below;
	CLEANUP(free_text) char *object = xasprintf("%s:%s", t->commit, name);
	CLEANUP(str_free) struct str type = STR_INIT;

	if (!trust_is_below(file, t->repo.top)) {
		err_set(err, ERR_CONFIG, "%s lies outside of the repository %s", file, t->repo.top);
		return NULL;
	}
	int status = GIT(&t->repo, &type, err, "cat-file", "-t", object);
	if (status > 0)
		err_set(err, ERR_CONFIG, "commit %.12s has no %s", t->commit, name);
	if (status)
		return NULL;
	if (!starts_with(str_text(&type), "tree"))
		return xstrdup(name);
	return name[0] ? path_join(name, "burst.cfg") : xstrdup("burst.cfg");
}

/* Fills *t, which the caller frees also on error. */
static int open_tree(struct commit_tree *t, const char *config, const char *commit, struct err *err)
{
	CLEANUP(free_text) char *here = getcwd(NULL, 0);
	CLEANUP(free_text) char *path = path_join(here ? here : "/", config ? config : "burst.cfg");
	CLEANUP(free_text) char *file = real_path(path);
	CLEANUP(free_text) char *dir = git_existing_folder(path);

	if (git_find(&t->repo, dir, err) < 0 || git_commit_id(&t->repo, commit, t->commit, err) < 0)
		return -1;
	CLEANUP(free_text) char *name = config_path_in_commit(t, file, err);
	if (!name || make_place(t, err) < 0)
		return -1;
	t->at = (struct config_tree){.top = t->repo.top, .copy = t->copy};
	return commit_tree_add(t, (char *[]){name, NULL}, err);
}

int commit_tree_open(struct commit_tree **out, const char *config, const char *commit,
		     struct err *err)
{
	struct commit_tree *t = xcalloc(1, sizeof(*t));

	t->lock = -1;
	if (open_tree(t, config, commit, err) < 0) {
		commit_tree_free(t);
		return -1;
	}
	*out = t;
	return 0;
}
