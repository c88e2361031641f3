/* schedule.c - `burst schedule`: runs a job at set times. */
#include "cmd/unattended/schedule.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/show/table.h"

enum { NAME_MOST = 40, LOG_LINES = 30, HOUR_MS = 3600 * 1000 };

/* ---- words ---- */

static int check_name(const char *name, struct err *err)
{
	size_t n = strlen(name);
	bool good = n > 0 && n <= NAME_MOST && isalnum((unsigned char)name[0]);

	for (const char *p = name; *p; p++)
		good = good && (islower((unsigned char)*p) || isdigit((unsigned char)*p) ||
				*p == '-' || *p == '_');
	return good ? 0
		    : err_set(err, ERR_USAGE,
			      "schedule: \"%s\" is not a valid name: use lower-case letters, "
			      "digits, \"-\" and \"_\", %d at most, beginning with a letter or "
			      "a digit",
			      name, NAME_MOST);
}

/* "Thu 26 Nov 02:00 CET" */
static const char *show_time(char *to, size_t room, int64_t ms)
{
	return clock_local(to, room, "%a %d %b %H:%M %Z", ms);
}

/* ---- add ---- */

static int open_project(struct cmd_context *ctx, struct err *err)
{
	struct config_ask ask = {.file = opt_text(ctx, "config"),
				 .need_job = true,
				 .providers = provider_registry,
				 .jobs = job_registry};

	if (config_open(&ctx->config, &ask, err) < 0 || config_check(ctx->config, err) < 0)
		return -1;
	if (!config_path(ctx->config))
		return err_set(err, ERR_CONFIG,
			       "no burst.cfg in this folder: change to the job's folder, or "
			       "give its file with --config");
	return 0;
}

static int read_flags(const struct cmd_context *ctx, struct schedule_row *row, struct err *err)
{
	const char *overlap = opt_text(ctx, "overlap");
	int64_t retries = 3;

	row->catch_up_ms = 12 * HOUR_MS;
	row->retry_after_ms = HOUR_MS / 12;
	row->window_ms = 2 * HOUR_MS;
	row->overlap = overlap ? state_read(&schedule_overlap_words, overlap) : OVERLAP_WAIT;
	if (row->overlap == OVERLAP_UNKNOWN)
		return err_set(err, ERR_USAGE, "--overlap %s: expected wait or skip", overlap);
	if (opt_duration(ctx, "catch-up", &row->catch_up_ms, err) < 0 ||
	    opt_duration(ctx, "jitter", &row->jitter_ms, err) < 0 ||
	    opt_int(ctx, "retry", 0, 100, &retries, err) < 0 ||
	    opt_duration(ctx, "retry-after", &row->retry_after_ms, err) < 0 ||
	    opt_duration(ctx, "window", &row->window_ms, err) < 0)
		return -1;
	if (row->retry_after_ms < 1000)
		return err_set(err, ERR_USAGE, "--retry-after: must be 1s or more");
	row->retries = (int)retries;
	return schedule_choose(opt_text(ctx, "backend"), &row->backend, err);
}

/* The rest of the line: `add nightly daily 02:00` needs no quotes. */
static int read_rule(const struct cmd_context *ctx, struct schedule_row *row, struct calendar *c,
		     struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	for (int i = 2; i < ctx->arg_count; i++)
		str_addf(&text, "%s%s", i > 2 ? " " : "", ctx->args[i]);
	if (text.len >= sizeof(row->rule))
		return err_set(err, ERR_USAGE,
			       "schedule: the time to run at is longer than %zu letters",
			       sizeof(row->rule) - 1);
	COPY_TEXT(row->rule, str_text(&text));
	return calendar_parse(row->rule, c, err);
}

/* 1: there was one of this name, 0: there was none. */
static int replace(struct cmd_context *ctx, const struct schedule_row *row, struct str *note,
		   struct err *err)
{
	struct schedule_row before;
	bool known = store_schedule(ctx->store, row->name, &before, err) == 0;

	if (!known && err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	if (known && schedule_uninstall(&before, err) < 0)
		return -1;
	if (store_put_schedule(ctx->store, row, err) < 0)
		return -1;
	if (schedule_install(ctx, row, note, err) == 0)
		return known;
	store_remove_schedule(ctx->store, row->name, NULL);
	return -1;
}

static int add(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(str_free) struct str note = STR_INIT;
	struct schedule_row row = {.made_ms = clock_wall_ms()};
	struct calendar c;
	char at[64];

	COPY_TEXT(row.name, ctx->args[1]);
	if (check_name(ctx->args[1], err) < 0 || read_rule(ctx, &row, &c, err) < 0 ||
	    open_project(ctx, err) < 0 || read_flags(ctx, &row, err) < 0 ||
	    schedule_environment(ctx, row.environment, sizeof(row.environment), err) < 0 ||
	    schedule_check_keys(ctx, err) < 0)
		return -1;
	COPY_TEXT(row.config, config_path(ctx->config));
	int replaced = replace(ctx, &row, &note, err);
	if (replaced < 0)
		return -1;
	if (ctx->quiet)
		return 0;
	output_line(stderr, "schedule %s: %s: %s, %s run %s, started by %s; renders %s", row.name,
		    replaced ? "replaced" : "added", row.rule, replaced ? "next" : "first",
		    show_time(at, sizeof(at), calendar_next(&c, row.made_ms)),
		    schedule_backend_word(row.backend), row.config);
	output_lines(stderr, str_text(&note));
	output_line(stderr, "to run it now, as the timer will: `burst schedule run %s`", row.name);
	return 0;
}

/* ---- ls ---- */

static json_t *json_firing(const struct firing_row *f)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:i, s:i, s:o, s:i, s:o}", "due_at", f->due, "state",
			 firing_state_word(f->state), "started_at", report_time(f->started_ms),
			 "ended_at", report_time(f->ended_ms), "tries", f->tries, "missed_before",
			 f->missed, "run", f->run[0] ? report_text(f->run) : json_null(),
			 "exit_status", f->exit_status, "said", report_text(f->said));
}

static json_t *json_schedule(const struct schedule_row *row, const struct firing_row *last,
			     int64_t next_ms)
{
	return json_pack("{s:s, s:s, s:o, s:s, s:b, s:o, s:o}", "name", row->name, "when",
			 row->rule, "config", report_text(row->config), "backend",
			 schedule_backend_word(row->backend), "installed",
			 schedule_is_installed(row), "next_at",
			 next_ms < 0 ? json_null() : report_time(next_ms), "last",
			 last ? json_firing(last) : json_null());
}

static void add_row(struct table *t, const struct schedule_row *row, const struct firing_row *last,
		    int64_t next_ms)
{
	char at[64];

	table_cell(t, "%s", row->name);
	table_cell(t, "%s", row->rule);
	table_cell(t, "%s", next_ms < 0 ? "never" : show_time(at, sizeof(at), next_ms));
	if (last)
		table_cell(t, "%s %s", firing_state_word(last->state),
			   show_time(at, sizeof(at), schedule_due_ms(last)));
	else
		table_cell(t, "not yet");
	table_cell(t, "%s%s", schedule_backend_word(row->backend),
		   schedule_is_installed(row) ? "" : " (gone: add it again)");
	table_cell(t, "%s", row->config);
}

static struct table *new_table(void)
{
	struct table *t = table_new();

	table_column(t, "NAME", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "WHEN", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "NEXT", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "LAST", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "STARTED BY", TABLE_LEFT, 1);
	table_column(t, "JOB", TABLE_LEFT, TABLE_SHRINKS);
	return t;
}

static int ls(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(table_free) struct table *t = new_table();
	struct schedule_row *rows = NULL;
	json_t *list = json_array();
	size_t count = 0;
	int result = store_schedules(ctx->store, &rows, &count, err);

	for (size_t i = 0; result == 0 && i < count; i++) {
		struct firing_row *last = NULL;
		struct calendar c;
		size_t fired = 0;
		int64_t next_ms = calendar_parse(rows[i].rule, &c, NULL) == 0
					  ? calendar_next(&c, clock_wall_ms())
					  : -1;
		result = store_firings(ctx->store, rows[i].name, 1, &last, &fired, err);
		add_row(t, &rows[i], last, next_ms);
		json_array_append_new(list, json_schedule(&rows[i], last, next_ms));
		free(last);
	}
	free(rows);
	if (result < 0 || ctx->json) {
		if (result == 0)
			output_json(json_pack("{s:i, s:O}", "schema", 1, "schedules", list));
		json_decref(list);
		return result;
	}
	json_decref(list);
	table_print(t, stdout, terminal_width(stdout));
	if (!count)
		output_line(stderr, "no schedule yet: `burst schedule add nightly daily 02:00` "
				    "in a job's folder adds one");
	return 0;
}

/* ---- rm, log, run ---- */

static int drop(struct cmd_context *ctx, const struct schedule_row *row, struct err *err)
{
	CLEANUP(free_text) char *log = schedule_log(ctx, row->name);
	static const char *const ends[] = {"", ".1", ".lock"};

	if (schedule_uninstall(row, err) < 0 ||
	    store_remove_schedule(ctx->store, row->name, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		CLEANUP(free_text) char *path = xasprintf("%s%s", log, ends[i]);
		if (path_remove_tree(path, err) < 0)
			return -1;
	}
	if (!ctx->quiet)
		output_line(stderr, "schedule %s: removed; active runs continue", row->name);
	return 0;
}

static void print_firing(struct table *t, const struct firing_row *f)
{
	char due[64], took[32] = "", others[48] = "";

	if (f->ended_ms && f->tries)
		duration_show(took, sizeof(took), f->ended_ms - f->started_ms);
	if (f->missed)
		snprintf(others, sizeof(others), "%s%d earlier %s missed", f->said[0] ? "; " : "",
			 f->missed, f->missed == 1 ? "was" : "were");
	table_cell(t, "%s", show_time(due, sizeof(due), schedule_due_ms(f)));
	table_cell(t, "%s", firing_state_word(f->state));
	table_cell(t, "%s", took);
	table_cell(t, "%d", f->tries);
	table_cell(t, "%s", f->run);
	table_cell(t, "%s%s", f->said, others);
}

static int show_log(struct cmd_context *ctx, const struct schedule_row *row, struct err *err)
{
	CLEANUP(table_free) struct table *t = table_new();
	CLEANUP(free_text) char *log = schedule_log(ctx, row->name);
	struct firing_row *rows = NULL;
	json_t *list = json_array();
	size_t count = 0;
	int result =
		store_firings(ctx->store, row->name, ctx->json ? 0 : LOG_LINES, &rows, &count, err);

	table_column(t, "DUE", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "STATE", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "TOOK", TABLE_RIGHT, 2);
	table_column(t, "TRIES", TABLE_RIGHT, 1);
	table_column(t, "RUN", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "WHY", TABLE_LEFT, TABLE_SHRINKS);
	for (size_t i = 0; result == 0 && i < count; i++) {
		print_firing(t, &rows[i]);
		json_array_append_new(list, json_firing(&rows[i]));
	}
	free(rows);
	if (result == 0 && ctx->json)
		output_json(json_pack("{s:i, s:s, s:O, s:o}", "schema", 1, "schedule", row->name,
				      "firings", list, "log", report_text(log)));
	json_decref(list);
	if (result < 0 || ctx->json)
		return result;
	table_print(t, stdout, terminal_width(stdout));
	output_line(stderr,
		    count ? "output of its runs: %s"
			  : "never due yet; the output of its runs will be in %s",
		    log);
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	const char *what = ctx->args[0];
	struct schedule_row row;

	if (!strcmp(what, "ls") && ctx->arg_count == 1)
		return ls(ctx, err) < 0 ? -1 : cmd_flush(err);
	if (!strcmp(what, "add") && ctx->arg_count > 2)
		return add(ctx, err);
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
		return drop(ctx, &row, err);
	if (!strcmp(what, "log"))
		return show_log(ctx, &row, err) < 0 ? -1 : cmd_flush(err);
	return opt_has(ctx, "due") ? schedule_wake(ctx, &row, err)
				   : schedule_by_hand(ctx, &row, err);
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
