/* second_run.h - a run that another run needs, in the same process: with a context and a config of
 * its own, and the same ledger. */
#ifndef BURST_CMD_LAUNCH_SECOND_RUN_H
#define BURST_CMD_LAUNCH_SECOND_RUN_H

#include "launch.h"

/* Makes *own a context like ctx, with this config instead, which it takes over. All else is
 * borrowed, so ctx outlives it. */
void second_context(struct cmd_context *own, const struct cmd_context *ctx, struct config *config);
void second_context_free(struct cmd_context *own);

struct second_run {
	const struct cmd *cmd; /* as which it tells what failed; none of its flags is given */
	struct config *config; /* taken over */
	struct delivery_own *delivers; /* NULL: it delivers nothing */
	/* The exit status, or -1 with *err. */
	int (*go)(struct cmd_context *own, void *arg, struct err *err);
	void *arg;
};

/* Checks the config, does it, and tells what failed as the command itself would. Returns the exit
 * status, never -1; *err says why it did not begin. */
int second_run(struct cmd_context *ctx, const struct second_run *what, struct err *err);

#endif
