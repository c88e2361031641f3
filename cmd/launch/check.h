/* check.h - finds every mistake of a config at once: its values, its job, its providers, its plan.
 * Rents nothing and calls no provider. */
#ifndef BURST_CMD_LAUNCH_CHECK_H
#define BURST_CMD_LAUNCH_CHECK_H

#include "launch.h"

enum { CHECK_NEED = 160 };

/* Reads the job (launch_read_job()) and notes all mistakes in ctx->mistakes. Returns -1 with the
 * first one. renders: also check what only a new pod needs. */
int check_all(struct launch *l, bool renders, struct err *err);
/* After config_check() has failed, so that no run follows: notes further mistakes. */
void check_rest(struct cmd_context *ctx);
/* "chatterbox needs 3.7 GiB for one segment", of GPU memory; "" if the engine's need is unknown. */
char *check_say_need(char to[CHECK_NEED], const struct job_needs *needs);

#endif
