/* ps.c - `burst ps`: lists the runs and pods of this machine that have not ended. */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cmd/show/report.h"

static int run(struct cmd_context *ctx, struct err *err)
{
	int64_t now = clock_wall_ms();
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	int result = ctx->json ? live_pods_json(ctx, pods, count, now, err)
			       : live_pods_print(ctx, pods, count, now, err);
	free(pods);
	return result < 0 ? -1 : cmd_flush(err);
}

const struct cmd cmd_ps = {
	.name = "ps",
	.summary = "show the pods and volumes that cost money now",
	.details = "Pods in this machine's ledger, with their job, their phase, the segments that "
		   "their run has done, the time until it has done all at its pace so far, their "
		   "age and cost so far, and every "
		   "volume with its price per month. A pod without a client is \"unwatched\", "
		   "or \"over\" after its hard end. burst ps asks no provider; `burst reap` "
		   "does.",
	.json = true,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
