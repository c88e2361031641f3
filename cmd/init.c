/* init.c - `burst init`: writes a first burst.cfg. */
#include "cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "config/example.h"
#include "base/git.h"

enum { NAME_MOST = 60 }; /* bytes of a job's name that is made here */

static const struct job_ops *find_job_type(const char *type, struct err *err)
{
	for (const struct job_ops *const *j = job_registry; *j; j++)
		if (!strcmp((*j)->type, type))
			return *j;
	err_set(err, ERR_USAGE, "--type: unknown job type \"%.40s\"", type);
	return NULL;
}

/* The folder's name without what cannot stand between quotes in burst.cfg; "job" if it cannot serve
 * as a name. The caller frees it. */
static char *job_name_for(const char *dir)
{
	char real[4096];
	char *name = xstrdup(realpath(dir, real) && real[1] ? path_base(real) : "job");

	for (char *p = name; *p; p++)
		if (*p == '"' || *p == '\\' || (unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '-';
	if (strlen(name) > NAME_MOST || !utf8_valid(name, strlen(name)))
		copy_text(name, 4, "job");
	return name;
}

/* ERR_USAGE if the file exists: nothing is overwritten. */
static int write_new_file(const char *path, const char *text, struct err *err)
{
	if (path_exists(path))
		return err_set(err, ERR_USAGE, "%s already exists; nothing was changed", path);
	if (path_write(path, text, strlen(text), 0644, err) < 0)
		return -1;
	log_line(LOG_NOTE, "wrote %s", path);
	return 0;
}

/* Asks whether to write an example for the job to speak. Returns 0 also if the user declines. */
static int offer_example_script(struct cmd_context *ctx, const char *dir, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(dir, "script.jsonl");

	if (path_exists(path))
		return 0;
	if (cmd_confirm(ctx, "Write %s with three lines to speak?", path))
		return write_new_file(path, example_script, err);
	log_line(LOG_NOTE, "the job speaks script.jsonl, which does not exist yet (`burst init -y` "
			   "writes a small one)");
	return 0;
}

/* Suggests ignoring outputs in git, since a run can make them from what git keeps. */
static void suggest_gitignore(const char *dir)
{
	CLEANUP(repo_free) struct repo repo = {0};
	CLEANUP(free_text) char *real = realpath(dir, NULL);
	CLEANUP(free_text) char *out = path_join(real ? real : "/", "out/");
	struct err err = {0};

	/* check-ignore exits with 1 for a path that git would add */
	if (git_find(&repo, dir, &err) == 0 &&
	    GIT(&repo, NULL, &err, "check-ignore", "-q", out) == 1)
		log_line(LOG_NOTE, "keep the output out of git: echo out/ >>%s%s.gitignore",
			 strcmp(dir, ".") ? dir : "", strcmp(dir, ".") ? "/" : "");
}

static void print_next_step(const char *dir)
{
	CLEANUP(str_free) struct str go = STR_INIT;

	if (strcmp(dir, ".") != 0) {
		str_add(&go, "cd ");
		str_add_shell(&go, dir);
		str_add(&go, ", then ");
	}
	log_line(LOG_NOTE,
		 "next: %s`burst plan` shows what a run would rent and cost, `burst run` renders "
		 "into out",
		 str_text(&go));
}

/* Finds the provider with this name of `len` bytes. NULL: ERR_USAGE. */
static const struct provider_ops *find_provider(const char *text, size_t len, struct err *err)
{
	CLEANUP(free_text) char *name = xstrndup(text, len);
	const struct provider_ops *ops = provider_find(name);

	if (!ops)
		err_set(err, ERR_USAGE,
			"--provider: unknown provider \"%.40s\" (`burst help burst.cfg` lists "
			"them)",
			name);
	return ops;
}

/* Reads "ssh,runpod" as the list that burst.cfg has. `note`: also says what each one needs. */
static int list_providers(const char *words, bool note, struct str *list, struct err *err)
{
	for (const char *at = words; at;) {
		size_t len = strcspn(at, ",");
		const struct provider_ops *ops = find_provider(at, len, err);
		if (!ops)
			return -1;
		if (note && ops->setup)
			log_line(LOG_NOTE, "%s: %s", ops->name, ops->setup);
		str_addf(list, "%s\"%s\"", list->len ? ", " : "[", ops->name);
		at = at[len] ? at + len + 1 : NULL;
	}
	str_addc(list, ']');
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	const char *dir = ctx->arg_count ? ctx->args[0] : ".";
	const char *type = opt_has(ctx, "type") ? opt_text(ctx, "type") : "tts";
	const char *words = opt_has(ctx, "provider") ? opt_text(ctx, "provider") : "local";
	const struct job_ops *job = find_job_type(type, err);
	CLEANUP(str_free) struct str providers = STR_INIT;

	if (!job || list_providers(words, false, &providers, err) < 0 ||
	    (ctx->arg_count && path_mkdirs(dir, 0777, err) < 0))
		return -1;
	CLEANUP(free_text)
	char *path = ctx->arg_count ? path_join(dir, "burst.cfg") : xstrdup("burst.cfg");
	CLEANUP(free_text) char *name = job_name_for(dir);
	CLEANUP(str_free) struct str text = STR_INIT;
	if (opt_has(ctx, "full") || !example_short(&text, name, str_text(&providers), job))
		example_config(&text, name, str_text(&providers), job, provider_registry);
	if (write_new_file(path, str_text(&text), err) < 0)
		return -1;
	if (!strcmp(type, "tts") && offer_example_script(ctx, dir, err) < 0)
		return -1;
	suggest_gitignore(dir);
	str_reset(&providers);
	(void)list_providers(words, true, &providers, err); /* they were found above */
	print_next_step(dir);
	return 0;
}

static const struct opt opts[] = {
	{'t', "type", "tts|command", "job type (default tts)"},
	{'p', "provider", "PROVIDER", "providers to rent from, in this order, with commas between"},
	{0, "full", NULL, "write every key, with its default as a comment"},
	{0},
};

const struct cmd cmd_init = {
	.name = "init",
	.args = "[DIR]",
	.max_args = 1,
	.summary = "write a small burst.cfg to begin with",
	.details = "It overwrites nothing. For a tts job -y writes a small script.jsonl, too.",
	.opts = opts,
	.group = CMD_GROUP_SETUP,
	.run = run,
};
