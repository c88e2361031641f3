/* live_pods.h - prints the pods that have not ended, as JSON and as a table. */
#ifndef BURST_CMD_SHOW_LIVE_PODS_H
#define BURST_CMD_SHOW_LIVE_PODS_H

#include <jansson.h>

#include "cmd/cmd.h"
#include "store/store.h"

/* An object for each pod; a new reference. */
json_t *live_pods_list(struct cmd_context *ctx, const struct pod_row *pods, size_t count,
		       int64_t now);
/* Prints them and the volumes. */
int live_pods_json(struct cmd_context *ctx, const struct pod_row *pods, size_t count, int64_t now,
		   struct err *err);
int live_pods_print(struct cmd_context *ctx, const struct pod_row *pods, size_t count, int64_t now,
		    struct err *err);

#endif
