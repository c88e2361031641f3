/* ps.c - `burst ps`: lists the runs and pods of this machine that have not ended. */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "cmd/show/report.h"

static int print_json(struct cmd_context *ctx, const struct pod_row *pods, size_t count,
		      int64_t now, struct err *err)
{
	CLEANUP(json_decref) json_t *list = live_pods_list(ctx, pods, count, now);

	if (report_volumes(ctx->store, NULL, list, err) < 0)
		return -1;
	output_json(json_incref(list));
	return 0;
}

/* Prints live pods, then volumes, and what to do about pods without a client. */
static int print_text(struct cmd_context *ctx, const struct pod_row *pods, size_t count,
		      int64_t now, struct err *err)
{
	size_t alone = live_pods_table(ctx, pods, count, now);

	for (size_t i = 0; i < count; i++)
		report_outlived(stdout, &pods[i]);
	if (count)
		putchar('\n');
	int volumes = report_volumes(ctx->store, stdout, NULL, err);
	if (!count && volumes >= 0)
		log_line(LOG_NOTE,
			 "no pods%s are billing according to this ledger; `burst reap` asks the "
			 "providers",
			 volumes ? "" : " or volumes");
	if (alone)
		log_line(LOG_NOTE,
			 "%zu pod%s no client and may be gone: `burst attach` or `burst reap` asks "
			 "the provider and updates the ledger",
			 alone, alone == 1 ? " has" : "s have");
	return volumes < 0 ? -1 : 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	int64_t now = clock_wall_ms();
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	int result = (ctx->json ? print_json : print_text)(ctx, pods, count, now, err);
	free(pods);
	return result < 0 ? -1 : cmd_flush(err);
}

const struct cmd cmd_ps = {
	.name = "ps",
	.summary = "show the pods and volumes that cost money now",
	.details = "Pods in this machine's ledger, with their job, their phase, the segments that "
		   "their run has done, the time until it has done all at its pace so far, their "
		   "age and cost so far, and every volume with its price per month. A pod without "
		   "a client is \"unwatched\", or \"over\" after its hard end. burst ps asks no "
		   "provider; `burst reap` does.",
	.json = true,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
