/* schedule.c - `burst schedule`: submits a job at set times. */
#include "cmd.h"

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "cmd/show/report.h"
#include "cmd/unattended/unattended.h"
#include "config/secrets.h"
#include "runs/usage.h"
#include "store/facts.h"
#include "unattended/schedule.h"

enum { NAME_MOST = 40, CATCH_UP_MS = 12 * 3600 * 1000 };

/* "Thu 26 Nov 02:00 CET" */
static const char *show_time(char *to, size_t room, int64_t ms)
{
	return clock_local(to, room, "%a %d %b %H:%M %Z", ms);
}

/* ---- the environment of scheduled runs ---- */

/* Variables that a schedule takes over from the shell that adds it. */
/* clang-format off */
static const char *const kept_variables[] = {
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
	"TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
	"DBUS_SESSION_BUS_ADDRESS", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy",
	"all_proxy", "no_proxy", "BURST_CACHE_DIR", "BURST_PROVIDER_PATH",
};
/* clang-format on */

/* "http://name:password@host": the ledger must not hold a password. */
static bool holds_password(const char *name, const char *value)
{
	return strcasestr(name, "proxy") && strchr(value, '@');
}

/* Appends "NAME=value" if the variable is set and its value may be stored. */
static void append_variable(struct str *to, const char *name)
{
	const char *value = getenv(name);

	if (!value || strchr(value, '\n'))
		return;
	if (holds_password(name, value))
		log_line(LOG_WARN,
			 "%s contains a password and is not stored: scheduled runs will not use "
			 "this proxy",
			 name);
	else
		str_addf(to, "%s=%s\n", name, value);
}

/* Appends the variables with the provider's settings (LOCAL_ROOT, RUNPOD_API_URL), but no keys. */
static void append_settings(struct str *to, const struct provider_ops *ops)
{
	for (const struct option_spec *spec = ops->options; spec->key; spec++) {
		if (!(spec->flags & OPTION_USER_ONLY) || (spec->flags & OPTION_SECRET) ||
		    spec->type == OPTION_GROUP)
			continue;
		CLEANUP(free_text) char *name = secret_env_name(ops->name, spec->key);
		append_variable(to, name);
	}
}

/* Writes NAME=value lines from our environment, without keys of accounts. ERR_LOCAL: too long for
 * the ledger. */
static int read_environment(const struct cmd_context *ctx, char *out, size_t room, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(kept_variables); i++)
		append_variable(&text, kept_variables[i]);
	for (const struct provider_ops *const *ops = provider_registry; *ops; ops++)
		append_settings(&text, *ops);
	str_addf(&text, "BURST_STATE_DIR=%s\n", ctx->state_dir);
	if (text.len >= room)
		return err_set(err, ERR_LOCAL,
			       "the environment (PATH and the like) has %zu bytes, more than the "
			       "%zu that a schedule keeps",
			       text.len, room - 1);
	copy_text(out, room, str_text(&text));
	return 0;
}

/* ---- keys ---- */

/* ERR_CREDENTIALS: the provider's keys exist only in our environment, where a schedule cannot find
 * them. Removes them from it to see. */
static int check_provider_keys(const struct cmd_context *ctx, const struct provider_ops *ops,
			       struct err *err)
{
	CLEANUP(free_text) char *hidden = NULL;
	CLEANUP(config_free) struct config *config = NULL;
	struct config_source ask = {.file = config_path(ctx->config),
				    .providers = provider_registry,
				    .jobs = job_registry};

	for (const struct option_spec *spec = ops->options; spec->key; spec++) {
		CLEANUP(free_text) char *name = secret_env_name(ops->name, spec->key);
		if (!(spec->flags & OPTION_SECRET) || !getenv(name))
			continue;
		unsetenv(name);
		if (!hidden)
			hidden = TAKE(name);
	}
	if (!hidden ||
	    (config_open(&config, &ask, err) == 0 && config_account(config, ops->name, err)))
		return 0;
	return err_set(err, ERR_CREDENTIALS,
		       "%s is set only in this shell, where scheduled runs cannot see it: put the "
		       "key, or a command that prints it, into ~/.config/burst/burst.cfg, then add "
		       "the schedule again",
		       hidden);
}

/* The same for each provider that the config names. */
static int check_keys(const struct cmd_context *ctx, struct err *err)
{
	const struct section *top = config_top(ctx->config);

	for (size_t i = 0; i < section_count(top, "provider"); i++) {
		const struct provider_ops *ops = provider_find(section_item(top, "provider", i));
		if (ops && check_provider_keys(ctx, ops, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- add, rm ---- */

static int check_name(const char *name, struct err *err)
{
	size_t n = strlen(name);
	bool is_valid = n > 0 && n <= NAME_MOST && isalnum((unsigned char)name[0]);

	for (const char *p = name; *p; p++)
		is_valid = is_valid && (islower((unsigned char)*p) || isdigit((unsigned char)*p) ||
					*p == '-' || *p == '_');
	return is_valid ? 0
			: err_set(err, ERR_USAGE,
				  "schedule: \"%s\" is not a valid name: use lower-case letters, "
				  "digits, \"-\" and \"_\", %d at most, beginning with a letter or "
				  "a digit",
				  name, NAME_MOST);
}

/* Sets ctx->config to the project's. ERR_CONFIG: it has mistakes, or there is no file. */
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
			       "no burst.cfg in this folder: change to the job's folder, or give "
			       "its file with --config");
	return 0;
}

/* Sets row->rule and *c from the words behind the name: "daily 02:00" needs no quotes. */
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

/* Puts the ledger's row back as it was before; NULL: there was none. */
static void restore_row(struct cmd_context *ctx, const struct schedule_row *row,
			const struct schedule_row *before)
{
	if (before)
		store_put_schedule(ctx->store, before, NULL);
	else
		store_remove_schedule(ctx->store, row->name, NULL);
}

/* Stores the schedule and installs its timer; *note: lines for the user. Returns 1 if it replaced
 * one of this name, else 0. If it fails, an earlier schedule of this name goes on as it was. */
static int install_or_replace(struct cmd_context *ctx, const struct schedule_row *row,
			      struct str *note, struct err *err)
{
	struct schedule_row before;
	bool had_before = store_schedule(ctx->store, row->name, &before, err) == 0;

	if (!had_before && err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	if (store_put_schedule(ctx->store, row, err) < 0)
		return -1;
	if (schedule_install(ctx->state_dir, row, note, err) < 0) {
		restore_row(ctx, row, had_before ? &before : NULL);
		return had_before ? err_wrap(err, "schedule %s: not replaced", row->name) : -1;
	}
	if (!had_before || before.backend == row->backend ||
	    schedule_uninstall(ctx->state_dir, &before, err) == 0)
		return had_before;
	schedule_uninstall(ctx->state_dir, row, NULL);
	restore_row(ctx, row, &before);
	return err_wrap(err, "schedule %s: not replaced", row->name);
}

/* ---- --ahead, prewarm ---- */

#define DAY_MS INT64_C(86400000)

/* How long before each time a schedule starts. */
struct lead {
	const char *text; /* of --ahead, or of prewarm; NULL: it starts at its times */
	bool named;       /* by --ahead */
	int minutes;
	bool known; /* the rest is set: the job has had a pod */
	struct cold cold;
	double price_h; /* of such a pod; 0: unknown */
};

static bool follows_cold_start(const struct lead *lead)
{
	return lead->text && !strcmp(lead->text, "auto");
}

/* Sets *lead to what the ledger expects of a pod like the job's last one. */
static int expect_cold_start(const struct cmd_context *ctx, const char *config, struct lead *lead,
			     struct err *err)
{
	struct pod_row pod;

	lead->known = usage_last_pod(&pod, ctx->store, config);
	if (!lead->known)
		return 0;
	lead->price_h = (double)pod.price_microusd_h / 1e6;
	return usage_cold_start(&lead->cold, ctx->store, &pod, err);
}

/* Sets the rest of *lead, whose text is set. */
static int find_lead(struct cmd_context *ctx, const char *config, struct lead *lead,
		     struct err *err)
{
	int64_t ms = 0;

	if (expect_cold_start(ctx, config, lead, err) < 0)
		return -1;
	if (!follows_cold_start(lead)) {
		if (duration_parse(lead->text, &ms, err) < 0)
			return err_wrap(err, "--ahead");
	} else if (lead->known) {
		ms = (int64_t)(cold_ahead(&lead->cold, -1).ahead_s * 1000);
	} else if (lead->named) {
		return err_set(err, ERR_USAGE,
			       "--ahead auto: no run of this job has had a pod yet, so the cold "
			       "start is unknown: give a time, like --ahead 5m");
	}
	lead->minutes = (int)MIN((ms + 59999) / 60000, DAY_MS / 60000);
	return lead->minutes < DAY_MS / 60000
		       ? 0
		       : err_set(err, ERR_USAGE, "--ahead %s: must be less than a day", lead->text);
}

/* Moves *c and row->rule. text: of --ahead, for errors. */
static int move_rule(struct schedule_row *row, struct calendar *c, int minutes, const char *text,
		     struct err *err)
{
	CLEANUP(str_free) struct str rule = STR_INIT;

	if (calendar_move_ahead(c, minutes, err) < 0)
		return err_wrap(err, "--ahead %s: %s", text, row->rule);
	calendar_write(c, &rule);
	if (rule.len >= sizeof(row->rule))
		return err_set(err, ERR_USAGE,
			       "--ahead %s: the times have no rule of %zu letters: write the "
			       "earlier times",
			       text, sizeof(row->rule) - 1);
	COPY_TEXT(row->rule, str_text(&rule));
	return 0;
}

/* Adds what a start so long before its times costs at most, and what it saves. */
static void add_bound(struct str *to, const struct lead *lead)
{
	struct cold_ahead a = cold_ahead(&lead->cold, lead->minutes * 60.0);

	plan_add_ahead(to, &a, lead->price_h, plan_source_name(cold_source(&lead->cold)));
}

/* Moves the times ahead as --ahead or the key prewarm says, and writes to *note what that means. */
static int move_ahead(struct cmd_context *ctx, struct schedule_row *row, struct calendar *c,
		      struct lead *lead, struct str *note, struct err *err)
{
	const char *key = section_text(config_top(ctx->config), "prewarm");
	char ahead[24], times[sizeof(row->rule)];

	lead->named = opt_has(ctx, "ahead");
	lead->text = lead->named ? opt_text(ctx, "ahead") : key;
	if (!lead->text || !strcmp(lead->text, "off")) {
		lead->text = NULL;
		return 0;
	}
	COPY_TEXT(times, row->rule);
	if (find_lead(ctx, row->config, lead, err) < 0)
		return -1;
	if (follows_cold_start(lead) && !lead->known) {
		str_add(note, "prewarm: starts at its times until a run of this job has shown how "
			      "long a cold start takes\n");
		return 0;
	}
	if (move_rule(row, c, lead->minutes, lead->text, err) < 0)
		return -1;
	str_addf(note, "starts %s before each time of \"%s\"%s",
		 duration_show(ahead, sizeof(ahead), lead->minutes * INT64_C(60000)), times,
		 follows_cold_start(lead) ? ", by the cold start; each start looks again" : "");
	if (lead->known) {
		str_add(note, ": ");
		add_bound(note, lead);
	}
	str_add(note, ". No pod idles: work begins when the first one is up, on the files as they "
		      "are at the start\n");
	return 0;
}

/* Notes the times of a schedule that follows its cold starts; "": it does not. */
static int note_times(struct cmd_context *ctx, const char *name, const char *times, struct err *err)
{
	return fact_put(ctx->store, FACT_AHEAD, name, NULL, times, err);
}

/* Moves the timer of a schedule with --ahead auto by what runs have shown since. *row: as it is in
 * the ledger, after its time was submitted. */
static int renew_ahead(struct cmd_context *ctx, const struct schedule_row *row, struct err *err)
{
	CLEANUP(str_free) struct str note = STR_INIT;
	struct schedule_row moved = *row;
	struct calendar times, c;
	struct lead lead = {.text = "auto"};

	if (!fact_get(ctx->store, FACT_AHEAD, row->name, NULL, moved.rule, sizeof(moved.rule)) ||
	    !moved.rule[0])
		return 0;
	if (calendar_parse(moved.rule, &times, err) < 0 ||
	    find_lead(ctx, row->config, &lead, err) < 0)
		return -1;
	if (!lead.known)
		return 0;
	c = times;
	if (move_rule(&moved, &c, lead.minutes, "auto", err) < 0)
		return -1;
	if (!strcmp(moved.rule, row->rule))
		return 0;
	/* a start that moves behind the one that was submitted is for the same time */
	if (row->due_ms)
		moved.due_ms = MAX(row->due_ms, calendar_next(&times, row->due_ms) -
							lead.minutes * INT64_C(60000));
	if (install_or_replace(ctx, &moved, &note, err) < 0)
		return -1;
	log_line(LOG_NOTE,
		 "schedule %s: starts at \"%s\" from now on, by the cold starts of its "
		 "last runs",
		 row->name, moved.rule);
	return 0;
}

static int add_schedule(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(str_free) struct str note = STR_INIT;
	struct schedule_row row = {.made_ms = clock_wall_ms(), .catch_up_ms = CATCH_UP_MS};
	struct calendar c;
	struct lead lead = {0};
	char at[64], times[sizeof(row.rule)];

	COPY_TEXT(row.name, ctx->args[1]);
	if (check_name(ctx->args[1], err) < 0 || read_rule(ctx, &row, &c, err) < 0 ||
	    open_project(ctx, err) < 0 ||
	    opt_duration(ctx, "catch-up", &row.catch_up_ms, err) < 0 ||
	    schedule_choose(opt_text(ctx, "backend"), &row.backend, err) < 0 ||
	    read_environment(ctx, row.environment, sizeof(row.environment), err) < 0 ||
	    check_keys(ctx, err) < 0)
		return -1;
	COPY_TEXT(row.config, config_path(ctx->config));
	COPY_TEXT(times, row.rule);
	if (move_ahead(ctx, &row, &c, &lead, &note, err) < 0)
		return -1;
	int replaced = install_or_replace(ctx, &row, &note, err);
	if (replaced < 0 ||
	    note_times(ctx, row.name, follows_cold_start(&lead) ? times : "", err) < 0)
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

static int remove_schedule(struct cmd_context *ctx, const struct schedule_row *row, struct err *err)
{
	if (schedule_uninstall(ctx->state_dir, row, err) < 0 ||
	    store_remove_schedule(ctx->store, row->name, err) < 0 ||
	    note_times(ctx, row->name, "", err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr, "schedule %s: removed; active runs continue", row->name);
	return 0;
}

/* ---- ls, log ---- */

/* The request that a schedule submitted last. Returns false if there was none, or the ledger no
 * longer has it. */
static bool last_request(const struct cmd_context *ctx, const struct schedule_row *row,
			 struct request_row *out)
{
	struct request_row *rows = NULL;
	size_t count = 0;
	bool found = row->request[0] &&
		     store_requests_named(ctx->store, row->request, &rows, &count, NULL) == 0 &&
		     count;

	if (found)
		*out = rows[0];
	free(rows);
	return found;
}

static json_t *last_json(const struct schedule_row *row, const struct request_row *last)
{
	return json_pack("{s:o, s:s, s:s, s:o, s:i, s:o}", "due_at", report_time(row->due_ms),
			 "request", last->id, "state", request_state_word(last->state), "run",
			 last->run[0] ? report_text(last->run) : json_null(), "exit_status",
			 last->exit_status, "why",
			 last->error[0] ? report_text(last->error) : json_null());
}

/* Sets *lead for a schedule that follows its cold starts; writes its times. Returns false if it
 * does not, or these are unknown. */
static bool find_shown_lead(const struct cmd_context *ctx, const struct schedule_row *row,
			    struct lead *lead, char *times, size_t room)
{
	*lead = (struct lead){.text = "auto"};
	if (!fact_get(ctx->store, FACT_AHEAD, row->name, NULL, times, room) || !times[0] ||
	    expect_cold_start(ctx, row->config, lead, NULL) < 0 || !lead->known)
		return false;
	lead->minutes = (int)(cold_ahead(&lead->cold, -1).ahead_s / 60);
	return true;
}

static json_t *ahead_json(const struct cmd_context *ctx, const struct schedule_row *row)
{
	struct lead lead;
	char times[sizeof(row->rule)];

	if (!find_shown_lead(ctx, row, &lead, times, sizeof(times)))
		return json_null();
	struct cold_ahead a = cold_ahead(&lead.cold, -1);
	json_t *object = plan_ahead_json(&a, lead.price_h);
	json_object_set_new(object, "times", report_text(times));
	return object;
}

/* Prints what the start ahead of the schedule's times means, if it follows cold starts. */
static void print_ahead(const struct cmd_context *ctx, const struct schedule_row *row)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	struct lead lead;
	char times[sizeof(row->rule)];

	if (!find_shown_lead(ctx, row, &lead, times, sizeof(times)))
		return;
	str_addf(&line, "%s is for \"%s\": ", row->name, times);
	add_bound(&line, &lead);
	output_wrapped(stdout, 2, "%s", str_text(&line));
}

static json_t *schedule_json(const struct cmd_context *ctx, const struct schedule_row *row,
			     const struct request_row *last, int64_t next_ms)
{
	return json_pack("{s:s, s:s, s:o, s:s, s:b, s:o, s:o, s:o}", "name", row->name, "when",
			 row->rule, "config", report_text(row->config), "backend",
			 schedule_backend_word(row->backend), "installed",
			 schedule_is_installed(ctx->state_dir, row), "next_at",
			 next_ms < 0 ? json_null() : report_time(next_ms), "ahead",
			 ahead_json(ctx, row), "last", last ? last_json(row, last) : json_null());
}

static void add_table_row(const struct cmd_context *ctx, struct table *t,
			  const struct schedule_row *row, const struct request_row *last,
			  int64_t next_ms)
{
	char at[64];

	table_cell(t, "%s", row->name);
	table_cell(t, "%s", row->rule);
	table_cell(t, "%s", next_ms < 0 ? "never" : show_time(at, sizeof(at), next_ms));
	if (last)
		table_cell(t, "%s %s", request_state_word(last->state),
			   show_time(at, sizeof(at), row->due_ms));
	else
		table_cell(t, "not yet");
	table_cell(t, "%s%s", schedule_backend_word(row->backend),
		   schedule_is_installed(ctx->state_dir, row) ? "" : " (gone: add it again)");
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

static int print_schedules(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(table_free) struct table *t = new_table();
	CLEANUP(json_decref) json_t *array = json_array();
	struct schedule_row *rows = NULL;
	size_t count = 0;

	if (store_schedules(ctx->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct request_row request,
			*last = last_request(ctx, &rows[i], &request) ? &request : NULL;
		struct calendar c;
		int64_t next_ms = calendar_parse(rows[i].rule, &c, NULL) == 0
					  ? calendar_next(&c, clock_wall_ms())
					  : -1;
		if (ctx->json)
			json_array_append_new(array, schedule_json(ctx, &rows[i], last, next_ms));
		else
			add_table_row(ctx, t, &rows[i], last, next_ms);
	}
	if (!ctx->json)
		table_print(t, stdout, terminal_width(stdout));
	for (size_t i = 0; !ctx->json && i < count; i++)
		print_ahead(ctx, &rows[i]);
	free(rows);
	if (ctx->json) {
		output_json(json_pack("{s:i, s:O}", "schema", 1, "schedules", array));
		return 0;
	}
	if (!count)
		output_line(stderr, "no schedule yet: `burst schedule add nightly daily 02:00` in "
				    "a job's folder adds one");
	return 0;
}

/* Prints the requests of the job's queue, and where the output of its runs is. */
static int show_log(struct cmd_context *ctx, const struct schedule_row *row, struct err *err)
{
	CLEANUP(free_text) char *log = queue_path(ctx->state_dir, row->config, ".log");

	if (queue_list(ctx, row->config, ctx->json, err) < 0)
		return -1;
	if (!ctx->json)
		output_line(stderr, "output of its runs: %s", log);
	return 0;
}

/* ---- run ---- */

/* Replaces the environment of this process and its later children by these NAME=value lines.
 * Changes the lines. */
static void replace_environment(char *lines)
{
	static char *none[] = {NULL};
	char *rest = NULL;

	environ = none;
	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *value = strchr(line, '=');
		if (!value)
			continue;
		*value = '\0';
		setenv(line, value + 1, 1);
	}
}

/* Submits the job (with --due only if a time is due), then waits for a child process that works on
 * the queue, so that a stop of the timer's unit reaches the run. Starts none if a client works on
 * it. Returns the exit status of the request submitted last, 0 while that waits; or -1. */
static int submit_and_run(struct cmd_context *ctx, const char *name, struct err *err)
{
	bool by_hand = !opt_has(ctx, "due");
	struct schedule_row row;
	struct request_row last;
	int status = 0;

	if (schedule_submit(ctx->store, name, by_hand, clock_wall_ms(), err) < 0 ||
	    store_schedule(ctx->store, name, &row, err) < 0)
		return -1;
	if (renew_ahead(ctx, &row, err) < 0) {
		log_line(LOG_WARN, "schedule %s: it keeps its start: %s", name, err->msg);
		err_clear(err);
	}
	replace_environment(row.environment);
	queue_wake_others(ctx, row.config);
	if (queue_needs_runner(ctx, row.config))
		status = queue_run_child(ctx, row.config, by_hand, err);
	if (status || store_schedule(ctx->store, name, &row, err) < 0)
		return status ? status : -1;
	if (!last_request(ctx, &row, &last))
		return 0;
	if (by_hand && !last.ended_ms && !ctx->quiet)
		output_line(stderr, "request %s: queued (`burst queue ls` shows it)", last.id);
	return last.state == REQUEST_FAILED ? last.exit_status : 0;
}

/* ---- the command ---- */

static int run(struct cmd_context *ctx, struct err *err)
{
	const char *what = ctx->args[0];
	struct schedule_row row;

	if (!strcmp(what, "ls") && ctx->arg_count == 1)
		return print_schedules(ctx, err) < 0 ? -1 : cmd_flush(err);
	if (!strcmp(what, "add") && ctx->arg_count > 2)
		return add_schedule(ctx, err);
	if (ctx->arg_count != 2 ||
	    (strcmp(what, "rm") && strcmp(what, "log") && strcmp(what, "run")))
		return err_set(err, ERR_USAGE,
			       "schedule: expected add NAME WHEN, ls, rm NAME, log NAME or run "
			       "NAME (see `burst help schedule`)");
	if (store_schedule(ctx->store, ctx->args[1], &row, err) < 0)
		return err->kind == ERR_NOT_FOUND
			       ? err_set(err, ERR_USAGE,
					 "no schedule \"%s\" (`burst schedule ls` lists them)",
					 ctx->args[1])
			       : -1;
	if (!strcmp(what, "rm"))
		return remove_schedule(ctx, &row, err);
	if (!strcmp(what, "log"))
		return show_log(ctx, &row, err) < 0 ? -1 : cmd_flush(err);
	return submit_and_run(ctx, row.name, err);
}

static const struct opt opts[] = {
	{0, "config", "FILE", "add: the project's file or folder (default: this folder)"},
	{0, "ahead", "auto|TIME|off",
	 "add: start this long before each time, so that pods work by then; auto: the cold start "
	 "of nine pods in ten, looked up again at each start (default: the key prewarm)"},
	{0, "catch-up", "TIME",
	 "add: run the last missed time if it is no older than this (default 12h; 0: never)"},
	{0, "backend", "systemd|crontab",
	 "add: which timer starts it (default: the first one available)"},
	{0, "due", NULL, "run: only if a time is due; timers call this"},
	{0},
};

const struct cmd cmd_schedule = {
	.name = "schedule",
	.args = "add|ls|rm|log|run [NAME] [WHEN]",
	.min_args = 1,
	.max_args = -1,
	.summary = "render a job at set times",
	.details = "`burst schedule add NAME WHEN` in a job's folder adds a schedule. WHEN is "
		   "\"daily 02:00\", \"weekdays 07:30\", \"weekly mon 02:00\", \"monthly 1 "
		   "02:00\", \"hourly\", \"every 15m\", or the five fields of a crontab. Times are "
		   "in this machine's time zone. If the clocks skip a fixed time, the run starts "
		   "right after the gap. If a fixed time comes twice, the run starts once.\n\n"
		   "If the machine was off or asleep, burst runs the last missed time once, within "
		   "--catch-up. The timer submits one request; the queue waits, retries and keeps "
		   "the record (`burst help submit`). burst stores no account key in a schedule: "
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
