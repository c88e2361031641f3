/* settle.h - runs whose client is gone: what they left is given back, and their rows say how they
 * ended. */
#ifndef BURST_CMD_SETTLE_H
#define BURST_CMD_SETTLE_H

#include "cmd.h"

/* Settles runs whose client died: releases their pods, proves them gone, marks them. Prints what it
 * did. -1 with ERR_UNRELEASED if a pod could not be confirmed gone. except: a run to leave alone
 * (about to be resumed); NULL. */
int settle_runs(struct cmd_context *ctx, const char *except, struct err *err);
/* One run, whose client is dead, if it has not been settled and none of its pods is open any more.
 */
int settle_run(struct cmd_context *ctx, const char *id, struct err *err);
/* Releases the pods of one run (its client must be dead) and marks it `status`. */
int settle_release(struct cmd_context *ctx, const struct run_row *run, enum run_status status,
		   struct err *err);
/* By its result: three times interrupted, so that whatever follows would only ask for as much
 * again. */
bool settle_wants_out(int result, const struct err *err);

#endif
