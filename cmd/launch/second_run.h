/* second_run.h - a run that another run needs, in the same process: with a context, a config and
 * flags of its own, and the same ledger. */
#ifndef BURST_CMD_LAUNCH_SECOND_RUN_H
#define BURST_CMD_LAUNCH_SECOND_RUN_H

#include "launch.h"

struct second_run {
	const struct cmd *cmd; /* whose flags the words are */
	const char *const
		*words;       /* as on a command line, the command's name first; NULL ends them */
	const char *config;   /* its path; NULL: ./burst.cfg */
	const char *delivery; /* config_source.delivery; NULL: the config is read from its file */
	struct delivery_own *delivers; /* NULL: it delivers nothing */
	/* The exit status, or -1 with *err. NULL: as the command does. */
	int (*go)(struct cmd_context *own, void *arg, struct err *err);
	void *arg;
};

/* Does it, and tells what failed as the command itself would. Returns the exit status, never -1;
 * *err says why it did not begin. */
int second_run(struct cmd_context *ctx, const struct second_run *what, struct err *err);

#endif
