/* submit.c - `burst submit`: adds a request to the queue and starts the client that renders it. */
#include "cmd.h"

#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/unattended/queue_client.h"
#include "cmd/unattended/request.h"
#include "unattended/requests.h"

static const struct opt opts[] = {
	{0, "commit", "COMMIT",
	 "render this git commit instead of the files at that time; of several requests the "
	 "last one counts",
	 NULL, false},
	{0, "by", "WHEN", "deadline: a time of day (07:00, local time), or 2h from now", NULL,
	 false},
	{0, "below", "USD", "wait until the pod costs less per hour", NULL, false},
	{0, "min-segments", "N", "wait until this many segments need rendering", NULL, false},
	{0, "quiet", "TIME", "start when no other request comes for this long (20s)", NULL, false},
	{0, "max-wait", "TIME",
	 "start after this long in any case (30m; with --below or --by: no limit)", NULL, false},
	{0},
};

/* ---- the request ---- */

static int add(struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	CLEANUP(free_text) char *path = NULL;

	ctx->state_dir = config_state_dir(err);
	if (!ctx->state_dir)
		return -1;
	path = path_join(ctx->state_dir, "ledger.db");
	if (store_open(&ctx->store, path, err) < 0)
		return -1;
	cmd_open_runs(ctx);
	return requests_add(ctx->store, row, err);
}

static void tell(const struct cmd_context *ctx, const struct request_row *row)
{
	if (ctx->json)
		output_json(json_pack("{s:i, s:o, s:o, s:s}", "schema", 1, "request",
				      report_text(row->id), "config", report_text(row->config),
				      "state", request_state_word(row->state)));
	else if (!ctx->quiet)
		output_line(stderr, "request %s: queued (`burst queue ls` shows it)", row->id);
}

/* Exits 6 for a request that is not in the ledger, so that a hook can tell. */
static int not_queued(const struct cmd_context *ctx, struct err *err)
{
	if (err->kind != ERR_LOCAL)
		return -1;
	err_wrap(err, "nothing was queued");
	output_error(ctx, err);
	return 6;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct request_row row = {.id = ""};

	if (request_read_flags(ctx, &row, err) < 0 || request_find_config(ctx, &row, err) < 0)
		return -1;
	if (add(ctx, &row, err) < 0)
		return not_queued(ctx, err);
	tell(ctx, &row);
	int started = queue_start_runner(ctx, row.config, err);
	queue_wake_others(ctx, row.config);
	if (started < 0) {
		err_wrap(err,
			 "request %s is queued, but its client could not be started: run `burst "
			 "queue run`",
			 row.id);
		output_error(ctx, err);
		return 6;
	}
	return cmd_flush(err);
}

const struct cmd cmd_submit = {
	.name = "submit",
	.args = "[CONFIG]",
	.max_args = 1,
	.summary = "queue a render and return at once, for hooks and schedules",
	.details = "Writes a request to the ledger and makes sure that one client in the "
		   "background works on the job's queue. That client waits until no other "
		   "request comes for --quiet, renders the newest state once for all of them, "
		   "and looks again before it ends. While a `burst run` of the job is active, "
		   "it waits. If a run fails with exit 4 or 6, it retries after 1 minute, then "
		   "2, 4 and so on up to 30, at most 12 times within 12 hours; other failures "
		   "end the requests, and `burst queue ls` keeps their message. After a crash "
		   "or a reboot, the next `burst submit` or `burst queue run` continues with "
		   "the queue. Of the requests that have ended, the ledger keeps the last 1,000 of "
		   "each job. Exit 6: nothing was queued.",
	.opts = opts,
	.group = CMD_GROUP_RENDER,
	.json = true,
	.run = run,
};
