/* perform.c - opens what a command needs, and runs it. */
#include "perform.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/path.h"
#include "cmd/launch/check.h"
#include "cmd/launch/quick.h"

static int open_state(struct cmd_context *ctx, struct err *err)
{
	mode_t before = umask(077);
	int result = 0;

	ctx->state_dir = config_state_dir(err);
	if (!ctx->state_dir)
		result = -1;
	if (result == 0 && (ctx->cmd->needs & NEED_LEDGER)) {
		CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ledger.db");
		result = store_open(&ctx->store, path, err);
		if (result < 0 && (ctx->cmd->needs & LEDGER_IF_ANY)) {
			ctx->no_ledger = *err;
			ctx->store = store_memory();
			result = 0;
		}
	}
	umask(before);
	cmd_open_runs(ctx);
	return result;
}

/* From the first argument, or from --config if a command has it. */
static const char *config_file(const struct cmd_context *ctx)
{
	const struct opt *o = ctx->cmd->opts;

	if ((ctx->cmd->needs & CONFIG_ARG) && ctx->arg_count)
		return ctx->args[0];
	for (size_t i = 0; o && o[i].name; i++)
		if (!strcmp(o[i].name, "config"))
			return ctx->values[i];
	return NULL;
}

static int open_config(struct cmd_context *ctx, struct err *err)
{
	unsigned needs = ctx->cmd->needs;
	struct config_source ask = {
		.file = config_file(ctx),
		.need_job = needs & NEED_JOB,
		.user_only = !(needs & (NEED_CONFIG | NEED_JOB)),
		.mistakes = needs & (NEED_CONFIG | NEED_JOB) ? &ctx->mistakes : NULL,
		.providers = provider_registry,
		.jobs = job_registry,
	};

	bool has_commit = ctx->cmd == &cmd_run || ctx->cmd == &cmd_plan;
	if (has_commit && quick_from_words(ctx, err) < 0)
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
		check_rest(ctx);
	return -1;
}

/* ---- providers outside the tree ---- */

/* A plug-in that cannot be loaded must not stop a command that releases pods of other vendors. */
static struct str bad_providers;

void perform_load_providers(const char *command)
{
	if (strcmp(command, cmd_local_cloud.name) != 0)
		providers_load(getenv("BURST_PROVIDER_PATH"), &bad_providers);
}

static void tell_bad_providers(void)
{
	const char *at = str_text(&bad_providers), *line;
	size_t len;

	while ((line = str_next_line(&at, &len)))
		log_line(LOG_WARN, "BURST_PROVIDER_PATH: %.*s; continuing without it", (int)len,
			 line);
}

void perform_free(void)
{
	str_free(&bad_providers);
}

int perform(struct cmd_context *ctx, struct err *err)
{
	unsigned needs = ctx->cmd->needs;
	bool configured = needs & (NEED_ACCOUNTS | NEED_CONFIG | NEED_JOB);

	if (configured)
		tell_bad_providers();
	if (configured && open_config(ctx, err) < 0)
		return -1;
	if ((needs & (NEED_STATE | NEED_LEDGER)) && open_state(ctx, err) < 0)
		return -1;
	return ctx->cmd->run(ctx, err);
}
