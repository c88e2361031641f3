/* perform.c - opens what a command needs, runs it and reports its failure. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/path.h"
#include "cmd/cmd.h"
#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/unattended/commit_tree.h"
#include "cmd/unattended/unattended.h"
#include "jobs/agent/kit.h"

/* ---- open config ----
 * Opens the project's config from the working tree or from a commit. */

/* Adds the commit's files that the job reads, which the config names. */
static int add_inputs(struct cmd_context *ctx, struct err *err)
{
	char **inputs = config_inputs(ctx->config);
	int result = commit_tree_add(ctx->tree, inputs, err);

	texts_free(inputs);
	return result;
}

int cmd_open_config(struct cmd_context *ctx, struct config_source *ask, const char *commit,
		    struct err *err)
{
	if (commit && commit_tree_open(&ctx->tree, ask->file, commit, err) < 0)
		return -1;
	ask->tree = ctx->tree ? &ctx->tree->at : NULL;
	if (config_open(&ctx->config, ask, err) < 0)
		return -1;
	return ctx->tree ? add_inputs(ctx, err) : 0;
}

/* ---- open runs ----
 * Gives the library of runs the command's ledger, the user's accounts and the log. */

static void print_note(void *ctx, enum log_level level, const char *text)
{
	(void)ctx;
	log_line(level, "%s", text);
}

static void print_unreleased_pods(void *ctx, const struct pod_row *pods, size_t count)
{
	(void)ctx;
	report_unreleased(pods, count);
}

static void notify_of_settled_run(void *ctx, const struct run_row *now, enum run_status was)
{
	notify_settled(ctx, now, was);
}

/* For struct runs: opens the user's account at this provider. *out is the caller's. */
static int open_account(void *at, const char *name, struct engine_provider *out, struct err *err)
{
	struct cmd_context *ctx = at;
	const struct provider_ops *ops = provider_find(name);

	if (!ops)
		return err_set(err, ERR_CONFIG,
			       "unknown provider \"%s\" (BURST_PROVIDER_PATH can name more)", name);
	const struct section *conf = config_account(ctx->config, name, err);
	out->ops = ops;
	return conf ? ops->open(&out->handle, conf, ctx->state_dir, err) : -1;
}

void cmd_open_runs(struct cmd_context *ctx)
{
	ctx->runs = (struct runs){
		.state_dir = ctx->state_dir,
		.store = ctx->store,
		.no_ledger = ctx->no_ledger.kind != ERR_NONE,
		.kit = pod_kit(),
		.verbose = ctx->verbose > 0,
		.watch = {.note = print_note,
			  .unreleased = print_unreleased_pods,
			  .settled = notify_of_settled_run,
			  .ctx = ctx},
		.open_account = open_account,
		.ctx = ctx,
	};
}

/* ---- failure ----
 * Reports a command's failure to the user, and all mistakes. */

int cmd_tell_failure(struct cmd_context *ctx, struct err *err, bool json)
{
	if (ctx->config)
		config_place_error(ctx->config, err);
	output_mistakes(ctx, err);
	if (ctx->cmd && (ctx->cmd->needs & NOTIFIES_FAILURE))
		notify_never_began(ctx, err);
	if (ctx->cmd && ctx->cmd->failed && json && !ctx->json_printed)
		ctx->cmd->failed(ctx, err);
	return err_exit_status(err);
}

/* ---- perform ----
 * Opens what a command needs, and runs it. */

int cmd_open_state(struct cmd_context *ctx, unsigned needs, struct err *err)
{
	mode_t before = umask(077);
	int result = 0;

	ctx->state_dir = config_state_dir(err);
	if (!ctx->state_dir)
		result = -1;
	if (result == 0 && (needs & NEED_LEDGER)) {
		CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ledger.db");
		result = store_open(&ctx->store, path, err);
		if (result < 0 && (needs & LEDGER_IF_ANY)) {
			ctx->no_ledger = *err;
			ctx->store = store_memory();
			result = 0;
		}
	}
	umask(before);
	cmd_open_runs(ctx);
	return result;
}

/* The config that the user named: the first argument, or --config if the command has that flag.
 * NULL: none. */
static const char *named_config(const struct cmd_context *ctx)
{
	const struct opt *o = ctx->cmd->opts;

	if ((ctx->cmd->needs & CONFIG_ARG) && ctx->arg_count)
		return ctx->args[0];
	for (size_t i = 0; o && o[i].name; i++)
		if (!strcmp(o[i].name, "config"))
			return ctx->values[i];
	return NULL;
}

/* Opens the config with the flags' values over the files', and checks it. */
static int open_and_check_config(struct cmd_context *ctx, struct err *err)
{
	unsigned needs = ctx->cmd->needs;
	struct config_source ask = {
		.file = named_config(ctx),
		.need_job = needs & NEED_JOB,
		.user_only = !(needs & (NEED_CONFIG | NEED_JOB)),
		.mistakes = needs & (NEED_CONFIG | NEED_JOB) ? &ctx->mistakes : NULL,
		.providers = provider_registry,
		.jobs = job_registry,
	};

	bool has_commit = ctx->cmd == &cmd_run || ctx->cmd == &cmd_plan;
	if (has_commit && quick_from_words(ctx, err) < 0)
		return -1;
	if (ctx->cmd == &cmd_listen && quick_to_listen(ctx, err) < 0)
		return -1;
	if (ctx->quick) {
		ask.file = ctx->quick->path;
		ask.text = ctx->quick->text;
	}
	if (cmd_open_config(ctx, &ask, has_commit ? opt_text(ctx, "commit") : NULL, err) < 0 ||
	    cmd_apply_flags(ctx, err) < 0)
		return -1;
	if (config_check(ctx->config, err) == 0)
		return 0;
	if (needs & CHECKS_ALL)
		check_note_rest(ctx);
	return -1;
}

/* ---- providers outside the tree ---- */

/* A plug-in that cannot be loaded must not stop a command that releases pods of other vendors. */
static struct str bad_providers;

void cmd_load_providers(const char *command)
{
	if (strcmp(command, cmd_local_cloud.name) != 0)
		providers_load(getenv("BURST_PROVIDER_PATH"), &bad_providers);
}

/* Prints why plug-ins could not be loaded, a line for each. Not while they are loaded: commands
 * that need no provider say nothing of them. */
static void warn_of_bad_providers(void)
{
	const char *at = str_text(&bad_providers), *line;
	size_t len;

	while ((line = str_next_line(&at, &len)))
		log_line(LOG_WARN, "BURST_PROVIDER_PATH: %.*s; continuing without it", (int)len,
			 line);
}

void cmd_free_warnings(void)
{
	str_free(&bad_providers);
}

int cmd_perform(struct cmd_context *ctx, struct err *err)
{
	unsigned needs = ctx->cmd->needs;
	bool configured = needs & (NEED_ACCOUNTS | NEED_CONFIG | NEED_JOB);

	if (configured)
		warn_of_bad_providers();
	if (configured && open_and_check_config(ctx, err) < 0)
		return -1;
	if ((needs & (NEED_STATE | NEED_LEDGER)) && cmd_open_state(ctx, needs, err) < 0)
		return -1;
	return ctx->cmd->run(ctx, err);
}
