/* killer.c - a shared object for LD_PRELOAD: the program dies of SIGKILL right before or after its N-th call of one kind,
 * whichever of its threads makes it. Its children do not: strace -f cannot tell them apart, and pods would die with it.
 *
 *     KILL_AT="before|after CALL N"    CALL: rename (renameat too), fsync, fdatasync; ledger: whatever changes one of the
 *                                      ledger's files or makes it durable. N 0: it lives
 *     KILL_LOG=FILE                    each such call is a line there: number, wall clock ms, call, file */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char when[8], which[16];
static int number, log_fd = -1;
static pid_t victim;
static atomic_int calls;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("KILL_AT"), *log = getenv("KILL_LOG");

	if (at && sscanf(at, "%7s %15s %d", when, which, &number) == 3)
		victim = getpid();
	if (log)
		log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	unsetenv("KILL_AT");
	unsetenv("KILL_LOG");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *name_of(int fd, char *buf, size_t size)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, buf, size - 1);
	buf[n < 0 ? 0 : n] = '\0';
	return base_name(buf);
}

static int one_more(const char *call, const char *file)
{
	char line[160];
	struct timespec now;
	int count = atomic_fetch_add(&calls, 1) + 1;

	if (log_fd >= 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		int n = snprintf(line, sizeof(line), "%d %lld %s %.80s\n", count,
				 (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, call, file);
		if (write(log_fd, line, (size_t)n) != n)
			abort();
	}
	return count;
}

static int counted(const char *call, const char *path)
{
	const char *file = base_name(path);

	if (victim != getpid() || !(strcmp(which, "ledger") ? !strcmp(which, call) : !strncmp(file, "ledger.db", 9)))
		return 0;
	return one_more(call, file);
}

static int counted_fd(const char *call, int fd)
{
	char path[4096];

	return victim == getpid() ? counted(call, name_of(fd, path, sizeof(path))) : 0;
}

static void die(const char *moment, int count)
{
	if (count && count == number && !strcmp(moment, when))
		kill(getpid(), SIGKILL);
}

/* The real function by its type, then the call between two chances to die. */
#define AROUND(result_type, is_counted, real_name, type, ...)      \
	type *real = (type *)dlsym(RTLD_NEXT, real_name);          \
	int count = is_counted;                                    \
	die("before", count);                                      \
	result_type result = real(__VA_ARGS__);                    \
	die("after", count);                                       \
	return result

typedef int on_fd(int);
typedef int on_paths(const char *, const char *);
typedef int on_paths_at(int, const char *, int, const char *);
typedef int on_path(const char *);
typedef int on_length(int, off_t);
typedef ssize_t on_bytes(int, const void *, size_t, off_t);

int fsync(int fd)
{
	AROUND(int, counted_fd("fsync", fd), "fsync", on_fd, fd);
}

int fdatasync(int fd)
{
	AROUND(int, counted_fd("fdatasync", fd), "fdatasync", on_fd, fd);
}

int rename(const char *from, const char *to)
{
	AROUND(int, counted("rename", from), "rename", on_paths, from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	AROUND(int, counted("rename", from), "renameat", on_paths_at, from_dir, from, to_dir, to);
}

int unlink(const char *path)
{
	AROUND(int, counted("unlink", path), "unlink", on_path, path);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
	AROUND(ssize_t, counted_fd("pwrite", fd), "pwrite64", on_bytes, fd, bytes, len, at);
}

int ftruncate64(int fd, off_t len)
{
	AROUND(int, counted_fd("ftruncate", fd), "ftruncate64", on_length, fd, len);
}
