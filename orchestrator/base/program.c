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

enum { NOT_FOUND = 127, NOT_STARTED = 126, IN = 0, OUT = 1, ERRORS = 2, ENDS = 3, LOOK_MS = 50 };

struct started {
	pid_t pid;
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

static void become(const struct program *p, const int theirs[ENDS], int why, char **env)
{
	int saved;

	if (p->own_group)
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

/* What becomes file i of the program without a pipe. */
static int given_end(const struct program *p, int i)
{
	if (i != IN)
		return fcntl(p->output_fd, F_DUPFD_CLOEXEC, 3);
	return p->input_fd ? fcntl(p->input_fd, F_DUPFD_CLOEXEC, 3)
			   : open("/dev/null", O_RDONLY | O_CLOEXEC);
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
		bool piped = i == IN ? p->input != NULL : !p->output_fd;
		theirs[i] = piped ? -1 : given_end(p, i);
		if (piped ? make_pipe(i, &s->ends[i], &theirs[i]) < 0 : theirs[i] < 0)
			return -1;
	}
	return 0;
}

static int start(const struct program *p, struct started *s)
{
	int theirs[ENDS] = {-1, -1, -1}, why[2] = {-1, -1}, result = -1;
	char **env = p->environment ? p->environment : guard_environ();

	*s = (struct started){.ends = {-1, -1, -1}, .why = -1};
	if (open_ends(p, s, theirs) == 0 && pipe2(why, O_CLOEXEC) == 0) {
		s->pid = fork();
		if (s->pid == 0)
			become(p, theirs, why[1], env);
		result = s->pid < 0 ? -1 : 0;
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
}

static void give_input(struct started *s, const char **left)
{
	ssize_t n = write(s->ends[IN], *left, strlen(*left));

	if (n > 0)
		*left += n;
	if (!**left || (n < 0 && errno != EINTR && errno != EAGAIN))
		close_end(&s->ends[IN]);
}

/* Until it has closed its stdout and stderr, or has ended (what it started may keep them open), or
 * its time is over: false. */
static bool talk(const struct program *p, struct started *s, struct str *to[ENDS], int64_t until_ms,
		 bool *ended, int *status)
{
	const char *left = p->input ? p->input : "";

	while (s->ends[OUT] >= 0 || s->ends[ERRORS] >= 0) {
		struct pollfd ends[ENDS] = {{s->ends[IN], POLLOUT, 0},
					    {s->ends[OUT], POLLIN, 0},
					    {s->ends[ERRORS], POLLIN, 0}};
		int ready = poll(ends, ENDS, LOOK_MS);
		if (ready > 0 && ends[IN].revents)
			give_input(s, &left);
		for (int i = OUT; i < ENDS && ready > 0; i++)
			if (ends[i].revents)
				take_in(&s->ends[i], to[i]);
		if (ready == 0 && *ended)
			return true;
		*ended = *ended || waitpid(s->pid, status, WNOHANG) == s->pid;
		if (clock_boot_ms() > until_ms)
			return false;
	}
	return true;
}

/* Returns false if it killed the program at its time limit. */
static bool wait_for(const struct program *p, struct started *s, struct str *to[ENDS], int *status)
{
	int64_t until_ms = p->limit_ms ? clock_boot_ms() + p->limit_ms : INT64_MAX;
	bool ended = false, in_time = talk(p, s, to, until_ms, &ended, status);

	for (int i = 0; i < ENDS; i++)
		close_end(&s->ends[i]);
	for (; in_time && !ended; in_time = clock_boot_ms() <= until_ms) {
		ended = waitpid(s->pid, status, p->limit_ms ? WNOHANG : 0) == s->pid;
		if (!ended)
			poll(NULL, 0, 2);
	}
	if (ended)
		return true;
	kill(p->own_group ? -s->pid : s->pid, SIGKILL);
	while (waitpid(s->pid, status, 0) < 0 && errno == EINTR)
		;
	return false;
}

int program_run(const struct program *p, struct str *out, struct str *said, struct err *err)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	struct started s;
	int status = 0, why = 0;

	if (start(p, &s) < 0) {
		why = errno;
		for (int i = 0; i < ENDS; i++)
			close_end(&s.ends[i]);
		close_end(&s.why);
		return err_set(err, ERR_LOCAL, "%s: %s", p->argv[0], strerror(why));
	}
	sigaction(SIGPIPE, &ignore, &before); /* one that reads no input */
	bool in_time = wait_for(p, &s, (struct str *[]){NULL, out, said}, &status);
	sigaction(SIGPIPE, &before, NULL);
	bool failed = read(s.why, &why, sizeof(why)) == sizeof(why);
	close_end(&s.why);
	if (failed)
		return err_set(err, why == ENOENT && !p->folder ? ERR_NOT_FOUND : ERR_LOCAL,
			       "%s: %s", p->argv[0], strerror(why));
	if (!in_time)
		return err_set(err, ERR_TRANSIENT, "%s does not end: killed after %lld s",
			       p->argv[0], (long long)(p->limit_ms / 1000));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
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

bool program_found(const char *name)
{
	const char *path = getenv("PATH");

	for (const char *p = path ? path : ""; *p;) {
		size_t n = strcspn(p, ":");
		CLEANUP(free_text) char *full = xasprintf("%.*s/%s", (int)n, p, name);
		if (n && access(full, X_OK) == 0)
			return true;
		p += n + (p[n] == ':');
	}
	return false;
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
