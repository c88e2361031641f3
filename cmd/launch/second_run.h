/* second_run.h - a run that another run needs, in the same process: with its own context and
 * config, and the same ledger. */
#ifndef BURST_CMD_LAUNCH_SECOND_RUN_H
#define BURST_CMD_LAUNCH_SECOND_RUN_H

#include "launch.h"

/* Makes *own a context like ctx with this config, which it takes over. Borrows the rest, so ctx
 * must outlive it. */
void second_context(struct cmd_context *own, const struct cmd_context *ctx, struct config *config);
void second_context_free(struct cmd_context *own);

struct second_run {
	const struct cmd *cmd;         /* the command named in errors; none of its flags is set */
	struct config *config;         /* takes ownership */
	struct delivery_own *delivers; /* NULL: not a delivery */
	/* Returns the exit status, or -1 with *err. */
	int (*go)(struct cmd_context *own, void *arg, struct err *err);
	void *arg;
};

/* Checks the config, runs, and reports a failure as the command itself would. Returns the exit
 * status, never -1; *err says why it did not begin. */
int second_run(struct cmd_context *ctx, const struct second_run *what, struct err *err);

#endif
