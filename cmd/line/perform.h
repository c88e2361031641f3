/* perform.h - runs a parsed command, after opening what it needs */
#ifndef BURST_CMD_LINE_PERFORM_H
#define BURST_CMD_LINE_PERFORM_H

#include "cmd/cmd.h"

/* ---- start ----
 * Prepares the process before the command line is read. */

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

/* ---- perform ----
 * Runs a parsed command, after opening what it needs. */

/* Loads the providers outside the tree, unless the command (its name; "": none) is local-cloud.
 * perform() warns of those that cannot be loaded; perform_free() frees these warnings. */
void perform_load_providers(const char *command);
void perform_free(void);
/* Opens what ctx->cmd needs and calls it. Returns the exit status, or -1 with *err. */
int perform(struct cmd_context *ctx, struct err *err);

#endif
