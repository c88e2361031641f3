/* place.c - makes folders, files and mounts below the new root of a sandbox. */
#include "place.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

int place_failed(struct err *err, const char *what)
{
	return err_set(err, ERR_LOCAL, "%s: %s", what, strerror(errno));
}

char *place_path(const struct place *p, const char *path)
{
	return xasprintf("%s/%s", p->root, path[0] == '/' ? path + 1 : path);
}

int place_make_dir(const struct place *p, const char *path, mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *parent = path_dir(path);

	if (mkdir(path, mode) < 0 && errno == ENOENT) {
		if (place_make_dir(p, parent, 0755, err) < 0)
			return -1;
		if (mkdir(path, mode) < 0)
			return place_failed(err, path);
	} else if (access(path, F_OK) < 0) {
		return place_failed(err, path);
	}
	if (ids_give(&p->box->users.ids, path, err) < 0)
		return -1;
	return chmod(path, mode) < 0 ? place_failed(err, path) : 0;
}

int place_make_file(const struct place *p, const char *path, const char *text, mode_t mode,
		    struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return place_failed(err, path);
	return ids_give(&p->box->users.ids, path, err);
}

int place_make_link(const struct place *p, const char *target, const char *path, struct err *err)
{
	return symlink(target, path) < 0 ? place_failed(err, path)
					 : ids_give(&p->box->users.ids, path, err);
}

/* Includes all mounts below the path. */
static int set_attributes(const char *path, uint64_t attributes, struct err *err)
{
	struct attr_change change = {.set = attributes};

	if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE_TREE, &change,
		    sizeof(change)) == 0)
		return 0;
	return errno == ENOSYS ? err_set(err, ERR_LOCAL,
					 "the kernel cannot make mounts read-only with all below "
					 "them (needs Linux 5.12)")
			       : place_failed(err, path);
}

int place_bind(const char *from, const char *to, uint64_t attributes, struct err *err)
{
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return place_failed(err, from);
	return set_attributes(to, attributes, err);
}

int place_mount_memory(const struct place *p, const char *at, const char *more, unsigned long flags,
		       struct err *err)
{
	CLEANUP(free_text) char *options = xasprintf("%s%s", more, p->options);

	return mount("burst", at, "tmpfs", MS_NOSUID | MS_NODEV | flags, options) < 0
		       ? place_failed(err, at)
		       : 0;
}

int place_show_dir(const struct place *p, const char *name, struct err *err)
{
	CLEANUP(free_text) char *from = xasprintf("/%s", name);
	CLEANUP(free_text) char *to = place_path(p, name);
	char target[256];
	struct stat st;

	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlink(from, target, sizeof(target) - 1);
		target[MAX(n, 0)] = '\0';
		return place_make_link(p, target, to, err);
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	return place_make_dir(p, to, 0755, err) < 0 ? -1 : place_bind(from, to, PROGRAMS, err);
}

int place_mask(const struct place *p, const char *path, struct err *err)
{
	CLEANUP(free_text) char *at = place_path(p, path);
	struct stat st;

	if (stat(at, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return mount("burst", at, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
			     "mode=0555,size=4k") < 0
			       ? place_failed(err, at)
			       : 0;
	return place_bind("/dev/null", at, DEVICE | ATTR_RDONLY, err);
}
