/* queue_remove.h - removes requests from the queue. */
#ifndef BURST_CMD_UNATTENDED_QUEUE_REMOVE_H
#define BURST_CMD_UNATTENDED_QUEUE_REMOVE_H

#include "cmd/cmd.h"

/* Removes the requests that the arguments name, or with --all those that wait. ERR_USAGE: neither
 * is given, or both are. */
int queue_remove(struct cmd_context *ctx, struct err *err);

#endif
