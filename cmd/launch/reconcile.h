/* reconcile.h - `burst ledger --reconcile`: asks the vendors what they billed, writes it down
 * beside our count, and says why the two differ. */
#ifndef BURST_CMD_LAUNCH_RECONCILE_H
#define BURST_CMD_LAUNCH_RECONCILE_H

#include "cmd/cmd.h"

/* The pods of one run, or (run NULL) all of the last 30 days that have no final record. Exit
 * status: 1 when a vendor bills more than can be explained. */
int reconcile(struct cmd_context *ctx, const char *run, struct err *err);

#endif
