/* slow_volume.c - a shared object for LD_PRELOAD: each file that is opened or looked at below one
 * of some folders costs a fixed time more, as on a network volume. For benchmarks; reads of an open
 * file cost nothing more.
 *
 *     SLOW_DIRS=DIR:DIR   whole paths, without links
 *     SLOW_US=N           microseconds for each access */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool is_below(const char *path, const char *dirs)
{
	for (const char *dir = dirs; *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		size_t len = strcspn(dir, ":");
		if (len && !strncmp(path, dir, len) && (path[len] == '/' || !path[len]))
			return true;
	}
	return false;
}

static void delay(int dir, const char *path)
{
	const char *dirs = getenv("SLOW_DIRS"), *us = getenv("SLOW_US");
	char of[64], base[4096];

	if (!dirs || !us || !path)
		return;
	if (path[0] != '/') {
		if (dir == AT_FDCWD)
			snprintf(of, sizeof(of), "/proc/self/cwd");
		else
			snprintf(of, sizeof(of), "/proc/self/fd/%d", dir);
		ssize_t len = readlink(of, base, sizeof(base) - 1);
		base[len > 0 ? len : 0] = '\0';
		path = base;
	}
	long ns = atol(us) * 1000;
	if (is_below(path, dirs))
		nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static mode_t mode_of(int flags, va_list ap)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

#define OPEN(name)                                                                                 \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		va_list ap;                                                                        \
		va_start(ap, flags);                                                               \
		mode_t mode = mode_of(flags, ap);                                                  \
		va_end(ap);                                                                        \
		delay(AT_FDCWD, path);                                                             \
		return REAL(name)(path, flags, mode);                                              \
	}
#define OPENAT(name)                                                                               \
	int name(int dir, const char *path, int flags, ...)                                        \
	{                                                                                          \
		va_list ap;                                                                        \
		va_start(ap, flags);                                                               \
		mode_t mode = mode_of(flags, ap);                                                  \
		va_end(ap);                                                                        \
		delay(dir, path);                                                                  \
		return REAL(name)(dir, path, flags, mode);                                         \
	}
#define STAT(name, type)                                                                           \
	int name(const char *path, struct type *st)                                                \
	{                                                                                          \
		delay(AT_FDCWD, path);                                                             \
		return REAL(name)(path, st);                                                       \
	}

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	delay(dir, path);
	return REAL(fstatat)(dir, path, st, flags);
}

int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	delay(dir, path);
	return REAL(fstatat64)(dir, path, st, flags);
}

DIR *opendir(const char *path)
{
	delay(AT_FDCWD, path);
	return REAL(opendir)(path);
}
