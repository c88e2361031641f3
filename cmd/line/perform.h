/* perform.h - runs a parsed command, after opening what it needs. */
#ifndef BURST_CMD_LINE_PERFORM_H
#define BURST_CMD_LINE_PERFORM_H

#include "cmd/cmd.h"

/* Loads the providers outside the tree, unless the command (its name; "": none) is local-cloud.
 * perform() warns of those that cannot be loaded; perform_free() frees these warnings. */
void perform_load_providers(const char *command);
void perform_free(void);
/* Opens what ctx->cmd needs and calls it. Returns the exit status, or -1 with *err. */
int perform(struct cmd_context *ctx, struct err *err);

#endif
