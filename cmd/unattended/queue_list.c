/* queue_list.c - lists the requests of a queue. */
#include "unattended.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"

enum { ENDED_SHOWN = 10 };

struct listed {
	const struct request_row *row;
	const char *state;  /* pending | waiting | running | done | failed | removed */
	char why[ERR_TEXT]; /* why it waits or failed; "": no reason to give */
	int64_t until_ms;   /* when the wait ends; 0: unknown */
	bool has_runner;    /* a runner works on the request's queue */
};

static bool is_open(const struct request_row *row)
{
	return row->state == REQUEST_PENDING || row->state == REQUEST_RUNNING;
}

/* Sets state and why of a pending request: it waits in its runner's queue, or has no runner. */
static void explain_pending(const struct cmd_context *ctx, struct listed *s)
{
	if (!s->has_runner) {
		COPY_TEXT(s->why, "no client works on the queue");
		return;
	}
	s->state = "waiting";
	queue_wait_note(ctx->store, s->row->config, s->why, sizeof(s->why), &s->until_ms);
}

static struct listed listed_request(const struct cmd_context *ctx, const struct request_row *row)
{
	struct listed s = {.row = row,
			   .state = request_state_word(row->state),
			   .has_runner =
				   is_open(row) && queue_has_runner(ctx->state_dir, row->config)};

	if (row->state == REQUEST_PENDING)
		explain_pending(ctx, &s);
	else if (row->state == REQUEST_RUNNING && !s.has_runner &&
		 !run_is_alive(&ctx->runs, row->run))
		COPY_TEXT(s.why, "no client works on the queue");
	else
		COPY_TEXT(s.why, row->error);
	if (row->state == REQUEST_DONE && !row->run[0])
		COPY_TEXT(s.why, "all already rendered");
	return s;
}

static json_t *request_json(const struct listed *s, int64_t now_ms)
{
	const struct request_row *r = s->row;
	json_t *object =
		json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:b, s:o}", "request",
			  report_text(r->id), "config", report_text(r->config), "state", s->state,
			  "created_at", report_time(r->created_ms), "age_seconds",
			  report_seconds(MAX(now_ms - r->created_ms, (int64_t)0)), "run",
			  r->run[0] ? report_text(r->run) : json_null(), "commit",
			  r->commit_id[0] ? report_text(r->commit_id) : json_null(), "tries",
			  (json_int_t)r->tries, "next_try_at",
			  report_time(r->not_before_ms > now_ms ? r->not_before_ms : 0), "client",
			  s->has_runner, "until", report_time(s->until_ms));

	json_object_set_new(object, "by", report_time(r->by_ms));
	json_object_set_new(object, "below_usd_hour",
			    r->below_microusd_h ? report_dollars(r->below_microusd_h)
						: json_null());
	json_object_set_new(object, "min_segments", json_integer((json_int_t)r->min_segments));
	json_object_set_new(object, "quiet_seconds", report_seconds(r->quiet_ms));
	json_object_set_new(object, "max_wait_seconds",
			    r->max_wait_ms ? report_seconds(r->max_wait_ms) : json_null());
	json_object_set_new(object, "ended_at", report_time(r->ended_ms));
	json_object_set_new(object, "exit_status",
			    r->ended_ms && r->state != REQUEST_REMOVED
				    ? json_integer(r->exit_status)
				    : json_null());
	json_object_set_new(object, "why", s->why[0] ? report_text(s->why) : json_null());
	return object;
}

static void print_row(struct table *t, const struct listed *s, int64_t now_ms)
{
	CLEANUP(free_text) char *folder = path_dir(s->row->config);
	char age[24];

	table_cell(t, "%s", s->row->id);
	table_cell(t, "%s", folder);
	table_cell(t, "%.8s", s->row->commit_id);
	table_cell(t, "%s", s->state);
	table_cell(t, "%s",
		   duration_show(age, sizeof(age), MAX(now_ms - s->row->created_ms, (int64_t)0)));
	table_cell(t, "%s", s->row->run);
	table_cell(t, "%s", s->why);
}

static void print_table(const struct listed *list, size_t count, int64_t now_ms)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "REQUEST", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "FOLDER", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "COMMIT", TABLE_LEFT, 1);
	table_column(t, "STATE", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "AGE", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "RUN", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "WHY", TABLE_LEFT, TABLE_SHRINKS);
	for (size_t i = 0; i < count; i++)
		print_row(t, &list[i], now_ms);
	table_print(t, stdout, terminal_width(stdout));
}

static void print_requests(const struct cmd_context *ctx, const struct listed *list, size_t count,
			   int64_t now_ms)
{
	const struct listed *without_runner = NULL;

	if (ctx->json) {
		json_t *array = json_array();
		for (size_t i = 0; i < count; i++)
			json_array_append_new(array, request_json(&list[i], now_ms));
		output_json(array);
		return;
	}
	print_table(list, count, now_ms);
	for (size_t i = 0; i < count; i++)
		if (is_open(list[i].row) && !list[i].has_runner)
			without_runner = &list[i];
	if (without_runner)
		log_line(LOG_NOTE,
			 "no client works on the queue of %s: `burst queue run`, or the next "
			 "`burst submit`, continues it",
			 without_runner->row->config);
	else if (!count)
		log_line(LOG_NOTE, "nothing is queued");
}

/* Fills list, which has room for all rows, with the open requests and the newest that have ended;
 * all: with every request. Returns how many. */
static size_t choose_requests(const struct cmd_context *ctx, const struct request_row *rows,
			      size_t count, bool all, struct listed *list)
{
	size_t ended = 0, n = 0, skip;

	for (size_t i = 0; i < count; i++)
		ended += !is_open(&rows[i]);
	skip = all || ended <= ENDED_SHOWN ? 0 : ended - ENDED_SHOWN;
	for (size_t i = 0; i < count; i++) {
		if (!is_open(&rows[i]) && skip && skip--)
			continue;
		list[n++] = listed_request(ctx, &rows[i]);
	}
	return n;
}

int queue_list(const struct cmd_context *ctx, const char *config, bool all, struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(ctx->store, config, false, &rows, &count, err) < 0)
		return -1;
	struct listed *list = xcalloc(count + 1, sizeof(*list));
	print_requests(ctx, list, choose_requests(ctx, rows, count, all, list), clock_wall_ms());
	free(list);
	free(rows);
	return 0;
}
