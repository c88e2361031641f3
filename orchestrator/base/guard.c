/* guard.c - the process itself: its secrets, its limit of descriptors, late libraries */
#include "guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- late ---- */

#ifndef BURST_STATIC /* a static program has no libraries to load */
#include <dlfcn.h>

int late_load(const char *file, const char *package, const struct late_function *list, size_t count,
	      struct err *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return err_set(err, ERR_LOCAL, "%s cannot be loaded: %s (Debian: apt install %s)",
			       file, dlerror(), package);
	for (size_t i = 0; i < count; i++)
		if (!(*(void **)list[i].to = dlsym(library, list[i].name)))
			return err_set(err, ERR_LOCAL, "this %s has no %s: a newer one is needed",
				       file, list[i].name);
	return 0;
}
#endif

/* ---- files ---- */

/* macOS reports no hard limit, but accepts at most 10,240 */
enum { LIMIT_MOST = 1 << 20, LIMIT_MACOS = 10240, OPEN_GUESS = 16 };

static struct rlimit files_before; /* the limit that this process began with, if `raised` */
static bool raised;

long files_raise(void)
{
	static const rlim_t steps[] = {LIMIT_MOST, LIMIT_MACOS};
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return OPEN_GUESS;
	if (!raised)
		files_before = now;
	raised = true;
	for (int i = 0; i < 2; i++) {
		rlim_t wanted = now.rlim_max < steps[i] ? now.rlim_max : steps[i];
		struct rlimit more = {.rlim_cur = wanted, .rlim_max = now.rlim_max};
		if (wanted > now.rlim_cur && setrlimit(RLIMIT_NOFILE, &more) == 0)
			return (long)wanted;
	}
	return now.rlim_cur > LONG_MAX ? LONG_MAX : (long)now.rlim_cur;
}

int files_open(void)
{
	DIR *dir = opendir("/dev/fd");
	int count = 0;

	if (!dir)
		return OPEN_GUESS;
	for (struct dirent *e; (e = readdir(dir));)
		count += e->d_name[0] != '.';
	closedir(dir);
	return count - 1; /* without the descriptor of /dev/fd itself */
}

/* Async-signal-safe. */
static void files_restore_limit(void)
{
	if (raised)
		setrlimit(RLIMIT_NOFILE, &files_before);
}

/* ---- guard ---- */

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "mem.h"

enum { FDS_MOST = 65536 }; /* for systems that cannot mark all descriptors in one call */

extern char **environ;

static struct {
	bool began;    /* the limit of core dumps is 0 now */
	rlim_t cores;  /* that limit before */
	char **hidden; /* names of variables */
	size_t count, cap;
} state;

/* Keeps the hard limit: a child of an ordinary user could not raise it again. The limit does not
 * stop a handler that the kernel pipes dumps to; guard_close_memory() does. */
void guard_begin(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) == 0) {
		state.cores = limit.rlim_cur;
		state.began = true;
		limit.rlim_cur = 0;
		setrlimit(RLIMIT_CORE, &limit);
	}
}

void guard_close_memory(void)
{
#ifdef __linux__
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

void guard_restore_limits(void)
{
	struct rlimit limit;

	files_restore_limit();
	if (!state.began || getrlimit(RLIMIT_CORE, &limit) < 0)
		return;
	limit.rlim_cur = state.cores;
	setrlimit(RLIMIT_CORE, &limit);
}

/* Sets default actions and unblocks all signals. */
static void reset_signals(void)
{
	static const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGTERM, SIGALRM, SIGCHLD,
				      SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};
	struct sigaction def = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &def, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void guard_die_with(pid_t parent)
{
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
#endif
	if (getppid() != parent)
		_exit(127);
}

void guard_hold_signals(sigset_t *before)
{
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGHUP);
	sigprocmask(SIG_BLOCK, &held, before);
}

void guard_close_at_exec(void)
{
	long end = sysconf(_SC_OPEN_MAX);

#if defined(__linux__) && defined(SYS_close_range)
	const unsigned close_on_exec = 4; /* CLOSE_RANGE_CLOEXEC, of Linux 5.11 */
	if (syscall(SYS_close_range, 3u, ~0u, close_on_exec) == 0)
		return;
#endif
	if (end < 0 || end > FDS_MOST)
		end = FDS_MOST;
	for (int fd = 3; fd < (int)end; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* those that are not open: EBADF */
}

void guard_exec(void)
{
	reset_signals();
	guard_close_at_exec();
	guard_restore_limits();
}

void guard_hide(const char *name)
{
	GROW(state.hidden, state.count, state.cap);
	state.hidden[state.count++] = xstrdup(name);
}

/* Whether "NAME=value" is a variable of guard_hide(). */
static bool is_hidden(const char *pair)
{
	for (size_t i = 0; i < state.count; i++) {
		size_t len = strlen(state.hidden[i]);
		if (!strncmp(pair, state.hidden[i], len) && pair[len] == '=')
			return true;
	}
	return false;
}

char **guard_environ(void)
{
	size_t count = 0, kept = 0;

	while (environ && environ[count])
		count++;
	char **list = xcalloc(count + 1, sizeof(*list));
	for (size_t i = 0; i < count; i++)
		if (!is_hidden(environ[i]))
			list[kept++] = environ[i];
	return list;
}
