/* deliver_run.h - the run that delivers: how it is made, how it ended, and what commands find
 * instead of it. */
#ifndef BURST_CMD_LAUNCH_DELIVER_RUN_H
#define BURST_CMD_LAUNCH_DELIVER_RUN_H

#include "launch.h"

/* What its context has beyond that of any run. */
struct delivery_own {
	const struct run *render; /* its render, which holds the output folder */
	json_t *said;             /* the object of --json, which nothing prints */
};
/* Runs the delivery that this config, which it takes over, asks for, as a run of its own in this
 * process. It uses the lock of render's output folder. Signals are held before and after; its
 * engine hears them meanwhile. Returns the exit status; *said gets what --json would print, or
 * NULL, and *err why it did not begin. */
int deliver_run(const struct launch *render, struct config *config, json_t **said, struct err *err);
/* A delivery's own run: its command has ended well, if it was begun at all. The exit status, noted;
 * -1 with *err. */
int deliver_run_judge(struct launch *l, struct err *err);
/* The run to come back to: that of a delivery, where that is the one that run_find() finds unasked.
 */
int deliver_run_find(struct cmd_context *ctx, const char *name, struct run_row *out,
		     struct err *err);
/* What to do instead of coming back to a delivery; -1. */
int deliver_run_refuse(struct cmd_context *ctx, const struct run_row *run, struct err *err);

#endif
