/* reap_named.h - the pod of `burst reap POD`. */
#ifndef BURST_CMD_LINE_REAP_NAMED_H
#define BURST_CMD_LINE_REAP_NAMED_H

#include "cmd/cmd.h"

/* Completes a part of an id in ctx->args. A pod that is not in the ledger is named by its
 * provider's id. */
int reap_named_find(struct cmd_context *ctx, struct err *err);
/* Prints the result for the named pod, or returns -1 with *err. */
int reap_named_end(struct cmd_context *ctx, const struct sweep_end *end, struct err *err);

#endif
