/* queue_client.c - the processes of a queue: its runner, in the background or in front, and the
 * commands that the runner performs; and the list of its requests. */
#include "unattended.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/path.h"
#include "base/git.h"
#include "base/program.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "net/child.h"

/* Carries struct queued to the `burst run` of a queue's runner. */
#define QUEUE_RUN_NAME "BURST_QUEUE_RUN"

enum { LOG_MAX_BYTES = 1 << 20, REPLY_MAX_BYTES = 16 << 20, ENDED_SHOWN = 10 };

/* ---- runners ---- */

static int open_log(const struct cmd_context *ctx, const char *config)
{
	CLEANUP(free_text) char *path = queue_path(ctx->state_dir, config, ".log");
	CLEANUP(free_text) char *dir = path_dir(path);

	path_mkdirs(dir, 0700, NULL);
	return path_open_log(path, LOG_MAX_BYTES);
}

/* In the child: closes the submitter's descriptors, since a hook's caller may wait for its pipes to
 * close. */
static void become_runner(const struct cmd_context *ctx, const char *config, int log)
{
	const char *argv[] = {"burst", "queue", "run", config, NULL};

	program_to_background(log);
	git_leave();
	guard_exec();
	execv(child_self() ? child_self() : ctx->argv[0], (char **)argv);
	_exit(127);
}

int queue_start_runner(const struct cmd_context *ctx, const char *config, struct err *err)
{
	if (queue_has_runner(ctx->state_dir, config))
		return 0;
	CLEANUP(fd_close) int log = open_log(ctx, config);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		become_runner(ctx, config, log);
	return pid < 0 ? err_set(err, ERR_LOCAL, "fork: %m") : 0;
}

int queue_run_apart(const struct cmd_context *ctx, const char *config, bool shown, struct err *err)
{
	CLEANUP(free_text) char *folder = path_dir(config);
	CLEANUP(fd_close) int log = shown ? -1 : open_log(ctx, config);
	const char *const argv[] = {child_self(), "queue", "run", config, NULL};

	return program_run(&(struct program){.argv = argv,
					     .folder = folder,
					     .environment = environ,
					     .output_fd = log >= 0 ? log : STDERR_FILENO,
					     .forwards = true},
			   NULL, NULL, err);
}

bool queue_is_left(const struct cmd_context *ctx, const char *config)
{
	struct request_row *rows = NULL;
	size_t count = 0;
	bool open = store_requests(ctx->store, config, true, &rows, &count, NULL) == 0 && count;

	free(rows);
	return open && !queue_has_runner(ctx->state_dir, config);
}

void queue_wake(const struct cmd_context *ctx, const char *config)
{
	if (queue_is_left(ctx, config))
		queue_start_runner(ctx, config, NULL);
}

void queue_wake_others(const struct cmd_context *ctx, const char *config)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(ctx->store, NULL, true, &rows, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		bool seen = !strcmp(rows[i].config, config);
		for (size_t k = 0; k < i && !seen; k++)
			seen = !strcmp(rows[k].config, rows[i].config);
		if (!seen)
			queue_start_runner(ctx, rows[i].config, NULL);
	}
	free(rows);
}

/* ---- signals ---- */

static volatile sig_atomic_t called, signalled;

static void note_signal(int number)
{
	int saved = errno;

	signalled = number;
	if (called > 0)
		kill(called, number);
	errno = saved;
}

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

/* Makes signals set a flag instead of ending the process. */
static void catch_signals(void)
{
	struct sigaction act = {.sa_handler = note_signal};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &act, NULL);
}

/* ---- commands of the runner ---- */

void queued_read(struct queued *out)
{
	const char *run = getenv(QUEUE_RUN_NAME);

	*out = (struct queued){0};
	COPY_TEXT(out->run, run ? run : "");
	unsetenv(QUEUE_RUN_NAME);
}

/* In the child, in its own group: a terminal's Ctrl-C reaches it once, through the runner. */
static void become_command(const struct cmd_context *ctx, const char *const *argv, const char *run,
			   int out)
{
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	if (run && setenv(QUEUE_RUN_NAME, run, 1) < 0)
		_exit(127);
	guard_exec();
	execv(child_self() ? child_self() : ctx->argv[0], (char **)argv);
	_exit(127);
}

static int wait_for(pid_t pid, const sigset_t *mask)
{
	called = pid;
	if (signalled) /* the signal came before there was a child to forward it to */
		kill(pid, signalled);
	sigprocmask(SIG_SETMASK, mask, NULL);
	return program_reap(pid, &called);
}

struct ended {
	int status; /* from waitpid() */
	json_t *said;
};

/* Runs a burst command that ends its output with a JSON object, and waits for it. Forwards signals
 * to it. run: the id for `burst run`; NULL: none. */
static int call(const struct cmd_context *ctx, const char *config, const char *const *argv,
		const char *run, struct ended *out, struct err *err)
{
	CLEANUP(free_text) char *path = queue_path(ctx->state_dir, config, ".json");
	CLEANUP(str_free) struct str said = STR_INIT;
	CLEANUP(fd_close) int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	sigset_t before;

	if (file < 0)
		return err_set(err, ERR_LOCAL, "%s: %m", path);
	fflush(NULL);
	guard_hold_signals(&before); /* our handler in the child would swallow a signal */
	pid_t pid = fork();
	if (pid == 0)
		become_command(ctx, argv, run, file);
	if (pid < 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		return err_set(err, ERR_LOCAL, "fork: %m");
	}
	*out = (struct ended){.status = wait_for(pid, &before)};
	if (path_read(path, REPLY_MAX_BYTES, &said, NULL) == 0 && said.len)
		out->said = jsonx_parse(str_text(&said), said.len, NULL);
	unlink(path);
	return 0;
}

/* ---- results of the commands ---- */

static int64_t number_or_unknown(const json_t *object, const char *name, double factor)
{
	const json_t *value = json_is_object(object) ? json_object_get(object, name) : NULL;

	return json_is_number(value) ? (int64_t)(json_number_value(value) * factor + .5) : -1;
}

static struct queue_plan plan_of(const json_t *said)
{
	const json_t *pick = said ? json_object_get(said, "pick") : NULL;

	return (struct queue_plan){
		.segments = number_or_unknown(said, "to_render", 1),
		.makespan_ms = number_or_unknown(pick, "makespan_p90_s", 1000),
		.price_microusd_h = number_or_unknown(pick, "price_usd_hour", 1e6),
		.billed_ms = number_or_unknown(pick, "billed_s", 1000),
		.work_ms = number_or_unknown(pick, "work_s", 1000),
		.pods = number_or_unknown(pick, "pods", 1),
		.warm_pods = number_or_unknown(said, "warm_pods", 1),
	};
}

static void failure_of(const json_t *said, const char *command, struct queue_reply *out)
{
	const json_t *error = said ? json_object_get(said, "error") : NULL;
	const char *text = json_is_object(error) ? jsonx_text(error, "message", "") : "";

	if (!out->exit_status)
		return;
	if (text[0])
		COPY_TEXT(out->message, text);
	else
		snprintf(out->message, sizeof(out->message), "burst %s ended with exit status %d",
			 command, out->exit_status);
}

/* ---- the runner ---- */

struct runner {
	struct cmd_context *ctx;
	const char *config;
};

static int perform(void *at, const struct queue_order *order, struct queue_reply *out,
		   struct err *err)
{
	static const char *const names[] = {[QUEUE_PLAN] = "plan",
					    [QUEUE_RUN] = "run",
					    [QUEUE_RESUME] = "resume",
					    [QUEUE_ATTACH] = "attach"};
	const struct runner *r = at;
	bool new_run = order->task == QUEUE_RUN, plans = order->task == QUEUE_PLAN;
	bool quiet = plans || (order->task != QUEUE_ATTACH && r->ctx->quiet);
	const char *argv[9] = {"burst", names[order->task],
			       new_run || plans ? r->config : order->run, "--json"};
	int n = 4;
	struct ended ended = {0};

	if (quiet)
		argv[n++] = "--quiet";
	else if (new_run)
		argv[n++] = "--yes";
	if ((new_run || plans) && order->commit[0]) {
		argv[n++] = "--commit";
		argv[n++] = order->commit;
	}
	if (call(r->ctx, r->config, argv, new_run ? order->run : NULL, &ended, err) < 0)
		return -1;
	out->died = WIFSIGNALED(ended.status);
	out->exit_status =
		WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : 128 + WTERMSIG(ended.status);
	out->refused_money =
		out->exit_status == 5 && ended.said && !jsonx_text(ended.said, "run", "")[0];
	failure_of(ended.said, names[order->task], out);
	out->plan = plan_of(ended.said);
	json_decref(ended.said);
	return 0;
}

static void say(void *at, enum log_level level, const char *line)
{
	const struct runner *r = at;
	char when[32];

	if (r->ctx->live || level != LOG_NOTE)
		log_line(level, "%s", line);
	else
		log_line(level, "%s %s", clock_rfc3339(when, sizeof(when), clock_wall_ms()), line);
}

static int signal_that_came(void *at)
{
	(void)at;
	return signalled;
}

/* Starts a runner for a new ledger. A submit that found this runner alive started none, but its
 * request is in a ledger that this runner has not opened. */
static void start_for_new_ledger(const struct cmd_context *ctx, const char *config)
{
	CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ledger.db");

	if (store_check(ctx->store, NULL) < 0 && path_exists(path))
		queue_start_runner(ctx, config, NULL);
}

int queue_run(struct cmd_context *ctx, const char *config, struct err *err)
{
	struct runner r = {.ctx = ctx, .config = config};
	struct queue_client client = {.runs = &ctx->runs,
				      .config = config,
				      .perform = perform,
				      .say = say,
				      .signal = signal_that_came,
				      .ctx = &r};

	catch_signals();
	int result = queue_work(&client, err);
	if (result < 0 && err->kind == ERR_LOCAL)
		start_for_new_ledger(ctx, config);
	return result;
}

/* ---- the list of requests ---- */

struct shown {
	const struct request_row *row;
	const char *state; /* pending | waiting | running | done | failed | removed */
	char why[300];     /* or of its failure */
	int64_t until_ms;  /* 0: unknown */
	bool runner;       /* its queue has a runner */
};

static bool is_open(const struct request_row *row)
{
	return row->state == REQUEST_PENDING || row->state == REQUEST_RUNNING;
}

static void explain_pending(const struct cmd_context *ctx, struct shown *s)
{
	if (!s->runner) {
		COPY_TEXT(s->why, "no client works on the queue");
		return;
	}
	s->state = "waiting";
	queue_noted(ctx->store, s->row->config, s->why, sizeof(s->why), &s->until_ms);
}

static struct shown shown_of(const struct cmd_context *ctx, const struct request_row *row)
{
	struct shown s = {.row = row,
			  .state = request_state_word(row->state),
			  .runner = is_open(row) && queue_has_runner(ctx->state_dir, row->config)};

	if (row->state == REQUEST_PENDING)
		explain_pending(ctx, &s);
	else if (row->state == REQUEST_RUNNING && !s.runner && !run_is_alive(&ctx->runs, row->run))
		COPY_TEXT(s.why, "no client works on the queue");
	else
		COPY_TEXT(s.why, row->error);
	if (row->state == REQUEST_DONE && !row->run[0])
		COPY_TEXT(s.why, "all already rendered");
	return s;
}

static json_t *request_json(const struct shown *s, int64_t now_ms)
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
			  s->runner, "until", report_time(s->until_ms));

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

static void print_row(struct table *t, const struct shown *s, int64_t now_ms)
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

static void print_table(const struct shown *list, size_t count, int64_t now_ms)
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

static void print_shown(const struct cmd_context *ctx, const struct shown *list, size_t count,
			int64_t now_ms)
{
	const struct shown *alone = NULL;

	if (ctx->json) {
		json_t *array = json_array();
		for (size_t i = 0; i < count; i++)
			json_array_append_new(array, request_json(&list[i], now_ms));
		output_json(array);
		return;
	}
	print_table(list, count, now_ms);
	for (size_t i = 0; i < count; i++)
		if (is_open(list[i].row) && !list[i].runner)
			alone = &list[i];
	if (alone)
		log_line(LOG_NOTE,
			 "no client works on the queue of %s: `burst queue run`, or the next "
			 "`burst submit`, continues it",
			 alone->row->config);
	else if (!count)
		log_line(LOG_NOTE, "nothing is queued");
}

/* Chooses open requests, and the newest of the others. */
static size_t choose(const struct cmd_context *ctx, const struct request_row *rows, size_t count,
		     bool all, struct shown *list)
{
	size_t ended = 0, n = 0, skip;

	for (size_t i = 0; i < count; i++)
		ended += !is_open(&rows[i]);
	skip = all || ended <= ENDED_SHOWN ? 0 : ended - ENDED_SHOWN;
	for (size_t i = 0; i < count; i++) {
		if (!is_open(&rows[i]) && skip && skip--)
			continue;
		list[n++] = shown_of(ctx, &rows[i]);
	}
	return n;
}

int queue_list(const struct cmd_context *ctx, const char *config, bool all, struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(ctx->store, config, false, &rows, &count, err) < 0)
		return -1;
	struct shown *list = xcalloc(count + 1, sizeof(*list));
	print_shown(ctx, list, choose(ctx, rows, count, all, list), clock_wall_ms());
	free(list);
	free(rows);
	return 0;
}
