/* program.c - runs a program to its end: pipes for its three standard files, one poll loop, a limit
 * of time. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "guard.h"
#include "program.h"

extern char **environ;

#define ERRORS_MAX ((size_t)256 << 10)

enum { NOT_STARTED = 127, IN = 0, OUT = 1, ERRORS = 2, ENDS = 3 };
enum {
	LOOK_MS = 50,
	LINGER_MS = 1000,   /* for which what it leaves behind may go on writing to its pipes */
	STOPPING_MS = 2000, /* from a signal that stops us until the program is killed */
};

struct started {
	pid_t pid;
	int terminal;   /* whose foreground it has until it ends; -1: none */
	int ends[ENDS]; /* ours, of its three standard files; -1: closed or none */
};

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool has_group(const struct program *p)
{
	return p->limit_ms || p->forwards || p->is_long;
}

/* ---- start ---- */

/* Between fork and exec: nothing here may allocate. */
static void become(const struct spawn *s, int report, pid_t us)
{
	sigset_t all;

	if (s->dies_with_us)
		guard_die_with(us);
	if (s->group)
		setpgid(0, 0);
	if (s->terminal) {
		sigfillset(&all); /* SIGTTOU is sent to who is in the background */
		sigprocmask(SIG_BLOCK, &all, NULL);
		tcsetpgrp(s->terminal, getpid());
	}
	for (int i = 0; i < ENDS; i++)
		dup2(s->files[i], i);
	bool there = s->folder ? chdir(s->folder) == 0 : !s->folder_fd || fchdir(s->folder_fd) == 0;
	if (there) {
		guard_exec(); /* the report's end is close-on-exec: its end of file is success */
		environ = s->environment;
		execvp(s->program, s->argv);
	}
	int why = errno;
	ssize_t n = write(report, &why, sizeof(why));
	(void)n;
	_exit(NOT_STARTED);
}

/* Waits for the result of the child's exec: 0, or its errno. That takes about a millisecond, but a
 * disk may not answer. */
static int exec_result(int report, int64_t within_ms)
{
	struct pollfd heard = {.fd = report, .events = POLLIN};
	int64_t until = clock_boot_ms() + within_ms;
	int why = 0, ready;
	ssize_t n;

	do
		ready = poll(&heard, 1, within_ms < 0 ? -1 : (int)MAX(until - clock_boot_ms(), 0));
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return ETIMEDOUT;
	do
		n = read(report, &why, sizeof(why));
	while (n < 0 && errno == EINTR);
	return n <= 0 ? 0 : why;
}

/* Moves the descriptor above 0, 1 and 2, and makes it close-on-exec. */
static int above_stdio(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	close(fd);
	return high;
}

int program_pipe(bool input, int *ours, int *theirs)
{
	int pair[2];

	*ours = *theirs = -1;
	if (pipe2(pair, O_CLOEXEC) < 0) /* another thread may fork at any moment */
		return -1;
	*ours = above_stdio(pair[input]);
	*theirs = above_stdio(pair[!input]);
	return *ours < 0 || *theirs < 0 ? -1 : 0;
}

int program_input(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : above_stdio(fd);
}

int program_spawn(const struct spawn *s, int64_t within_ms, pid_t *out)
{
	int heard, report, why = 0;
	pid_t us = getpid();
	pid_t pid = program_pipe(false, &heard, &report) < 0 ? -1 : fork();

	if (pid < 0)
		why = errno;
	if (pid == 0)
		become(s, report, us);
	close_end(&report);
	if (pid > 0) {
		if (s->group)
			setpgid(pid, pid); /* whichever is first, a kill finds the group */
		why = exec_result(heard, within_ms);
		if (why)
			kill(pid, SIGKILL);
		while (why && waitpid(pid, NULL, why == ETIMEDOUT ? WNOHANG : 0) < 0 &&
		       errno == EINTR)
			;
	}
	close_end(&heard);
	if (!why)
		*out = pid;
	return why;
}

/* ---- its three files ---- */

static bool is_piped(const struct program *p, int i)
{
	switch (i) {
	case IN: return p->input != NULL;
	case ERRORS: return !p->output_fd && !p->prompts;
	default: return !p->output_fd;
	}
}

/* What becomes file i of the program without a pipe. */
static int given_end(const struct program *p, int i)
{
	if (i == ERRORS && p->prompts)
		return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (i != IN)
		return fcntl(p->output_fd, F_DUPFD_CLOEXEC, 3);
	int given = p->prompts ? STDIN_FILENO : p->input_fd;
	int end = given || p->prompts ? fcntl(given, F_DUPFD_CLOEXEC, 3) : -1;
	return end >= 0 ? end : program_input("/dev/null");
}

static int open_ends(const struct program *p, struct started *s, int theirs[ENDS])
{
	for (int i = 0; i < ENDS; i++) {
		bool piped = is_piped(p, i);
		theirs[i] = piped ? -1 : given_end(p, i);
		if (piped ? program_pipe(i == IN, &s->ends[i], &theirs[i]) < 0 : theirs[i] < 0)
			return -1;
	}
	if (s->ends[IN] >= 0) /* it may say more than a pipe holds before it reads on */
		fcntl(s->ends[IN], F_SETFL, O_NONBLOCK);
	return 0;
}

/* One that asks a person for a password must be in the foreground of the terminal. -1: that is not
 * ours to give. */
static int own_terminal(void)
{
	int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (terminal >= 0 && tcgetpgrp(terminal) != getpgrp())
		close_end(&terminal);
	return terminal;
}

/* 0, or an errno. */
static int start(const struct program *p, struct started *s)
{
	int theirs[ENDS] = {-1, -1, -1};
	char **env = p->environment ? p->environment : guard_environ();

	*s = (struct started){.ends = {-1, -1, -1}, .terminal = p->prompts ? own_terminal() : -1};
	int why = open_ends(p, s, theirs) < 0 ? errno : 0;
	if (!why) {
		struct spawn of = {
			.program = p->argv[0],
			.argv = (char *const *)p->argv,
			.environment = env,
			.files = {theirs[IN], theirs[OUT], theirs[ERRORS]},
			.folder = p->folder,
			.folder_fd = p->folder_fd,
			.group = has_group(p),
			.dies_with_us = p->is_long,
			.terminal = MAX(s->terminal, 0),
		};
		why = program_spawn(&of, p->limit_ms ? p->limit_ms : -1, &s->pid);
	}
	for (int i = 0; i < ENDS; i++)
		close_end(&theirs[i]);
	if (!p->environment)
		free(env);
	return why;
}

static void take_in(int *fd, struct str *to)
{
	char buf[8192];
	ssize_t n = read(*fd, buf, sizeof(buf));

	if (n > 0 && to)
		str_addn(to, buf, (size_t)n);
	else if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		close_end(fd);
	explicit_bzero(buf, sizeof(buf)); /* it may be a key */
}

static void give_input(struct started *s, const char **left)
{
	ssize_t n = write(s->ends[IN], *left, strlen(*left));

	if (n > 0)
		*left += n;
	if (!**left || (n < 0 && errno != EINTR && errno != EAGAIN))
		close_end(&s->ends[IN]);
}

/* ---- until it ends ---- */

struct wait {
	int64_t until_ms, ended_ms; /* ended_ms 0: it runs */
	const sigset_t *before;     /* signals that were held back before it began */
	int status, stop;           /* stop: the signal that asks us to end */
};

static volatile sig_atomic_t long_ended_by;

void program_end_long(int number)
{
	long_ended_by = number;
}

/* A signal that would end us, held back while a program with a group of its own runs: it cannot be
 * left behind, since no other process limits its time. */
static int signal_to_us(const struct wait *w)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction now;
	sigset_t pending;

	if (!w->before || sigpending(&pending) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (sigismember(&pending, numbers[i]) && !sigismember(w->before, numbers[i]) &&
		    sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			return numbers[i];
	return 0;
}

static void pass_on(struct started *s, struct wait *w)
{
	sigset_t one;
	int number;

	sigemptyset(&one);
	sigaddset(&one, w->stop);
	if (sigwait(&one, &number) == 0)
		kill(s->pid, number);
	w->stop = 0;
}

/* Notes whether it has ended. Returns false if its time is over, or ours. */
static bool look(const struct program *p, struct started *s, struct wait *w)
{
	int64_t now = clock_boot_ms();

	if (!w->ended_ms && waitpid(s->pid, &w->status, WNOHANG) == s->pid)
		w->ended_ms = now;
	if (!w->stop)
		w->stop = p->is_long && long_ended_by ? long_ended_by : signal_to_us(w);
	if (w->stop && p->forwards && !w->ended_ms)
		pass_on(s, w);
	return w->ended_ms || (!w->stop && now <= w->until_ms);
}

/* Until it has closed its stdout and stderr, or has ended (what it started may keep them open).
 * Returns false as look() does. */
static bool talk(const struct program *p, struct started *s, struct str *to[ENDS], struct wait *w)
{
	const char *left = p->input ? p->input : "";

	while (s->ends[IN] >= 0 || s->ends[OUT] >= 0 || s->ends[ERRORS] >= 0) {
		struct pollfd ends[ENDS] = {{s->ends[IN], POLLOUT, 0},
					    {s->ends[OUT], POLLIN, 0},
					    {s->ends[ERRORS], POLLIN, 0}};
		int ready = poll(ends, ENDS, LOOK_MS);
		if (ready > 0 && ends[IN].revents)
			give_input(s, &left);
		for (int i = OUT; i < ENDS && ready > 0; i++)
			if (ends[i].revents)
				take_in(&s->ends[i], to[i]);
		if (w->ended_ms && (ready == 0 || clock_boot_ms() > w->ended_ms + LINGER_MS))
			return true;
		if (!look(p, s, w))
			return false;
	}
	return true;
}

/* Ends it and all that it has started. */
static void end_group(struct started *s, struct wait *w)
{
	int64_t until = clock_boot_ms() + STOPPING_MS;

	if (w->stop)
		kill(-s->pid, w->stop);
	while (w->stop && !w->ended_ms && clock_boot_ms() < until) {
		poll(NULL, 0, 2);
		if (waitpid(s->pid, &w->status, WNOHANG) == s->pid)
			w->ended_ms = clock_boot_ms();
	}
	kill(-s->pid, SIGKILL);
	while (!w->ended_ms && waitpid(s->pid, &w->status, 0) < 0 && errno == EINTR)
		;
}

/* Returns false if it ended the program: its time was over, or a signal wants us to end. */
static bool wait_for(const struct program *p, struct started *s, struct str *to[ENDS],
		     struct wait *w)
{
	bool in_time = talk(p, s, to, w);

	for (int i = 0; i < ENDS && in_time; i++) /* else it may still say that it is stopped */
		close_end(&s->ends[i]);
	while (in_time && !w->ended_ms) {
		if (!has_group(p) && waitpid(s->pid, &w->status, 0) == s->pid)
			return true;
		in_time = look(p, s, w);
		if (in_time && !w->ended_ms)
			poll(NULL, 0, p->forwards ? LOOK_MS : 2);
	}
	if (!in_time)
		end_group(s, w);
	return in_time;
}

/* ---- the terminal ---- */

static void take_terminal_back(struct started *s)
{
	sigset_t tell, before;

	if (s->terminal < 0)
		return;
	sigemptyset(&tell);
	sigaddset(&tell, SIGTTOU); /* sent to who is in the background */
	sigprocmask(SIG_BLOCK, &tell, &before);
	tcsetpgrp(s->terminal, getpgrp());
	sigprocmask(SIG_SETMASK, &before, NULL);
	close_end(&s->terminal);
}

/* ---- all of it ---- */

/* Returns false as wait_for() does. */
static bool attend(const struct program *p, struct started *s, struct str *out, struct str *said,
		   struct wait *w)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, pipes;

	sigaction(SIGPIPE, &ignore, &pipes); /* one that reads no input */
	bool in_time = wait_for(p, s, (struct str *[]){NULL, out, said}, w);
	sigaction(SIGPIPE, &pipes, NULL);
	return in_time;
}

/* The result of a program that ran, from what attend() found. With the terminal, the program gets
 * the Ctrl-C that is meant for us. */
static int result_of(const struct program *p, const struct wait *w, bool in_time, struct err *err)
{
	bool left = p->prompts && WIFSIGNALED(w->status) && WTERMSIG(w->status) == SIGINT;
	int stop = in_time ? (left ? SIGINT : 0) : w->stop;

	if (stop) {
		err_set(err, ERR_INTERRUPTED, "%s: stopped by signal %d", p->argv[0], stop);
		if (err)
			err->signal = stop;
		return -1;
	}
	if (!in_time)
		return err_set(err, ERR_TRANSIENT, "%s does not end: killed after %lld s",
			       p->argv[0], (long long)(p->limit_ms / 1000));
	return WIFSIGNALED(w->status) ? 128 + WTERMSIG(w->status) : WEXITSTATUS(w->status);
}

int program_run(const struct program *p, struct str *out, struct str *said, struct err *err)
{
	struct wait w = {.until_ms = p->limit_ms ? clock_boot_ms() + p->limit_ms : INT64_MAX};
	struct started s;
	sigset_t before;

	if (has_group(p)) {
		guard_hold_signals(&before);
		w.before = &before;
	}
	int why = start(p, &s);
	bool in_time = why || attend(p, &s, out, said, &w);
	take_terminal_back(&s);
	for (int i = 0; i < ENDS; i++)
		close_end(&s.ends[i]);
	if (has_group(p)) /* now a signal that stopped the program takes its course */
		sigprocmask(SIG_SETMASK, &before, NULL);
	if (why)
		return err_set(err, why == ENOENT && !p->folder ? ERR_NOT_FOUND : ERR_LOCAL,
			       "%s: %s", p->argv[0], strerror(why));
	return result_of(p, &w, in_time, err);
}

/* The last line that is not empty. */
static const char *last_line(struct str *text)
{
	while (text->len && strchr("\r\n ", text->s[text->len - 1]))
		text->s[--text->len] = '\0';
	const char *newline = text->len ? strrchr(text->s, '\n') : NULL;
	return newline ? newline + 1 : str_text(text);
}

int program_must(const struct program *p, struct str *out, struct str *said, struct err *err)
{
	CLEANUP(str_free) struct str own = STR_MAX(ERRORS_MAX);
	CLEANUP(str_free) struct str shown = STR_INIT;
	int status = program_run(p, out, said ? said : &own, err);

	if (status <= 0)
		return status;
	const char *line = last_line(said ? said : &own);
	str_add_printable(&shown, line, strlen(line), 200);
	return err_set(err, ERR_LOCAL, "%s failed with exit status %d%s%s", p->argv[0], status,
		       shown.len ? ": " : "", str_text(&shown));
}

int program_reap(pid_t pid, volatile sig_atomic_t *passed_to)
{
	int status = 0;
	siginfo_t ended;
	sigset_t before;

	while (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	guard_hold_signals(&before);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*passed_to = 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}

char *program_path(const char *name)
{
	const char *dirs = getenv("PATH");

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? xstrdup(name) : NULL;
	for (const char *at = dirs ? dirs : "/usr/bin:/bin"; *at;) {
		size_t len = strcspn(at, ":");
		CLEANUP(free_text) char *path = xasprintf("%.*s/%s", (int)len, at, name);
		if (len && access(path, X_OK) == 0)
			return TAKE(path);
		at += len + (at[len] == ':');
	}
	return NULL;
}

bool program_found(const char *name)
{
	CLEANUP(free_text) char *path = program_path(name);

	return path != NULL;
}

void program_to_background(int log)
{
	int null = open("/dev/null", O_RDWR);

	setsid();
	dup2(null, STDIN_FILENO);
	dup2(log >= 0 ? log : null, STDOUT_FILENO);
	dup2(log >= 0 ? log : null, STDERR_FILENO);
	if (chdir("/") < 0)
		_exit(127);
}
