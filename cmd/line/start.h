/* start.h - what a process needs before it reads its command line. */
#ifndef BURST_CMD_LINE_START_H
#define BURST_CMD_LINE_START_H

#include "cmd/cmd.h"

/* cron and daemons may start us with the standard files closed; the ledger must not become file 2.
 */
void start_open_files(void);
/* Children that are "burst" again (the local provider, a detached client) are this very program.
 * name: argv[0]. */
void start_find_self(const char *name);
/* Fills ctx->live and ctx->color. */
void start_read_terminal(struct cmd_context *ctx);

#endif
