/* files.c - opens, writes and removes files below a folder without following links; checks names.
 */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "bounds.h"

void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

bool path_inside(const char *path)
{
	size_t len = strlen(path);
	if (!len || len >= PATH_BYTES_MAX || path[0] == '/')
		return false;
	for (const char *part = path; part;) {
		const char *slash = strchr(part, '/');
		size_t n = slash ? (size_t)(slash - part) : strlen(part);
		if (!n || n > NAME_MAX || (n == 1 && part[0] == '.') ||
		    (n == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part = slash ? slash + 1 : NULL;
	}
	return true;
}

bool name_safe(const char *name)
{
	return path_is_safe(name) && !strchr(name, '/') && strlen(name) <= 200;
}

int mkdirs(const char *path, mode_t mode)
{
	char *copy = xstrdup(path);
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		mkdir(copy, mode);
		*p = '/';
	}
	int failed = mkdir(copy, mode) < 0 && errno != EEXIST;
	free(copy);
	return failed ? -1 : 0;
}

int open_parent(int root, const char *path, bool make, const char **name)
{
	int at = dup(root);
	const char *part = path, *slash;
	while (at >= 0 && (slash = strchr(part, '/'))) {
		char one[NAME_MAX + 1];
		snprintf(one, sizeof(one), "%.*s", (int)(slash - part), part);
		int next = openat(at, one, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == ENOENT && make &&
		    (mkdirat(at, one, 0755) == 0 || errno == EEXIST))
			next = openat(at, one, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int saved = errno;
		close(at);
		errno = saved;
		at = next;
		part = slash + 1;
	}
	*name = part;
	return at;
}

int open_below(int root, const char *path, struct stat *st)
{
	const char *name;
	int dir = open_parent(root, path, false, &name);
	if (dir < 0) {
		if (errno == ENOTDIR)
			errno = ELOOP;
		return -1;
	}
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int saved = errno;
	close(dir);
	errno = saved;
	if (fd < 0)
		return -1;
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		errno = ELOOP;
		return -1;
	}
	return fd;
}

int open_folder(int root, const char *path, bool make)
{
	const char *name;
	int dir = open_parent(root, path, make, &name);
	int fd = dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && dir >= 0 && errno == ENOENT && make &&
	    (mkdirat(dir, name, 0755) == 0 || errno == EEXIST))
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int saved = errno;
	if (dir >= 0)
		close(dir);
	errno = saved;
	return fd;
}

int remove_inside(int fd)
{
	fchmod(fd, 0700);
	DIR *d = fdopendir(fd);
	if (!d)
		return close(fd), -1;
	int failed = 0;
	struct dirent *e;
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			failed |= remove_at(fd, e->d_name);
	closedir(d);
	return failed;
}

int remove_at(int dir, const char *name)
{
	return path_remove_tree_at(dir, name, name, NULL);
}

int write_beside(const char *path, const char *text, mode_t mode)
{
	char *temp = xasprintf("%s.new", path);
	int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	int failed = fd < 0 || fd_write_all(fd, text, strlen(text)) < 0;
	if (fd >= 0)
		close(fd);
	if (!failed)
		failed = rename(temp, path) < 0;
	free(temp);
	return failed ? -1 : 0;
}

int read_file(const char *path, size_t most, struct str *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	char part[4096];
	ssize_t n;
	while (out->len < most && (n = read(fd, part, MIN(sizeof(part), most - out->len))) > 0)
		str_addn(out, part, (size_t)n);
	close(fd);
	return 0;
}

int read_all(int fd, size_t most, struct str *out)
{
	char part[64 << 10];
	ssize_t n;
	while ((n = read(fd, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (out->len + (size_t)n > most)
			return errno = EBADMSG, -1;
		str_addn(out, part, (size_t)n);
	}
	return 0;
}

int pread_all(int fd, char *to, size_t len, int64_t offset)
{
	while (len) {
		ssize_t n = pread(fd, to, len, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return errno = n < 0 ? errno : EBADMSG, -1;
		to += n;
		offset += n;
		len -= (size_t)n;
	}
	return 0;
}

void set_aside(int root, const char *path)
{
	const char *name;
	int dir = open_parent(root, path, false, &name);
	char *aside = xasprintf(".%s.gone.%d", name, getpid());
	if (dir >= 0 && renameat(dir, name, dir, aside) == 0)
		remove_at(dir, aside);
	close_fd(&dir);
	free(aside);
}
