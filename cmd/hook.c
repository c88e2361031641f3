/* hook.c - `burst hook install|status|remove`. */
#include "cmd/unattended/hook.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/pattern.h"
#include "cmd/unattended/commit_tree.h"
#include "config/trust.h"
#include "cmd/show/output.h"

static const char *const usual_hooks[] = {"post-commit", "post-merge", "post-rewrite", NULL};
static const char *const bare_hooks[] = {"post-receive", NULL};

void hook_target_free(struct hook_target *t)
{
	git_place_free(&t->place);
	free(t->config);
	free(t->path);
}

/* ---- which job ---- */

/* Takes the path of burst.cfg. */
static int set_target(struct hook_target *t, char *path, struct err *err)
{
	CLEANUP(free_text) char *dir = git_folder(path);

	t->path = path;
	if (git_find(&t->place, dir, err) < 0)
		return -1;
	if (!t->place.top)
		return err_set(err, ERR_CONFIG,
			       "%s is a bare repository: outputs need a folder, so use `burst "
			       "hook install CONFIG --into DIR` there, and DIR/CONFIG with status "
			       "and remove",
			       t->place.common);
	if (!trust_is_below(path, t->place.top))
		return err_set(err, ERR_CONFIG, "%s is not in a git working tree", path);
	t->config = trust_move(path, t->place.top, "");
	memmove(t->config, t->config + 1, strlen(t->config));
	return 0;
}

/* Of a bare repository, which we are in: a working tree that no file is checked out into, for
 * outputs. */
static int make_tree(struct hook_target *t, const char *into, const char *config, struct err *err)
{
	CLEANUP(git_place_free) struct git_place bare = {0};
	CLEANUP(free_text) char *here = getcwd(NULL, 0);
	CLEANUP(free_text) char *named = path_join(here ? here : "/", into);
	CLEANUP(free_text) char *dir = trust_real(named);
	CLEANUP(free_text) char *git = path_join(dir, ".git");
	char id[GIT_ID];

	if (git_find(&bare, here ? here : "/", err) < 0)
		return -1;
	if (bare.top)
		return err_set(err, ERR_USAGE,
			       "--into is for a bare repository: outputs of this one go to %s",
			       bare.top);
	if (config[0] == '/' || !path_is_safe(config))
		return err_set(err, ERR_USAGE, "%s: give the config's path inside the repository",
			       config);
	if (git_commit_id(bare.common, "HEAD", id, err) < 0)
		return err_set(err, ERR_CONFIG,
			       "%s has no commit yet: push one, then install the hook",
			       bare.common);
	t->made_tree = !path_exists(git);
	if (t->made_tree &&
	    GIT(bare.common, NULL, err, "worktree", "add", "--detach", "--no-checkout", dir, id))
		return err_wrap(err, "--into %s", into);
	if (set_target(t, path_join(dir, config), err) < 0)
		return -1;
	if (strcmp(t->place.common, bare.common) != 0)
		return err_set(err, ERR_CONFIG,
			       "--into %s: it is a working tree of another repository, %s", into,
			       t->place.common);
	return 0;
}

static int find_target(const struct cmd_context *ctx, struct hook_target *t, struct err *err)
{
	const char *into = opt_text(ctx, "into");

	if (into)
		return make_tree(t, into, ctx->arg_count > 1 ? ctx->args[1] : "burst.cfg", err);
	return set_target(t, config_named(ctx->arg_count > 1 ? ctx->args[1] : NULL), err);
}

static bool is_bare(const struct hook_target *t)
{
	CLEANUP(str_free) struct str said = STR_INIT;
	struct err none;

	return GIT(t->place.common, &said, &none, "rev-parse", "--is-bare-repository") == 0 &&
	       starts_with(str_text(&said), "true");
}

/* Reports a mistake in the job now, while the user reads the output. */
static int check_job(const struct hook_target *t, bool bare, struct err *err)
{
	CLEANUP(commit_tree_free) struct commit_tree *tree = NULL;
	CLEANUP(config_free) struct config *c = NULL;
	struct config_ask ask = {.file = t->path,
				 .need_job = true,
				 .providers = provider_registry,
				 .jobs = job_registry};
	char id[GIT_ID];

	if (bare && (git_commit_id(t->place.common, "HEAD", id, err) < 0 ||
		     commit_tree_open(&tree, t->path, id, err) < 0))
		return -1;
	ask.tree = tree ? &tree->at : NULL;
	return config_open(&c, &ask, err);
}

/* ---- flags ---- */

static bool is_hook(const char *name)
{
	for (const char *const *hook = hook_names; *hook; hook++)
		if (!strcmp(*hook, name))
			return true;
	return false;
}

/* The hooks of --on, else `usual`: NULL-terminated, at most all that there are. text holds the
 * words. */
static int chosen_hooks(const struct cmd_context *ctx, const char *const *usual, char **text,
			const char *names[8], struct err *err)
{
	const char *on = opt_text(ctx, "on");
	char *rest = NULL;
	size_t count = 0;

	for (; !on && usual[count]; count++)
		names[count] = usual[count];
	*text = on ? xstrdup(on) : NULL;
	for (char *name = on ? strtok_r(*text, ",", &rest) : NULL; name && count < 7;
	     name = strtok_r(NULL, ",", &rest)) {
		if (!is_hook(name))
			return err_set(err, ERR_USAGE,
				       "--on %.40s: expected post-commit, post-merge, "
				       "post-rewrite, pre-push or post-receive",
				       name);
		names[count++] = name;
	}
	names[count] = NULL;
	return count ? 0 : err_set(err, ERR_USAGE, "--on names no hook");
}

static int check_durations(const struct cmd_context *ctx, struct err *err)
{
	int64_t ms;

	if (opt_duration(ctx, "quiet", &ms, err) < 0 || opt_duration(ctx, "max-wait", &ms, err) < 0)
		return -1;
	return opt_int(ctx, "min-segments", 1, 1000000, &ms, err);
}

static bool has_branch(const struct hook_target *t, const char *pattern)
{
	CLEANUP(str_free) struct str names = STR_INIT;
	char *rest = NULL;

	GIT(t->place.common, &names, NULL, "for-each-ref", "--format=%(refname:lstrip=2)",
	    "refs/heads");
	GIT(t->place.top, &names, NULL, "symbolic-ref", "--short", "HEAD"); /* may be unborn */
	for (char *name = names.len ? strtok_r(names.s, "\n", &rest) : NULL; name;
	     name = strtok_r(NULL, "\n", &rest))
		if (pattern_match(pattern, name))
			return true;
	return false;
}

static int check_branch(const struct hook_target *t, const char *pattern, struct err *err)
{
	CLEANUP(free_text) char *ref = xasprintf("refs/heads/%s", pattern);

	for (char *wild = strpbrk(ref, "*?[]"); wild; wild = strpbrk(wild, "*?[]"))
		*wild = 'x';
	if (GIT(t->place.common, NULL, NULL, "check-ref-format", ref))
		return err_set(err, ERR_USAGE, "--branch %.80s: no branch can have this name",
			       pattern);
	if (!has_branch(t, pattern))
		log_line(LOG_WARN,
			 "--branch %s: there is no such branch yet, and commits of other branches "
			 "are not rendered",
			 pattern);
	return 0;
}

static int check_path(const struct hook_target *t, const char *path, struct err *err)
{
	CLEANUP(str_free) struct str commit = STR_INIT;
	char id[GIT_ID];

	if (git_commit_id(t->place.common, "HEAD", id, NULL) < 0)
		return 0;
	int status = GIT(t->place.top, &commit, err, "rev-list", "-n", "1", id, "--", path);
	if (status < 0)
		return -1;
	if (status) {
		err->kind = ERR_USAGE;
		return err_wrap(err, "--path %.80s", path);
	}
	if (!commit.len)
		log_line(LOG_WARN,
			 "--path %s: no commit has it yet, and commits that change other paths are "
			 "not rendered",
			 path);
	return 0;
}

/* A filter that nothing can pass would render nothing, without a word. */
static int
check_filter(const struct cmd_context *ctx, const struct hook_target *t, const char *flag,
	     int (*check)(const struct hook_target *t, const char *word, struct err *err),
	     struct err *err)
{
	CLEANUP(free_text) char *words = opt_has(ctx, flag) ? xstrdup(opt_text(ctx, flag)) : NULL;
	char *rest = NULL;
	int result = 0;

	for (char *word = words ? strtok_r(words, ",", &rest) : NULL; word && result == 0;
	     word = strtok_r(NULL, ",", &rest))
		result = check(t, word, err);
	return result;
}

static struct hook_job job_of(const struct cmd_context *ctx, const struct hook_target *t, bool bare)
{
	return (struct hook_job){
		.repository = t->place.common,
		.config = t->config,
		.into = bare ? t->place.top : NULL,
		.made_tree = t->made_tree ? (char *)"yes" : NULL,
		.branch = (char *)opt_text(ctx, "branch"),
		.path = (char *)opt_text(ctx, "path"),
		.quiet = (char *)opt_text(ctx, "quiet"),
		.min_segments = (char *)opt_text(ctx, "min-segments"),
		.max_wait = (char *)opt_text(ctx, "max-wait"),
	};
}

/* ---- installing and removing ---- */

/* What the user may not expect of the folder that git looks in. */
static void warn_of_folder(const struct hook_target *t)
{
	const char *folder = t->place.hooks;
	CLEANUP(free_text) char *hook = path_join(folder, hook_names[0]);
	struct err none;

	if (trust_is_below(folder, t->place.common))
		return;
	if (!trust_is_below(folder, t->place.top))
		log_line(LOG_NOTE,
			 "%s serves other repositories, too (core.hooksPath): this hook does "
			 "nothing in them",
			 folder);
	else if (GIT(t->place.top, NULL, &none, "check-ignore", "--quiet", hook))
		log_line(LOG_WARN,
			 "%s is a folder of the project (core.hooksPath): do not commit this hook, "
			 "which names paths of this machine",
			 folder);
	else
		log_line(LOG_NOTE,
			 "%s belongs to another program (core.hooksPath): if that program "
			 "rewrites it, install again (see `burst hook status`)",
			 folder);
}

static int install(struct cmd_context *ctx, const struct hook_target *t, struct err *err)
{
	CLEANUP(free_text) char *text = NULL;
	const char *names[8];
	bool bare = is_bare(t);
	struct hook_job job = job_of(ctx, t, bare);
	size_t installed = 0, count = 0;

	if (check_durations(ctx, err) < 0 || check_job(t, bare, err) < 0 ||
	    check_filter(ctx, t, "branch", check_branch, err) < 0 ||
	    check_filter(ctx, t, "path", check_path, err) < 0 ||
	    chosen_hooks(ctx, bare ? bare_hooks : usual_hooks, &text, names, err) < 0)
		return -1;
	for (; names[count]; count++) {
		struct err why = {0};
		if (hook_install(t, names[count], &job, &why) == 0)
			installed++;
		else if (why.kind == ERR_CONFIG)
			log_line(LOG_WARN, "%s", why.msg);
		else
			return err_set(err, why.kind, "%s", why.msg);
	}
	if (!installed)
		return err_set(err, ERR_CONFIG, "no hook was installed");
	warn_of_folder(t);
	if (!ctx->quiet)
		output_line(stderr,
			    "%zu of %zu hooks installed in %s: commits that change what %s reads "
			    "are rendered (`burst hook status`)",
			    installed, count, t->place.hooks, t->config);
	return installed == count ? 0 : 1;
}

/* Outputs stay. */
static int remove_tree(const struct hook_target *t, struct err *err)
{
	CLEANUP(free_text) char *git = path_join(t->place.top, ".git");

	if (!t->made_tree)
		return 0;
	if (unlink(git) < 0)
		return err_set(err, ERR_LOCAL, "%s: %m", git);
	rmdir(t->place.top);
	return GIT(t->place.common, NULL, err, "worktree", "prune") ? -1 : 0;
}

static int remove_hooks(struct cmd_context *ctx, struct hook_target *t, struct err *err)
{
	CLEANUP(free_text) char *text = NULL;
	const char *names[8];
	int removed = 0;

	if (chosen_hooks(ctx, hook_names, &text, names, err) < 0)
		return -1;
	for (const char *const *name = names; *name; name++) {
		int found = hook_remove(t, *name, t->config, err);
		if (found < 0)
			return -1;
		removed += found;
	}
	if (!opt_has(ctx, "on") && removed && remove_tree(t, err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr,
			    removed ? "%d hooks of %s removed from %s"
				    : "%d hooks of %s were in %s",
			    removed, t->config, t->place.hooks);
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(hook_target_free) struct hook_target t = {.config = NULL};
	const char *what = ctx->args[0];

	if (!strcmp(what, "fire"))
		return hook_fire(ctx, err);
	bool installs = !strcmp(what, "install"), removes = !strcmp(what, "remove");
	if ((!installs && !removes && strcmp(what, "status")) || ctx->arg_count > 2)
		return err_set(err, ERR_USAGE,
			       "hook: expected install, status or remove (see `burst help hook`)");
	if (opt_has(ctx, "into") && !installs)
		return err_set(err, ERR_USAGE,
			       "hook: --into is a flag of install: name the folder itself, as in "
			       "`burst hook %s DIR`",
			       what);
	if (find_target(ctx, &t, err) < 0)
		return -1;
	if (removes)
		return remove_hooks(ctx, &t, err);
	if (!installs)
		return hook_status(ctx, &t, err);
	int result = install(ctx, &t, err);
	struct err ignored = {0};
	if (result < 0)
		remove_tree(&t, &ignored); /* one that was made for it */
	return result;
}

static const struct opt opts[] = {
	{0, "on", "HOOKS",
	 "hooks to install: post-commit, post-merge, post-rewrite (the default), pre-push, "
	 "post-receive",
	 NULL, false},
	{0, "branch", "NAMES", "only commits of these branches, as in main,release/*", NULL, false},
	{0, "path", "PATHS",
	 "only commits that change these paths, instead of the files that "
	 "the job reads",
	 NULL, false},
	{0, "quiet", "TIME", "wait until no other commit comes for this long (20s)", NULL, false},
	{0, "min-segments", "N", "wait until this many segments need rendering", NULL, false},
	{0, "max-wait", "TIME", "but no longer than this (30m)", NULL, false},
	{0, "into", "DIR",
	 "in a bare repository: the folder that stands for its working tree, for outputs", NULL,
	 false},
	{0},
};

const struct cmd cmd_hook = {
	.name = "hook",
	.args = "install|status|remove [CONFIG]",
	.min_args = 1,
	.max_args = 4,
	.summary = "render what is committed, from git's hooks",
	.details = "`burst hook install` writes hooks into the repository of CONFIG. After a "
		   "commit, a merge or a rebase that changes what the job reads, they queue the "
		   "committed files (`burst submit --commit`) and return at once; other commits "
		   "start nothing. An existing hook runs first. The hooks serve all working "
		   "trees of the repository: each renders into its own output folder. `burst "
		   "hook status` shows where the hooks are, whether they are current, and the "
		   "result of the last trigger. `burst hook remove` restores the previous hooks "
		   "byte for byte.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_SETUP,
	.json = true,
	.run = run,
};
