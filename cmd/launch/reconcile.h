/* reconcile.h - `burst ledger --reconcile`: fetches the vendors' bills, records them beside our
 * count, and explains differences. */
#ifndef BURST_CMD_LAUNCH_RECONCILE_H
#define BURST_CMD_LAUNCH_RECONCILE_H

#include "cmd/cmd.h"

/* run: the run whose pods to check; NULL: all of the last 30 days without a final record. Returns
 * exit status 1 if a vendor bills more than can be explained. */
int reconcile(struct cmd_context *ctx, const char *run, struct err *err);

#endif
