/* run_flags.h - what a run was told on its command line over what its config says: runs/ID/flags,
 * one JSON object of config keys and the words they were given ("caps.max_cost": "0.10"); "force"
 * is no key, and says that foreign files may be written over. Every command that goes on with the
 * run keeps to it. */
#ifndef BURST_CMD_LAUNCH_RUN_FLAGS_H
#define BURST_CMD_LAUNCH_RUN_FLAGS_H

#include "cmd/cmd.h"

/* Writes the flags of this command beside those that are there already: the newer word counts. The
 * output folder stays out, it is in the run's row. */
int run_flags_write(const struct cmd_context *ctx, const char *run_dir, struct err *err);
/* Sets them in ctx->config and ctx->overwrite; without such a file none. */
int run_flags_apply(struct cmd_context *ctx, const char *run_dir, struct err *err);

#endif
