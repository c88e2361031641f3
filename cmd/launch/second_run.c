/* second_run.c - a run inside the process of another one, as if a second burst had been started. */
#include "second_run.h"

void second_context(struct cmd_context *own, const struct cmd_context *ctx, struct config *config)
{
	*own = *ctx;
	own->config = config;
	own->mistakes = (struct mistakes){0};
	cmd_open_runs(own);
}

void second_context_free(struct cmd_context *own)
{
	config_free(own->config);
	mistakes_free(&own->mistakes);
}

int second_run(struct cmd_context *ctx, const struct second_run *what, struct err *err)
{
	struct cmd_context own;

	second_context(&own, ctx, what->config);
	own.cmd = what->cmd;
	own.values = NULL;
	own.quick = NULL;
	own.delivers = what->delivers;
	own.json = what->delivers != NULL;
	own.yes = true;
	own.overwrite = own.anew = own.prune = own.json_printed = false;
	int status = config_check(own.config, err) < 0 ? -1 : what->go(&own, what->arg, err);
	if (status < 0)
		status = cmd_tell_failure(&own, err, own.json);
	second_context_free(&own);
	return status;
}
