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

enum { NOT_FOUND = 127, NOT_STARTED = 126, IN = 0, OUT = 1, ERRORS = 2, ENDS = 3 };
enum {
	LOOK_MS = 50,
	LINGER_MS = 1000,   /* for which what it leaves behind may go on writing to its pipes */
	STOPPING_MS = 2000, /* from a signal that stops us until the program is killed */
};

struct started {
	pid_t pid;
	int terminal;   /* whose foreground it has until it ends; -1: none */
	int ends[ENDS]; /* ours, of its three standard files; -1: closed or none */
	/* the child writes here if exec fails; closed without data: it succeeded */
	int why;
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

static void become(const struct program *p, const int theirs[ENDS], int why, char **env, pid_t us)
{
	int saved;

	if (p->is_long)
		guard_die_with(us);
	if (has_group(p))
		setpgid(0, 0);
	for (int i = 0; i < ENDS; i++)
		dup2(theirs[i], i);
	bool there = p->folder ? chdir(p->folder) == 0 : !p->folder_fd || fchdir(p->folder_fd) == 0;
	if (there) {
		guard_exec();
		environ = env;
		execvp(p->argv[0], (char *const *)p->argv);
	}
	saved = errno;
	if (write(why, &saved, sizeof(saved)) < 0)
		_exit(NOT_STARTED);
	_exit(NOT_FOUND);
}

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
	return end >= 0 ? end : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* A pipe whose far end becomes file i of the program. */
static int make_pipe(int i, int *ours, int *theirs)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -1;
	*ours = pair[i == IN];
	*theirs = pair[i != IN];
	if (i == IN)
		fcntl(*ours, F_SETFL,
		      O_NONBLOCK); /* it may say more than a pipe holds before it reads on */
	return 0;
}

static int open_ends(const struct program *p, struct started *s, int theirs[ENDS])
{
	for (int i = 0; i < ENDS; i++) {
		bool piped = is_piped(p, i);
		theirs[i] = piped ? -1 : given_end(p, i);
		if (piped ? make_pipe(i, &s->ends[i], &theirs[i]) < 0 : theirs[i] < 0)
			return -1;
	}
	return 0;
}

static int start(const struct program *p, struct started *s)
{
	int theirs[ENDS] = {-1, -1, -1}, why[2] = {-1, -1}, result = -1;
	pid_t us = getpid();
	char **env = p->environment ? p->environment : guard_environ();

	*s = (struct started){.ends = {-1, -1, -1}, .why = -1, .terminal = -1};
	if (open_ends(p, s, theirs) == 0 && pipe2(why, O_CLOEXEC) == 0) {
		s->pid = fork();
		if (s->pid == 0)
			become(p, theirs, why[1], env, us);
		result = s->pid < 0 ? -1 : 0;
		if (result == 0 && has_group(p))
			setpgid(s->pid, s->pid); /* whichever is first, a kill finds the group */
	}
	int saved = errno;
	for (int i = 0; i < ENDS; i++)
		close_end(&theirs[i]);
	close_end(&why[1]);
	s->why = why[0];
	if (!p->environment)
		free(env);
	errno = saved;
	return result;
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

/* One that asks a person for a password must be in the foreground of the terminal. */
static void lend_terminal(struct started *s)
{
	s->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (s->terminal >= 0 &&
	    (tcgetpgrp(s->terminal) != getpgrp() || tcsetpgrp(s->terminal, s->pid) < 0))
		close_end(&s->terminal);
}

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
	if (p->prompts)
		lend_terminal(s);
	bool in_time = wait_for(p, s, (struct str *[]){NULL, out, said}, w);
	take_terminal_back(s);
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
	bool in_time = true;
	int why = 0;

	if (has_group(p)) {
		guard_hold_signals(&before);
		w.before = &before;
	}
	bool failed = start(p, &s) < 0;
	if (failed)
		why = errno;
	else
		in_time = attend(p, &s, out, said, &w);
	failed = failed || read(s.why, &why, sizeof(why)) == sizeof(why);
	for (int i = 0; i < ENDS; i++)
		close_end(&s.ends[i]);
	close_end(&s.why);
	if (has_group(p)) /* now a signal that stopped the program takes its course */
		sigprocmask(SIG_SETMASK, &before, NULL);
	if (failed)
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
