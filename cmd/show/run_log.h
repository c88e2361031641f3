/* run_log.h - prints the log of a run on stdout. */
#ifndef BURST_CMD_SHOW_RUN_LOG_H
#define BURST_CMD_SHOW_RUN_LOG_H

#include "cmd/cmd.h"

/* Prints the log of run id at path, then the table of its phases; with --follow until the run ends.
 * ERR_USAGE: the run has no log. */
int run_log_show(struct cmd_context *ctx, const char *id, const char *path, struct err *err);

#endif
