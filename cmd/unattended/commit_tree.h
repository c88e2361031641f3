/* commit_tree.h - the files of a commit, in a folder of their own for as long as one process reads
 * them.
 *
 * It holds what a checkout of the commit would, with line ends and filters (Git LFS) as this user's
 * git applies them. The attributes export-ignore and export-subst are for archives and change
 * nothing here: what a job reads is there, as it was committed. The files of submodules are not in
 * a commit, and are absent. The working tree, its index and its hooks are left alone.
 *
 * The folder lies below the user's cache (config_trees_dir()). Each reader holds a
 * kernel lock on it; the next command removes what a dead process left behind. */
#ifndef BURST_CMD_UNATTENDED_COMMIT_TREE_H
#define BURST_CMD_UNATTENDED_COMMIT_TREE_H

#include "base/err.h"
#include "config/config.h"
#include "unattended/git.h"

struct commit_tree {
	struct config_tree at; /* for config_source: the working tree, and the folder */
	char commit[GIT_ID];
	char *top, *copy, *index;
	int lock;
	bool whole; /* all files of the commit are there */
};

/* The commit in the repository that holds this burst.cfg (NULL: of the current folder; it may be
 * gone from there): the file alone. ERR_CONFIG: there is no such repository, commit or file. */
int commit_tree_open(struct commit_tree **out, const char *config, const char *commit,
		     struct err *err);
/* Adds these paths below the top, with all below them (config_inputs()); where one of them is or
 * holds a link, all files of the commit. Warns of what will be missed: submodules, and files whose
 * contents Git LFS has not brought. */
int commit_tree_add(struct commit_tree *tree, char *const *paths, struct err *err);
/* Whether these paths hold all that a job reads which names them: no link leads elsewhere. What
 * cannot be told is false. */
bool commit_tree_suffices(const struct commit_tree *tree, char *const *paths);
void commit_tree_free(struct commit_tree *tree); /* NULL is fine */

DEFINE_CLEANUP(commit_tree_free, struct commit_tree *)

#endif
