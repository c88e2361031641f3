/* queue_remove.c - `burst queue rm`: removes waiting requests. */
#include "queue_remove.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cmd/show/output.h"
#include "queue_client.h"
#include "queue_list.h"
#include "runs/runs.h"
#include "unattended/requests.h"

static int remove_one(struct cmd_context *ctx, const char *name, struct err *err)
{
	struct request_row named, row;

	if (named_request(ctx->store, name, &named, err) < 0)
		return -1;
	/* a dead run has no client to cancel, so only its request is removed */
	bool bound = named.state == REQUEST_RUNNING &&
		     !queue_has_runner(ctx->state_dir, named.config) &&
		     !run_is_alive(&ctx->runs, named.run);
	if (requests_remove(ctx->store, named.id, bound, clock_wall_ms(), &row, err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr, "request %s: removed", row.id);
	return 0;
}

static int remove_all(struct cmd_context *ctx, struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(ctx->store, NULL, true, &rows, &count, err) < 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		if (rows[i].state == REQUEST_PENDING)
			result = remove_one(ctx, rows[i].id, err);
	free(rows);
	return result;
}

int queue_remove(struct cmd_context *ctx, struct err *err)
{
	if (opt_has(ctx, "all") == (ctx->arg_count > 1))
		return err_set(err, ERR_USAGE,
			       "queue rm: name requests (`burst queue ls` lists them), or give "
			       "--all for all waiting ones");
	if (opt_has(ctx, "all"))
		return remove_all(ctx, err);
	for (int i = 1; i < ctx->arg_count; i++)
		if (remove_one(ctx, ctx->args[i], err) < 0)
			return -1;
	return 0;
}
