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
	char *dir;    /* git's own folder for this working tree; NULL: burst must not use it */
	char *common; /* git's folder shared by all working trees of the repository; usually the
			 same */
};

/* Finds the working tree that holds the folder, as git does: the nearest parent with a `.git`, on
 * the same file system. Bare repositories among the parents count as ordinary folders. Returns:
 * 1: found. 0: the folder is in no working tree; *out is unchanged.
 * -1 (ERR_CONFIG): the tree is found and out->top set, but its `.git` must not be followed. It
 * belongs to another user, has a pipe or a device in the place of a file, or leads to a folder that
 * does not name this working tree back, as those of worktrees and submodules do (the folder may be
 * another repository of the user). After 1 and -1 free with repo_free(). */
int repo_find(struct repo *out, const char *folder, struct err *err);
/* The repository without this working tree, whose HEAD may differ. Borrows the texts of *repo. */
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
 * So git never searches for a repository (repo_find() does), and runs no program that a repository
 * names: no hook, no file system monitor, no filter, no program for differences, pages, passwords,
 * signatures or ssh. Git fetches nothing, and reads no replaced objects and no grafts. The user's
 * own config counts as usual. Git does not get variables that an outer git sets for its children
 * (in a hook: GIT_DIR and others). */

enum { GIT_ID = 65 }; /* size of a commit's full name: 40 or 64 hex digits */

/* Runs `git WORDS...` (NULL-terminated) in this repository for at most ten minutes (check-ignore:
 * two seconds), in its working tree's top folder if it has one. Returns git's exit status; if that
 * is above 0, *err has git's message (ERR_LOCAL). Returns -1 with *err if git did not run to its
 * end. Git's stdout is appended to *out; NULL: dropped. */
int git_call(const struct repo *repo, struct str *out, struct err *err, const char *const *words);
#define GIT(repo, out, err, ...) git_call(repo, out, err, (const char *const[]){__VA_ARGS__, NULL})
/* The same for commands that change the repository: hooks that a config names do not run either. */
int git_change(const struct repo *repo, struct err *err, const char *const *words);
#define GIT_CHANGE(repo, err, ...) git_change(repo, err, (const char *const[]){__VA_ARGS__, NULL})

/* Removes from this process's environment the variables that an outer git set. */
void git_clear_environment(void);

/* Finds the repository whose working tree holds this folder. ERR_CONFIG: there is none, burst must
 * not use it (see repo_find()), or it borrows commits from another one. Free with repo_free(). */
int git_find(struct repo *out, const char *dir, struct err *err);
/* The same, but the folder may also be a bare repository itself. */
int git_find_any(struct repo *out, const char *dir, struct err *err);
/* The deepest existing folder of this path, which a commit may lack. The caller frees it. */
char *git_existing_folder(const char *path);

/* Resolves a commit ("HEAD", "main", a short name) to its full name. ERR_CONFIG: no such commit. */
int git_commit_id(const struct repo *repo, const char *name, char id[GIT_ID], struct err *err);

/* Writes the files of a commit (a full name) at these paths (NULL: all) to `folder`, made if
 * needed, as a checkout by this user's git would, with the filters of the user's own config.
 * scratch: an existing folder for git's own files, which the caller removes. ERR_CONFIG: a file
 * needs a filter that only the repository's own config names. */
int git_export(const struct repo *repo, const char *commit, const char *folder, const char *scratch,
	       const char *const *paths, struct err *err);

/* Takes a setting. The first and last part of the key are in lower case. own: the setting is from
 * the repository's own config, not from the user's or the system's. */
typedef void git_setting(void *ctx, const char *key, const char *value, bool own);
/* Calls each() for every setting of git's config for this repository whose key fits the pattern (a
 * regular expression). The user's come first; the last one of a key counts. ~ in values is
 * expanded. -1 with *err if the config cannot be read. */
int git_config_paths(const struct repo *repo, const char *pattern, git_setting *each, void *ctx,
		     struct err *err);

#endif
