/* open_runs.c - gives the library of runs the command's ledger, the user's accounts and the log. */
#include "cmd/cmd.h"
#include "cmd/show/report.h"
#include "cmd/unattended/unattended.h"
#include "jobs/agent/kit.h"

static void note(void *ctx, enum log_level level, const char *text)
{
	(void)ctx;
	log_line(level, "%s", text);
}

static void unreleased(void *ctx, const struct pod_row *pods, size_t count)
{
	(void)ctx;
	report_unreleased(pods, count);
}

static void settled(void *ctx, const struct run_row *now, enum run_status was)
{
	notify_settled(ctx, now, was);
}

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
		.watch = {.note = note, .unreleased = unreleased, .settled = settled, .ctx = ctx},
		.open_account = open_account,
		.ctx = ctx,
	};
}
