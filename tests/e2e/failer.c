/* failer.c - a shared object for LD_PRELOAD: the N-th call that needs the disk, on a file below the
 * folders that are named, fails; or it and all that come after it. The program's children are
 * spared, and so is what stdio writes (the run's log).
 *
 *     FAIL_AT="once|on N ERROR"     ERROR: ENOSPC, EROFS or EIO. N 0: none fails
 *     FAIL_AT="late MS rename"      none fails, each rename takes so long
 *     FAIL_UNDER=FOLDER[:FOLDER]    absolute; a file's name does as well ("/state/ledger.db" is
 * also its -wal) FAIL_LOG=FILE                 each such call is a line there: number, call, file
 *
 * Calls that need the disk: open that makes a file, write, pwrite, fsync, fdatasync, ftruncate to
 * more, rename, mkdir. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char how[8], under[4096];
static int number, error, log_fd = -1;
static pid_t victim;
static atomic_int calls;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAIL_AT"), *folders = getenv("FAIL_UNDER"),
		   *log = getenv("FAIL_LOG");
	char name[16] = "";

	if (at && folders && sscanf(at, "%7s %d %15s", how, &number, name) == 3)
		victim = getpid();
	error = !strcmp(name, "EROFS") ? EROFS : !strcmp(name, "EIO") ? EIO : ENOSPC;
	snprintf(under, sizeof(under), "%s", folders ? folders : "");
	if (log)
		log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	unsetenv("FAIL_AT");
	unsetenv("FAIL_UNDER");
	unsetenv("FAIL_LOG");
	unsetenv("LD_PRELOAD");
}

static bool is_below(const char *path)
{
	for (const char *p = under; *p;) {
		size_t len = strcspn(p, ":");
		if (len && !strncmp(path, p, len))
			return true;
		p += len + (p[len] == ':');
	}
	return false;
}

static ssize_t (*plain_write(void))(int, const void *, size_t)
{
	return (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
}

/* Is this the one, or one of those? */
static bool fails(const char *call, const char *path)
{
	if (victim != getpid() || !is_below(path))
		return false;
	int count = atomic_fetch_add(&calls, 1) + 1;
	if (log_fd >= 0) {
		char line[4200];
		int n = snprintf(line, sizeof(line), "%d %s %s\n", count, call, path);
		if (plain_write()(log_fd, line, (size_t)n) != n)
			abort();
	}
	if (!strcmp(how, "late")) {
		if (!strcmp(call, "rename"))
			usleep((useconds_t)number * 1000);
		return false;
	}
	if (!number || (strcmp(how, "on") ? count != number : count < number))
		return false;
	errno = error;
	return true;
}

static void name_of(int fd, char *buf, size_t size)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, buf, size - 1);
	buf[n < 0 ? 0 : n] = '\0';
}

static bool fails_fd(const char *call, int fd)
{
	char path[4096];

	if (victim != getpid())
		return false;
	name_of(fd, path, sizeof(path));
	return fails(call, path);
}

/* What is there already is not made. */
static bool fails_at(const char *call, int dir, const char *name, bool makes)
{
	char base[4096] = "", path[8192];
	struct stat st;

	if (victim != getpid() || (makes && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0))
		return false;
	if (name[0] != '/' && dir == AT_FDCWD && !getcwd(base, sizeof(base)))
		return false;
	if (name[0] != '/' && dir != AT_FDCWD)
		name_of(dir, base, sizeof(base));
	snprintf(path, sizeof(path), "%s%s%s", base, base[0] ? "/" : "", name);
	return fails(call, path);
}

#define REAL(type, name) ((type *)dlsym(RTLD_NEXT, name))

typedef int on_open(const char *, int, ...);
typedef int on_openat(int, const char *, int, ...);
typedef int on_fd(int);
typedef int on_paths(const char *, const char *);
typedef int on_paths_at(int, const char *, int, const char *);
typedef int on_mode(const char *, mode_t);
typedef int on_mode_at(int, const char *, mode_t);
typedef int on_length(int, off_t);
typedef ssize_t on_write(int, const void *, size_t);
typedef ssize_t on_bytes(int, const void *, size_t, off_t);

#define OPEN(name)                                                                                 \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		va_list ap;                                                                        \
		va_start(ap, flags);                                                               \
		mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;                            \
		va_end(ap);                                                                        \
		if ((flags & O_CREAT) && fails_at("open", AT_FDCWD, path, true))                   \
			return -1;                                                                 \
		return REAL(on_open, #name)(path, flags, mode);                                    \
	}
#define OPENAT(name)                                                                               \
	int name(int dir, const char *path, int flags, ...)                                        \
	{                                                                                          \
		va_list ap;                                                                        \
		va_start(ap, flags);                                                               \
		mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;                            \
		va_end(ap);                                                                        \
		if ((flags & O_CREAT) && fails_at("open", dir, path, true))                        \
			return -1;                                                                 \
		return REAL(on_openat, #name)(dir, path, flags, mode);                             \
	}
#define PWRITE(name)                                                                               \
	ssize_t name(int fd, const void *bytes, size_t len, off_t at)                              \
	{                                                                                          \
		if (fails_fd("pwrite", fd))                                                        \
			return -1;                                                                 \
		return REAL(on_bytes, #name)(fd, bytes, len, at);                                  \
	}
#define FTRUNCATE(name)                                                                            \
	int name(int fd, off_t len)                                                                \
	{                                                                                          \
		struct stat st;                                                                    \
		if (fstat(fd, &st) == 0 && len > st.st_size && fails_fd("ftruncate", fd))          \
			return -1;                                                                 \
		return REAL(on_length, #name)(fd, len);                                            \
	}
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
PWRITE(pwrite)
PWRITE(pwrite64)
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

ssize_t write(int fd, const void *bytes, size_t len)
{
	return fails_fd("write", fd) ? -1 : REAL(on_write, "write")(fd, bytes, len);
}

int fsync(int fd)
{
	return fails_fd("fsync", fd) ? -1 : REAL(on_fd, "fsync")(fd);
}

int fdatasync(int fd)
{
	return fails_fd("fdatasync", fd) ? -1 : REAL(on_fd, "fdatasync")(fd);
}

int rename(const char *from, const char *to)
{
	return fails_at("rename", AT_FDCWD, to, false) ? -1 : REAL(on_paths, "rename")(from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return fails_at("rename", to_dir, to, false)
		       ? -1
		       : REAL(on_paths_at, "renameat")(from_dir, from, to_dir, to);
}

int mkdir(const char *path, mode_t mode)
{
	return fails_at("mkdir", AT_FDCWD, path, true) ? -1 : REAL(on_mode, "mkdir")(path, mode);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
	return fails_at("mkdir", dir, path, true) ? -1
						  : REAL(on_mode_at, "mkdirat")(dir, path, mode);
}
