/* path_lock.c - locks on files, which no process but their own holds.
 *
 * These are fcntl()'s. A lock of flock() belongs to the open file: a child has it too until it
 * executes its program, so a client that is killed at such a moment would seem to live. The kernel
 * drops a lock of fcntl() as soon as its process closes any descriptor of the file. So a process
 * remembers its locks, and never opens such a file again. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "path.h"
#include "str.h"

static struct held {
	int fd;
	pid_t pid; /* a child inherits the list, but not the locks */
	dev_t dev;
	ino_t inode;
} * held;
static size_t held_count, held_cap;

static bool is_file(int fd, dev_t dev, ino_t inode)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == inode;
}

/* The descriptor by which this process holds the file's lock; -1: it does not. */
static int own(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -1;
	for (size_t i = held_count; i-- > 0;) {
		const struct held *h = &held[i];
		if (h->pid != getpid() || !is_file(h->fd, h->dev, h->inode))
			held[i] = held[--held_count]; /* it was closed */
		else if (h->dev == st.st_dev && h->inode == st.st_ino)
			return h->fd;
	}
	return -1;
}

static void remember(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return;
	GROW(held, held_count, held_cap);
	held[held_count++] = (struct held){fd, getpid(), st.st_dev, st.st_ino};
}

/* A client of an older burst has a lock of flock(). */
static bool is_older(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(fd, LOCK_UN);
	return false;
}

static bool is_taken(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) || is_older(fd);
}

bool path_is_locked(const char *path, struct str *note)
{
	int mine = own(path);
	CLEANUP(fd_close) int fd = mine < 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
	char text[128] = "";

	if (mine < 0 && (fd < 0 || !is_taken(fd)))
		return false;
	if (note && pread(mine < 0 ? fd : mine, text, sizeof(text) - 1, 0) > 0)
		str_addn(note, text, strcspn(text, "\n"));
	return true;
}

static int busy(const char *path, struct err *err)
{
	CLEANUP(str_free) struct str note = STR_INIT;

	/* the holder has the lock a moment before it has written its note */
	path_is_locked(path, &note);
	return err_set(err, ERR_BUSY, "%s", note.len ? str_text(&note) : "another process");
}

int path_lock(const char *path, const char *note, int *out, struct err *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (own(path) >= 0)
		return busy(path, err);
	CLEANUP(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	bool older = is_older(fd);
	if (older || fcntl(fd, F_SETLK, &lock) < 0)
		return older || errno == EACCES || errno == EAGAIN
			       ? busy(path, err)
			       : err_set(err, ERR_LOCAL, "%s: lock: %s", path, strerror(errno));
	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, note, strlen(note), 0);
	remember(fd);
	*out = fd;
	fd = -1;
	return 0;
}
