/* detach.c - clients in the background: how they start, how one is found and waited for */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/guard.h"
#include "base/path.h"
#include "base/program.h"
#include "cmd/show/output.h"
#include "jobs/excerpt/excerpt.h"
#include "net/child.h"

/* ---- find run ---- */

int run_find(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err)
{
	CLEANUP(free_text) char *config = NULL;

	if (name)
		return named_run(ctx->store, name, out, err);
	int here = config_find(NULL, &config, err);
	if (here < 0)
		return -1;
	CLEANUP(free_text)
	char *named = config_named(NULL); /* a run without a burst.cfg has this path too */
	int found = runs_newest_of(&ctx->runs, here ? config : named, excerpt_types, out, err);
	if (found == 0)
		return runs_refuse_none(&ctx->runs, config, err);
	return found < 0 ? -1 : 0;
}

int run_add_place(const struct run_row *run, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(run);
	size_t len = strlen(err->msg), more = strlen(place) + sizeof(" ()") - 1;

	if (!strstr(err->msg, place) && len + more < sizeof(err->msg))
		snprintf(err->msg + len, sizeof(err->msg) - len, " (%s)", place);
	return -1;
}

/* ---- holder ---- */

/* How long nothing may happen to the pods of a healthy client. */
enum {
	CLIENT_STOP_MS =
		360 * 1000, /* 30 s for files, five minutes until it stops retrying a release */
	/* two minutes for the reply to a create, five until its pod is found or proven absent */
	LOST_MS = 480 * 1000,
	LOOK_MS = 1000,
	SAY_MS = 3000, /* silence before a message about the wait */
};

struct pods_seen {
	struct str text; /* changes when anything happens to them */
	int64_t since;
	bool lost; /* one may be the result of a create without a reply */
};

/* Compares the pods of the run with *seen, and restarts its time if anything happened. Changes
 * nothing if the ledger cannot be read. */
static void note_pod_changes(const struct cmd_context *ctx, const char *run, struct pods_seen *seen)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, run, true, &pods, &count, NULL) < 0)
		return;
	seen->lost = false;
	for (size_t i = 0; i < count; i++) {
		str_addf(&text, "%s %s %s\n", pods[i].attempt, pod_row_state_word(pods[i].state),
			 pods[i].id);
		seen->lost = seen->lost || pods[i].state == POD_ROW_INTENT ||
			     pods[i].state == POD_ROW_AMBIGUOUS;
	}
	free(pods);
	if (seen->since && !strcmp(str_text(&text), str_text(&seen->text)))
		return;
	str_reset(&seen->text);
	str_add(&seen->text, str_text(&text));
	seen->since = clock_boot_ms();
}

/* Returns the pid of the client that holds the run's lock, else 0. holder: what the lock file says
 * of any holder; on a full disk it says nothing. */
static long read_holder(const struct cmd_context *ctx, const char *run, char *holder, size_t room)
{
	CLEANUP(free_text) char *path = run_path(&ctx->runs, run, "lock");
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str shown = STR_INIT;
	long pid = 0;

	path_is_locked(path, &text);
	str_add_printable(&shown, str_text(&text), text.len, 100);
	copy_text(holder, room, shown.len ? str_text(&shown) : "another process");
	return sscanf(str_text(&text), RUN_CLIENT " %ld", &pid) == 1 && pid > 1 ? pid : 0;
}

/* Sets the error for a lock that is still held after the wait. Returns -1. */
static int err_still_held(const struct cmd_context *ctx, const char *run, long pid,
			  const char *holder, struct err *err)
{
	if (pid)
		return err_set(err, ERR_UNRELEASED,
			       "run %s: its client (process %ld) does not exit, and its pods "
			       "may still be billing; run `kill -9 %ld`, then cancel again",
			       run, pid, pid);
	return err_set(err, ERR_UNRELEASED,
		       "run %s: its pods may still be billing: %s still holds %s/runs/%s/lock; "
		       "cancel again after it exits",
		       run, holder, ctx->state_dir, run);
}

/* lost: one of its pods may be the result of a create without a reply. */
static void say_waiting(const char *run, const char *place, long pid, const char *holder, bool lost)
{
	if (pid)
		log_line(LOG_NOTE,
			 "run %s: asked its client (process %ld) to stop; waiting for it to %s "
			 "(%s)",
			 run, pid,
			 lost ? "find the pod of a create whose reply was lost, which takes "
				"some minutes"
			      : "release its pods",
			 place);
	else
		log_line(LOG_NOTE, "run %s: waiting for its lock, held by %s (%s)", run, holder,
			 place);
}

int holder_stop_and_wait(const struct cmd_context *ctx, const char *run, const char *place,
			 struct err *err)
{
	struct pods_seen seen = {.text = STR_INIT};
	int64_t began = clock_boot_ms(), now = began, look_at = began;
	char holder[128] = "";
	long pid = 0;
	enum { SAID_NOTHING, SAID_WAITING, SAID_SEARCHING } said = SAID_NOTHING, to_say;

	for (; run_is_alive(&ctx->runs, run) &&
	       now - MAX(seen.since, began) < (seen.lost ? LOST_MS : CLIENT_STOP_MS);
	     now = clock_boot_ms()) {
		if (!pid && (pid = read_holder(ctx, run, holder, sizeof(holder)))) {
			kill((pid_t)pid, SIGTERM);
			kill((pid_t)pid, SIGCONT); /* Ctrl-Z may have stopped it */
		}
		if (now >= look_at) {
			note_pod_changes(ctx, run, &seen);
			look_at = now + LOOK_MS;
		}
		to_say = pid && seen.lost ? SAID_SEARCHING : SAID_WAITING;
		if (now - began >= SAY_MS && said < to_say) {
			say_waiting(run, place, pid, holder, seen.lost);
			said = to_say;
		}
		poll(NULL, 0, 100);
	}
	str_free(&seen.text);
	return run_is_alive(&ctx->runs, run) ? err_still_held(ctx, run, pid, holder, err) : 0;
}

/* ---- detach ---- */

/* Environment variable with the descriptor of the socket to the starter. */
#define CLIENT_FD_NAME "BURST_CLIENT_FD"

/* Lines from the client: the run's id, then at most one of these. */
#define LINE_HANDED "handed over"
#define LINE_ENDED  "ended" /* then waits until the other end is closed */

enum { CLIENT_TEXT_MAX = 128, ENDED_WAIT_MS = 5000 };

/* ---- the starter ---- */

/* In the child: becomes the client, in its own session. fd: its end of the socket. */
static void exec_client(char **argv, int fd, const sigset_t *mask)
{
	char number[16];

	setsid();
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO); /* keep stdout and stderr until the pods have the queue */
	fcntl(fd, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", fd);
	setenv(CLIENT_FD_NAME, number, 1);
	guard_restore_limits();
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
static volatile sig_atomic_t client_pid, interrupted;

static const int forwarded_signals[] = {SIGINT, SIGTERM, SIGHUP};

static void forward_signal(int number)
{
	int saved = errno;

	interrupted = number;
	if (!client_pid) /* it has ended and been reaped */
		return;
	/* this signal, so that the run's row and the starter have the same exit status */
	kill(client_pid, number);
	kill(client_pid, SIGCONT); /* it may be stopped */
	errno = saved;
}

/* Starts the client, and forwards signals to it from then on. pair: the socket, its second end for
 * the client. Returns the pid, or -1 without *err. */
static pid_t start_client(struct cmd_context *ctx, int pair[2])
{
	sigset_t before;

	guard_hold_signals(&before);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		exec_client(ctx->argv, pair[1], &before);
	}
	client_pid = pid;
	struct sigaction act = {.sa_handler = forward_signal, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < ARRAY_LEN(forwarded_signals) && pid > 0; i++) {
		act.sa_handler = forwarded_signals[i] == SIGHUP ? SIG_IGN : forward_signal;
		sigaction(forwarded_signals[i], &act, NULL);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* What the client has written on the socket, and what that means. */
struct client_lines {
	char text[CLIENT_TEXT_MAX];
	size_t len;
	char id[32]; /* "": no run yet */
	bool handed, ended;
};

static void parse_client_lines(struct client_lines *h)
{
	const char *newline = strchr(h->text, '\n');

	if (!newline)
		return;
	snprintf(h->id, sizeof(h->id), "%.*s", (int)(newline - h->text), h->text);
	h->handed = starts_with(newline + 1, LINE_HANDED "\n");
	h->ended = starts_with(newline + 1, LINE_ENDED "\n");
}

/* Reads until the client hands over, ends or closes; with no_wait, until it has a run. */
static void read_client_lines(int fd, bool no_wait, struct client_lines *h)
{
	while (!h->handed && !h->ended && !(no_wait && h->id[0]) && h->len + 1 < sizeof(h->text)) {
		ssize_t n = read(fd, h->text + h->len, sizeof(h->text) - 1 - h->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		h->len += (size_t)n;
		h->text[h->len] = '\0';
		parse_client_lines(h);
	}
}

/* Sets the error for a client that was killed (from outside, or by a third Ctrl-C): its pods have
 * no client now. id: of its run; "": none yet. Returns -1. */
static int err_client_died(struct cmd_context *ctx, const char *id, struct err *err)
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

/* Returns the client's exit status, or -1 with *err if it was killed or our signal ended it. It
 * may have ended before it had a run. */
static int reap_client(struct cmd_context *ctx, pid_t pid, const char *id, struct err *err)
{
	int status = program_reap(pid, &client_pid);
	bool died = WIFSIGNALED(status) && (id[0] || !interrupted);
	if (died)
		return err_client_died(ctx, id, err);
	if (!interrupted || (WIFEXITED(status) && WEXITSTATUS(status) <= SIGNAL_STATUS))
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

int detach_run(struct cmd_context *ctx, struct err *err)
{
	bool no_wait = opt_has(ctx, "no-wait");
	struct client_lines h = {.len = 0};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return err_set(err, ERR_LOCAL, "socketpair: %m");
	fcntl(pair[0], F_SETFD, FD_CLOEXEC);
	pid_t pid = start_client(ctx, pair);
	if (pid < 0)
		return err_set(err, ERR_LOCAL, "fork: %m");
	close(pair[1]);
	read_client_lines(pair[0], no_wait, &h);
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
	return reap_client(ctx, pid, h.id, err);
}

/* ---- the client ---- */

int detach_starter_fd(void)
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

/* Sets the error for a starter that exited before it knew the run, and ends the run: nothing has
 * been rented, and nothing will be. Returns -1. */
static int end_without_starter(struct launch *l, struct err *err)
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

/* Redirects stderr to client.log in the run's folder, and stdout to nowhere, so that a reader of
 * the starter's output does not wait for this client. */
static void redirect_to_client_log(struct launch *l)
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

int detach_on_run_begun(struct launch *l, int starter, struct err *err)
{
	if (starter < 0)
		return 0;
	bool no_wait = opt_has(l->ctx, "no-wait");
	l->starter = starter;
	l->run.setup.ignore_hangup = true;
	if (no_wait)
		redirect_to_client_log(l);
	if (dprintf(starter, "%s\n", l->run.row.id) <= 0)
		return end_without_starter(l, err);
	if (no_wait) {
		close(l->starter);
		l->starter = -1;
	}
	return 0;
}

/* all: every pod has its share of the queue and runs unattended. */
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

static bool starter_is_gone(int starter)
{
	char byte;

	return recv(starter, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void detach_watch_starter(struct launch *l, const struct engine *e)
{
	if (l->starter < 0)
		return;
	enum core_handover state = core_handover(engine_core(e));
	if (starter_is_gone(l->starter)) {
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
		redirect_to_client_log(l);
		dprintf(l->starter, LINE_HANDED "\n");
	}
	close(l->starter);
	l->starter = -1;
}

void detach_on_run_ended(struct launch *l)
{
	char byte;

	if (l->starter < 0 || !l->ctx->json)
		return;
	struct pollfd closed = {.fd = l->starter, .events = POLLIN};
	if (dprintf(l->starter, LINE_ENDED "\n") > 0 && poll(&closed, 1, ENDED_WAIT_MS) > 0 &&
	    read(l->starter, &byte, 1) < 0)
		log_line(LOG_INFO, "cannot read from the starting process: %m");
}
