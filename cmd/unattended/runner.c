/* runner.c - the queue of a burst.cfg: its lock, the note in the ledger why it waits, and its
 * runner, which waits, renders the newest state once for all requests, and repeats.
 *
 * The runner holds a kernel lock as long as it lives. `burst submit` commits its request, then
 * starts a runner unless one holds the lock. A runner releases the lock inside a transaction that
 * sees no open request, so no request is left without a runner. */
#include "unattended.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/err.h"
#include "base/git.h"
#include "base/guard.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "base/program.h"
#include "net/child.h"
#include "outlook.h"
#include "unattended/requests.h"
#include "unattended/schedule.h"
#include "store/facts.h"

/* The variable with the id for the `burst run` that a runner starts. */
#define QUEUE_RUN_NAME "BURST_QUEUE_RUN"

enum {
	LOG_MAX_BYTES = 1 << 20,
	REPLY_MAX_BYTES = 16 << 20,
	TURN_MS = 1000,           /* between two reads of the ledger while it waits */
	DUE_MS = 10000,           /* between two looks at the schedules */
	FOLLOW_MS = 500,          /* between two checks of another client's run */
	FAILURES_MOST = 60,       /* failed turns in a row before the runner ends */
	FAILURE_PAUSE_MS = 60000, /* longest pause after one */
	BUSY_MOST_MS = 15000 /* longest pause before the next start if something of unknown duration
				blocks it */
};

char *queue_path(const char *state_dir, const char *config, const char *ending)
{
	char key[SHA256_NAME];

	sha256_name(config, key);
	return xasprintf("%s/jobs/%s.queue%s", state_dir, key, ending);
}

/* ---- the lock ---- */

/* Takes the queue's lock, and makes the folder for it. ERR_BUSY: another runner holds the lock.
 * This process owns it until it ends or closes *fd. */
static int take_lock(const char *state_dir, const char *config, int *fd, struct err *err)
{
	CLEANUP(free_text) char *path = queue_path(state_dir, config, "");
	CLEANUP(free_text) char *dir = path_dir(path);

	if (path_mkdirs(dir, 0700, err) < 0)
		return -1;
	if (path_lock(path, "", fd, err) == 0)
		return 0;
	return err->kind == ERR_BUSY
		       ? err_set(err, ERR_BUSY, "%s: another process works on this queue", config)
		       : -1;
}

bool queue_has_runner(const char *state_dir, const char *config)
{
	CLEANUP(free_text) char *path = queue_path(state_dir, config, "");

	return path_is_locked(path, NULL);
}

/* ---- starting runners ---- */

/* Opens the log of the queue's runner; -1: it cannot. */
static int open_log(const struct cmd_context *ctx, const char *config)
{
	CLEANUP(free_text) char *path = queue_path(ctx->state_dir, config, ".log");
	CLEANUP(free_text) char *dir = path_dir(path);

	path_mkdirs(dir, 0700, NULL);
	return path_open_log(path, LOG_MAX_BYTES);
}

/* In the child: becomes `burst queue run`, without the submitter's descriptors, since a hook's
 * caller may wait for its pipes to close. Does not return. */
static void become_runner(const struct cmd_context *ctx, const char *config, int log)
{
	const char *argv[] = {"burst", "queue", "run", config, NULL};

	program_to_background(log);
	git_clear_environment();
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

int queue_run_child(const struct cmd_context *ctx, const char *config, bool shown, struct err *err)
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

bool queue_needs_runner(const struct cmd_context *ctx, const char *config)
{
	struct request_row *rows = NULL;
	size_t count = 0;
	bool open = store_requests(ctx->store, config, true, &rows, &count, NULL) == 0 && count;

	free(rows);
	return open && !queue_has_runner(ctx->state_dir, config);
}

void queue_wake(const struct cmd_context *ctx, const char *config)
{
	if (queue_needs_runner(ctx, config))
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

void queue_take_run_id(char run[24])
{
	const char *id = getenv(QUEUE_RUN_NAME);

	copy_text(run, 24, id ? id : "");
	unsetenv(QUEUE_RUN_NAME);
}

/* ---- why a queue waits ---- */

bool queue_wait_note(struct store *store, const char *config, char *text, size_t room,
		     int64_t *until_ms)
{
	char key[SHA256_NAME], line[512];
	long long until;
	int used = 0;

	sha256_name(config, key);
	if (!fact_get(store, FACT_QUEUE, key, NULL, line, sizeof(line)) ||
	    sscanf(line, "%lld %n", &until, &used) != 1 || !line[used])
		return false;
	copy_text(text, room, line + used);
	*until_ms = until;
	return true;
}

/* ---- signals ---- */

/* child_pid: the command that runs now; 0: none. signalled: the last signal; 0: none. */
static volatile sig_atomic_t child_pid, signalled;

static void forward_signal(int number)
{
	int saved = errno;

	signalled = number;
	if (child_pid > 0)
		kill(child_pid, number);
	errno = saved;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* Makes signals set `signalled`, and reach the child, instead of ending this process. */
static void catch_signals(void)
{
	struct sigaction act = {.sa_handler = forward_signal};

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &act, NULL);
}

/* ---- commands of the runner ---- */

/* In the child: becomes burst with these arguments, in its own process group, so that a terminal's
 * Ctrl-C reaches it once, through the runner. Does not return. */
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

/* Restores the signal mask, and forwards signals until the child ends. Returns its wait status. */
static int wait_for_child(pid_t pid, const sigset_t *mask)
{
	child_pid = pid;
	if (signalled) /* a signal came before there was a child to forward it to */
		kill(pid, signalled);
	sigprocmask(SIG_SETMASK, mask, NULL);
	return program_reap(pid, &child_pid);
}

/* Runs a burst command that ends its output with a JSON object, and waits for its end. Forwards
 * signals. run: the id for `burst run`; NULL: none. *status: from waitpid(); *object: a new
 * reference, unchanged if the command printed none. */
static int run_child_for_json(const struct cmd_context *ctx, const char *config,
			      const char *const *argv, const char *run, int *status,
			      json_t **object, struct err *err)
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
	*status = wait_for_child(pid, &before);
	if (path_read(path, REPLY_MAX_BYTES, &said, NULL) == 0 && said.len)
		*object = jsonx_parse(str_text(&said), said.len, NULL);
	unlink(path);
	return 0;
}

/* ---- results of the commands ---- */

/* How a command of the runner ended. */
struct ending {
	int exit_status; /* 128 + the signal, if it died */
	bool died;
	bool refused_money;    /* the run did not begin because of a cap over runs */
	char message[256];     /* the failure; "": none */
	struct when_work work; /* by `burst plan`, if the run starts now; -1: unknown */
};

/* Sets out->message from the command's JSON, else from its exit status, if it failed. */
static void read_failure(const json_t *said, const char *command, struct ending *out)
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
	const struct runs *runs;
	struct store *store;
	const char *config;
	int lock;
	struct request_row *rows; /* open requests in the order of submission */
	size_t count;
	struct outlook outlook; /* from the last plan */
	int64_t planned_ms;     /* time of the plan by the boot clock; 0: none yet */
	char planned_for[24];   /* newest request at that time */
	bool cannot_run;        /* the plan found a mistake, which a run will report */
	int64_t busy_ms;        /* the last pause of back_off(); 0: the last start was possible */
	int64_t due_ms;         /* when it looked at the schedules, by the boot clock; 0: not yet */
	int failures;           /* consecutive failures of ledger or disk */
	char noted[200];        /* the note in the ledger, as last written */
};

static void log_event(const struct runner *r, const char *fmt, ...) PRINTF(2, 3);
static void log_event(const struct runner *r, const char *fmt, ...)
{
	char line[512], when[32];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (r->ctx->live)
		log_line(LOG_NOTE, "%s", line);
	else
		log_line(LOG_NOTE, "%s %s", clock_rfc3339(when, sizeof(when), clock_wall_ms()),
			 line);
}

/* Runs `burst run`, resume, attach or plan in a process of its own, so that a crash of a render
 * leaves the runner alive. run: the id of the run; NULL: a plan. commit: to plan or to run; "": the
 * working tree. Returns 0 with *out whatever the command's exit status is. */
static int run_burst(const struct runner *r, const char *command, const char *run,
		     const char *commit, struct ending *out, struct err *err)
{
	bool new_run = !strcmp(command, "run"), plans = !run;
	bool quiet = plans || (strcmp(command, "attach") && r->ctx->quiet);
	const char *argv[9] = {"burst", command, new_run || plans ? r->config : run, "--json"};
	int n = 4, status = 0;
	CLEANUP(json_decref) json_t *said = NULL;

	if (quiet)
		argv[n++] = "--quiet";
	else if (new_run)
		argv[n++] = "--yes";
	if (commit[0]) {
		argv[n++] = "--commit";
		argv[n++] = commit;
	}
	*out = (struct ending){0};
	if (run_child_for_json(r->ctx, r->config, argv, new_run ? run : NULL, &status, &said, err) <
	    0)
		return -1;
	out->died = WIFSIGNALED(status);
	out->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	out->refused_money = out->exit_status == 5 && said && !jsonx_text(said, "run", "")[0];
	read_failure(said, command, out);
	out->work = outlook_planned(said);
	return 0;
}

/* Returns early if a signal comes or came. */
static void pause_ms(int64_t ms)
{
	if (!signalled)
		poll(NULL, 0, (int)MAX(ms, 1));
}

/* Writes to the ledger why the queue waits, if that has changed. text "": the queue does not wait.
 * until_ms 0: unknown. */
static int note_wait(struct runner *r, const char *text, int64_t until_ms, struct err *err)
{
	char line[sizeof(r->noted)], key[SHA256_NAME];

	snprintf(line, sizeof(line), "%lld %s", (long long)until_ms, text);
	if (!strcmp(line, r->noted))
		return 0;
	sha256_name(r->config, key);
	if (fact_put(r->store, FACT_QUEUE, key, NULL, line, err) < 0)
		return -1;
	COPY_TEXT(r->noted, line);
	if (text[0])
		log_event(r, "waits: %s", text);
	return 0;
}

/* ---- requests ---- */

static int read_open_requests(struct runner *r, struct err *err)
{
	free(r->rows);
	r->rows = NULL;
	r->count = 0;
	return store_requests(r->store, r->config, true, &r->rows, &r->count, err);
}

/* The first bound request; NULL: all are pending. */
static const struct request_row *first_bound_request(const struct runner *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->rows[i].state == REQUEST_RUNNING)
			return &r->rows[i];
	return NULL;
}

/* ---- the plan ---- */

/* Runs `burst queue plan` if there are others to share pods with. A plan that fails changes
 * nothing. */
static int make_joint_plan(struct runner *r, struct err *err)
{
	static const char *const argv[] = {"burst", "queue", "plan", "--json", "--quiet", NULL};
	CLEANUP(json_decref) json_t *said = NULL;
	int status = 0;

	if (!r->outlook.others || r->outlook.work.work_ms < 0)
		return 0;
	if (run_child_for_json(r->ctx, r->config, argv, NULL, &status, &said, err) < 0)
		return -1;
	if (json_is_object(said))
		outlook_read_joint(&r->outlook, r->config, said);
	return 0;
}

/* Runs `burst plan` for the newest request, and keeps what it says. */
static int make_plan(struct runner *r, struct err *err)
{
	const struct request_row *newest = &r->rows[r->count - 1];
	struct ending reply;

	outlook_count(&r->outlook, r->store, r->config);
	if (run_burst(r, "plan", NULL, newest->commit_id, &reply, err) < 0)
		return -1;
	r->outlook.work = reply.work;
	r->cannot_run = reply.exit_status == 2 || reply.exit_status == 3;
	r->planned_ms = clock_boot_ms();
	COPY_TEXT(r->planned_for, newest->id);
	return make_joint_plan(r, err);
}

/* Plans again for each new request, when the number of offered pods, of requests or of runs
 * changes, and after a while. A pod that the queue waits for is offered for some seconds: no plan
 * is made then. */
static int update_plan_if_stale(struct runner *r, struct err *err)
{
	bool known = r->planned_ms && clock_boot_ms() - r->planned_ms < WHEN_LOOK_AGAIN_MS &&
		     !strcmp(r->planned_for, r->rows[r->count - 1].id) &&
		     !outlook_has_changed(&r->outlook, r->store, r->config);

	if (outlook_has_pod(&r->outlook, r->store)) {
		outlook_take_pod(&r->outlook);
		return 0;
	}
	return known ? 0 : make_plan(r, err);
}

/* ---- the end of a run ---- */

/* Says how the run ended, and records that for its requests. */
static int end_run(struct runner *r, const char *run, enum outcome outcome, int exit_status,
		   const char *message, struct err *err)
{
	static const char *const words[] = {[OUTCOME_DONE] = "done",
					    [OUTCOME_FAILED] = "failed",
					    [OUTCOME_RETRY] = "will be retried later",
					    [OUTCOME_AGAIN] = "has not started",
					    [OUTCOME_RESUME] = "continues later"};

	log_event(r, "run %s: %s%s%s", run, words[outcome], message[0] ? ": " : "", message);
	return requests_end(r->store, r->config, run, outcome, exit_status, message,
			    clock_wall_ms(), err);
}

/* ---- runs of other clients ---- */

/* Waits until the client of another process's run ends, or a signal comes. */
static int wait_while_alive(struct runner *r, const char *run, struct err *err)
{
	CLEANUP(free_text) char *text = xasprintf("run %s continues", run);

	if (note_wait(r, text, 0, err) < 0)
		return -1;
	while (run_is_alive(r->runs, run) && !signalled)
		pause_ms(FOLLOW_MS);
	return 0;
}

/* Pauses before the next turn, each time longer until a run could be started. */
static void back_off(struct runner *r)
{
	r->busy_ms = MIN(MAX(r->busy_ms * 2, (int64_t)TURN_MS), (int64_t)BUSY_MOST_MS);
	pause_ms(r->busy_ms);
}

/* Runs `burst attach` for a detached run without a client, until it ends. */
static int attach_to_run(struct runner *r, const char *run, struct err *err)
{
	struct ending reply;

	log_event(r, "run %s: attaching to it, since its pods work on this job without a client",
		  run);
	if (run_burst(r, "attach", run, "", &reply, err) < 0)
		return -1;
	if (reply.exit_status)
		back_off(r);
	return 0;
}

/* Waits for another `burst run` of the same job. Returns 1 if it has waited, 0 if there is none. */
static int wait_for_other_runs(struct runner *r, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int result = 0;

	if (store_runs(r->store, r->config, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		if (run_is_alive(r->runs, runs[i].id))
			result = wait_while_alive(r, runs[i].id, err) < 0 ? -1 : 1;
		else if (runs[i].detached)
			result = attach_to_run(r, runs[i].id, err) < 0 ? -1 : 1;
	}
	free(runs);
	return result;
}

/* Waits after a run was refused because another process holds the job or its output folder, and no
 * run in the ledger shows for how long. */
static int wait_for_job_lock(struct runner *r, struct err *err)
{
	if (note_wait(r, "another process has the job or its output folder", 0, err) < 0)
		return -1;
	back_off(r);
	return 0;
}

/* ---- runs of the queue ---- */

/* Records for the run's requests how the command that worked on it ended. */
static int record_outcome(struct runner *r, const char *run, const struct ending *reply,
			  struct err *err)
{
	enum outcome outcome = requests_outcome(reply->exit_status, reply->died, signalled != 0);

	/* the cap has room again once other runs have ended, or the next day */
	if (outcome == OUTCOME_FAILED && reply->refused_money)
		outcome = OUTCOME_RETRY;
	if (outcome == OUTCOME_RESUME && reply->died)
		return 0; /* the next turn finds a run without a client */
	if (end_run(r, run, outcome, reply->exit_status, reply->message, err) < 0)
		return -1;
	if (outcome == OUTCOME_AGAIN)
		return wait_for_job_lock(r, err);
	r->busy_ms = 0;
	return 0;
}

/* Binds all pending requests to a new run, and renders the newest's state. */
static int start_run(struct runner *r, struct err *err)
{
	struct request_row newest;
	struct ending reply;
	char run[24];

	if (run_new_id(r->runs, run, err) < 0)
		return -1;
	int bound = requests_bind(r->store, r->config, run, &newest, err);
	if (bound <= 0)
		return bound;
	if (note_wait(r, "", 0, err) < 0)
		return -1;
	log_event(r, "run %s: starts for %d request%s", run, bound, bound == 1 ? "" : "s");
	if (run_burst(r, "run", run, newest.commit_id, &reply, err) < 0)
		return -1;
	return record_outcome(r, run, &reply, err);
}

/* Resumes a run whose client died, unless that happened too often. If an input has changed, the
 * requests wait for a new run, which settles this one. */
static int resume_run(struct runner *r, const struct run_row *run, struct err *err)
{
	struct ending reply;

	int may_resume = requests_count_death(r->store, r->config, run->id, err);
	if (may_resume < 0)
		return -1;
	if (!may_resume)
		return end_run(r, run->id, OUTCOME_FAILED, 1, "its client died repeatedly", err);
	if (note_wait(r, "", 0, err) < 0)
		return -1;
	log_event(r, "run %s: its client exited; continuing it", run->id);
	if (run_burst(r, "resume", run->id, "", &reply, err) < 0)
		return -1;
	if (!reply.died && reply.exit_status == 2)
		return end_run(r, run->id, OUTCOME_AGAIN, 0, "its job has changed since", err);
	return record_outcome(r, run->id, &reply, err);
}

/* Makes the requests of a run pending again that never began, or whose client died when all outputs
 * were in place, before it recorded that. */
static int end_unbegun_run(struct runner *r, const char *run, struct err *err)
{
	int may_retry = requests_count_death(r->store, r->config, run, err);

	if (may_retry < 0)
		return -1;
	return may_retry ? end_run(r, run, OUTCOME_AGAIN, 0, "", err)
			 : end_run(r, run, OUTCOME_FAILED, 1, "its client died repeatedly", err);
}

/* Follows, attaches to, resumes or ends the run that requests are bound to. id: the run's. */
static int handle_bound_run(struct runner *r, const char *id, struct err *err)
{
	struct run_row run;
	bool alive = run_is_alive(r->runs, id), known = store_run(r->store, id, &run, err) == 0;

	if (!known && err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	switch (requests_bound_step(known ? &run : NULL, alive)) {
	case BOUND_FOLLOW: return wait_while_alive(r, id, err);
	case BOUND_UNBIND: return end_unbegun_run(r, id, err);
	case BOUND_ATTACH: return attach_to_run(r, id, err);
	case BOUND_RESUME: return resume_run(r, &run, err);
	case BOUND_END: break;
	}
	return end_run(r, id, requests_outcome(run.exit_status, false, false), run.exit_status,
		       run.error, err);
}

/* ---- schedules ---- */

/* Submits requests for this config's schedules that are due: systemd fires no timer while its
 * service, which waits for this runner, is active. */
static int submit_due_schedules(struct runner *r, struct err *err)
{
	struct schedule_row *rows = NULL;
	size_t count = 0;
	int result = 0;

	if (r->due_ms && clock_boot_ms() - r->due_ms < DUE_MS)
		return 0;
	r->due_ms = clock_boot_ms();
	if (store_schedules(r->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		if (strcmp(rows[i].config, r->config) != 0)
			continue;
		result = schedule_submit(r->store, rows[i].name, false, clock_wall_ms(), err);
		if (result < 0 && err->kind == ERR_NOT_FOUND) { /* the schedule was removed */
			err_clear(err);
			result = 0;
		}
	}
	free(rows);
	return result;
}

/* ---- turns ---- */

/* Starts a run if the pending requests may start now; else pauses for at most TURN_MS. */
static int wait_or_start(struct runner *r, struct err *err)
{
	struct when_request *requests = xcalloc(r->count, sizeof(*requests));
	static const struct when_work unknown = {-1, -1, -1, -1, -1};
	int64_t now_ms = clock_wall_ms();
	char text[160];

	for (size_t i = 0; i < r->count; i++)
		requests[i] = requests_for_when(&r->rows[i], now_ms);
	int result = 0;
	struct when_answer a = when_start(requests, r->count, &unknown, now_ms);
	if (a.why != WHEN_QUIET && a.why != WHEN_RETRY && when_needs_work(requests, r->count)) {
		result = update_plan_if_stale(r, err);
		a = when_start(requests, r->count, &r->outlook.work, now_ms);
		a.start = a.start || r->cannot_run;
	}
	free(requests);
	if (result == 0 && a.start)
		result = wait_for_other_runs(r, err);
	if (result)
		return result < 0 ? -1 : 0;
	if (a.start)
		return start_run(r, err);
	outlook_explain(&r->outlook, &a, text, sizeof(text));
	if (outlook_note_pod(&r->outlook, r->store, r->config, &a, err) < 0 ||
	    note_wait(r, text, a.why == WHEN_QUIET || a.why == WHEN_RETRY ? a.until_ms : 0, err) <
		    0)
		return -1;
	pause_ms(MIN(MAX(a.until_ms - now_ms, (int64_t)1), (int64_t)TURN_MS));
	return 0;
}

/* For requests_leave_if_none(). */
static void release_lock(void *ctx)
{
	struct runner *r = ctx;

	close(r->lock);
	r->lock = -1;
}

/* Does one step for the queue: a schedule, a bound run, or the pending requests. Returns 1 once no
 * request is open and the lock is released, else 0. */
static int take_turn(struct runner *r, struct err *err)
{
	if (submit_due_schedules(r, err) < 0 || read_open_requests(r, err) < 0)
		return -1;
	const struct request_row *bound = first_bound_request(r);
	if (bound) {
		char id[sizeof(bound->run)];
		COPY_TEXT(id, bound->run);
		return handle_bound_run(r, id, err);
	}
	if (r->count)
		return wait_or_start(r, err);
	if (note_wait(r, "", 0, err) < 0)
		return -1;
	return requests_leave_if_none(r->store, r->config, release_lock, r, err);
}

/* Fails if the ledger's file was removed or replaced, so that other commands use another one. */
static int check_ledger(const struct runner *r, struct err *err)
{
	if (store_check(r->store, err) == 0)
		return 0;
	return err_wrap(err, "the queue of %s ends", r->config);
}

/* take_turn(), but after a locked ledger or a full disk only warns and pauses: what was begun stays
 * in the ledger. A removed ledger does not come back, so that fails. */
static int take_turn_or_retry(struct runner *r, struct err *err)
{
	if (check_ledger(r, err) < 0)
		return -1;
	int result = take_turn(r, err);
	if (result >= 0 || err->kind != ERR_LOCAL || r->lock < 0 || ++r->failures > FAILURES_MOST) {
		r->failures = result >= 0 ? 0 : r->failures;
		return result;
	}
	if (check_ledger(r, err) < 0)
		return -1;
	log_line(LOG_WARN, "%s; retrying", err->msg);
	pause_ms(MIN((int64_t)TURN_MS << MIN(r->failures, 6), (int64_t)FAILURE_PAUSE_MS));
	err_clear(err);
	return 0;
}

/* Returns -1 with ERR_INTERRUPTED. */
static int report_interrupt(struct runner *r, struct err *err)
{
	log_event(r, "interrupted: the requests stay in the queue, and the next `burst submit` or "
		     "`burst queue run` continues them");
	err_set(err, ERR_INTERRUPTED, "interrupted");
	err->signal = signalled;
	return -1;
}

/* Starts a runner if the ledger was replaced. A submit that found this runner alive started none,
 * but its request is in a ledger that this runner has not opened. */
static void start_for_new_ledger(const struct cmd_context *ctx, const char *config)
{
	CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ledger.db");

	if (store_check(ctx->store, NULL) < 0 && path_exists(path))
		queue_start_runner(ctx, config, NULL);
}

int queue_run(struct cmd_context *ctx, const char *config, struct err *err)
{
	struct runner r = {
		.ctx = ctx, .runs = &ctx->runs, .store = ctx->store, .config = config, .lock = -1};
	int result = 0;

	catch_signals();
	if (take_lock(ctx->state_dir, config, &r.lock, err) < 0)
		return -1;
	while (result == 0 && !signalled)
		result = take_turn_or_retry(&r, err);
	if (result == 0)
		result = report_interrupt(&r, err);
	if (r.lock >= 0)
		close(r.lock);
	free(r.rows);
	if (result < 0 && err->kind == ERR_LOCAL)
		start_for_new_ledger(ctx, config);
	return result < 0 ? -1 : 0;
}
