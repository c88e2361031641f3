/* repo.c - finds the git repository of a folder by reading files. */
#include "repo.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "path.h"
#include "str.h"

enum { LINE_MAX_BYTES = 8192, CONFIG_MAX_BYTES = 1 << 20 };

void repo_free(struct repo *repo)
{
	free(repo->top);
	free(repo->dir);
	free(repo->common);
}

static char *real_of(const char *path)
{
	char real[PATH_MAX];

	return realpath(path, real) ? xstrdup(real) : NULL;
}

static bool is_folder(const char *dir, const char *name)
{
	CLEANUP(free_text) char *path = path_join(dir, name);
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The first line of a small plain file, without `label` before it. NULL: not such a file. */
static char *read_line(const char *dir, const char *name, const char *label)
{
	CLEANUP(free_text) char *path = path_join(dir, name);
	CLEANUP(str_free) struct str text = STR_INIT;

	if (path_read_plain(path, LINE_MAX_BYTES, &text, NULL) < 0 ||
	    !starts_with(str_text(&text), label))
		return NULL;
	const char *line = str_text(&text) + strlen(label);
	return xstrndup(line, strcspn(line, "\r\n"));
}

/* ---- what git takes for its folder ---- */

/* HEAD names a branch or a commit. */
static bool has_head(const char *dir)
{
	CLEANUP(free_text) char *path = path_join(dir, "HEAD");
	CLEANUP(free_text) char *line = read_line(dir, "HEAD", "");
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n > 0)
		return n > 5 && !memcmp(target, "refs/", 5);
	return line && (starts_with(line, "ref:") || isxdigit((unsigned char)line[0]));
}

static bool is_git_dir(const char *dir)
{
	CLEANUP(free_text) char *shared = read_line(dir, "commondir", "");
	CLEANUP(free_text) char *common = shared ? path_join(dir, shared) : xstrdup(dir);

	return has_head(dir) && is_folder(common, "objects") && is_folder(common, "refs");
}

/* ---- whom it belongs to ---- */

static bool is_trusted(uid_t owner)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;

	return owner == geteuid() || owner == 0 ||
	       (sudo && (uid_t)strtoul(sudo, NULL, 10) == owner);
}

static int check_owner(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_set(err, ERR_CONFIG, "%s: %m", path);
	if (is_trusted(st.st_uid))
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s belongs to another user (%lu), who can change what git does: copy the "
		       "project, or change its owner",
		       path, (unsigned long)st.st_uid);
}

/* ---- .git that leads to another folder ---- */

/* A linked working tree: its folder lies in that of the repository, and names `.git` back. */
static bool is_worktree_of(const char *dir, const char *top, char **common)
{
	CLEANUP(free_text) char *back = read_line(dir, "gitdir", "");
	CLEANUP(free_text) char *named = back ? path_join(dir, back) : NULL;
	CLEANUP(free_text) char *folder = named ? path_dir(named) : NULL;
	CLEANUP(free_text) char *real = folder ? real_of(folder) : NULL;
	CLEANUP(free_text) char *shared = read_line(dir, "commondir", "");
	CLEANUP(free_text) char *path = shared ? path_join(dir, shared) : NULL;
	CLEANUP(free_text) char *found = path ? real_of(path) : NULL;
	CLEANUP(free_text) char *trees = found ? path_join(found, "worktrees") : NULL;

	if (!real || strcmp(real, top) || strcmp(path_base(named), ".git") || !trees ||
	    !path_is_below(dir, trees))
		return false;
	*common = TAKE(found);
	return true;
}

/* Whether a line of a config is `worktree = TOP`. */
static bool names_tree(const char *line, size_t len, const char *dir, const char *top)
{
	CLEANUP(free_text) char *text = xstrndup(line, len);
	char *at = text + strspn(text, " \t");

	if (strncasecmp(at, "worktree", 8))
		return false;
	at += 8;
	at += strspn(at, " \t");
	if (*at++ != '=')
		return false;
	at += strspn(at, " \t\"");
	for (size_t n = strlen(at); n && strchr(" \t\r\"", at[n - 1]); n--)
		at[n - 1] = '\0';
	CLEANUP(free_text) char *path = path_join(dir, at);
	CLEANUP(free_text) char *real = real_of(path);
	return real && !strcmp(real, top);
}

/* A submodule, or a folder of `git clone --separate-git-dir` that says so. */
static bool is_tree_of_config(const char *dir, const char *top)
{
	CLEANUP(free_text) char *path = path_join(dir, "config");
	CLEANUP(free_text) char *shared = path_join(dir, "commondir");
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *line;
	size_t len;

	if (path_exists(shared) || path_read_plain(path, CONFIG_MAX_BYTES, &text, NULL) < 0)
		return false;
	for (const char *at = str_text(&text); (line = str_next_line(&at, &len));)
		if (names_tree(line, len, dir, top))
			return true;
	return false;
}

static int take_elsewhere(struct repo *r, const char *dir, struct err *err)
{
	CLEANUP(free_text) char *real = real_of(dir);
	CLEANUP(free_text) char *common = NULL;

	if (!real || !is_git_dir(real))
		return err_set(err, ERR_CONFIG, "%s/.git leads to %s, which is not a git folder",
			       r->top, dir);
	if (!is_worktree_of(real, r->top, &common) && is_tree_of_config(real, r->top))
		common = xstrdup(real);
	if (!common)
		return err_set(err, ERR_CONFIG,
			       "%s/.git leads to %s, which does not name this folder: if both are "
			       "yours, run `git config core.worktree` there with it",
			       r->top, real);
	if (check_owner(real, err) < 0 || check_owner(common, err) < 0)
		return -1;
	r->dir = TAKE(real);
	r->common = TAKE(common);
	return 1;
}

/* ---- the search ---- */

/* r->top/.git. 0: git takes it for nothing and looks above. */
static int judge(struct repo *r, struct err *err)
{
	CLEANUP(free_text) char *git = path_join(r->top, ".git");
	CLEANUP(free_text) char *shared = path_join(git, "commondir");
	struct stat st;

	if (lstat(git, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return is_git_dir(git) ? take_elsewhere(r, git, err) : 0;
	if (S_ISREG(st.st_mode)) {
		CLEANUP(free_text) char *named = read_line(r->top, ".git", "gitdir: ");
		CLEANUP(free_text) char *dir = named ? path_join(r->top, named) : NULL;
		if (!dir)
			return err_set(err, ERR_CONFIG, "%s is not a file of git", git);
		return check_owner(git, err) < 0 ? -1 : take_elsewhere(r, dir, err);
	}
	if (!S_ISDIR(st.st_mode) || !is_git_dir(git))
		return 0;
	if (path_exists(shared))
		return err_set(err, ERR_CONFIG,
			       "%s takes its commits from another repository (commondir): use a "
			       "worktree that git made",
			       git);
	if (check_owner(git, err) < 0)
		return -1;
	r->dir = TAKE(git);
	r->common = xstrdup(r->dir);
	return 1;
}

/* A pipe or device in the place of a file would hold up git for ever. */
static int check_files(const struct repo *r, struct err *err)
{
	CLEANUP(free_text) char *branch = read_line(r->dir, "HEAD", "ref: ");
	const char *const names[] = {
		"config", "config.worktree", "index", "packed-refs", "shallow", "HEAD", branch};
	const char *const dirs[] = {r->dir, strcmp(r->dir, r->common) ? r->common : NULL};

	for (size_t d = 0; d < ARRAY_LEN(dirs) && dirs[d]; d++)
		for (size_t i = 0; i < ARRAY_LEN(names) && names[i]; i++) {
			CLEANUP(free_text) char *path = path_join(dirs[d], names[i]);
			struct stat st;
			if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
				return err_set(err, ERR_CONFIG, "%s is not a plain file", path);
		}
	return 0;
}

int repo_find(struct repo *out, const char *folder, struct err *err)
{
	CLEANUP(repo_free) struct repo r = {.top = real_of(folder)};
	struct stat st;
	dev_t device;

	if (!r.top || stat(r.top, &st) < 0)
		return 0;
	device = st.st_dev;
	for (;;) {
		int found = judge(&r, err);
		if (found > 0 && check_files(&r, err) < 0) {
			free(r.dir);
			free(r.common);
			r.dir = r.common = NULL;
			found = -1;
		}
		if (found) {
			*out = r;
			r = (struct repo){0};
			return found;
		}
		if (!strcmp(r.top, "/"))
			return 0;
		char *above = path_dir(r.top);
		free(r.top);
		r.top = above;
		if (stat(r.top, &st) < 0 || st.st_dev != device)
			return 0;
	}
}

bool repo_is_bare(struct repo *out, const char *folder)
{
	CLEANUP(free_text) char *real = real_of(folder);
	CLEANUP(free_text) char *shared = real ? path_join(real, "commondir") : NULL;

	if (!real || !is_git_dir(real) || path_exists(shared) || check_owner(real, NULL) < 0)
		return false;
	CLEANUP(repo_free) struct repo r = {.dir = xstrdup(real), .common = xstrdup(real)};
	if (check_files(&r, NULL) < 0)
		return false;
	*out = r;
	r = (struct repo){0};
	return true;
}

/* ---- whose objects ---- */

/* Returns the first link in the folder; NULL: none. */
static char *link_in(const char *folder)
{
	DIR *dir = opendir(folder);
	char *found = NULL;

	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		CLEANUP(free_text) char *path = path_join(folder, e->d_name);
		struct stat st;
		if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
			found = TAKE(path);
	}
	if (dir)
		closedir(dir);
	return found;
}

static char *other_store(const struct repo *repo)
{
	CLEANUP(free_text) char *objects = path_join(repo->common, "objects");
	CLEANUP(free_text) char *packs = path_join(objects, "pack");
	CLEANUP(free_text) char *list = path_join(objects, "info/alternates");
	struct stat st;

	if (lstat(objects, &st) < 0 || !S_ISDIR(st.st_mode))
		return TAKE(objects);
	char *link = link_in(objects);
	if (!link)
		link = link_in(packs);
	if (!link && lstat(list, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size))
		link = TAKE(list);
	return link;
}

int repo_check_objects(const struct repo *repo, struct err *err)
{
	CLEANUP(free_text) char *store = other_store(repo);

	if (!store)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s: this repository borrows commits from another one: run `git repack -a "
		       "-d` there, then remove that file or link",
		       store);
}
