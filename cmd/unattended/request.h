/* request.h - reads a request for the queue from the command line. */
#ifndef BURST_CMD_UNATTENDED_REQUEST_H
#define BURST_CMD_UNATTENDED_REQUEST_H

#include "cmd/cmd.h"

/* Fills the times and limits of *row from the flags of `burst submit`. ERR_USAGE names the flag. */
int request_read_flags(const struct cmd_context *ctx, struct request_row *row, struct err *err);
/* Fills config, and with --commit also commit_id, repo and path. ERR_USAGE: there is no config.
 * Reports the file's mistakes, or that the commit does not exist. */
int request_find_config(const struct cmd_context *ctx, struct request_row *row, struct err *err);

#endif
