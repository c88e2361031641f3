/* killer.c - a shared object for LD_PRELOAD: the program dies of SIGKILL right before or after its N-th call of one kind,
 * whichever of its threads makes it. Its children do not: strace -f cannot tell them apart, and pods would die with it.
 *
 *     KILL_AT="before|after CALL N"    CALL: rename (renameat too), fsync, fdatasync */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char when[8], which[16];
static int number;
static pid_t victim;
static atomic_int calls;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("KILL_AT");

	if (at && sscanf(at, "%7s %15s %d", when, which, &number) == 3)
		victim = getpid();
	unsetenv("KILL_AT");
}

static int counted(const char *call)
{
	return victim == getpid() && !strcmp(call, which) ? atomic_fetch_add(&calls, 1) + 1 : 0;
}

static void die(const char *moment, int count)
{
	if (count && count == number && !strcmp(moment, when))
		kill(getpid(), SIGKILL);
}

/* The real function by its type, then the call between two chances to die. */
#define AROUND(call, real_name, type, ...)                         \
	type *real = (type *)dlsym(RTLD_NEXT, real_name);          \
	int count = counted(call);                                 \
	die("before", count);                                      \
	int result = real(__VA_ARGS__);                            \
	die("after", count);                                       \
	return result

typedef int on_fd(int);
typedef int on_paths(const char *, const char *);
typedef int on_paths_at(int, const char *, int, const char *);

int fsync(int fd)
{
	AROUND("fsync", "fsync", on_fd, fd);
}

int fdatasync(int fd)
{
	AROUND("fdatasync", "fdatasync", on_fd, fd);
}

int rename(const char *from, const char *to)
{
	AROUND("rename", "rename", on_paths, from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	AROUND("rename", "renameat", on_paths_at, from_dir, from, to_dir, to);
}
