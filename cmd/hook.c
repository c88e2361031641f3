/* hook.c - `burst hook install|status|remove`. */
#include "unattended/hook.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/path.h"
#include "base/pattern.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/unattended/commit_tree.h"
#include "cmd/unattended/unattended.h"
#include "config/trust.h"
#include "net/child.h"

/* ---- the job and its repository ---- */

/* Fills *t from the path of burst.cfg, which it takes over. ERR_CONFIG: no git working tree holds
 * the file. Free *t with hook_target_free(), also on error. */
static int set_target(struct hook_target *t, char *path, struct err *err)
{
	CLEANUP(free_text) char *dir = git_existing_folder(path);

	t->path = path;
	if (git_find_any(&t->place, dir, err) < 0)
		return -1;
	if (!t->place.top)
		return err_set(
			err, ERR_CONFIG,
			"%s is a bare repository: outputs need a folder, so use `burst hook "
			"install CONFIG --into DIR` there, and DIR/CONFIG with status and remove",
			t->place.common);
	if (!trust_is_below(path, t->place.top))
		return err_set(err, ERR_CONFIG, "%s is not in a git working tree", path);
	t->config = real_path_move(path, t->place.top, "");
	memmove(t->config, t->config + 1, strlen(t->config));
	return hook_find_folder(t, err);
}

/* Makes a working tree for outputs in a bare repository, without checking out files. */
static int make_output_tree(struct hook_target *t, const char *into, const char *config,
			    struct err *err)
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

/* Finds the job that the arguments name. --into: makes the working tree of a bare repository. */
static int find_target(const struct cmd_context *ctx, struct hook_target *t, struct err *err)
{
	const char *into = opt_text(ctx, "into");

	if (into)
		return make_output_tree(t, into, ctx->arg_count > 1 ? ctx->args[1] : "burst.cfg",
					err);
	return set_target(t, config_named(ctx->arg_count > 1 ? ctx->args[1] : NULL), err);
}

/* Whether the hooks are those of a bare repository, whose working tree is only for outputs. */
static bool is_bare(const struct hook_target *t)
{
	const struct repo common = repo_shared(&t->place);
	CLEANUP(str_free) struct str said = STR_INIT;
	struct err none;

	return GIT(&common, &said, &none, "rev-parse", "--is-bare-repository") == 0 &&
	       starts_with(str_text(&said), "true");
}

/* Opens the config once, so that the user sees a mistake in it now and not when a hook fires. bare:
 * reads the files of HEAD, since the working tree has none. */
static int check_job(const struct hook_target *t, bool bare, struct err *err)
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

/* Ends the working tree if --into made it: removes its .git, and the folder if that is empty. */
static int remove_output_tree(const struct hook_target *t, struct err *err)
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

/* ---- flags ---- */

enum { HOOKS_MOST = 7 }; /* names in --on */

static bool is_hook(const char *name)
{
	for (const char *const *hook = hook_names; *hook; hook++)
		if (!strcmp(*hook, name))
			return true;
	return false;
}

/* Sets names to the hooks of --on, else to `usual`, and NULL behind them. The caller frees *text,
 * which names may point into. */
static int choose_hooks(const struct cmd_context *ctx, const char *const *usual, char **text,
			const char *names[HOOKS_MOST + 1], struct err *err)
{
	const char *on = opt_text(ctx, "on");
	char *rest = NULL;
	size_t count = 0;

	for (; !on && usual[count]; count++)
		names[count] = usual[count];
	*text = on ? xstrdup(on) : NULL;
	for (char *name = on ? strtok_r(*text, ",", &rest) : NULL; name && count < HOOKS_MOST;
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

/* Checks the flags that are kept as texts, for the hook to read again. */
static int check_durations(const struct cmd_context *ctx, struct err *err)
{
	int64_t ms;

	if (opt_duration(ctx, "quiet", &ms, err) < 0 || opt_duration(ctx, "max-wait", &ms, err) < 0)
		return -1;
	return opt_int(ctx, "min-segments", 1, 1000000, &ms, err);
}

/* pattern: "main" or "release/x*". The current branch counts even before its first commit. */
static bool has_branch(const struct hook_target *t, const char *pattern)
{
	CLEANUP(str_free) struct str names = STR_INIT;
	char *rest = NULL;

	GIT(&t->place, &names, NULL, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads");
	GIT(&t->place, &names, NULL, "symbolic-ref", "--short",
	    "HEAD"); /* the branch may have no commit yet */
	for (char *name = names.len ? strtok_r(names.s, "\n", &rest) : NULL; name;
	     name = strtok_r(NULL, "\n", &rest))
		if (pattern_match(pattern, name))
			return true;
	return false;
}

/* ERR_USAGE: no branch can match. Warns if none matches yet. */
static int check_branch_filter(const struct hook_target *t, const char *pattern, struct err *err)
{
	CLEANUP(free_text) char *ref = xasprintf("refs/heads/%s", pattern);

	for (char *wild = strpbrk(ref, "*?[]"); wild; wild = strpbrk(wild, "*?[]"))
		*wild = 'x';
	if (GIT(&t->place, NULL, NULL, "check-ref-format", ref))
		return err_set(err, ERR_USAGE, "--branch %.80s: no branch can have this name",
			       pattern);
	if (!has_branch(t, pattern))
		log_line(LOG_WARN,
			 "--branch %s: there is no such branch yet, and commits of other branches "
			 "are not rendered",
			 pattern);
	return 0;
}

/* ERR_USAGE: git rejects the path. Warns if no commit has changed it yet. */
static int check_path_filter(const struct hook_target *t, const char *path, struct err *err)
{
	CLEANUP(str_free) struct str commit = STR_INIT;
	char id[GIT_ID];

	if (git_commit_id(&t->place, "HEAD", id, NULL) < 0)
		return 0;
	int status = GIT(&t->place, &commit, err, "rev-list", "-n", "1", id, "--", path);
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

/* Calls check for each comma-separated word of the flag, until one fails. A filter that nothing can
 * match would silently render nothing. */
static int
check_each_word(const struct cmd_context *ctx, const struct hook_target *t, const char *flag,
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

/* Checks --branch and --path. ERR_USAGE: no commit could ever match. Warns if none matches yet. */
static int check_filters(const struct cmd_context *ctx, const struct hook_target *t,
			 struct err *err)
{
	return check_each_word(ctx, t, "branch", check_branch_filter, err) < 0 ||
			       check_each_word(ctx, t, "path", check_path_filter, err) < 0
		       ? -1
		       : 0;
}

/* What the hook will know of the job: its place and the flags. The texts are borrowed. */
static struct hook_job hook_job_from_flags(const struct cmd_context *ctx,
					   const struct hook_target *t, bool bare)
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

/* ---- install, remove ---- */

static const char *const usual_hooks[] = {"post-commit", "post-merge", "post-rewrite", NULL};
static const char *const bare_hooks[] = {"post-receive", NULL};

/* Warns if git's folder of hooks is not where the user expects it. */
static void warn_of_hooks_folder(const struct hook_target *t)
{
	const char *folder = t->hooks;
	CLEANUP(free_text) char *hook = path_join(folder, hook_names[0]);
	struct err none;

	if (trust_is_below(folder, t->place.common))
		return;
	if (!trust_is_below(folder, t->place.top))
		log_line(LOG_NOTE,
			 "%s serves other repositories, too (core.hooksPath): this hook does "
			 "nothing in them",
			 folder);
	else if (GIT(&t->place, NULL, &none, "check-ignore", "--quiet", hook))
		log_line(LOG_WARN,
			 "%s is a folder of the project (core.hooksPath): do not commit this hook, "
			 "which names paths of this machine",
			 folder);
	else
		log_line(LOG_NOTE,
			 "%s belongs to another program (core.hooksPath): if that program rewrites "
			 "it, install again (see `burst hook status`)",
			 folder);
}

/* Installs the hooks of --on, else the usual ones. Returns the exit status: 1 if some were not
 * installed; or -1. */
static int install_all(struct cmd_context *ctx, const struct hook_target *t, struct err *err)
{
	CLEANUP(free_text) char *text = NULL;
	const char *names[8];
	bool bare = is_bare(t);
	struct hook_job job = hook_job_from_flags(ctx, t, bare);
	size_t installed = 0, count = 0;

	if (check_durations(ctx, err) < 0 || check_job(t, bare, err) < 0 ||
	    check_filters(ctx, t, err) < 0 ||
	    choose_hooks(ctx, bare ? bare_hooks : usual_hooks, &text, names, err) < 0)
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
	warn_of_hooks_folder(t);
	if (!ctx->quiet)
		output_line(stderr,
			    "%zu of %zu hooks installed in %s: commits that change what %s reads "
			    "are rendered (`burst hook status`)",
			    installed, count, t->hooks, t->config);
	return installed == count ? 0 : 1;
}

/* Removes the hooks of --on, else all; then also the working tree that --into made. */
static int remove_all(struct cmd_context *ctx, struct hook_target *t, struct err *err)
{
	CLEANUP(free_text) char *text = NULL;
	const char *names[8];
	int removed = 0;

	if (choose_hooks(ctx, hook_names, &text, names, err) < 0)
		return -1;
	for (const char *const *name = names; *name; name++) {
		int found = hook_remove(t, *name, t->config, err);
		if (found < 0)
			return -1;
		removed += found;
	}
	if (!opt_has(ctx, "on") && removed && remove_output_tree(t, err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr,
			    removed ? "%d hooks of %s removed from %s"
				    : "%d hooks of %s were in %s",
			    removed, t->config, t->hooks);
	return 0;
}

/* ---- status ---- */

/* Describes one hook as a JSON object; NULL with *err if it cannot be read. Sets *job, unless it is
 * set, to the job's settings in this hook. Sets *wrong if the user should install again. */
static json_t *hook_state_json(const struct hook_target *t, const char *name, json_t **job,
			       bool *wrong, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(t->hooks, name);
	CLEANUP(free_text) char *before = xasprintf("%s" HOOK_BEFORE, path);
	CLEANUP(hook_file_free) struct hook_file f = {0};
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str now = STR_INIT;
	enum hook_state state;
	struct err none;

	if (hook_read_state(t->hooks, name, &state, &f, &text, err) < 0)
		return NULL;
	const struct hook_job *own =
		state == HOOK_OURS ? hook_file_find(&f, t->place.common, t->config) : NULL;
	bool current = own && access(path, X_OK) == 0 &&
		       hook_file_write(&now, &f, name, child_self(), &none) == 0 &&
		       !strcmp(str_text(&now), str_text(&text));
	bool replaced = state != HOOK_OURS && path_exists(before);
	*wrong = *wrong || (own && !current) || replaced;
	if (own && !*job)
		*job = json_pack("{s:s?, s:s?, s:s?, s:s?, s:s?}", "branch", own->branch, "path",
				 own->path, "quiet", own->quiet, "min_segments", own->min_segments,
				 "max_wait", own->max_wait);
	return json_pack("{s:s, s:s, s:b, s:b}", "name", name, "state",
			 replaced             ? "replaced"
			 : own                ? current ? "installed" : "outdated"
			 : state == HOOK_NONE ? "none"
			 : state == HOOK_OURS ? "other_job"
					      : "other",
			 "runs_before", own && path_exists(before), "executable",
			 state != HOOK_NONE && state != HOOK_INERT);
}

/* hook: from hook_state_json(). */
static const char *state_in_words(const json_t *hook)
{
	static const char *const words[][2] = {
		{"installed", "installed, current"},
		{"outdated", "installed by another version of burst: install again"},
		{"replaced", "replaced by another program since it was installed: install again"},
		{"other", "only another program's"},
		{"other_job", "installed for another burst.cfg only"},
		{"none", "not installed"},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(jsonx_text(hook, "state", ""), words[i][0]))
			return words[i][1];
	return "";
}

/* last: what the hook recorded when it fired last; NULL: it has not fired. */
static void print_trigger(const json_t *last)
{
	char age[32];
	int64_t at = jsonx_int(last, "at_ms", 0);
	const char *why = jsonx_text(last, "why", ""), *request = jsonx_text(last, "request", ""),
		   *branch = jsonx_text(last, "branch", "");

	if (!last) {
		output_line(stdout, "no trigger yet");
		return;
	}
	output_line(stdout, "last trigger: %s, %s ago, commit %.12s%s%s%s: %s%s%s%s%s",
		    jsonx_text(last, "hook", ""),
		    duration_show(age, sizeof(age), MAX(clock_wall_ms() - at, 0)),
		    jsonx_text(last, "commit", ""), branch[0] ? " (" : "", branch,
		    branch[0] ? ")" : "", jsonx_text(last, "outcome", ""), why[0] ? ": " : "", why,
		    request[0] ? " as request " : "", request);
}

static void print_status_text(const struct hook_target *t, const json_t *hooks, const json_t *job,
			      const json_t *last)
{
	static const char *const flags[][2] = {{"branch", "branches"},
					       {"path", "paths"},
					       {"quiet", "quiet"},
					       {"min_segments", "min segments"},
					       {"max_wait", "max wait"}};
	const json_t *hook;
	size_t i;

	output_line(stdout, "job    %s", t->path);
	output_line(stdout, "hooks  %s", t->hooks);
	json_array_foreach (hooks, i, hook)
		output_line(stdout, "  %-13s %s%s", jsonx_text(hook, "name", ""),
			    state_in_words(hook),
			    json_is_true(json_object_get(hook, "runs_before"))
				    ? "; also runs the earlier hook"
				    : "");
	for (i = 0; i < ARRAY_LEN(flags) && job; i++)
		if (jsonx_text(job, flags[i][0], NULL))
			output_line(stdout, "%-12s %s", flags[i][1],
				    jsonx_text(job, flags[i][0], ""));
	print_trigger(last);
}

/* Returns exit status 1 if a hook must be installed again or the last trigger failed. */
static int print_status(struct cmd_context *ctx, const struct hook_target *t, struct err *err)
{
	CLEANUP(json_decref) json_t *hooks = json_array();
	CLEANUP(json_decref) json_t *last = hook_last_trigger(ctx->store, t->path);
	CLEANUP(json_decref) json_t *job = NULL;
	bool wrong = !strcmp(jsonx_text(last, "outcome", ""), "failed");

	for (const char *const *name = hook_names; *name; name++) {
		json_t *hook = hook_state_json(t, *name, &job, &wrong, err);
		if (!hook)
			return -1;
		json_array_append_new(hooks, hook);
	}
	if (ctx->json)
		output_json(json_pack("{s:i, s:o, s:o, s:O, s:O, s:O}", "schema", 1, "config",
				      report_text(t->path), "folder", report_text(t->hooks),
				      "hooks", hooks, "settings", job ? job : json_null(), "last",
				      last ? last : json_null()));
	else
		print_status_text(t, hooks, job, last);
	return cmd_flush(err) < 0 ? -1 : wrong;
}

/* ---- the command ---- */

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
		return remove_all(ctx, &t, err);
	if (!installs)
		return print_status(ctx, &t, err);
	int result = install_all(ctx, &t, err);
	struct err ignored = {0};
	if (result < 0)
		remove_output_tree(&t, &ignored); /* the working tree made for this hook */
	return result;
}

static const struct opt opts[] = {
	{0, "on", "HOOKS",
	 "hooks to install: post-commit, post-merge, post-rewrite (the default), pre-push, "
	 "post-receive"},
	{0, "branch", "NAMES", "only commits of these branches, as in main,release/*"},
	{0, "path", "PATHS",
	 "only commits that change these paths, instead of the files that the job reads"},
	{0, "quiet", "TIME", "wait until no other commit comes for this long (20s)"},
	{0, "min-segments", "N", "wait until this many segments need rendering"},
	{0, "max-wait", "TIME", "but no longer than this (30m)"},
	{0, "into", "DIR",
	 "in a bare repository: the folder that stands for its working tree, for outputs"},
	{0},
};

const struct cmd cmd_hook = {
	.name = "hook",
	.args = "install|status|remove [CONFIG]",
	.min_args = 1,
	.max_args = 4,
	.summary = "render what is committed, from git's hooks",
	.details =
		"`burst hook install` writes hooks into the repository of CONFIG. After a commit, "
		"a merge or a rebase that changes what the job reads, they queue the committed "
		"files (`burst submit --commit`) and return at once; other commits start nothing. "
		"An existing hook runs first. The hooks serve all working trees of the repository: "
		"each renders into its own output folder. `burst hook status` shows where the "
		"hooks are, whether they are current, and the result of the last trigger. `burst "
		"hook remove` restores the previous hooks byte for byte.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_SETUP,
	.json = true,
	.run = run,
};
