/* queue.c - `burst queue`: lists and removes requests, and starts the client that renders them. */
#include "base/log.h"
#include "cmd/unattended/queue_client.h"
#include "cmd/unattended/queue_list.h"
#include "cmd/unattended/queue_remove.h"
#include "runs/runs.h"

static const struct opt opts[] = {
	{'a', "all", NULL, "ls: also requests that ended long ago; rm: all waiting requests", NULL,
	 false},
	{0},
};

/* ---- run ---- */

static int run_queue(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *config = NULL;

	if (ctx->arg_count > 2)
		return err_set(err, ERR_USAGE, "queue run takes one CONFIG");
	int found = queue_find(ctx, &config, err);
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
	} actions[] = {{"ls", queue_list}, {"rm", queue_remove}, {"run", run_queue}};
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
	.details = "ls [CONFIG]: open requests and the newest that have ended, with their age, "
		   "why they wait, and their run. rm REQUEST...: removes waiting requests; "
		   "`burst cancel` ends a run. run [CONFIG]: works on the queue of this "
		   "folder's burst.cfg in the foreground until it is empty, unless another "
		   "client does so already. Requests that a dead client left are continued: "
		   "their run is resumed, not started again.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.json = true,
	.run = run,
};
