#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/path.h"
#include "launch.h"
#include "net/child.h"
#include "output.h"
#include "runs.h"
#include "settle.h"
#include "volume_trust.h"

/* A detached client tells the one who started it its run's id through this descriptor. */
#define CLIENT_FD_NAME "BURST_CLIENT_FD"

static const struct opt opts[] = {
	{'y', "yes", NULL, "ask nothing", NULL, false},
	{'n', "dry-run", NULL, "show what would be rented and rendered, and end", NULL, false},
	{'d', "detach", NULL, "hand the work over to the pods and print the run's id", NULL, false},
	{'p', "provider", "PROVIDER", "rent from these, in this order", "provider", false},
	{0, "gpu", "GPU", "these GPUs will do, the best loved first", "gpu", false},
	{0, "pods", "N", "how many pods at most", "pods", false},
	{0, "spot", NULL, "take pods that may be taken away, for less money", "spot", false},
	{0, "max-cost", "USD", "stop before the run has cost so much", "caps.max_cost", false},
	{0, "max-duration", "TIME", "no pod lives longer than this", "caps.max_duration", false},
	{0, "retry-until-up", NULL, "wait for capacity without end", "retry_until_up", false},
	{'o', "output", "DIR", "where the files go", "job.output", false},
	{0, "allow-path", "DIR", "let the project read, sync and write to this folder, too", "allow_paths", false},
	{0, "allow-volume", "NAME", "let the project use this volume, which is not its own", "volumes", false},
	{0, "max-volume-gb", "GB", "let the project create a volume of up to this size", "max_volume_gb", false},
	{0, "force", NULL, "write over foreign files in the output folder", NULL, false},
	{0, "keep-on-failure", "TIME", "keep pods on which the job failed so long for a look (they bill); not with -d", "keep_on_failure", false},
	{0},
};

/* Nothing left to render: no pod is rented, but a dead client's are given back, and what follows rendering is done. */
static int all_cached(struct launch *l, struct err *err)
{
	CLEANUP(str_free) struct str notes = STR_INIT;
	const struct job_ops *ops = l->setup.job_ops;
	size_t count = 0;

	if (settle_runs(l->ctx, NULL, err) < 0)
		return -1;
	ops->segments(l->setup.job, &count);
	l->run.total = l->run.cached = (int64_t)count;
	COPY_TEXT(l->run.job, config_job_name(l->ctx->config));
	COPY_TEXT(l->run.config, config_path(l->ctx->config) ? config_path(l->ctx->config) : "");
	COPY_TEXT(l->run.output, l->output_dir);
	COPY_TEXT(l->run.status, "done");
	if (ops->finish(l->setup.job, l->setup.results, &notes, err) < 0)
		return -1;
	if (!l->ctx->quiet) {
		output_lines(stderr, str_text(&notes));
		output_line(stderr, "all %zu segments are there already: nothing to render, nothing rented", count);
	}
	launch_say_suspects(l);
	int status = launch_deliver(l, &l->err);
	engine_let_signals_in();
	if (l->err.kind && l->err.kind != ERR_INTERRUPTED)
		output_error(l->ctx, &l->err);
	launch_print_json(l);
	return status;
}

/* ---- detached: a client of its own, in a session of its own ---- */

/* -1: we are no detached client. Children are told nothing of it: while one of them held it open, the starter would wait. */
static int client_fd(void)
{
	static int fd = -2;
	const char *text = getenv(CLIENT_FD_NAME);

	if (fd == -2) {
		fd = text ? atoi(text) : -1;
		if (fd >= 0)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
		unsetenv(CLIENT_FD_NAME);
	}
	return fd;
}

static void spawn_exec(char **argv, int fd, const sigset_t *mask)
{
	char number[16];

	setsid();
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO); /* stdout is kept until there is a run: whoever asked for --json hears why there is none */
	fcntl(fd, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", fd);
	setenv(CLIENT_FD_NAME, number, 1);
	guard_leave();
	signal(SIGHUP, SIG_IGN); /* the terminal's, from before it had a session of its own */
	sigprocmask(SIG_SETMASK, mask, NULL);
	execv(child_self() ? child_self() : argv[0], argv);
	_exit(127);
}

/* Until the run has an id, its starter's signals are the client's: nobody would know what to cancel. */
static volatile sig_atomic_t client, interrupted;

static void pass_on(int number)
{
	int saved = errno;

	interrupted = number;
	kill(client, SIGTERM);
	errno = saved;
}

static pid_t start_client(struct cmd_context *ctx, int pipes[2])
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t held, before;

	sigemptyset(&held);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaddset(&held, numbers[i]);
	sigprocmask(SIG_BLOCK, &held, &before);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(pipes[0]);
		spawn_exec(ctx->argv, pipes[1], &before);
	}
	client = pid;
	struct sigaction act = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < ARRAY_LEN(numbers) && pid > 0; i++) {
		act.sa_handler = numbers[i] == SIGHUP ? SIG_IGN : pass_on;
		sigaction(numbers[i], &act, NULL);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* It ended before there was a run, and said why; or because we were told to end. */
static int client_ended(pid_t pid, struct err *err)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	bool by_signal = WIFSIGNALED(status) || WEXITSTATUS(status) > 128;
	if (!interrupted || !by_signal)
		return WIFEXITED(status) ? WEXITSTATUS(status) : err_set(err, ERR_LOCAL, "the detached client died at once");
	err_set(err, ERR_INTERRUPTED, "interrupted before the run was handed over: it has ended");
	err->signal = interrupted;
	return -1;
}

static int detach(struct cmd_context *ctx, struct err *err)
{
	char id[32] = "";
	int pipes[2];

	if (pipe(pipes) < 0)
		return err_set(err, ERR_LOCAL, "pipe: %m");
	fcntl(pipes[0], F_SETFD, FD_CLOEXEC);
	pid_t pid = start_client(ctx, pipes);
	if (pid < 0)
		return err_set(err, ERR_LOCAL, "fork: %m");
	close(pipes[1]);
	ssize_t n = read(pipes[0], id, sizeof(id) - 1);
	if (n > 0) {
		id[strcspn(id, "\n")] = '\0';
		puts(id);
	}
	int status = n > 0 && !interrupted ? cmd_flush(err) : client_ended(pid, err);
	close(pipes[0]);
	return status;
}

/* Nobody knows of it: nothing has been rented, and nothing is. */
static int give_up(struct launch *l, struct err *err)
{
	err_set(err, ERR_LOCAL, "run %s: whoever started it is gone, and never had its id", l->run.id);
	COPY_TEXT(l->run.status, "interrupted");
	COPY_TEXT(l->run.error_code, err_kind_name(ERR_INTERRUPTED));
	COPY_TEXT(l->run.error, err->msg);
	l->run.ended_ms = clock_wall_ms();
	l->run.exit_status = err_exit_status(err);
	store_put_run(l->ctx->store, &l->run, NULL);
	return -1;
}

/* Whoever reads what our starter prints waits for nothing of ours. */
static void let_stdout_go(void)
{
	fflush(stdout);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		close(null);
	}
}

/* The one who started us may go; from now on words go to the run's folder. */
static int let_starter_go(struct launch *l, int fd, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(l->run_dir, "client.log");
	int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	let_stdout_go();
	bool told = dprintf(fd, "%s\n", l->run.id) > 0;

	close(fd);
	if (log >= 0) {
		dup2(log, STDERR_FILENO);
		close(log);
	}
	l->setup.ignore_hangup = true;
	l->ctx->live = l->ctx->color = false;
	return told ? 0 : give_up(l, err);
}

/* ---- what an earlier run of this job has left ---- */

/* The name of a volume that may hold finished segments of it which are not home; false: none does. Of a pod that was given back only
 * what was made durable counts; one that may still be there is looked at by whoever resumes the run. */
static bool waits_on_volume(struct cmd_context *ctx, const struct run_row *run, char volume[64], bool *alive)
{
	struct segment_row *segments = NULL;
	struct pod_row *pods = NULL;
	size_t home = 0, count = 0;
	bool waits = false;

	if (store_segments(ctx->store, run->id, &segments, &home, NULL) < 0 || (int64_t)home + run->cached >= run->total ||
	    store_pods(ctx->store, run->id, false, &pods, &count, NULL) < 0)
		count = 0;
	*alive = false;
	for (size_t i = 0; i < count; i++) {
		bool over = pod_row_over(&pods[i]);
		if (!pods[i].volume_id[0] || !pods[i].ready_ms || (over && !pods[i].volume_safe))
			continue;
		waits = true;
		*alive = *alive || !over;
		copy_text(volume, 64, pods[i].volume_name);
	}
	free(segments);
	free(pods);
	return waits;
}

/* A new run renders again, and pays again, what is finished and not home. */
static void name_resume(struct launch *l)
{
	const char *config = config_path(l->ctx->config);
	struct run_row *runs = NULL;
	size_t count = 0;
	char volume[64];
	bool alive;

	if (!config || store_runs(l->ctx->store, config, false, 1, &runs, &count, NULL) < 0 || !count)
		return;
	const struct run_row *run = &runs[0];
	if (!strcmp(run->job, config_job_name(l->ctx->config)) && strcmp(run->status, "done") && !run->detached &&
	    !run_is_alive(l->ctx, run->id) && waits_on_volume(l->ctx, run, volume, &alive))
		log_line(LOG_WARN,
			 "run %s of this job did not end well, and segments that it finished may wait on volume %s: `burst resume %s` takes them "
			 "over; this run %srenders them again",
			 run->id, volume, run->id, alive ? "releases its pods and " : "");
	free(runs);
}

/* ---- the command ---- */

static int render(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	int fd = client_fd();

	if (launch_open_providers(l, err) < 0)
		return -1;
	if (opt_has(ctx, "dry-run"))
		return launch_plan(l, err);
	name_resume(l);
	if (volume_trust(l, NULL, err) < 0 || settle_runs(ctx, NULL, err) < 0 || launch_check_detached(l, err) < 0 || launch_check_balance(l, err) < 0 ||
	    launch_begin(l, opt_has(ctx, "detach"), err) < 0)
		return -1;
	if (fd >= 0 && let_starter_go(l, fd, err) < 0)
		return -1;
	if (fd < 0 && !ctx->quiet)
		fprintf(stderr, "run %s: %zu of %lld segments to render\n", l->run.id, launch_open_segments(l),
			(long long)l->run.total);
	return launch_run(l);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;

	if (opt_has(ctx, "dry-run") && ctx->json)
		return err_set(err, ERR_USAGE, "run: -n shows a table, for people: not with --json (`burst offers --json` has the offers)");
	if (opt_has(ctx, "detach") && client_fd() < 0)
		return detach(ctx, err);
	ctx->overwrite = opt_has(ctx, "force");
	launch_init(&l, ctx);
	int status = launch_check_width(&l, err);
	if (status == 0)
		status = opt_has(ctx, "dry-run") ? launch_look_at_job(&l, err) : launch_load_to_render(&l, err);
	if (status == 0 && !launch_open_segments(&l) && !opt_has(ctx, "dry-run"))
		status = all_cached(&l, err);
	else if (status == 0)
		status = render(&l, err);
	launch_free(&l);
	return status;
}

const struct cmd cmd_run = {
	.name = "run",
	.args = "[CONFIG]",
	.max_args = 1,
	.summary = "render a job on rented pods",
	.details = "Reads burst.cfg, rents pods, renders what is not in the output folder yet, brings each file home while the "
		   "next ones render, gives the pods back and proves that they are gone. Runs whose client died are settled first.",
	.opts = opts,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG,
	.group = CMD_GROUP_RENDER,
	.json = true,
	.run = run,
	.failed = launch_failed,
};
