#include "cmd.h"

#include "providers/local/local.h"

/* The "vendor" behind the local provider: burst calls itself, as it would call another vendor's API. */
static int run(struct cmd_context *ctx, struct err *err)
{
	(void)err;
	return local_cloud_main(ctx->arg_count, (char **)ctx->args);
}

const struct cmd cmd_local_cloud = {
	.name = "local-cloud",
	.max_args = -1,
	.summary = "the pods of this machine, for the local provider",
	.hidden = true,
	.raw = true,
	.run = run,
};
