/* moving.c - copies the files of a listing from one folder to another by several processes, and
 * compares them. */
#include "moving.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "bounds.h"
#include "files.h"
#include "machine.h"
#include "sha256.h"

int moved_failed(void)
{
	return MOVED_FAILED + (errno > 0 && errno < 190 ? errno : 0);
}

/* Tells a changed file (missing, or of another kind) from an I/O error, which is the machine's
 * fault. */
static int moved_lacks(void)
{
	return errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == ENXIO
		       ? MOVED_CHANGED
		       : moved_failed();
}

int moving_parent(struct moving *m, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	*name = slash ? slash + 1 : path;
	if (m->parent && strlen(m->parent) == len && !memcmp(m->parent, path, len))
		return 0;
	close_fd(&m->from_dir);
	close_fd(&m->to_dir);
	free(m->parent);
	m->parent = xstrndup(path, len);
	m->from_dir = open_parent(m->from, path, false, name);
	m->to_dir = m->to >= 0 ? open_parent(m->to, path, false, name) : -1;
	if (m->from_dir >= 0 && (m->to < 0 || m->to_dir >= 0))
		return 0;
	free(m->parent);
	m->parent = NULL;
	return -1;
}

static int moving_bytes(int in, int out, char hex[65])
{
	static char part[256 << 10];
	struct sha256 sha;
	ssize_t n;
	sha_start(&sha);
	while ((n = read(in, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (out >= 0 && fd_write_all(out, part, (size_t)n) < 0))
			return -1;
		sha_add(&sha, part, (size_t)n);
	}
	sha_hex(&sha, hex);
	return 0;
}

int moving_file(struct moving *m, size_t at)
{
	const struct listed *e = &m->l->list[at];
	const char *name;
	struct stat st;
	char hex[65];
	if (moving_parent(m, e->path, &name) < 0)
		return moved_lacks();
	int in = openat(m->from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	/* another process is about to free a descriptor */
	for (int tries = 0; in < 0 && errno == EAGAIN && tries < 1000; tries++) {
		poll(NULL, 0, 50);
		in = openat(m->from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	if (in < 0)
		return moved_lacks();
	if (fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return close(in), MOVED_CHANGED;
	if (m->owner && st.st_uid != m->owner)
		return close(in), errno = EPERM, moved_failed();
	int out = m->to < 0 ? -1
			    : openat(m->to_dir, name,
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int result = m->to >= 0 && out < 0            ? moved_failed()
		     : moving_bytes(in, out, hex) < 0 ? moved_failed()
						      : MOVED;
	if (result == MOVED && out >= 0) {
		fchmod(out, e->type == 'x' ? 0755 : 0644);
		futimens(out, (struct timespec[]){st.st_mtim, st.st_mtim});
	}
	if (out >= 0 && close(out) < 0 && result == MOVED)
		result = moved_failed();
	close(in);
	if (result == MOVED && m->hashes)
		memcpy(m->hashes[at], hex, 65);
	else if (result == MOVED && strcmp(hex, e->sha256))
		result = MOVED_CHANGED;
	return result;
}

static int moving_link(struct moving *m, const struct listed *e)
{
	const char *name;
	char target[PATH_BYTES_MAX];
	if (moving_parent(m, e->path, &name) < 0)
		return moved_lacks();
	ssize_t n = readlinkat(m->from_dir, name, target, sizeof(target) - 1);
	if (n < 0)
		return errno == EINVAL ? MOVED_CHANGED : moved_lacks();
	target[n] = 0;
	return strcmp(target, e->target) ? MOVED_CHANGED : MOVED;
}

/* Checks that the listing has every entry of this folder ("" is the root). */
static int moving_folder(struct moving *m, const char *path)
{
	int fd = *path ? open_folder(m->from, path, false)
		       : openat(m->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return moved_lacks();
	int result = MOVED;
	struct dirent *e;
	while (result == MOVED && (errno = 0, e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    (!*path && is_beside_tree(e->d_name)))
			continue;
		char *below = xasprintf("%s%s%s", path, *path ? "/" : "", e->d_name);
		if (!listing_find(m->l, below))
			result = MOVED_CHANGED;
		free(below);
	}
	if (result == MOVED && errno)
		result = moved_failed();
	closedir(d);
	return result;
}

static int moving_share(struct moving m)
{
	int result = m.to < 0 && m.mine == 0 ? moving_folder(&m, "") : MOVED;
	m.from_dir = m.to_dir = -1;
	for (size_t i = 0; i < m.l->count && result == MOVED; i++) {
		const struct listed *e = &m.l->list[i];
		if ((int)(i / LISTING_CHUNK % (size_t)m.of) != m.mine)
			continue;
		if (e->type == 'f' || e->type == 'x')
			result = moving_file(&m, i);
		else if (m.to < 0)
			result = e->type == 'l' ? moving_link(&m, e) : moving_folder(&m, e->path);
	}
	close_fd(&m.from_dir);
	close_fd(&m.to_dir);
	free(m.parent);
	return result;
}

pid_t fork_share(void)
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(MOVED_FAILED);
	return pid;
}

int moving_wide(struct moving m)
{
	pid_t pids[WIDE_MAX];
	m.of = (int)MIN((size_t)MAX(2, MIN(2 * cpu_count(), (int)WIDE_MAX)),
			m.l->count / LISTING_CHUNK + 1);
	for (m.mine = 1; m.mine < m.of; m.mine++) {
		pids[m.mine] = fork_share();
		if (pids[m.mine] == 0)
			_exit(moving_share(m));
	}
	m.mine = 0;
	int worst = moving_share(m);
	for (m.mine = 1; m.mine < m.of; m.mine++) {
		int status = 0, result = MOVED_FAILED + EIO;
		if (pids[m.mine] < 0)
			result = moving_share(m);
		else if (waitpid(pids[m.mine], &status, 0) == pids[m.mine] && WIFEXITED(status))
			result = WEXITSTATUS(status);
		worst = MAX(worst, result);
	}
	if (worst >= MOVED_FAILED)
		errno = worst - MOVED_FAILED;
	return worst;
}
