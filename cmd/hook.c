/* hook.c - `burst hook install|status|remove`. */
#include "cmd/unattended/hook.h"

/* Words of other tools. */
static const char *meant_by(const char *word)
{
	static const struct {
		const char *word, *hint;
	} words[] = {
		{"uninstall", ": `burst hook remove` takes the hooks away"},
		{"rm", ": `burst hook remove` takes the hooks away"},
		{"delete", ": `burst hook remove` takes the hooks away"},
		{"add", ": `burst hook install` adds them"},
		{"ls", ": `burst hook status` shows them"},
		{"list", ": `burst hook status` shows them"},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(words[i].word, word))
			return words[i].hint;
	return "";
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
			       "hook: expected install, status or remove%s (see `burst help hook`)",
			       meant_by(what));
	if (opt_has(ctx, "into") && !installs)
		return err_set(err, ERR_USAGE,
			       "hook: --into is a flag of install: name the folder itself, as in "
			       "`burst hook %s DIR`",
			       what);
	if (hook_find_target(ctx, &t, err) < 0)
		return -1;
	if (removes)
		return hook_remove_all(ctx, &t, err);
	if (!installs)
		return hook_status(ctx, &t, err);
	int result = hook_install_all(ctx, &t, err);
	struct err ignored = {0};
	if (result < 0)
		hook_remove_tree(&t, &ignored); /* the working tree made for this hook */
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
