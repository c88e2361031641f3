/* local_cloud.c - the hidden command that acts as the local provider's vendor. */
#include "cmd.h"

#include <stdlib.h>

#include "providers/local/local.h"

/* Runs the "vendor" of the local provider: burst calls itself as it would call another vendor's
 * API. */
static int run(struct cmd_context *ctx, struct err *err)
{
	char **argv = xcalloc((size_t)ctx->arg_count + 2, sizeof(*argv));
	char name[] = "local-cloud";

	(void)err;
	argv[0] = name;
	memcpy(argv + 1, ctx->args, (size_t)ctx->arg_count * sizeof(char *));
	int status = local_cloud_main(ctx->arg_count + 1, argv);
	free(argv);
	return status;
}

const struct cmd cmd_local_cloud = {
	.name = "local-cloud",
	.max_args = -1,
	.summary = "the pods of this machine, for the local provider",
	.hidden = true,
	.raw = true,
	.run = run,
};
