/* deliver_run.h - runs a delivery and judges its end; finds the run that a command means. */
#ifndef BURST_CMD_LAUNCH_DELIVER_RUN_H
#define BURST_CMD_LAUNCH_DELIVER_RUN_H

#include "launch.h"

/* Fields that a delivery's context adds. */
struct delivery_own {
	const struct run *render; /* its render, which holds the output folder */
	json_t *said; /* the object of --json, which the delivery itself does not print */
};
/* Runs the delivery of this config, which it takes over, as a run of its own in this process. Uses
 * the lock of render's output folder. Signals are held before and after; meanwhile the delivery's
 * engine handles them. Returns the exit status. *said gets the object for --json, or NULL; *err
 * says why it did not begin. */
int deliver_run(const struct launch *render, struct config *config, json_t **said, struct err *err);
/* For a delivery's own run: records whether its command succeeded, if it began. Returns the exit
 * status, or -1 with *err. */
int deliver_run_judge(struct launch *l, struct err *err);
/* Finds the run to resume: the delivery, if run_find() without a name finds one. */
int deliver_run_find(struct cmd_context *ctx, const char *name, struct run_row *out,
		     struct err *err);
/* Sets the error that says what to do instead of resuming a delivery. Returns -1. */
int deliver_run_refuse(struct cmd_context *ctx, const struct run_row *run, struct err *err);

#endif
