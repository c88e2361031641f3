/* follow.h - `burst attach` to a run with a client: prints its log so far, then its view until it
 * ends. */
#ifndef BURST_CMD_SHOW_FOLLOW_H
#define BURST_CMD_SHOW_FOLLOW_H

#include "cmd/cmd.h"

/* Returns once the client has ended, whatever the run's state. */
void follow_run(struct cmd_context *ctx, const struct run_row *run);

#endif
