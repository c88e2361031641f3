/* schedule.c - `burst schedule`: runs a job at set times. */
#include "cmd/unattended/schedule.h"

static int run(struct cmd_context *ctx, struct err *err)
{
	const char *what = ctx->args[0];
	struct schedule_row row;

	if (!strcmp(what, "ls") && ctx->arg_count == 1)
		return schedule_list(ctx, err) < 0 ? -1 : cmd_flush(err);
	if (!strcmp(what, "add") && ctx->arg_count > 2)
		return schedule_add(ctx, err);
	if (ctx->arg_count != 2 ||
	    (strcmp(what, "rm") && strcmp(what, "log") && strcmp(what, "run")))
		return err_set(err, ERR_USAGE,
			       "schedule: expected add NAME WHEN, ls, rm NAME, log NAME or run "
			       "NAME (see `burst help schedule`)");
	if (store_schedule(ctx->store, ctx->args[1], &row, err) < 0)
		return err->kind == ERR_NOT_FOUND ? err_set(err, ERR_USAGE,
							    "no schedule \"%s\" (`burst schedule "
							    "ls` lists them)",
							    ctx->args[1])
						  : -1;
	if (!strcmp(what, "rm"))
		return schedule_drop(ctx, &row, err);
	if (!strcmp(what, "log"))
		return schedule_show_log(ctx, &row, err) < 0 ? -1 : cmd_flush(err);
	return opt_has(ctx, "due") ? schedule_wake(ctx->store, ctx->state_dir, &row, err)
				   : schedule_by_hand(ctx->store, ctx->state_dir, &row, err);
}

static const struct opt opts[] = {
	{0, "config", "FILE", "add: the project's file or folder (default: this folder)", NULL,
	 false},
	{0, "catch-up", "TIME",
	 "add: run the last missed time if it is no older than this (default 12h; 0: never)", NULL,
	 false},
	{0, "jitter", "TIME", "add: delay the start by a random time up to this", NULL, false},
	{0, "retry", "N", "add: retries after exit 4 or 6 (default 3)", NULL, false},
	{0, "retry-after", "TIME",
	 "add: wait before the first retry; doubles each time (default 5m)", NULL, false},
	{0, "window", "TIME", "add: start no retry later than this after the due time (default 2h)",
	 NULL, false},
	{0, "overlap", "wait|skip",
	 "add: what to do while another run of the job is active (default wait)", NULL, false},
	{0, "backend", "systemd|launchd|crontab",
	 "add: which timer starts it (default: the first one available)", NULL, false},
	{0, "due", NULL, "run: only if a run is due; timers call this", NULL, false},
	{0},
};

const struct cmd cmd_schedule = {
	.name = "schedule",
	.args = "add|ls|rm|log|run [NAME] [WHEN]",
	.min_args = 1,
	.max_args = -1,
	.summary = "render a job at set times",
	.details = "`burst schedule add NAME WHEN` in a job's folder adds a schedule. WHEN is "
		   "\"daily 02:00\", \"weekdays 07:30\", \"weekly mon 02:00\", "
		   "\"monthly 1 02:00\", \"hourly\", \"every 15m\", or the five fields of a "
		   "crontab. Times are in this machine's time zone. If the clocks skip a "
		   "fixed time, the run starts right after the gap. If a fixed time comes twice, "
		   "the run starts once.\n\n"
		   "If the machine was off or asleep, burst runs the last missed time once, within "
		   "--catch-up. burst stores no account key in a schedule: "
		   "scheduled runs find keys in your own file or in the provider's. They use PATH "
		   "and similar variables as `schedule add` saw them.\n\n"
		   "`ls` shows the next run of each schedule, `log NAME` its past runs. `run NAME` "
		   "runs it now, `rm NAME` removes it.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RENDER,
	.json = true,
	.run = run,
};
