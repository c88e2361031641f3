/* holder.h - the process that holds the lock of a run. */
#ifndef BURST_CMD_LAUNCH_HOLDER_H
#define BURST_CMD_LAUNCH_HOLDER_H

#include "cmd/cmd.h"

/* Its client is asked to stop (it releases its pods itself); if it does not, we do it. Who holds
 * the lock for another reason (another run that settles this one) is no client of its, and is
 * waited for. */
int holder_wait(const struct cmd_context *ctx, const char *run, const char *place, struct err *err);

#endif
