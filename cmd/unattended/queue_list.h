/* queue_list.h - finds the queue of a config and lists its requests. */
#ifndef BURST_CMD_UNATTENDED_QUEUE_LIST_H
#define BURST_CMD_UNATTENDED_QUEUE_LIST_H

#include "cmd/cmd.h"

/* Finds the config whose queue the arguments name; the caller frees it. The working tree may lack
 * the file if requests to render a commit name it. Returns 1, 0 if there is none, or -1 with *err.
 */
int queue_find(struct cmd_context *ctx, char **config, struct err *err);
/* Prints the requests of one queue, or of all; with --all also old ones. */
int queue_list(struct cmd_context *ctx, struct err *err);

#endif
