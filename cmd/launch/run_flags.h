/* run_flags.h - keeps the options of a run's command line, for all commands that continue it:
 * runs/ID/flags, one JSON object of config keys and texts ("caps.max_cost": "0.10"). "force" is no
 * key: it allows overwriting foreign files. */
#ifndef BURST_CMD_LAUNCH_RUN_FLAGS_H
#define BURST_CMD_LAUNCH_RUN_FLAGS_H

#include "cmd/cmd.h"

/* Merges the flags of this command into the file; newer values win. Leaves out the output folder,
 * which is in the run's row. */
int run_flags_write(const struct cmd_context *ctx, const char *run_dir, struct err *err);
/* Sets them in ctx->config and ctx->overwrite; does nothing without the file. */
int run_flags_apply(struct cmd_context *ctx, const char *run_dir, struct err *err);

#endif
