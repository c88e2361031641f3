/* hook_flags.c - reads and checks the flags of `burst hook`. */
#include "hook.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/pattern.h"
#include "commit_tree.h"

static bool is_hook(const char *name)
{
	for (const char *const *hook = hook_names; *hook; hook++)
		if (!strcmp(*hook, name))
			return true;
	return false;
}

int hook_chosen(const struct cmd_context *ctx, const char *const *usual, char **text,
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

int hook_check_durations(const struct cmd_context *ctx, struct err *err)
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

	GIT(&t->place, &names, NULL, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads");
	GIT(&t->place, &names, NULL, "symbolic-ref", "--short",
	    "HEAD"); /* the branch may have no commit yet */
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

static int check_path(const struct hook_target *t, const char *path, struct err *err)
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

/* A filter that nothing can match would silently render nothing. */
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

int hook_check_filters(const struct cmd_context *ctx, const struct hook_target *t, struct err *err)
{
	return check_filter(ctx, t, "branch", check_branch, err) < 0 ||
			       check_filter(ctx, t, "path", check_path, err) < 0
		       ? -1
		       : 0;
}

struct hook_job hook_job_of(const struct cmd_context *ctx, const struct hook_target *t, bool bare)
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
