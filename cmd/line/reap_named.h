/* reap_named.h - the pod that `burst reap POD` names. */
#ifndef BURST_CMD_LINE_REAP_NAMED_H
#define BURST_CMD_LINE_REAP_NAMED_H

#include "cmd/cmd.h"

/* A part of an id becomes the whole one in ctx->args. A pod that the ledger does not know is named
 * by its provider's id. */
int reap_named_find(struct cmd_context *ctx, struct err *err);
/* A user who names a pod wants to know what became of that one: prints it, or -1 with *err. */
int reap_named_end(struct cmd_context *ctx, const struct sweep_end *end, struct err *err);

#endif
