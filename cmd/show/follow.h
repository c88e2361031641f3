/* follow.h - `burst attach` to a run whose client lives: its log so far, then its view until it
 * ends. */
#ifndef BURST_CMD_SHOW_FOLLOW_H
#define BURST_CMD_SHOW_FOLLOW_H

#include "cmd/cmd.h"

/* Returns when the client has ended, whatever became of the run. */
void follow_run(struct cmd_context *ctx, const struct run_row *run);

#endif
