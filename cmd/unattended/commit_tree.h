/* commit_tree.h - the files of a commit, in a folder of their own while a process reads them.
 *
 * The folder holds what a checkout of the commit would, with line ends and filters (Git LFS) as
 * this user's own config has them; no program that the repository names runs (base/git.h). The
 * attributes export-ignore and export-subst are for archives and have no effect here. Files of
 * submodules are not in a commit, so they are missing. The working tree, its index and its hooks
 * are not touched.
 *
 * The folder lies below the user's cache (config_trees_dir()). Each reader holds a kernel lock on
 * it; the next command removes what a dead process left. */
#ifndef BURST_CMD_UNATTENDED_COMMIT_TREE_H
#define BURST_CMD_UNATTENDED_COMMIT_TREE_H

#include "base/err.h"
#include "config/config.h"
#include "base/git.h"

struct commit_tree {
	struct config_tree at; /* for config_source.tree: the working tree and the folder */
	char commit[GIT_ID];
	struct repo repo;
	char *copy, *place; /* place: the folder of copy */
	int lock;
	bool whole; /* the folder has all files of the commit */
};

/* Opens the commit of the repository that holds this burst.cfg (NULL: of the current folder; the
 * working tree may lack it) with that file only. ERR_CONFIG: there is no such repository, commit or
 * file. */
int commit_tree_open(struct commit_tree **out, const char *config, const char *commit,
		     struct err *err);
/* Adds these paths below the top, with everything below them (config_inputs()); if one is or holds
 * a link, adds all files of the commit. Warns of missing files: submodules, and Git LFS files that
 * were not fetched. */
int commit_tree_add(struct commit_tree *tree, char *const *paths, struct err *err);
/* Whether a job that names these paths reads nothing else: no link among them leads elsewhere.
 * paths: at least one. Returns false if git cannot tell. */
bool commit_tree_suffices(const struct commit_tree *tree, char *const *paths);
void commit_tree_free(struct commit_tree *tree); /* Accepts NULL. */

DEFINE_CLEANUP(commit_tree_free, struct commit_tree *)

#endif
