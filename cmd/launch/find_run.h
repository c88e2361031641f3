/* find_run.h - the run that an id or the current folder means. */
#ifndef BURST_CMD_LAUNCH_FIND_RUN_H
#define BURST_CMD_LAUNCH_FIND_RUN_H

#include "cmd/cmd.h"

/* By its name; NULL: of the burst.cfg in this folder (runs_newest_of()), never of another one.
 * ERR_USAGE: there is none. */
int run_find(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err);
/* Adds its job and folder (run_place()) to the message. Returns -1. */
int run_name_in(struct cmd_context *ctx, const struct run_row *run, struct err *err);

#endif
