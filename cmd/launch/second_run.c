/* second_run.c - a run inside the process of another one, as if a second burst had been started. */
#include "second_run.h"

#include "cmd/show/output.h"

static int open_and_go(struct cmd_context *own, const struct second_run *what, struct err *err)
{
	struct config_source ask = {.file = what->config,
				    .delivery = what->delivery,
				    .need_job = own->cmd->needs & NEED_JOB,
				    .mistakes = &own->mistakes,
				    .providers = provider_registry,
				    .jobs = job_registry};

	if (cmd_open_config(own, &ask, NULL, err) < 0 || cmd_apply_flags(own, err) < 0 ||
	    config_check(own->config, err) < 0)
		return -1;
	cmd_open_runs(own);
	return what->go ? what->go(own, what->arg, err) : own->cmd->run(own, err);
}

int second_run(struct cmd_context *ctx, const struct second_run *what, struct err *err)
{
	struct cmd_context own = {.commands = ctx->commands,
				  .argv = ctx->argv,
				  .live = ctx->live,
				  .color = ctx->color,
				  .delivers = what->delivers};
	int count = 0;
	bool help;

	while (what->words[count])
		count++;
	int status = cmd_parse(&own, what->cmd, count, (char **)what->words, &help, err);
	own.state_dir = ctx->state_dir;
	own.store = ctx->store;
	output_setup(&own);
	if (status == 0)
		status = open_and_go(&own, what, err);
	if (status < 0)
		status = cmd_tell_failure(&own, err, own.json);
	output_setup(ctx);
	own.state_dir = NULL; /* they are the first run's */
	own.store = NULL;
	cmd_context_free(&own);
	return status;
}
