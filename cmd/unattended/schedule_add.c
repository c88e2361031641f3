/* schedule_add.c - `burst schedule add` and `rm`: installs and removes a schedule. */
#include "schedule.h"

#include <ctype.h>

#include "base/clock.h"
#include "base/path.h"
#include "cmd/show/output.h"

enum { NAME_MOST = 40, HOUR_MS = 3600 * 1000 };

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

static int open_project(struct cmd_context *ctx, struct err *err)
{
	struct config_source ask = {.file = opt_text(ctx, "config"),
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

/* Joins the remaining words: `add nightly daily 02:00` needs no quotes. */
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

/* Puts the row back as it was; NULL: there was none. */
static void put_row_back(struct cmd_context *ctx, const struct schedule_row *row,
			 const struct schedule_row *before)
{
	if (before)
		store_put_schedule(ctx->store, before, NULL);
	else
		store_remove_schedule(ctx->store, row->name, NULL);
}

/* Returns 1 if it replaced one of this name, else 0. If it fails, the one before goes on as it was.
 */
static int replace(struct cmd_context *ctx, const struct schedule_row *row, struct str *note,
		   struct err *err)
{
	struct schedule_row before;
	bool known = store_schedule(ctx->store, row->name, &before, err) == 0;

	if (!known && err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	if (store_put_schedule(ctx->store, row, err) < 0)
		return -1;
	if (schedule_install(ctx->state_dir, row, note, err) < 0) {
		put_row_back(ctx, row, known ? &before : NULL);
		return known ? err_wrap(err, "schedule %s: not replaced", row->name) : -1;
	}
	if (!known || before.backend == row->backend ||
	    schedule_uninstall(ctx->state_dir, &before, err) == 0)
		return known;
	schedule_uninstall(ctx->state_dir, row, NULL);
	put_row_back(ctx, row, &before);
	return err_wrap(err, "schedule %s: not replaced", row->name);
}

int schedule_add(struct cmd_context *ctx, struct err *err)
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
		    schedule_show_time(at, sizeof(at), calendar_next(&c, row.made_ms)),
		    schedule_backend_word(row.backend), row.config);
	output_lines(stderr, str_text(&note));
	output_line(stderr, "to run it now, as the timer will: `burst schedule run %s`", row.name);
	return 0;
}

int schedule_drop(struct cmd_context *ctx, const struct schedule_row *row, struct err *err)
{
	CLEANUP(free_text) char *log = schedule_log(ctx->state_dir, row->name);
	static const char *const ends[] = {"", ".1", ".lock"};

	if (schedule_uninstall(ctx->state_dir, row, err) < 0 ||
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
