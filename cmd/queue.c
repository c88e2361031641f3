/* queue.c - `burst queue`: lists and removes requests, and starts the client that renders them. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/show/output.h"
#include "cmd/unattended/unattended.h"
#include "unattended/requests.h"

static const struct opt opts[] = {
	{'a', "all", NULL, "ls: also requests that ended long ago; rm: all waiting requests"},
	{0},
};

/* Sets *config to the path of the config whose queue the arguments name; the caller frees it. The
 * working tree may lack the file if requests to render a commit name it. Returns 1 if it set
 * *config, 0 if there is no such config, or -1. */
static int find_queue(struct cmd_context *ctx, char **config, struct err *err)
{
	const char *file = ctx->arg_count > 1 ? ctx->args[1] : NULL;
	int found = config_find(file, config, err);
	struct request_row *rows = NULL;
	size_t count = 0;

	if (found > 0)
		return found;
	CLEANUP(free_text) char *named = config_named(file);
	if (store_requests(ctx->store, named, false, &rows, &count, NULL) < 0 || !count)
		return found;
	free(rows);
	err_clear(err);
	*config = TAKE(named);
	return 1;
}

/* ---- ls, rm, run ---- */

static int list_requests(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *config = NULL;

	if (ctx->arg_count > 2)
		return err_set(err, ERR_USAGE, "queue ls takes one CONFIG");
	if (ctx->arg_count > 1 && find_queue(ctx, &config, err) < 0)
		return -1;
	return queue_list(ctx, config, opt_has(ctx, "all"), err);
}

/* name: the request's id or its beginning. ERR_USAGE: the request does not wait. */
static int remove_request(struct cmd_context *ctx, const char *name, struct err *err)
{
	struct request_row named, row;

	if (named_request(ctx->store, name, &named, err) < 0)
		return -1;
	/* a dead run has no client to cancel, so only its request is removed */
	bool run_is_dead = named.state == REQUEST_RUNNING &&
			   !queue_has_runner(ctx->state_dir, named.config) &&
			   !run_is_alive(&ctx->runs, named.run);
	if (requests_remove(ctx->store, named.id, run_is_dead, clock_wall_ms(), &row, err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr, "request %s: removed", row.id);
	return 0;
}

static int remove_waiting_requests(struct cmd_context *ctx, struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(ctx->store, NULL, true, &rows, &count, err) < 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		if (rows[i].state == REQUEST_PENDING)
			result = remove_request(ctx, rows[i].id, err);
	free(rows);
	return result;
}

/* Removes the requests that the arguments name, or with --all those that wait. */
static int remove_requests(struct cmd_context *ctx, struct err *err)
{
	if (opt_has(ctx, "all") == (ctx->arg_count > 1))
		return err_set(err, ERR_USAGE,
			       "queue rm: name requests (`burst queue ls` lists them), or give "
			       "--all for all waiting ones");
	if (opt_has(ctx, "all"))
		return remove_waiting_requests(ctx, err);
	for (int i = 1; i < ctx->arg_count; i++)
		if (remove_request(ctx, ctx->args[i], err) < 0)
			return -1;
	return 0;
}

/* Works in this process until the queue is empty. Returns 0 also if another client does so. */
static int work_on_queue(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *config = NULL;

	if (ctx->arg_count > 2)
		return err_set(err, ERR_USAGE, "queue run takes one CONFIG");
	int found = find_queue(ctx, &config, err);
	if (found < 0 || !found)
		return found < 0 ? -1
				 : err_set(err, ERR_USAGE,
					   "no burst.cfg in this folder; name one (see `burst help "
					   "queue`)");
	if (queue_run(ctx, config, err) == 0)
		return 0;
	if (err->kind != ERR_BUSY)
		return -1;
	log_line(LOG_NOTE, "%s; nothing to do", err->msg);
	err_clear(err);
	return 0;
}

/* ---- the command ---- */

static int run(struct cmd_context *ctx, struct err *err)
{
	static const struct {
		const char *name;
		int (*run)(struct cmd_context *ctx, struct err *err);
	} actions[] = {{"ls", list_requests}, {"rm", remove_requests}, {"run", work_on_queue}};
	const char *what = ctx->arg_count ? ctx->args[0] : "ls";

	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (!strcmp(what, actions[i].name)) {
			int result = actions[i].run(ctx, err);
			return result < 0 ? -1 : cmd_flush(err) < 0 ? -1 : result;
		}
	return err_set(err, ERR_USAGE,
		       "queue: \"%s\": expected ls, rm or run (see `burst help queue`)", what);
}

const struct cmd cmd_queue = {
	.name = "queue",
	.args = "ls|rm|run [CONFIG|REQUEST...]",
	.max_args = -1,
	.summary = "show, remove or work on queued requests",
	.details =
		"ls [CONFIG]: open requests and the newest that have ended, with their age, why "
		"they wait, and their run. rm REQUEST...: removes waiting requests; `burst cancel` "
		"ends a run. run [CONFIG]: works on the queue of this folder's burst.cfg in the "
		"foreground until it is empty, unless another client does so already. Requests "
		"that a dead client left are continued: their run is resumed, not started again.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.json = true,
	.run = run,
};
