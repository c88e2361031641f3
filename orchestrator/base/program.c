/* program.c - runs a program to its end: pipes for its three standard files, one poll loop, a limit
 * of time. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
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
	LINGER_MS = 1000,   /* how long processes that it leaves behind may write to its pipes */
	STOPPING_MS = 2000, /* from a signal that stops us until the program is killed */
};

struct started {
	pid_t pid;
	int terminal;   /* to be taken back when the program ends; -1: none */
	int ends[ENDS]; /* our ends of its three standard files; -1: closed or none */
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

/* In the child: executes the program; if that fails, reports errno and exits. Must not allocate. */
static void exec_child(const struct spawn *s, int report, pid_t us)
{
	sigset_t all;

	if (s->dies_with_us)
		guard_die_with(us);
	if (s->group)
		setpgid(0, 0);
	if (s->terminal) {
		sigfillset(&all); /* else SIGTTOU would stop this process in the background */
		sigprocmask(SIG_BLOCK, &all, NULL);
		tcsetpgrp(s->terminal, getpid());
	}
	for (int i = 0; i < ENDS; i++)
		dup2(s->files[i], i);
	bool in_folder =
		s->folder ? chdir(s->folder) == 0 : !s->folder_fd || fchdir(s->folder_fd) == 0;
	if (in_folder) {
		guard_exec(); /* the exec closes `report`, which tells the parent of success */
		environ = s->environment;
		execvp(s->program, s->argv);
	}
	int why = errno;
	ssize_t n = write(report, &why, sizeof(why));
	(void)n;
	_exit(NOT_STARTED);
}

/* Waits for the result of the child's exec: 0, its errno, or ETIMEDOUT. An exec takes about a
 * millisecond, but a disk may not answer. */
static int await_exec(int report, int64_t within_ms)
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

/* Moves the descriptor above 0, 1 and 2 and makes it close-on-exec. Returns the new one, or -1. */
static int move_above_stdio(int fd)
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
	*ours = move_above_stdio(pair[input]);
	*theirs = move_above_stdio(pair[!input]);
	return *ours < 0 || *theirs < 0 ? -1 : 0;
}

int program_socket(int *ours, int *theirs)
{
	int pair[2];

	*ours = *theirs = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	*ours = move_above_stdio(pair[0]);
	*theirs = move_above_stdio(pair[1]);
	return *ours < 0 || *theirs < 0 || fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? -1 : 0;
}

int program_input(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : move_above_stdio(fd);
}

int program_spawn(const struct spawn *s, int64_t within_ms, pid_t *out)
{
	int heard, report, why = 0;
	pid_t us = getpid();
	pid_t pid = program_pipe(false, &heard, &report) < 0 ? -1 : fork();

	if (pid < 0)
		why = errno;
	if (pid == 0)
		exec_child(s, report, us);
	close_end(&report);
	if (pid > 0) {
		if (s->group)
			setpgid(pid, pid); /* whichever is first, a kill finds the group */
		why = await_exec(heard, within_ms);
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

/* What becomes file i of the program without a pipe; the caller closes it. -1 and errno. */
static int open_unpiped(const struct program *p, int i)
{
	if (i == ERRORS && p->prompts)
		return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (i != IN)
		return fcntl(p->output_fd, F_DUPFD_CLOEXEC, 3);
	int given = p->prompts ? STDIN_FILENO : p->input_fd;
	int end = given || p->prompts ? fcntl(given, F_DUPFD_CLOEXEC, 3) : -1;
	return end >= 0 ? end : program_input("/dev/null");
}

/* Opens theirs[] and our ends of pipes; the caller closes them, also after -1 and errno. */
static int open_ends(const struct program *p, struct started *s, int theirs[ENDS])
{
	for (int i = 0; i < ENDS; i++) {
		bool piped = is_piped(p, i);
		theirs[i] = piped ? -1 : open_unpiped(p, i);
		if (piped ? program_pipe(i == IN, &s->ends[i], &theirs[i]) < 0 : theirs[i] < 0)
			return -1;
	}
	if (s->ends[IN] >= 0) /* the program may fill its stdout before it reads all its input */
		fcntl(s->ends[IN], F_SETFL, O_NONBLOCK);
	return 0;
}

/* Opens the terminal if this process is in its foreground, so that a program that prompts can get
 * the foreground. -1: there is none, or another group has it. */
static int open_own_terminal(void)
{
	int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (terminal >= 0 && tcgetpgrp(terminal) != getpgrp())
		close_end(&terminal);
	return terminal;
}

/* Starts the program. Returns 0, or an errno; s->ends and s->terminal are the caller's to close. */
static int start_program(const struct program *p, struct started *s)
{
	int theirs[ENDS] = {-1, -1, -1};
	char **env = p->environment ? p->environment : guard_environ();

	*s = (struct started){.ends = {-1, -1, -1},
			      .terminal = p->prompts ? open_own_terminal() : -1};
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

/* Reads once and appends to `to` (NULL: dropped). Closes the end at end of file or on an error. */
static void read_output(int *fd, struct str *to)
{
	char buf[8192];
	ssize_t n = read(*fd, buf, sizeof(buf));

	if (n > 0 && to)
		str_addn(to, buf, (size_t)n);
	else if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		close_end(fd);
	explicit_bzero(buf, sizeof(buf)); /* it may be a key */
}

/* Writes once and moves *left. Closes the end when all is written, or on an error. */
static void write_input(struct started *s, const char **left)
{
	ssize_t n = write(s->ends[IN], *left, strlen(*left));

	if (n > 0)
		*left += n;
	if (!**left || (n < 0 && errno != EINTR && errno != EAGAIN))
		close_end(&s->ends[IN]);
}

/* ---- until it ends ---- */

struct wait {
	int64_t until_ms, ended_ms; /* ended_ms 0: the program runs */
	const sigset_t *before;     /* our mask of signals before the program began */
	int status;                 /* as waitpid() has it; valid once ended_ms is set */
	int stop;                   /* the signal that asks us to end; 0: none */
};

static volatile sig_atomic_t long_ended_by;

void program_end_long(int number)
{
	long_ended_by = number;
}

/* Returns a pending signal that would end us; 0: none. Signals are held back while a program with a
 * group of its own runs, since no other process would end that program in time. */
static int pending_stop(const struct wait *w)
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

/* Takes the pending signal w->stop and sends it to the program instead. */
static void forward_stop(struct started *s, struct wait *w)
{
	sigset_t one;
	int number;

	sigemptyset(&one);
	sigaddset(&one, w->stop);
	if (sigwait(&one, &number) == 0)
		kill(s->pid, number);
	w->stop = 0;
}

/* Notes whether the program has ended and forwards signals. Returns false if the program must be
 * killed: its time is over, or a signal asks us to end. */
static bool may_continue(const struct program *p, struct started *s, struct wait *w)
{
	int64_t now = clock_boot_ms();

	if (!w->ended_ms && waitpid(s->pid, &w->status, WNOHANG) == s->pid)
		w->ended_ms = now;
	if (!w->stop)
		w->stop = p->is_long && long_ended_by ? long_ended_by : pending_stop(w);
	if (w->stop && p->forwards && !w->ended_ms)
		forward_stop(s, w);
	return w->ended_ms || (!w->stop && now <= w->until_ms);
}

/* Writes its input and reads its output until the program has closed all three files, or has ended
 * (processes that it started may keep them open). Returns false as may_continue() does. */
static bool serve_pipes(const struct program *p, struct started *s, struct str *to[ENDS],
			struct wait *w)
{
	const char *left = p->input ? p->input : "";

	while (s->ends[IN] >= 0 || s->ends[OUT] >= 0 || s->ends[ERRORS] >= 0) {
		struct pollfd ends[ENDS] = {{s->ends[IN], POLLOUT, 0},
					    {s->ends[OUT], POLLIN, 0},
					    {s->ends[ERRORS], POLLIN, 0}};
		int ready = poll(ends, ENDS, LOOK_MS);
		if (ready > 0 && ends[IN].revents)
			write_input(s, &left);
		for (int i = OUT; i < ENDS && ready > 0; i++)
			if (ends[i].revents)
				read_output(&s->ends[i], to[i]);
		if (w->ended_ms && (ready == 0 || clock_boot_ms() > w->ended_ms + LINGER_MS))
			return true;
		if (!may_continue(p, s, w))
			return false;
	}
	return true;
}

/* Kills and reaps the program, and kills its group. A stop signal gives it STOPPING_MS first. */
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

/* Serves and reaps the program. False: burst ended it, after its time or for a signal to us. */
static bool wait_for(const struct program *p, struct started *s, struct str *to[ENDS],
		     struct wait *w)
{
	bool in_time = serve_pipes(p, s, to, w);

	for (int i = 0; i < ENDS && in_time; i++) /* else it may still print while it is stopped */
		close_end(&s->ends[i]);
	while (in_time && !w->ended_ms) {
		if (!has_group(p) && waitpid(s->pid, &w->status, 0) == s->pid)
			return true;
		in_time = may_continue(p, s, w);
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
	sigset_t ttou, before;

	if (s->terminal < 0)
		return;
	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU); /* would stop this process, which is in the background now */
	sigprocmask(SIG_BLOCK, &ttou, &before);
	tcsetpgrp(s->terminal, getpgrp());
	sigprocmask(SIG_SETMASK, &before, NULL);
	close_end(&s->terminal);
}

/* ---- all of it ---- */

/* wait_for() without SIGPIPE, which a program that reads no input causes. */
static bool wait_without_sigpipe(const struct program *p, struct started *s, struct str *out,
				 struct str *said, struct wait *w)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, pipes;

	sigaction(SIGPIPE, &ignore, &pipes);
	bool in_time = wait_for(p, s, (struct str *[]){NULL, out, said}, w);
	sigaction(SIGPIPE, &pipes, NULL);
	return in_time;
}

/* What program_run() returns for a program that ran. in_time: burst did not end it. A program with
 * the terminal gets the Ctrl-C that is meant for us. */
static int result_of(const struct program *p, const struct wait *w, bool in_time, struct err *err)
{
	bool by_user = p->prompts && WIFSIGNALED(w->status) && WTERMSIG(w->status) == SIGINT;
	int stop = in_time ? (by_user ? SIGINT : 0) : w->stop;

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
	int why = start_program(p, &s);
	bool in_time = why || wait_without_sigpipe(p, &s, out, said, &w);
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

int program_must(const struct program *p, struct str *out, struct str *said, struct err *err)
{
	CLEANUP(str_free) struct str errors = STR_MAX(ERRORS_MAX);
	CLEANUP(str_free) struct str shown = STR_INIT;
	int status = program_run(p, out, said ? said : &errors, err);

	if (status <= 0)
		return status;
	size_t len;
	const char *line = str_last_line(said ? said : &errors, &len);
	str_add_printable(&shown, line, len, 200);
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

bool program_exists(const char *name)
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
