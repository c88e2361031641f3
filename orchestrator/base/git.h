/* git.h - finds the git repository of a folder without running git, and runs git, the only place
 * that does */
#ifndef BURST_BASE_GIT_H
#define BURST_BASE_GIT_H

#include "err.h"
#include "mem.h"
#include "str.h"

/* ---- repo ----
 * Finds the git repository of a folder by reading files, without running git: git would obey a
 * repository's config while it looks for it. */

/* All paths are real. */
struct repo {
	char *top;    /* the working tree's folder; NULL: none (a bare repository) */
	char *dir;    /* git's own folder for this working tree; NULL: it may not be used */
	char *common; /* git's folder shared by all working trees of the repository; usually the
			 same */
};

/* Finds the working tree that holds the folder, as git does: the nearest parent with a `.git`, on
 * the same file system. Bare repositories among its folders are folders like others.
 * Returns 1; 0: there is none; -1 (ERR_CONFIG): only `top` is set, since what `.git` says is not to
 * be followed: it belongs to another user, has a pipe or a device in the place of a file, or leads
 * to a folder that does not name this working tree back, as worktrees and submodules do (it may be
 * another repository of the user). Free with repo_free(). */
int repo_find(struct repo *out, const char *folder, struct err *err);
/* The repository apart from any working tree, whose HEAD may differ. Borrows. */
static inline struct repo repo_shared(const struct repo *repo)
{
	return (struct repo){.dir = repo->common, .common = repo->common};
}
void repo_free(struct repo *repo);

static inline void repo_free_cleanup(struct repo *repo)
{
	repo_free(repo);
}

/* ---- git ----
 * Runs the program git, the only place that does.
 *
 * A repository may have come with a project from anywhere, with its config, hooks and attributes.
 * So git never searches for one (see git.h), and runs no program that a repository names: no
 * hook, no file system monitor, no filter, no program for differences, pages, passwords,
 * signatures or ssh. It fetches nothing, and reads no replaced objects and no grafts. The config
 * of the user counts as ever. Variables that an outer git sets for its own children are removed
 * (in a hook: GIT_DIR and others). */

enum { GIT_ID = 65 }; /* size of a commit's full name: 40 or 64 hex digits */

/* Runs `git WORDS...` (NULL-terminated) in this repository for at most ten minutes (check-ignore:
 * two seconds), in its working tree's top folder if it has one. Returns its exit status; above 0
 * *err has git's error
 * (ERR_LOCAL). Returns -1 if it did not run to its end. out: its stdout; NULL: dropped. */
int git_call(const struct repo *repo, struct str *out, struct err *err, const char *const *words);
#define GIT(repo, out, err, ...) git_call(repo, out, err, (const char *const[]){__VA_ARGS__, NULL})
/* The same for what changes the repository: hooks that a config names do not run either. */
int git_change(const struct repo *repo, struct err *err, const char *const *words);
#define GIT_CHANGE(repo, err, ...) git_change(repo, err, (const char *const[]){__VA_ARGS__, NULL})

/* Removes an outer git's variables from this process's environment. */
void git_leave(void);

/* Finds the repository whose working tree holds this folder. ERR_CONFIG: there is none, or it is
 * not to be used (git.h). Free with repo_free(). */
int git_find(struct repo *out, const char *dir, struct err *err);
/* The same; or the folder is itself a bare repository. */
int git_find_any(struct repo *out, const char *dir, struct err *err);
/* The deepest existing folder of this path: a working tree may lack what a commit has. The caller
 * frees it. */
char *git_folder(const char *path);

/* Resolves a commit ("HEAD", "main", a short name) to its full name. ERR_CONFIG: there is none. */
int git_commit_id(const struct repo *repo, const char *name, char id[GIT_ID], struct err *err);

/* Writes the files of a commit (a full name) at these paths (NULL: all) to `folder`, which it
 * makes, as a checkout by this user's git would, with the filters of the user's own config.
 * scratch: a folder for git's own files, of the caller. ERR_CONFIG: a file needs a filter that only
 * the repository's own config names. */
int git_export(const struct repo *repo, const char *commit, const char *folder, const char *scratch,
	       const char *const *paths, struct err *err);

/* Takes a setting. key: its first and last part are in lower case. own: the repository's own config
 * says so, not the user's. */
typedef void git_setting(void *ctx, const char *key, const char *value, bool own);
/* Calls each() for every setting of git's config for this repository whose key fits the pattern (a
 * regular expression), the user's first; the last one counts. ~ in values is expanded. */
int git_config_paths(const struct repo *repo, const char *pattern, git_setting *each, void *ctx,
		     struct err *err);

#endif
