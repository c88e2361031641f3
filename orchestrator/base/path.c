/* path.c - reads, writes, locks and removes files, and judges which names are safe */
#include "path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "str.h"

/* ---- path lock ----
 * Locks by fcntl(), which belong to one process. A lock by flock() belongs to the open file: a
 * child shares it until its exec, so a client that is killed at such a moment would seem to live.
 * But the kernel drops a lock by fcntl() as soon as its process closes any descriptor of the file.
 * So a process remembers its locks, and never opens such a file again. */

static struct held_lock {
	int fd;
	pid_t pid; /* a child inherits the list, but not the locks */
	dev_t dev;
	ino_t inode;
} * locks;
static size_t lock_count, lock_cap;

static bool is_open_as(int fd, dev_t dev, ino_t inode)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == inode;
}

/* Returns the descriptor by which this process holds the file's lock; -1: it does not hold it. */
static int find_own_lock(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -1;
	for (size_t i = lock_count; i-- > 0;) {
		const struct held_lock *h = &locks[i];
		if (h->pid != getpid() || !is_open_as(h->fd, h->dev, h->inode))
			locks[i] = locks[--lock_count]; /* its descriptor was closed */
		else if (h->dev == st.st_dev && h->inode == st.st_ino)
			return h->fd;
	}
	return -1;
}

static void remember_lock(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return;
	GROW(locks, lock_count, lock_cap);
	locks[lock_count++] = (struct held_lock){fd, getpid(), st.st_dev, st.st_ino};
}

/* Whether another process holds the lock of this file. */
static bool is_locked_by_other(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool path_is_locked(const char *path, struct str *note)
{
	int mine = find_own_lock(path);
	CLEANUP(fd_close) int fd = mine < 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
	char text[128] = "";

	if (mine < 0 && (fd < 0 || !is_locked_by_other(fd)))
		return false;
	if (note && pread(mine < 0 ? fd : mine, text, sizeof(text) - 1, 0) > 0)
		str_addn(note, text, strcspn(text, "\n"));
	return true;
}

/* Sets ERR_BUSY with the holder's note as message. Returns -1. */
static int report_busy(const char *path, struct err *err)
{
	CLEANUP(str_free) struct str note = STR_INIT;

	/* the holder has the lock a moment before it has written its note */
	path_is_locked(path, &note);
	return err_set(err, ERR_BUSY, "%s", note.len ? str_text(&note) : "another process");
}

int path_lock(const char *path, const char *note, int *out, struct err *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (find_own_lock(path) >= 0)
		return report_busy(path, err);
	CLEANUP(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	if (fcntl(fd, F_SETLK, &lock) < 0)
		return errno == EACCES || errno == EAGAIN
			       ? report_busy(path, err)
			       : err_set(err, ERR_LOCAL, "%s: lock: %s", path, strerror(errno));
	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, note, strlen(note), 0);
	remember_lock(fd);
	*out = fd;
	fd = -1;
	return 0;
}

/* ---- path remove ----
 * Removes files and whole trees, however deep, without following a link. */

/* Each level needs a descriptor, so a removal goes no deeper at once. */
enum { REMOVAL_DEPTH = 16 };

struct removal {
	bool open_up;   /* gives the owner's rights back to folders that lack them */
	int top;        /* descriptor of the tree's first folder; -1: not open yet */
	unsigned moved; /* number of folders that lay too deep and were moved into the first one */
	int why;        /* errno of the first failure; 0: none */
};

static int empty_folder(struct removal *r, int fd, int depth);

/* Records the failure, if it is the first one. Returns -1. */
static int not_removed(struct removal *r, int why)
{
	r->why = r->why ? r->why : why;
	return -1;
}

/* Opens a folder, whose rights open_up changes first. Returns a descriptor, or -1 and errno. */
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

/* Moves a folder that lies too deep to the top, where the next round of remove_tree() finds it. */
static int move_to_top(struct removal *r, int parent, const char *name)
{
	do {
		char to[48];
		snprintf(to, sizeof(to), ".burst-removal-%u", r->moved++);
		if (renameat(parent, name, r->top, to) == 0)
			return 0;
	} while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
	return not_removed(r, errno);
}

/* Removes the folder open as fd with its contents, or moves it to the top. Closes fd. */
static int remove_folder(struct removal *r, int parent, const char *name, int fd, int depth)
{
	if (depth >= REMOVAL_DEPTH) {
		close(fd);
		return move_to_top(r, parent, name);
	}
	if (empty_folder(r, fd, depth) < 0)
		return -1;
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? not_removed(r, errno)
									   : 0;
}

/* Removes a file or folder at this depth below the top. */
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

/* Removes everything in the folder and closes fd. Goes on after a failure; then returns -1. */
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

/* Empties the tree's first folder in rounds, until no round moves a deep folder to the top. */
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

/* Removes the tree. Sets *err and errno if something remains. */
static int run_removal(struct removal r, int dir, const char *name, const char *shown,
		       struct err *err)
{
	int result = remove_tree(&r, dir, name);

	fd_close(r.top);
	if (result < 0)
		err_set(err, ERR_LOCAL, "%s: cannot remove: %s", shown, strerror(r.why));
	errno = r.why;
	return result;
}

int path_remove_tree_at(int dir, const char *name, const char *shown, struct err *err)
{
	return run_removal((struct removal){.open_up = true, .top = -1}, dir, name, shown, err);
}

static int remove_path(const char *path, struct removal r, struct err *err)
{
	CLEANUP(free_text) char *name = xstrdup(path);

	/* "link/" would name the folder that the link points at */
	for (size_t len = strlen(name); len > 1 && name[len - 1] == '/'; len--)
		name[len - 1] = '\0';
	return run_removal(r, AT_FDCWD, name, path, err);
}

int path_remove_tree(const char *path, struct err *err)
{
	return remove_path(path, (struct removal){.open_up = false, .top = -1}, err);
}

int path_remove_closed_tree(const char *path, struct err *err)
{
	return remove_path(path, (struct removal){.open_up = true, .top = -1}, err);
}

/* ---- path ----
 * Reads, writes and locks files, and judges which names are safe. */

#if defined(__linux__) && __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

char *path_join(const char *dir, const char *name)
{
	if (name[0] == '/' || !dir[0])
		return xstrdup(name);
	return xasprintf("%s%s%s", dir, ends_with(dir, "/") ? "" : "/", name);
}

char *path_dir(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int path_mkdirs(const char *path, mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *copy = xstrdup(path);
	struct stat st;

	for (char *p = copy;; p++) {
		if (*p && (*p != '/' || p == copy))
			continue;
		char was = *p;
		*p = '\0';
		int why = mkdir(copy, mode) < 0 ? errno : 0;
		if (why && why != EEXIST && why != EISDIR && stat(copy, &st) < 0)
			return err_set(err, ERR_LOCAL, "%s: cannot make folder: %s", copy,
				       strerror(why));
		*p = was;
		if (!was)
			break;
	}
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_LOCAL, "%s: is not a folder", path);
	return 0;
}

char *path_below(const char *root, const char *dir)
{
	CLEANUP(free_text) char *above = realpath(root, NULL);
	CLEANUP(free_text) char *real = realpath(dir, NULL);
	size_t len = above ? strlen(above) : 0;

	return real && above && starts_with(real, above) && real[len] == '/'
		       ? xstrdup(real + len + 1)
		       : NULL;
}

int fd_read_all(int fd, const char *path, size_t max, struct str *out, struct err *err)
{
	char buf[65536];
	size_t total = 0;

	for (;;) {
		ssize_t n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
		if (n == 0)
			return 0;
		total += (size_t)n;
		if (total > max)
			return err_set(err, ERR_CONFIG, "%s: larger than %zu bytes", path, max);
		str_addn(out, buf, (size_t)n);
	}
}

int path_read(const char *path, size_t max, struct str *out, struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL, "%s: %s", path,
			       strerror(errno));
	return fd_read_all(fd, path, max, out, err);
}

bool path_is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return !strcmp(folder, "/") ||
	       (!strncmp(path, folder, len) && (!path[len] || path[len] == '/'));
}

int path_open_plain_at(int dir, const char *name, const char *shown, struct err *err)
{
	CLEANUP(fd_close)
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return err_set(err, ERR_CONFIG, "%s: is a link: put the file itself there", shown);
	if (fd < 0 && errno == ENXIO)
		return err_set(err, ERR_CONFIG, "%s: is not a regular file", shown);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL, "%s: %s", shown,
			       strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s: is not a regular file", shown);
	int plain = fd;
	fd = -1;
	return plain;
}

int path_read_plain_at(int dir, const char *name, const char *shown, size_t max, struct str *out,
		       struct err *err)
{
	CLEANUP(fd_close) int fd = path_open_plain_at(dir, name, shown, err);

	return fd < 0 ? -1 : fd_read_all(fd, shown, max, out, err);
}

int path_read_plain(const char *path, size_t max, struct str *out, struct err *err)
{
	return path_read_plain_at(AT_FDCWD, path, path, max, out, err);
}

int fd_write_all(int fd, const void *from, size_t len)
{
	const char *bytes = from;

	while (len) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int path_fsync_dir(const char *dir, struct err *err)
{
	CLEANUP(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* some file systems refuse fsync on folders (EINVAL): nothing more can be done there */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		return err_set(err, ERR_LOCAL, "%s: fsync: %s", dir, strerror(errno));
	return 0;
}

int path_open_new_at(int dir, const char *name, int flags, mode_t mode)
{
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -1;
	return openat(dir, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

int path_open_new(const char *path, int flags, mode_t mode)
{
	return path_open_new_at(AT_FDCWD, path, flags, mode);
}

/* Writes and fsyncs a temporary file and renames it into place. The caller fsyncs the folder. */
static int write_renamed(int dir, const char *name, const char *shown, const void *bytes,
			 size_t len, mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *temp = xasprintf("%s.tmp-%ld", name, (long)getpid());
	int fd = path_open_new_at(dir, temp, O_WRONLY, mode);

	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s.tmp-%ld: %s", shown, (long)getpid(),
			       strerror(errno));
	bool failed = fd_write_all(fd, bytes, len) < 0 || fsync(fd) < 0;
	int why = errno;
	if (close(fd) < 0 && !failed) {
		failed = true;
		why = errno;
	}
	if (!failed && renameat(dir, temp, dir, name) < 0) {
		failed = true;
		why = errno;
	}
	if (failed) {
		unlinkat(dir, temp, 0);
		return err_set(err, ERR_LOCAL, "%s: %s", shown, strerror(why));
	}
	return 0;
}

int path_write(const char *path, const void *bytes, size_t len, mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *dir = path_dir(path);

	return write_renamed(AT_FDCWD, path, path, bytes, len, mode, err) < 0
		       ? -1
		       : path_fsync_dir(dir, err);
}

int path_write_at(int dir, const char *name, const char *shown, const void *bytes, size_t len,
		  mode_t mode, struct err *err)
{
	if (write_renamed(dir, name, shown, bytes, len, mode, err) < 0)
		return -1;
	if (fsync(dir) < 0 && errno != EINVAL) /* some file systems refuse it on folders */
		return err_set(err, ERR_LOCAL, "%s: fsync of its folder: %s", shown,
			       strerror(errno));
	return 0;
}

/* ---- the folder that outputs go to ---- */

static struct {
	pthread_mutex_t lock;
	char *dir;
	int fd;
} held_dir = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* Opens the folder anew, so that locks and offsets are not shared with fd. */
void path_hold_dir(const char *dir, int fd)
{
	pthread_mutex_lock(&held_dir.lock);
	free(held_dir.dir);
	fd_close(held_dir.fd);
	held_dir.dir = NULL;
	held_dir.fd = fd < 0 ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (held_dir.fd >= 0)
		held_dir.dir = xstrdup(dir);
	pthread_mutex_unlock(&held_dir.lock);
}

int path_open_dir(const char *dir)
{
	pthread_mutex_lock(&held_dir.lock);
	bool is_held = held_dir.dir && !strcmp(held_dir.dir, dir);
	int fd = is_held ? openat(held_dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
			 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int why = errno;
	pthread_mutex_unlock(&held_dir.lock);
	errno = why;
	return fd;
}

int path_open_parent(int dir, const char *name, const char **base)
{
	CLEANUP(fd_close) int at = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (const char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		CLEANUP(free_text) char *part = xstrndup(name, (size_t)(slash - name));
		int next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		    why = errno;
		close(at);
		at = next;
		errno = why;
	}
	*base = name;
	int parent = at;
	at = -1;
	return parent;
}

/* path_open_below() in one system call. -1 and errno; ENOSYS: the system has no such call. */
static int open_by_openat2(int dir, const char *name, int flags)
{
#ifdef SYS_openat2
	struct open_how how = {.flags = (uint64_t)flags,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

	if (fd < 0 && errno == EPERM) /* a container may forbid calls that it does not know */
		errno = ENOSYS;
	return fd;
#else
	(void)dir, (void)name, (void)flags;
	errno = ENOSYS;
	return -1;
#endif
}

int path_open_below(int dir, const char *name, int flags)
{
	const char *base;
	int fd;

	flags |= O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	if (!strchr(name, '/'))
		return openat(dir, name, flags);
	fd = open_by_openat2(dir, name, flags);
	if (fd >= 0 || errno != ENOSYS)
		return fd;
	CLEANUP(fd_close) int parent = path_open_parent(dir, name, &base);
	return parent < 0 ? -1 : openat(parent, base, flags);
}

bool path_exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* ---- names ---- */

/* Whether some file system takes this part of a path for ".git": one may ignore case, or the dots
 * and blanks that Windows drops at the end of a name. */
static bool is_git_folder(const char *part, size_t len)
{
	while (len && (part[len - 1] == '.' || part[len - 1] == ' '))
		len--;
	return (len == 4 && !strncasecmp(part, ".git", len)) ||
	       (len == 5 && !strncasecmp(part, "git~1", len));
}

bool path_in_git_folder(const char *path)
{
	for (const char *part = path; part;) {
		size_t n = strcspn(part, "/");
		if (is_git_folder(part, n))
			return true;
		part = part[n] ? part + n + 1 : NULL;
	}
	return false;
}

int path_open_log(const char *path, int64_t most)
{
	CLEANUP(free_text) char *older = xasprintf("%s.1", path);
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size > most)
		rename(path, older);
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

bool path_is_safe(const char *path)
{
	size_t len = strlen(path);

	if (!len || len > 1024 || path[0] == '/' || !utf8_valid(path, len))
		return false;
	for (const unsigned char *p = (const unsigned char *)path; *p;) {
		size_t step = utf8_sequence(p, strlen((const char *)p));
		if (utf8_hostile(p, step) || *p == '\\')
			return false;
		p += step;
	}
	for (const char *part = path; part;) {
		size_t n = strcspn(part, "/");
		if (n == 0 || n > 255 || (n == 1 && part[0] == '.') ||
		    (n == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part = part[n] ? part + n + 1 : NULL;
	}
	return true;
}

/* Whether burst itself writes to this name in the output folder. Later runs trust "manifest.jsonl",
 * so no folder of that name is allowed either. */
static bool is_own_name(const char *path)
{
	static const char *const whole[] = {"manifest.jsonl"}, *const begun[] = {
								       "manifest.jsonl.tmp-",
								       ".burst-probe-",
								       ".burst-moving-",
								       ".burst-copy-"};
	size_t len = strcspn(path, "/");

	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		if (len == strlen(whole[i]) && !strncasecmp(path, whole[i], len))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(begun); i++)
		if (!strncasecmp(path, begun[i], strlen(begun[i])))
			return true;
	return ends_with(path, PATH_PART);
}

bool path_may_be_output(const char *path)
{
	return path_is_safe(path) && !path_in_git_folder(path) && !is_own_name(path);
}

int64_t fd_free_bytes(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) < 0 ? -1 : (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
}

int64_t path_free_bytes(const char *path)
{
	struct statvfs fs;

	if (statvfs(path, &fs) < 0)
		return -1;
	return (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
}
