/* hook_target.c - finds the job and repository for `burst hook`. */
#include "hook.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/path.h"
#include "commit_tree.h"
#include "config/real_path.h"
#include "config/trust.h"

/* Takes over the path of burst.cfg. */
static int set_target(struct hook_target *t, char *path, struct err *err)
{
	CLEANUP(free_text) char *dir = git_folder(path);

	t->path = path;
	if (git_find_any(&t->place, dir, err) < 0)
		return -1;
	if (!t->place.top)
		return err_set(err, ERR_CONFIG,
			       "%s is a bare repository: outputs need a folder, so use `burst "
			       "hook install CONFIG --into DIR` there, and DIR/CONFIG with status "
			       "and remove",
			       t->place.common);
	if (!trust_is_below(path, t->place.top))
		return err_set(err, ERR_CONFIG, "%s is not in a git working tree", path);
	t->config = real_path_move(path, t->place.top, "");
	memmove(t->config, t->config + 1, strlen(t->config));
	return hook_find_folder(t, err);
}

/* Makes a working tree for outputs in a bare repository, without checking out files. */
static int make_tree(struct hook_target *t, const char *into, const char *config, struct err *err)
{
	CLEANUP(repo_free) struct repo bare = {0};
	CLEANUP(free_text) char *here = getcwd(NULL, 0);
	CLEANUP(free_text) char *named = path_join(here ? here : "/", into);
	CLEANUP(free_text) char *dir = real_path(named);
	CLEANUP(free_text) char *git = path_join(dir, ".git");
	char id[GIT_ID];

	if (git_find_any(&bare, here ? here : "/", err) < 0)
		return -1;
	if (bare.top)
		return err_set(err, ERR_USAGE,
			       "--into is for a bare repository: outputs of this one go to %s",
			       bare.top);
	if (config[0] == '/' || !path_is_safe(config))
		return err_set(err, ERR_USAGE, "%s: give the config's path inside the repository",
			       config);
	if (git_commit_id(&bare, "HEAD", id, err) < 0)
		return err_set(err, ERR_CONFIG,
			       "%s has no commit yet: push one, then install the hook",
			       bare.common);
	t->made_tree = !path_exists(git);
	if (t->made_tree &&
	    GIT_CHANGE(&bare, err, "worktree", "add", "--detach", "--no-checkout", dir, id))
		return err_wrap(err, "--into %s", into);
	if (set_target(t, path_join(dir, config), err) < 0)
		return -1;
	if (strcmp(t->place.common, bare.common) != 0)
		return err_set(err, ERR_CONFIG,
			       "--into %s: it is a working tree of another repository, %s", into,
			       t->place.common);
	return 0;
}

int hook_find_target(const struct cmd_context *ctx, struct hook_target *t, struct err *err)
{
	const char *into = opt_text(ctx, "into");

	if (into)
		return make_tree(t, into, ctx->arg_count > 1 ? ctx->args[1] : "burst.cfg", err);
	return set_target(t, config_named(ctx->arg_count > 1 ? ctx->args[1] : NULL), err);
}

bool hook_is_bare(const struct hook_target *t)
{
	const struct repo common = repo_shared(&t->place);
	CLEANUP(str_free) struct str said = STR_INIT;
	struct err none;

	return GIT(&common, &said, &none, "rev-parse", "--is-bare-repository") == 0 &&
	       starts_with(str_text(&said), "true");
}

int hook_check_job(const struct hook_target *t, bool bare, struct err *err)
{
	CLEANUP(commit_tree_free) struct commit_tree *tree = NULL;
	CLEANUP(config_free) struct config *c = NULL;
	struct config_source ask = {.file = t->path,
				    .need_job = true,
				    .providers = provider_registry,
				    .jobs = job_registry};
	const struct repo common = repo_shared(&t->place);
	char id[GIT_ID];

	if (bare && (git_commit_id(&common, "HEAD", id, err) < 0 ||
		     commit_tree_open(&tree, t->path, id, err) < 0))
		return -1;
	ask.tree = tree ? &tree->at : NULL;
	return config_open(&c, &ask, err);
}

int hook_remove_tree(const struct hook_target *t, struct err *err)
{
	const struct repo common = repo_shared(&t->place);
	CLEANUP(free_text) char *git = path_join(t->place.top, ".git");

	if (!t->made_tree)
		return 0;
	if (unlink(git) < 0)
		return err_set(err, ERR_LOCAL, "%s: %m", git);
	rmdir(t->place.top);
	return GIT_CHANGE(&common, err, "worktree", "prune") ? -1 : 0;
}
