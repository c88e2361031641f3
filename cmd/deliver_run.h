/* deliver_run.h - a delivery's own client: its config, its end, and what commands find instead. */
#ifndef BURST_CMD_DELIVER_RUN_H
#define BURST_CMD_DELIVER_RUN_H

#include "launch.h"

/* A delivery's client receives its config through a descriptor of a file without a name. The parent
 * calls deliver_run_hand(), which returns the descriptor, or -1 with *err; the child calls
 * deliver_run_tell() between fork and exec. */
int deliver_run_hand(const char *config, const char *text, size_t len, struct err *err);
void deliver_run_tell(int fd);
/* In the client, once: the descriptor; -1: none was handed over, or burst did not make it. */
int deliver_run_handed(void);
/* A delivery's own client: its command has ended well, if it was begun at all. The exit status,
 * noted; -1 with *err. */
int deliver_run_judge(struct launch *l, struct err *err);
/* The run to come back to: that of a delivery, where that is the one that run_find() finds unasked.
 */
int deliver_run_find(struct cmd_context *ctx, const char *name, struct run_row *out,
		     struct err *err);
/* What to do instead of coming back to a delivery; -1. */
int deliver_run_refuse(struct cmd_context *ctx, const struct run_row *run, struct err *err);

#endif
