/* child.c - carries provider calls that are child processes, and starts programs with pipes */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/err.h"
#include "base/path.h"
#include "base/program.h"

enum { EXEC_MOST_MS = 5000 };

static char *self_path;

const char *child_self(void)
{
	return self_path;
}

void child_set_self(const char *path)
{
	free(self_path);
	self_path = xstrdup(path);
}

/* The program that argv[0] means; NULL if there is none. The caller frees it. */
static char *child_program(const char *name)
{
	return self_path && !strcmp(name, "burst") ? xstrdup(self_path) : program_path(name);
}

/* ---- child ----
 * Carries provider calls that are child processes. */

enum {
	STDERR_MOST = 64 << 10,
	STDOUT_MOST = 16 << 20, /* where the call names no max_bytes */
	FEW_MS = 5,             /* between two checks whether it is dead: doubles, up to MANY_MS */
	MANY_MS = 100,
	KILL_AFTER_MS = 2000,
	LINGER_MS = 1000, /* for which a grandchild may hold its pipes open after its death */
};

struct child {
	struct loop *loop;
	pid_t pid; /* 0: not started or reaped */
	bool abandoned;
	bool dials; /* its stdin and stdout are the caller's; the end of its stderr is kept */
	char *name; /* argv[0], for messages */
	struct reply reply;
	struct str in;
	size_t in_at, max_bytes, out_bytes;
	int to_fd;                 /* body_to; -1: none */
	int in_fd, out_fd, err_fd; /* our ends; -1: closed */
	struct watch *in_watch, *out_watch, *err_watch;
	struct timer *check, *limit, *kill;
	int64_t check_ms, timeout_ms, started_ms, died_ms;
	void (*done)(void *ctx, struct reply *reply);
	void *ctx;
};

/* ---- the end ---- */

static void close_pipe(struct watch **watch, int *fd)
{
	loop_unwatch(*watch);
	*watch = NULL;
	fd_close(*fd);
	*fd = -1;
}

static void close_pipes(struct child *c)
{
	close_pipe(&c->in_watch, &c->in_fd);
	close_pipe(&c->out_watch, &c->out_fd);
	close_pipe(&c->err_watch, &c->err_fd);
}

static void free_child(struct child *c)
{
	close_pipes(c);
	loop_untimer(c->check);
	loop_untimer(c->limit);
	loop_untimer(c->kill);
	fd_close(c->to_fd);
	reply_free(&c->reply);
	str_free(&c->in);
	free(c->name);
	free(c);
}

static void at_loop_free(void *ctx)
{
	struct child *c = ctx;

	if (c->pid) {
		kill(-c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free_child(c);
}

static void finish(struct child *c)
{
	struct reply reply = c->reply; /* done() may take what it holds */

	reply.wall_ms = clock_boot_ms() - c->started_ms;
	if (reply.failed)
		log_line(LOG_TRACE, "< %s", reply.err.msg);
	else
		log_line(LOG_TRACE, "< %s: exit %d, %zu bytes of output", c->name, reply.status,
			 c->out_bytes);
	loop_not_at_free(c->loop, at_loop_free, c);
	if (!c->abandoned)
		c->done(c->ctx, &reply);
	reply_free(&reply);
	memset(&c->reply, 0, sizeof(c->reply));
	free_child(c);
}

/* ---- while it runs ---- */

static void on_kill(void *ctx)
{
	struct child *c = ctx;

	c->kill = NULL;
	if (c->pid)
		kill(-c->pid, SIGKILL);
}

static void end_group(struct child *c)
{
	if (!c->pid || c->kill)
		return;
	kill(-c->pid, SIGTERM);
	c->kill = loop_timer(c->loop, KILL_AFTER_MS, on_kill, c);
}

/* Still reads the output, and drops it: a child that writes while it cleans up must not die of a
 * closed pipe. */
static void fail(struct child *c, enum err_kind kind, const char *what)
{
	if (c->reply.failed)
		return;
	c->reply.failed = true;
	err_set(&c->reply.err, kind, "%s: %s", c->name, what);
	close_pipe(&c->in_watch, &c->in_fd);
	end_group(c);
}

static void on_limit(void *ctx)
{
	struct child *c = ctx;
	char span[24], what[64];

	c->limit = NULL;
	snprintf(what, sizeof(what), "not done within %s",
		 duration_show(span, sizeof(span), c->timeout_ms));
	fail(c, ERR_TRANSIENT, what);
}

static void reap(struct child *c)
{
	int status;
	pid_t pid = waitpid(c->pid, &status, WNOHANG);

	if (pid == 0 || (pid < 0 && errno == EINTR))
		return;
	c->died_ms = clock_boot_ms();
	if (c->reply.failed && c->kill)
		kill(-c->pid, SIGKILL); /* the rest of a group that got SIGTERM */
	c->pid = 0;
	if (pid < 0)
		fail(c, ERR_LOCAL, "another process has taken its exit status");
	else
		c->reply.status =
			WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Ends the call, or comes again. It polls, because a handler of SIGCHLD would be one for the whole
 * process. */
static void on_check(void *ctx)
{
	struct child *c = ctx;

	c->check = NULL;
	if (c->pid)
		reap(c);
	bool open = c->out_fd >= 0 || c->err_fd >= 0;
	if (!c->pid && (!open || c->reply.failed || clock_boot_ms() - c->died_ms >= LINGER_MS)) {
		finish(c);
		return;
	}
	c->check_ms = open ? MANY_MS : MIN(c->check_ms * 2, MANY_MS);
	c->check = loop_timer(c->loop, c->check_ms, on_check, c);
}

static void check_soon(struct child *c)
{
	loop_untimer(c->check);
	c->check_ms = FEW_MS;
	c->check = loop_timer(c->loop, 0, on_check, c);
}

static void on_in(void *ctx, short revents)
{
	struct child *c = ctx;
	ssize_t n = 0;

	(void)revents;
	while (c->in_at < c->in.len) {
		n = write(c->in_fd, c->in.s + c->in_at, c->in.len - c->in_at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		c->in_at += (size_t)n;
	}
	/* EPIPE is no failure: a child need not read all of its input. */
	if (c->in_at == c->in.len || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
		close_pipe(&c->in_watch, &c->in_fd);
}

/* Returns the bytes read; 0: it would block; -1: the end. */
static ssize_t read_some(int fd, char *to, size_t room)
{
	ssize_t n;

	do
		n = read(fd, to, room);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	return n > 0 ? n : -1;
}

static void take_output(struct child *c, const char *bytes, size_t len)
{
	if (c->reply.failed)
		return;
	c->out_bytes += len;
	if (c->out_bytes > c->max_bytes)
		fail(c, ERR_UNTRUSTED, "its output is larger than allowed");
	else if (c->to_fd < 0)
		str_addn(&c->reply.body, bytes, len);
	else if (fd_write_all(c->to_fd, bytes, len) < 0)
		fail(c, ERR_LOCAL, strerror(errno));
	else
		c->reply.to_bytes += (int64_t)len;
}

static void on_out(void *ctx, short revents)
{
	struct child *c = ctx;
	char buf[32 << 10];
	ssize_t n = read_some(c->out_fd, buf, sizeof(buf));

	(void)revents;
	if (n > 0)
		take_output(c, buf, (size_t)n);
	if (n < 0)
		close_pipe(&c->out_watch, &c->out_fd);
	if (c->out_fd < 0 && c->err_fd < 0)
		check_soon(c);
}

static void on_err(void *ctx, short revents)
{
	struct child *c = ctx;
	char buf[8 << 10];
	ssize_t n = read_some(c->err_fd, buf, sizeof(buf));

	(void)revents;
	if (n > 0 && c->dials && c->reply.head.len + (size_t)n > STDERR_MOST)
		str_drop(&c->reply.head, MIN(c->reply.head.len, (size_t)n));
	if (n > 0)
		str_addn(&c->reply.head, buf, (size_t)n);
	if (n < 0)
		close_pipe(&c->err_watch, &c->err_fd);
	if (c->out_fd < 0 && c->err_fd < 0)
		check_soon(c);
}

/* ---- the start ---- */

static void watch_pipes(struct child *c)
{
	int fds[] = {c->in_fd, c->out_fd, c->err_fd};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			fcntl(fds[i], F_SETFL, O_NONBLOCK);
	if (c->in_fd >= 0)
		c->in_watch = loop_watch(c->loop, c->in_fd, POLLOUT, on_in, c);
	if (c->out_fd >= 0)
		c->out_watch = loop_watch(c->loop, c->out_fd, POLLIN, on_out, c);
	c->err_watch = loop_watch(c->loop, c->err_fd, POLLIN, on_err, c);
}

/* Starts the program with these files, which it closes here. why: an errno met while they were
 * made; 0: none. */
static int start_program(struct child *c, const struct call *call, const int files[3], int why,
			 struct err *err)
{
	CLEANUP(free_text) char *program = call->argc ? child_program(call->argv[0]) : NULL;
	struct spawn of = {.program = program,
			   .argv = call->argv,
			   .files = {files[0], files[1], files[2]},
			   .group = true,
			   .environment = guard_environ()};

	/* a program on a disk that does not answer must not stop the loop, which renews leases */
	if (program && !why)
		why = program_spawn(&of, EXEC_MOST_MS, &c->pid);
	free(of.environment);
	for (int i = 0; i < 3; i++)
		fd_close(files[i]);
	if (!program)
		return err_set(err, ERR_LOCAL, "%s: no such program", c->name);
	if (why == ETIMEDOUT)
		return err_set(err, ERR_LOCAL, "%s: did not start within %d s", c->name,
			       EXEC_MOST_MS / 1000);
	return why ? err_set(err, ERR_LOCAL, "%s: %s", c->name, strerror(why)) : 0;
}

/* Starts the program with the files that the call names, and pipes in place of the others. */
static int start_call(struct child *c, const struct call *call, struct err *err)
{
	const char *input = call->body_from ? call->body_from : call->body.len ? NULL : "/dev/null";
	int *ours[] = {&c->in_fd, &c->out_fd, &c->err_fd}, files[3] = {-1, -1, -1}, why = 0;

	if (call->body_to &&
	    (c->to_fd = open(call->body_to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", call->body_to, strerror(errno));
	if (input && (files[0] = program_input(input)) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", input, strerror(errno));
	for (int i = input != NULL; i < 3 && !why; i++)
		why = program_pipe(i == 0, ours[i], &files[i]) < 0 ? errno : 0;
	return start_program(c, call, files, why, err);
}

/* Starts the program with one end of a socket pair as its stdin and stdout; *fd gets the other. */
static int start_dial(struct child *c, const struct call *call, int *fd, struct err *err)
{
	int theirs = -1, files[3] = {-1, -1, -1}, why = 0;

	if (program_socket(fd, &theirs) < 0 || (files[0] = fcntl(theirs, F_DUPFD_CLOEXEC, 3)) < 0 ||
	    program_pipe(false, &c->err_fd, &files[2]) < 0)
		why = errno;
	files[1] = theirs;
	if (start_program(c, call, files, why, err) == 0)
		return 0;
	fd_close(*fd);
	*fd = -1;
	return -1;
}

static void trace_start(const struct call *call)
{
	CLEANUP(str_free) struct str line = STR_INIT;

	if (!log_wants(LOG_TRACE))
		return;
	for (size_t i = 0; i < call->argc; i++) {
		str_addc(&line, ' ');
		str_add_printable(&line, call->argv[i], strlen(call->argv[i]), 200);
	}
	log_line(LOG_TRACE, ">%s (%zu bytes of input)", str_text(&line), call->body.len);
}

static struct child *new_child(struct loop *loop, const struct call *call,
			       void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	struct child *c = xcalloc(1, sizeof(*c));

	c->loop = loop;
	c->name = xstrdup(call->argc ? path_base(call->argv[0]) : "child");
	c->max_bytes = call->max_bytes ? call->max_bytes : STDOUT_MOST;
	c->reply.head = STR_MAX(STDERR_MOST);
	c->to_fd = c->in_fd = c->out_fd = c->err_fd = -1;
	c->started_ms = c->died_ms = clock_boot_ms();
	c->done = done;
	c->ctx = ctx;
	trace_start(call);
	loop_at_free(loop, at_loop_free, c);
	return c;
}

/* started: what start_call() or start_dial() returned. */
static struct child *follow(struct child *c, int started)
{
	if (started < 0) {
		c->reply.failed = true;
		close_pipes(c);
		check_soon(c);
		return c;
	}
	c->reply.was_sent = true;
	watch_pipes(c);
	if (c->timeout_ms > 0)
		c->limit = loop_timer(c->loop, c->timeout_ms, on_limit, c);
	c->check_ms = MANY_MS;
	c->check = loop_timer(c->loop, MANY_MS, on_check, c);
	return c;
}

struct child *child_send(struct loop *loop, const struct call *call,
			 void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	struct child *c = new_child(loop, call, done, ctx);

	c->timeout_ms = call->timeout_ms;
	str_addn(&c->in, call->body.s, call->body_from ? 0 : call->body.len);
	return follow(c, start_call(c, call, &c->reply.err));
}

struct child *child_dial(struct loop *loop, const struct call *call, int *fd,
			 void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	struct child *c = new_child(loop, call, done, ctx);

	c->dials = true;
	c->reply.head = STR_INIT;
	return follow(c, start_dial(c, call, fd, &c->reply.err));
}

void child_last_words(const struct child *c, char *out, size_t room)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	size_t len;
	const char *line = str_last_line(&c->reply.head, &len);

	str_add_printable(&shown, line, len, 0);
	format_text(out, room, "%s", str_text(&shown));
}

void child_cancel(struct child *c)
{
	if (!c)
		return;
	c->abandoned = true;
	fail(c, ERR_INTERRUPTED, "cancelled");
	end_group(c);
	check_soon(c);
}
