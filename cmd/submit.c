/* submit.c - `burst submit`: adds a request to the queue and starts the client that renders it. */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/path.h"
#include "unattended/git.h"
#include "cmd/show/output.h"
#include "cmd/unattended/queue_client.h"
#include "cmd/show/report.h"
#include "unattended/requests.h"

enum { QUIET_MS = 20 * 1000, MAX_WAIT_MS = 30 * 60 * 1000 };

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

/* ---- flags ---- */

static int read_by(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	const char *by = opt_text(ctx, "by");
	int64_t ms;

	if (!by)
		return 0;
	if (clock_next_time(by, row->created_ms, &row->by_ms))
		return 0;
	if (duration_parse(by, &ms, NULL) < 0 || ms <= 0)
		return err_set(err, ERR_USAGE,
			       "--by %s: must be a time of day (07:00) or a duration (2h)", by);
	row->by_ms = row->created_ms + ms;
	return 0;
}

static int read_below(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	const char *below = opt_text(ctx, "below");

	if (!below)
		return 0;
	if (money_parse(below, &row->below_microusd_h, err) < 0)
		return err_wrap(err, "--below");
	return row->below_microusd_h > 0
		       ? 0
		       : err_set(err, ERR_USAGE, "--below %s: must be more than 0", below);
}

static int read_flags(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	row->created_ms = clock_wall_ms();
	row->quiet_ms = QUIET_MS;
	row->max_wait_ms = opt_has(ctx, "below") || opt_has(ctx, "by") ? 0 : MAX_WAIT_MS;
	if (read_by(ctx, row, err) < 0 || read_below(ctx, row, err) < 0 ||
	    opt_duration(ctx, "quiet", &row->quiet_ms, err) < 0 ||
	    opt_duration(ctx, "max-wait", &row->max_wait_ms, err) < 0)
		return -1;
	/* who says until when it may take, or how many segments it wants, leaves the rest to us */
	row->fills_pod =
		(opt_has(ctx, "by") || opt_has(ctx, "max-wait")) && !opt_has(ctx, "min-segments");
	return opt_int(ctx, "min-segments", 1, 1000000, &row->min_segments, err);
}

/* ---- what to render ---- */

/* If the file itself is rendered, reports its mistakes now, while the user reads the output. */
static int check_config(const char *config, struct err *err)
{
	CLEANUP(config_free) struct config *c = NULL;
	struct config_ask ask = {.file = config,
				 .need_job = true,
				 .providers = provider_registry,
				 .jobs = job_registry};

	return config_open(&c, &ask, err) < 0 ? -1 : config_check(c, err);
}

/* What the commit has is read when it is rendered: here git only names it. */
static int find_commit(const char *commit, struct request_row *row, struct err *err)
{
	CLEANUP(free_text) char *dir = git_folder(row->config);
	CLEANUP(free_text) char *wanted = xasprintf("%s^{commit}", commit);
	CLEANUP(str_free) struct str out = STR_INIT;

	if (commit[0] == '-')
		return err_set(err, ERR_USAGE, "--commit %.60s: not the name of a commit", commit);
	int status = GIT(dir, &out, err, "rev-parse", "--show-toplevel", wanted);
	const char *top = str_text(&out), *id = strchr(top, '\n');
	size_t top_len = strcspn(top, "\n"), id_len = id ? strcspn(id + 1, "\n") : 0;
	if (status > 0 || (status == 0 && (id_len < 40 || id_len >= sizeof(row->commit_id) ||
					   top_len >= sizeof(row->repo))))
		return err_set(err, ERR_CONFIG,
			       "--commit %.60s: no such commit in the repository of %s", commit,
			       dir);
	if (status < 0)
		return -1;
	snprintf(row->commit_id, sizeof(row->commit_id), "%.*s", (int)id_len, id + 1);
	snprintf(row->repo, sizeof(row->repo), "%.*s", (int)top_len, top);
	bool below = starts_with(row->config, row->repo) && row->config[top_len] == '/';
	COPY_TEXT(row->path, row->config + (below ? top_len + 1 : 0));
	return 0;
}

static int find_config(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	CLEANUP(free_text) char *path = NULL;
	const char *file = ctx->arg_count ? ctx->args[0] : NULL, *commit = opt_text(ctx, "commit");
	int found = config_find(file, &path, err);

	if (found <= 0 && commit) {
		/* it may be gone from the working tree, and still be in the commit */
		err_clear(err);
		path = config_named(file);
	} else if (found < 0) {
		return -1;
	} else if (!found) {
		return err_set(err, ERR_USAGE,
			       "no burst.cfg in this folder; name one (see `burst help submit`)");
	}
	if (strlen(path) >= sizeof(row->config))
		return err_set(err, ERR_CONFIG,
			       "burst.cfg has a path of %zu bytes, more than the ledger's limit of "
			       "%zu: move it",
			       strlen(path), sizeof(row->config) - 1);
	COPY_TEXT(row->config, path);
	return commit ? find_commit(commit, row, err) : check_config(path, err);
}

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

/* What is not in the ledger is lost, whatever the reason: exit 6, so that a hook can tell. */
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

	if (read_flags(ctx, &row, err) < 0 || find_config(ctx, &row, err) < 0)
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
