/* completion.c - `burst completion`: prints the completion script of a shell. */
#include "cmd/line/completion.h"

static int run(struct cmd_context *ctx, struct err *err)
{
	if (completion_print(ctx->args[0], ctx->commands))
		return cmd_flush(err);
	return err_set(err, ERR_USAGE,
		       "completion: no shell \"%.40s\" here: it is bash, zsh or fish",
		       ctx->args[0]);
}

const struct cmd cmd_completion = {
	.name = "completion",
	.args = "bash|zsh|fish",
	.min_args = 1,
	.max_args = 1,
	.summary = "print the completion script of a shell",
	.details = "bash: source <(burst completion bash)\n"
		   "zsh: burst completion zsh > a folder of $fpath, as _burst\n"
		   "fish: burst completion fish > ~/.config/fish/completions/burst.fish",
	.group = CMD_GROUP_SETUP,
	.run = run,
};
