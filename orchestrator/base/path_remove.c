/* path_remove.c - removes files and whole trees, however deep, without following a link. */
#include "path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* One descriptor for each level, and so a bound for what a tree can use up. */
enum { REMOVAL_DEPTH = 16 };

struct removal {
	bool open_up;   /* gives the owner's rights back to folders that lack them */
	int top;        /* the tree's first folder; -1: not there yet */
	unsigned moved; /* folders that lay too deep and are now in the first one */
	int why;        /* errno of the first failure */
};

static int empty_folder(struct removal *r, int fd, int depth);

static int not_removed(struct removal *r, int why)
{
	r->why = r->why ? r->why : why;
	return -1;
}

static int open_folder_of(const struct removal *r, int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, flags);

	if (fd < 0 && errno == EACCES && r->open_up &&
	    fchmodat(parent, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = openat(parent, name, flags);
	if (fd >= 0 && r->open_up)
		(void)fchmod(fd, 0700);
	return fd;
}

/* Moves a folder that lies too deep to the top, where the next round finds it. */
static int move_up(struct removal *r, int parent, const char *name)
{
	do {
		char to[48];
		snprintf(to, sizeof(to), ".burst-removal-%u", r->moved++);
		if (renameat(parent, name, r->top, to) == 0)
			return 0;
	} while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
	return not_removed(r, errno);
}

static int remove_folder(struct removal *r, int parent, const char *name, int fd, int depth)
{
	if (depth >= REMOVAL_DEPTH) {
		close(fd);
		return move_up(r, parent, name);
	}
	if (empty_folder(r, fd, depth) < 0)
		return -1;
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? not_removed(r, errno)
									   : 0;
}

static int remove_at(struct removal *r, int parent, const char *name, int depth)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	int why = errno; /* Linux says EISDIR for a folder, POSIX EPERM */
	int fd = open_folder_of(r, parent, name);
	if (fd < 0)
		return not_removed(r, errno == ENOTDIR || errno == ELOOP ? why : errno);
	return remove_folder(r, parent, name, fd, depth);
}

/* Closes fd. What cannot be removed does not keep the rest. */
static int empty_folder(struct removal *r, int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	int result = 0;

	if (!dir) {
		close(fd);
		return not_removed(r, errno);
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    remove_at(r, dirfd(dir), entry->d_name, depth + 1) < 0)
			result = -1;
	closedir(dir);
	return result;
}

static int remove_tree(struct removal *r, int parent, const char *name)
{
	unsigned before;

	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	int why = errno;
	r->top = open_folder_of(r, parent, name);
	if (r->top < 0)
		return not_removed(r, errno == ENOTDIR || errno == ELOOP ? why : errno);
	do {
		before = r->moved;
		int fd = openat(r->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return not_removed(r, errno);
		empty_folder(r, fd, 0);
	} while (r->moved != before && !r->why);
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? not_removed(r, errno)
									   : 0;
}

static int remove_named(int dir, const char *name, const char *shown, bool open_up, struct err *err)
{
	struct removal r = {.open_up = open_up, .top = -1};
	int result = remove_tree(&r, dir, name);

	fd_close(r.top);
	if (result < 0)
		err_set(err, ERR_LOCAL, "%s: cannot remove: %s", shown, strerror(r.why));
	errno = r.why;
	return result;
}

int path_remove_tree_at(int dir, const char *name, const char *shown, struct err *err)
{
	return remove_named(dir, name, shown, true, err);
}

static int remove_path(const char *path, bool open_up, struct err *err)
{
	CLEANUP(free_text) char *name = xstrdup(path);

	/* "link/" would name what the link points at */
	for (size_t len = strlen(name); len > 1 && name[len - 1] == '/'; len--)
		name[len - 1] = '\0';
	return remove_named(AT_FDCWD, name, path, open_up, err);
}

int path_remove_tree(const char *path, struct err *err)
{
	return remove_path(path, false, err);
}

int path_remove_closed_tree(const char *path, struct err *err)
{
	return remove_path(path, true, err);
}
