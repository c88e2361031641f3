/* repo.h - finds the git repository of a folder by reading files, without running git: git would
 * obey a repository's config while it looks for it. */
#ifndef BURST_BASE_REPO_H
#define BURST_BASE_REPO_H

#include "err.h"
#include "mem.h"

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
/* Whether this very folder is a bare repository, or git's own folder of another one. The user named
 * it; no search leads there. */
bool repo_is_bare(struct repo *out, const char *folder);
/* Refuses a repository that takes commits from elsewhere (ERR_CONFIG): alternates, or links in
 * their place. A copied project could show another repository of the user as its own. */
int repo_check_objects(const struct repo *repo, struct err *err);
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

#endif
