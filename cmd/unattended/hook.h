/* hook.h - the parts of `burst hook` that have files of their own. */
#ifndef BURST_CMD_UNATTENDED_HOOK_H
#define BURST_CMD_UNATTENDED_HOOK_H

#include "cmd/cmd.h"
#include "unattended/hook.h"

int hook_fire(struct cmd_context *ctx, struct err *err);
int hook_status(struct cmd_context *ctx, const struct hook_target *t, struct err *err);

#endif
