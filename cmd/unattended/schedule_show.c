/* schedule_show.c - `burst schedule ls` and `log`: schedules, and how their runs ended. */
#include "schedule.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/show/table.h"

enum { LOG_LINES = 30 };

const char *schedule_show_time(char *to, size_t room, int64_t ms)
{
	return clock_local(to, room, "%a %d %b %H:%M %Z", ms);
}

static json_t *json_firing(const struct firing_row *f)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:i, s:i, s:o, s:i, s:o}", "due_at", f->due, "state",
			 firing_state_word(f->state), "started_at", report_time(f->started_ms),
			 "ended_at", report_time(f->ended_ms), "tries", f->tries, "missed_before",
			 f->missed, "run", f->run[0] ? report_text(f->run) : json_null(),
			 "exit_status", f->exit_status, "said", report_text(f->said));
}

static json_t *json_schedule(const char *state_dir, const struct schedule_row *row,
			     const struct firing_row *last, int64_t next_ms)
{
	return json_pack("{s:s, s:s, s:o, s:s, s:b, s:o, s:o}", "name", row->name, "when",
			 row->rule, "config", report_text(row->config), "backend",
			 schedule_backend_word(row->backend), "installed",
			 schedule_is_installed(state_dir, row), "next_at",
			 next_ms < 0 ? json_null() : report_time(next_ms), "last",
			 last ? json_firing(last) : json_null());
}

static void add_row(struct table *t, const char *state_dir, const struct schedule_row *row,
		    const struct firing_row *last, int64_t next_ms)
{
	char at[64];

	table_cell(t, "%s", row->name);
	table_cell(t, "%s", row->rule);
	table_cell(t, "%s", next_ms < 0 ? "never" : schedule_show_time(at, sizeof(at), next_ms));
	if (last)
		table_cell(t, "%s %s", firing_state_word(last->state),
			   schedule_show_time(at, sizeof(at), schedule_due_ms(last)));
	else
		table_cell(t, "not yet");
	table_cell(t, "%s%s", schedule_backend_word(row->backend),
		   schedule_is_installed(state_dir, row) ? "" : " (gone: add it again)");
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

int schedule_list(struct cmd_context *ctx, struct err *err)
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
		add_row(t, ctx->state_dir, &rows[i], last, next_ms);
		json_array_append_new(list, json_schedule(ctx->state_dir, &rows[i], last, next_ms));
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

static void print_firing(struct table *t, const struct firing_row *f)
{
	char due[64], took[32] = "", others[48] = "";

	if (f->ended_ms && f->tries)
		duration_show(took, sizeof(took), f->ended_ms - f->started_ms);
	if (f->missed)
		snprintf(others, sizeof(others), "%s%d earlier %s missed", f->said[0] ? "; " : "",
			 f->missed, f->missed == 1 ? "was" : "were");
	table_cell(t, "%s", schedule_show_time(due, sizeof(due), schedule_due_ms(f)));
	table_cell(t, "%s", firing_state_word(f->state));
	table_cell(t, "%s", took);
	table_cell(t, "%d", f->tries);
	table_cell(t, "%s", f->run);
	table_cell(t, "%s%s", f->said, others);
}

int schedule_show_log(struct cmd_context *ctx, const struct schedule_row *row, struct err *err)
{
	CLEANUP(table_free) struct table *t = table_new();
	CLEANUP(free_text) char *log = schedule_log(ctx->state_dir, row->name);
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
