/* queue_list.h - finds the queue of a config and lists its requests. */
#ifndef BURST_CMD_UNATTENDED_QUEUE_LIST_H
#define BURST_CMD_UNATTENDED_QUEUE_LIST_H

#include "cmd/cmd.h"

/* The config whose queue the arguments name, to be freed. The working tree need not have the file
 * if requests to render a commit name it. Returns 1, 0 if there is none, or -1 with *err. */
int queue_find(struct cmd_context *ctx, char **config, struct err *err);
/* Prints the requests of one queue, or of all; with --all also those that ended long ago. */
int queue_list(struct cmd_context *ctx, struct err *err);

#endif
