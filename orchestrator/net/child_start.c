/* child_start.c - starts a program with pipes to its stdin, stdout and stderr. */
#include "child_start.h"

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
#include "child.h"

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

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

char *child_program(const char *name)
{
	if (self_path && !strcmp(name, "burst"))
		return xstrdup(self_path);
	if (strchr(name, '/'))
		return is_program(name) ? xstrdup(name) : NULL;
	const char *dirs = getenv("PATH");
	for (const char *at = dirs ? dirs : "/usr/bin:/bin"; *at;) {
		size_t len = strcspn(at, ":");
		char *path = len ? xasprintf("%.*s/%s", (int)len, at, name) : NULL;
		if (path && is_program(path))
			return path;
		free(path);
		at += len + (at[len] == ':');
	}
	return NULL;
}

struct plan { /* made before the fork: between fork and exec nothing may be allocated */
	char *program;
	char **argv, **envp;
	int in, out, err, report;
};

/* All of the plan's descriptors are above 2: see above_stdio(). */
static void become(const struct plan *plan)
{
	setpgid(0, 0);
	dup2(plan->in, 0);
	dup2(plan->out, 1);
	dup2(plan->err, 2);
	guard_exec(); /* the report's end is close-on-exec: its end of file reports success */
	execve(plan->program, plan->argv, plan->envp);
	int why = errno;
	ssize_t n = write(plan->report, &why, sizeof(why));
	(void)n;
	_exit(127);
}

/* Waits for the result of the child's exec: 0, or its errno. This takes about a millisecond. A
 * program on a disk that does not answer must not stop the loop, which renews leases: ETIMEDOUT. */
static int exec_result(int report)
{
	struct pollfd heard = {.fd = report, .events = POLLIN};
	int64_t until = clock_boot_ms() + EXEC_MOST_MS;
	int why = 0, ready;
	ssize_t n;

	do
		ready = poll(&heard, 1, (int)MAX(until - clock_boot_ms(), 0));
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return ETIMEDOUT;
	do
		n = read(report, &why, sizeof(why));
	while (n < 0 && errno == EINTR);
	return n <= 0 ? 0 : why;
}

/* Forks and waits for the exec. Returns 0 or an errno. */
static int start(pid_t *out, struct plan *plan, int report[2])
{
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0)
		become(plan);
	setpgid(pid, pid); /* also here: whichever is first, a kill finds the group */
	close(report[1]);
	report[1] = -1;
	int why = exec_result(report[0]);
	if (!why) {
		*out = pid;
		return 0;
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, why == ETIMEDOUT ? WNOHANG : 0) < 0 && errno == EINTR)
		;
	return why;
}

/* Moves the descriptor above 0, 1 and 2, and makes it close-on-exec. */
static int above_stdio(int fd)
{
	if (fd < 0)
		return -1;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return high;
}

static int make_pipe(int ends[2])
{
	int raw[2];

	if (pipe2(raw, O_CLOEXEC) < 0) /* another thread may fork at any moment */
		return -1;
	ends[0] = above_stdio(raw[0]);
	ends[1] = above_stdio(raw[1]);
	return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

static int open_input(const struct call *call, int in[2])
{
	if (!call->body_from && call->body.len)
		return make_pipe(in);
	in[0] = above_stdio(
		open(call->body_from ? call->body_from : "/dev/null", O_RDONLY | O_CLOEXEC));
	return in[0] < 0 ? -1 : 0;
}

/* Opens the pipes and starts the program. pipes: both ends of each, for the caller to close. */
static int start_with(struct child_ends *out, int in[2], int outs[2], int errs[2], int report[2],
		      char *program, const struct call *call, const char *name, struct err *err)
{
	if (open_input(call, in) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", call->body_from ? call->body_from : name,
			       strerror(errno));
	if (make_pipe(outs) < 0 || make_pipe(errs) < 0 || make_pipe(report) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", name, strerror(errno));
	struct plan plan = {program, call->argv, guard_environ(), in[0],
			    outs[1], errs[1],    report[1]};
	int why = start(&out->pid, &plan, report);
	free(plan.envp);
	if (why == ETIMEDOUT)
		return err_set(err, ERR_LOCAL, "%s: did not start within %d s", name,
			       EXEC_MOST_MS / 1000);
	return why ? err_set(err, ERR_LOCAL, "%s: %s", name, strerror(why)) : 0;
}

int child_start(struct child_ends *out, char *program, const struct call *call, const char *name,
		struct err *err)
{
	int in[2] = {-1, -1}, outs[2] = {-1, -1}, errs[2] = {-1, -1}, report[2] = {-1, -1};
	struct child_ends ends = {0};
	int rc = start_with(&ends, in, outs, errs, report, program, call, name, err);

	if (rc == 0) {
		ends.in = in[1];
		ends.out = outs[0];
		ends.err = errs[0];
		in[1] = outs[0] = errs[0] = -1;
		*out = ends;
	}
	int rest[] = {in[0], in[1], outs[0], outs[1], errs[0], errs[1], report[0], report[1]};
	for (size_t i = 0; i < ARRAY_LEN(rest); i++)
		fd_close(rest[i]);
	return rc;
}
