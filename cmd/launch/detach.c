/* detach.c - `run -d`: starts a background client and waits until the pods have the queue. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/err.h"
#include "base/path.h"
#include "base/program.h"
#include "cmd/show/output.h"
#include "detach.h"
#include "net/child.h"

/* Environment variable with the descriptor of the socket to the starter. */
#define CLIENT_FD_NAME "BURST_CLIENT_FD"

/* Lines from the client: the run's id, then at most one of these. */
#define LINE_HANDED "handed over"
#define LINE_ENDED  "ended" /* then waits until the other end is closed */

enum { WORDS_MAX = 128, ENDED_WAIT_MS = 5000 };

/* ---- the starter ---- */

static void spawn_exec(char **argv, int fd, const sigset_t *mask)
{
	char number[16];

	setsid();
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO); /* keep stdout and stderr until the pods have the queue */
	fcntl(fd, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", fd);
	setenv(CLIENT_FD_NAME, number, 1);
	guard_leave();
	signal(SIGHUP,
	       SIG_IGN); /* the terminal's hangup, from before this process had its own session */
	/* the starter forwards it; a background job of a script ignores it */
	signal(SIGINT, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execv(child_self() ? child_self() : argv[0], argv);
	_exit(127);
}

/* Until the pods have the queue, the starter forwards its signals to the client, which gets no
 * Ctrl-C itself. A closed terminal stops neither. */
static volatile sig_atomic_t client, interrupted;

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

static void pass_on(int number)
{
	int saved = errno;

	interrupted = number;
	if (!client) /* it has ended and been reaped */
		return;
	/* this signal, so that the run's row and the starter have the same exit status */
	kill(client, number);
	kill(client, SIGCONT); /* it may be stopped */
	errno = saved;
}

static pid_t start_client(struct cmd_context *ctx, int pair[2])
{
	sigset_t before;

	guard_hold_signals(&before);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		spawn_exec(ctx->argv, pair[1], &before);
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

struct heard {
	char text[WORDS_MAX];
	size_t len;
	char id[32]; /* "": no run yet */
	bool handed, ended;
};

static void understand(struct heard *h)
{
	const char *newline = strchr(h->text, '\n');

	if (!newline)
		return;
	snprintf(h->id, sizeof(h->id), "%.*s", (int)(newline - h->text), h->text);
	h->handed = starts_with(newline + 1, LINE_HANDED "\n");
	h->ended = starts_with(newline + 1, LINE_ENDED "\n");
}

/* Reads until the client has handed over or closes; with no_wait, until there is a run. */
static void listen_to(int fd, bool no_wait, struct heard *h)
{
	while (!h->handed && !h->ended && !(no_wait && h->id[0]) && h->len + 1 < sizeof(h->text)) {
		ssize_t n = read(fd, h->text + h->len, sizeof(h->text) - 1 - h->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		h->len += (size_t)n;
		h->text[h->len] = '\0';
		understand(h);
	}
}

/* Handles a killed client (from outside, or a third Ctrl-C): its pods have no client now. */
static int client_died(struct cmd_context *ctx, const char *id, struct err *err)
{
	size_t count = 0;

	if (!id[0])
		return err_set(err, ERR_LOCAL, "the detached client died at once");
	if (run_open_pods(&ctx->runs, id, &count, err) < 0)
		return -1;
	if (!count)
		return err_set(err, ERR_LOCAL,
			       "run %s: its client died before the pods had the queue; no pods "
			       "are billing; `burst resume %s` continues it",
			       id, id);
	return err_set(err, ERR_UNRELEASED,
		       "run %s: its client died before the pods had the queue; %zu pod%s may "
		       "still be billing: `burst resume %s` continues it, `burst cancel %s` "
		       "ends it",
		       id, count, count == 1 ? "" : "s", id, id);
}

/* Handles a client that ended: by itself, after its run, without one, or after our signal. */
static int client_ended(struct cmd_context *ctx, pid_t pid, const char *id, struct err *err)
{
	int status = program_reap(pid, &client);
	bool died = WIFSIGNALED(status) && (id[0] || !interrupted);
	if (died)
		return client_died(ctx, id, err);
	if (!interrupted || (WIFEXITED(status) && WEXITSTATUS(status) <= 128))
		return WEXITSTATUS(status);
	err_set(err, ERR_INTERRUPTED, "interrupted before the handover: the run has ended%s%s%s",
		id[0] ? " (run " : "", id, id[0] ? ", whose pods are gone)" : "");
	err->signal = interrupted;
	return -1;
}

static void say_started(const struct cmd_context *ctx, const char *id, pid_t pid)
{
	if (!ctx->quiet)
		fprintf(stderr,
			"run %s: continues in the background (process %ld); keep this machine "
			"awake until the pods have the queue (`burst attach %s` shows "
			"progress)\n",
			id, (long)pid, id);
}

int detach(struct cmd_context *ctx, struct err *err)
{
	bool no_wait = opt_has(ctx, "no-wait");
	struct heard h = {.len = 0};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return err_set(err, ERR_LOCAL, "socketpair: %m");
	fcntl(pair[0], F_SETFD, FD_CLOEXEC);
	pid_t pid = start_client(ctx, pair);
	if (pid < 0)
		return err_set(err, ERR_LOCAL, "fork: %m");
	close(pair[1]);
	listen_to(pair[0], no_wait, &h);
	sigset_t before;
	/* from here on signals no longer go to the client if it continues alone */
	guard_hold_signals(&before);
	bool may_go = (h.handed || (no_wait && h.id[0])) && !interrupted;
	if (may_go && no_wait)
		say_started(ctx, h.id, pid);
	if (h.id[0])
		puts(h.id);
	int flushed = h.id[0] ? cmd_flush(err) : 0;
	close(pair[0]);
	if (may_go)
		return flushed;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return client_ended(ctx, pid, h.id, err);
}

/* ---- the client ---- */

int detach_starter(void)
{
	static int fd = -2;
	const char *text = getenv(CLIENT_FD_NAME);

	if (fd == -2) {
		fd = text ? atoi(text) : -1;
		if (fd >= 0)
			fcntl(fd, F_SETFD, FD_CLOEXEC); /* a child that holds it open would keep the
							   starter waiting */
		unsetenv(CLIENT_FD_NAME);
	}
	return fd;
}

/* Stops before the starter knows the run: nothing has been rented, and nothing will be. */
static int stop_unstarted(struct launch *l, struct err *err)
{
	err_set(err, ERR_LOCAL, "run %s: the starting process exited before it had the run's id",
		l->run.row.id);
	l->run.row.status = RUN_INTERRUPTED;
	COPY_TEXT(l->run.row.error_code, err_kind_name(ERR_INTERRUPTED));
	COPY_TEXT(l->run.row.error, err->msg);
	l->run.row.ended_ms = clock_wall_ms();
	l->run.row.exit_status = err_exit_status(err);
	store_put_run(l->ctx->store, &l->run.row, NULL);
	return -1;
}

/* Redirects messages to the run's folder, so that a reader of the starter's output does not wait
 * for this client. */
static void release_output(struct launch *l)
{
	CLEANUP(free_text) char *path = path_join(l->run.dir, "client.log");
	CLEANUP(fd_close) int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	CLEANUP(fd_close) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	fflush(NULL);
	if (null >= 0)
		dup2(null, STDOUT_FILENO);
	if (log >= 0 || null >= 0)
		dup2(log >= 0 ? log : null, STDERR_FILENO);
	l->ctx->live = l->ctx->color = false;
	output_stamp(true);
}

void detach_say_needs(const struct launch *l)
{
	if (l->ctx->quiet)
		return;
	if (!l->run.setup.volume_name || !l->run.setup.volume_name[0])
		output_line(stderr,
			    "no volume: this machine must stay awake until the run ends, to fetch "
			    "the files%s; with `volume` in burst.cfg the pods keep them",
			    l->run.setup.job_ops->needs(l->run.setup.job)->command
				    ? " and checkpoints"
				    : "");
	else
		for (int i = 0; i < l->run.setup.provider_count; i++)
			if (l->run.setup.providers[i].ops->shares_machine) {
				output_line(stderr,
					    "%s: its pods run on this machine, which must "
					    "stay awake until the run ends",
					    l->run.setup.providers[i].ops->name);
				return;
			}
}

int detach_begins(struct launch *l, int starter, struct err *err)
{
	bool no_wait = opt_has(l->ctx, "no-wait");

	if (starter < 0)
		return 0;
	l->starter = starter;
	l->run.setup.ignore_hangup = true;
	if (no_wait)
		release_output(l);
	if (dprintf(starter, "%s\n", l->run.row.id) <= 0)
		return stop_unstarted(l, err);
	if (no_wait) {
		close(l->starter);
		l->starter = -1;
	}
	return 0;
}

static void say_handed_over(const struct launch *l, const struct engine *e, bool all)
{
	const struct core *c = engine_core(e);
	struct core_summary s;
	int pods = 0;

	core_summary(c, clock_boot_ms(), &s);
	for (int i = 0; i < core_pod_count(c); i++)
		pods += core_pod_at(c, i)->presence.lease != LEASE_CLIENT &&
			!pod_is_retired(core_pod_at(c, i));
	size_t left = s.total - s.local - s.failed;
	if (!all)
		output_line(stderr,
			    "run %s: continues in the background (process %ld); keep this machine "
			    "awake until it ends%s",
			    l->run.row.id, (long)getpid(),
			    l->run.setup.volume_name
				    ? ", because not all of its pods can run unattended"
				    : "");
	else if (!l->ctx->quiet)
		output_line(stderr,
			    "run %s: handed over: %zu segment%s %s with %d pod%s, which finish "
			    "without this machine; `burst attach %s` shows progress and fetches "
			    "the files",
			    l->run.row.id, left, left == 1 ? "" : "s", left == 1 ? "is" : "are",
			    pods, pods == 1 ? "" : "s", l->run.row.id);
}

static bool is_gone(int starter)
{
	char byte;

	return recv(starter, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void detach_watch_starter(struct launch *l, const struct engine *e)
{
	if (l->starter < 0)
		return;
	enum core_handover state = core_handover(engine_core(e));
	if (is_gone(l->starter)) {
		log_line(LOG_WARN,
			 "run %s: the starting process exited before the pods had the queue; "
			 "ending the run",
			 l->run.row.id);
		raise(SIGTERM);
	} else if (state == HANDOVER_NOT_YET) {
		return;
	} else {
		l->ctx->live = false; /* the next line removes the view */
		say_handed_over(l, e, state == HANDOVER_DONE);
		release_output(l);
		dprintf(l->starter, LINE_HANDED "\n");
	}
	close(l->starter);
	l->starter = -1;
}

void detach_ends(struct launch *l)
{
	char byte;

	if (l->starter < 0 || !l->ctx->json)
		return;
	struct pollfd closed = {.fd = l->starter, .events = POLLIN};
	if (dprintf(l->starter, LINE_ENDED "\n") > 0 && poll(&closed, 1, ENDED_WAIT_MS) > 0 &&
	    read(l->starter, &byte, 1) < 0)
		log_line(LOG_INFO, "cannot read from the starting process: %m");
}
