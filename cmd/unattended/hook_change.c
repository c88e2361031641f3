/* hook_change.c - `burst hook install` and `remove`. */
#include "hook.h"

#include "base/log.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "config/trust.h"

static const char *const usual_hooks[] = {"post-commit", "post-merge", "post-rewrite", NULL};
static const char *const bare_hooks[] = {"post-receive", NULL};

/* Warns if git's folder of hooks is not where the user expects it. */
static void warn_of_folder(const struct hook_target *t)
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
			 "%s belongs to another program (core.hooksPath): if that program "
			 "rewrites it, install again (see `burst hook status`)",
			 folder);
}

int hook_install_all(struct cmd_context *ctx, const struct hook_target *t, struct err *err)
{
	CLEANUP(free_text) char *text = NULL;
	const char *names[8];
	bool bare = hook_is_bare(t);
	struct hook_job job = hook_job_of(ctx, t, bare);
	size_t installed = 0, count = 0;

	if (hook_check_durations(ctx, err) < 0 || hook_check_job(t, bare, err) < 0 ||
	    hook_check_filters(ctx, t, err) < 0 ||
	    hook_chosen(ctx, bare ? bare_hooks : usual_hooks, &text, names, err) < 0)
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
			    installed, count, t->hooks, t->config);
	return installed == count ? 0 : 1;
}

int hook_remove_all(struct cmd_context *ctx, struct hook_target *t, struct err *err)
{
	CLEANUP(free_text) char *text = NULL;
	const char *names[8];
	int removed = 0;

	if (hook_chosen(ctx, hook_names, &text, names, err) < 0)
		return -1;
	for (const char *const *name = names; *name; name++) {
		int found = hook_remove(t, *name, t->config, err);
		if (found < 0)
			return -1;
		removed += found;
	}
	if (!opt_has(ctx, "on") && removed && hook_remove_tree(t, err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr,
			    removed ? "%d hooks of %s removed from %s"
				    : "%d hooks of %s were in %s",
			    removed, t->config, t->hooks);
	return 0;
}
