/* find_run.h - finds the run that an id or the current folder means, and names its job's place. */
#ifndef BURST_CMD_LAUNCH_FIND_RUN_H
#define BURST_CMD_LAUNCH_FIND_RUN_H

#include "cmd/cmd.h"

/* Finds a run by name; NULL: of the burst.cfg in this folder, never of another one. Among its runs
 * and their deliveries, takes the newest running one, else the newest with pods that may bill, else
 * the newest. ERR_USAGE: there is none. */
int run_find(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err);
/* For messages: job "quiz" in /home/me/quiz. The caller frees it. */
char *run_place(struct cmd_context *ctx, const struct run_row *run);
/* Adds that to the message. Returns -1. */
int run_name_in(struct cmd_context *ctx, const struct run_row *run, struct err *err);

#endif
