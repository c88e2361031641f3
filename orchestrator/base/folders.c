/* folders.c - home and XDG folders, folders of one process, copies that share blocks */
#include "folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "crypto.h"
#include "path.h"

/* ---- home ---- */

char *home_of_account(void)
{
	const struct passwd *who = getpwuid(geteuid());

	return who && who->pw_dir && who->pw_dir[0] == '/' ? xstrdup(who->pw_dir) : NULL;
}

char *home_dir(void)
{
	const char *home = getenv("HOME");

	return home && home[0] == '/' ? xstrdup(home) : home_of_account();
}

char *home_xdg(const char *name, const char *below)
{
	const char *value = getenv(name);

	if (value && value[0] == '/') /* XDG: a relative path counts as unset */
		return xstrdup(value);
	CLEANUP(free_text) char *home = home_dir();
	return home ? path_join(home, below) : NULL;
}

char *home_shorten(const char *path)
{
	CLEANUP(free_text) char *home = home_dir();
	size_t len = home ? strlen(home) : 0;

	if (len > 1 && !strncmp(path, home, len) && path[len] == '/')
		return xasprintf("~%s", path + len);
	return xstrdup(path);
}

/* ---- clone ---- */

#ifdef __linux__
#include <linux/fs.h>
#include <sys/ioctl.h>
#endif

enum { COPY_ROOM = 256 << 10 };

/* Copies all of `from`, whatever its offset. -1 and errno. */
static int copy_bytes(int from, int to)
{
	CLEANUP(free_text) char *room = xmalloc(COPY_ROOM);

	for (off_t at = 0;;) {
		ssize_t n = pread(from, room, COPY_ROOM, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		if (fd_write_all(to, room, (size_t)n) < 0)
			return -1;
		at += n;
	}
}

int fd_clone(int from, int to)
{
#ifdef FICLONE
	if (ioctl(to, FICLONE, from) == 0)
		return 0;
#endif
	return copy_bytes(from, to);
}

/* ---- held folder ---- */

enum { TRIES = 5 };

/* Whether fd is still at this path: a cleanup may have removed it before it was locked. */
static bool is_same_folder(const char *path, int fd)
{
	struct stat by_path, by_fd;

	return stat(path, &by_path) == 0 && fstat(fd, &by_fd) == 0 &&
	       by_path.st_ino == by_fd.st_ino && by_path.st_dev == by_fd.st_dev;
}

/* Makes a folder and locks it. Returns a descriptor that holds the lock; -1 and errno. */
static int make_locked_folder(const char *path)
{
	if (mkdir(path, 0700) < 0)
		return -1;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_folder(path, fd)))
		return fd;
	close(fd);
	errno = EAGAIN;
	return -1;
}

/* Removes the folders that no living process holds locked. */
static void remove_unheld(const char *dir)
{
	DIR *list = opendir(dir);

	for (struct dirent *e; list && (e = readdir(list));) {
		CLEANUP(free_text) char *path = path_join(dir, e->d_name);
		if (e->d_name[0] == '.')
			continue;
		CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			path_remove_closed_tree(path, NULL);
	}
	if (list)
		closedir(list);
}

char *held_folder_new(const char *dir, int *lock, struct err *err)
{
	CLEANUP(free_text) char *path = NULL;
	char random[17];
	int fd = -1;

	if (path_mkdirs(dir, 0700, err) < 0)
		return NULL;
	remove_unheld(dir);
	for (int i = 0; i < TRIES && fd < 0; i++) {
		random_hex(random, 8);
		free(path);
		path = path_join(dir, random);
		fd = make_locked_folder(path);
	}
	if (fd < 0) {
		err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
		return NULL;
	}
	*lock = fd;
	return TAKE(path);
}
