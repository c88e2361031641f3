/* start.h - prepares the process before the command line is read. */
#ifndef BURST_CMD_LINE_START_H
#define BURST_CMD_LINE_START_H

#include "cmd/cmd.h"

/* Opens closed standard files: cron and daemons may start burst without them, and the ledger must
 * not become file 2. */
void start_open_files(void);
/* Undoes what the caller may have left: with SIGCHLD ignored the system drops the exit statuses of
 * our programs, and a blocked signal does not stop us. A hangup that nohup ignores stays ignored. A
 * peer that closes a connection is an error of the write, not a signal. */
void start_reset_signals(void);
/* Finds this program's path for children that run burst (the local provider, a detached client).
 * name: argv[0]. */
void start_find_self(const char *name);
/* Fills ctx->live and ctx->color. */
void start_read_terminal(struct cmd_context *ctx);

#endif
