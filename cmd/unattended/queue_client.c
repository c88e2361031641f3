/* queue_client.c - the processes of a queue: its runner in the background, and the commands that
 * the runner performs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "base/path.h"
#include "base/program.h"
#include "net/child.h"
#include "queue_client.h"
#include "base/git.h"

/* Carries struct queued to the `burst run` of a queue's runner. */
#define QUEUE_RUN_NAME "BURST_QUEUE_RUN"

enum { LOG_MAX_BYTES = 1 << 20, REPLY_MAX_BYTES = 16 << 20 };

/* ---- the background runner ---- */

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
	CLEANUP(free_text) char *path = queue_path(ctx->state_dir, config, ".log");
	CLEANUP(free_text) char *dir = path_dir(path);
	path_mkdirs(dir, 0700, NULL);
	CLEANUP(fd_close) int log = path_open_log(path, LOG_MAX_BYTES);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		become_runner(ctx, config, log);
	return pid < 0 ? err_set(err, ERR_LOCAL, "fork: %m") : 0;
}

void queue_wake(const struct cmd_context *ctx, const char *config)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(ctx->store, config, true, &rows, &count, NULL) == 0 && count)
		queue_start_runner(ctx, config, NULL);
	free(rows);
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
