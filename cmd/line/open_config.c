/* open_config.c - opens the project's config from the working tree or from a commit. */
#include "cmd/cmd.h"
#include "cmd/unattended/commit_tree.h"

/* Adds the commit's files that the job reads, which the config names. */
static int add_inputs(struct cmd_context *ctx, struct err *err)
{
	char **inputs = config_inputs(ctx->config);
	int result = commit_tree_add(ctx->tree, inputs, err);

	config_inputs_free(inputs);
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
