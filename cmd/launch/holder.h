/* holder.h - waits for the process that holds a run's lock. */
#ifndef BURST_CMD_LAUNCH_HOLDER_H
#define BURST_CMD_LAUNCH_HOLDER_H

#include "cmd/cmd.h"

/* Asks the run's client to stop and release its pods. If it does not stop, the caller releases
 * them. Waits for other holders, such as another command that settles the run. */
int holder_wait(const struct cmd_context *ctx, const char *run, const char *place, struct err *err);

#endif
