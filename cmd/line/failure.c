/* failure.c - reports a command's failure to the user, and all mistakes. */
#include "cmd/cmd.h"
#include "cmd/show/output.h"
#include "cmd/unattended/unattended.h"

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
