/* start.h - prepares the process before the command line is read. */
#ifndef BURST_CMD_LINE_START_H
#define BURST_CMD_LINE_START_H

#include "cmd/cmd.h"

/* Opens closed standard files: cron and daemons may start burst without them, and the ledger must
 * not become file 2. */
void start_open_files(void);
/* Finds this program's path for children that run burst (the local provider, a detached client).
 * name: argv[0]. */
void start_find_self(const char *name);
/* Fills ctx->live and ctx->color. */
void start_read_terminal(struct cmd_context *ctx);

#endif
