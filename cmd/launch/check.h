/* check.h - every mistake of a config at once: of its values, its job, its providers and its plan.
 * Rents nothing, asks no provider. */
#ifndef BURST_CMD_LAUNCH_CHECK_H
#define BURST_CMD_LAUNCH_CHECK_H

#include "launch.h"

enum { CHECK_NEED = 160 };

/* Reads the job (launch_read_job()) and notes all that is wrong in ctx->mistakes; returns -1 with
 * the first one. renders: what only a new pod needs is checked as well. */
int check_all(struct launch *l, bool renders, struct err *err);
/* config_check() has failed, so that there will be no run: notes what else is wrong. */
void check_rest(struct cmd_context *ctx);
/* "chatterbox needs 3.7 GiB for one segment", of GPU memory; "" where the engine does not say. */
char *check_say_need(char to[CHECK_NEED], const struct job_needs *needs);

#endif
