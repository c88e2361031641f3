/* copy.c - copies a whole folder, by several processes if wanted, and moves one over another. */
#include "copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "bounds.h"
#include "files.h"
#include "listing.h"
#include "machine.h"

static int copy_bytes(int from, int to)
{
	for (;;) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);
		if (n == 0)
			return 0;
		if (n < 0)
			break;
	}
	char *part = xcalloc(1, SLICE);
	ssize_t n;
	int failed = 0;
	while (!failed && (n = read(from, part, SLICE)) != 0)
		failed = n < 0 ? errno != EINTR : fd_write_all(to, part, (size_t)n) < 0;
	free(part);
	return failed ? -1 : 0;
}

#define FICLONE_REQUEST _IOW(0x94, 9, int)

/* Copies one plain file: by reflink or hard link if requested and possible, else by its bytes. */
static int copy_plain(int from, int to, const char *name, const struct stat *st, enum copy_how how)
{
	if (how == COPY_LINKS && linkat(from, name, to, name, 0) == 0)
		return 0;
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int out = in < 0 ? -1
			 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				  st->st_mode & 0777);
	int failed = in < 0 || out < 0 ||
		     (ioctl(out, FICLONE_REQUEST, in) < 0 && copy_bytes(in, out) < 0);
	if (!failed) {
		fchmod(out, st->st_mode & 0777);
		futimens(out, (struct timespec[]){st->st_atim, st->st_mtim});
	}
	int saved = errno;
	close_fd(&in);
	close_fd(&out);
	errno = saved;
	return failed ? -1 : 0;
}

static int copy_link(int from, int to, const char *name)
{
	char target[PATH_BYTES_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
	if (n < 0)
		return -1;
	target[n] = 0;
	return symlinkat(target, to, name);
}

uint32_t hash_text(uint32_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

uint32_t hash_pick(uint32_t hash, uint32_t of)
{
	return (hash ^ hash >> 16) % of;
}

static int copy_entry(int from, int to, const struct dirent *e, struct copying *c, bool files_too);

int copy_tree(int from, int to, struct copying *c)
{
	DIR *d = fdopendir(openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!d)
		return -1;
	bool files_too = (int)hash_pick(c->path, (uint32_t)c->of) == c->mine;
	int failed = 0;
	struct dirent *e;
	while (!failed && (errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			failed = copy_entry(from, to, e, c, files_too) < 0;
	if (!failed && errno) { /* readdir failed before the end of the list */
		failed = 1;
		c->lost = c->lost || errno == ENOENT || errno == ESTALE;
	}
	int saved = errno;
	closedir(d);
	errno = saved;
	return failed ? -1 : 0;
}

static int copy_folder(int from, int to, const char *name, mode_t mode, struct copying *c)
{
	struct stat st;
	uint32_t above = c->path;
	int failed = mkdirat(to, name, 0755) < 0 && (c->of == 1 || errno != EEXIST);
	int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	c->path = hash_text(hash_text(above, "/"), name);
	failed = failed || in < 0 || out < 0 || copy_tree(in, out, c) < 0;
	c->path = above;
	if (out >= 0 && fstat(out, &st) == 0 && (st.st_mode & 0777) != mode)
		fchmod(out, mode);
	close_fd(&in);
	close_fd(&out);
	return failed ? -1 : 0;
}

static int copy_listed(int from, int to, const struct dirent *e, struct copying *c, bool files_too)
{
	struct stat st;
	if (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN && !files_too)
		return 0;
	/* link without a stat: on a network file system each call costs a round trip */
	if (e->d_type == DT_REG && c->how == COPY_LINKS &&
	    linkat(from, e->d_name, to, e->d_name, 0) == 0)
		return 0;
	if (fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (S_ISDIR(st.st_mode))
		return copy_folder(from, to, e->d_name, st.st_mode & 0777, c);
	if (files_too && S_ISLNK(st.st_mode))
		return copy_link(from, to, e->d_name);
	return files_too && S_ISREG(st.st_mode) ? copy_plain(from, to, e->d_name, &st, c->how) : 0;
}

/* A missing entry is no error. Workers create and remove files beside the code (__pycache__). A
 * tree being removed loses entries too, and the two look alike. */
static int copy_entry(int from, int to, const struct dirent *e, struct copying *c, bool files_too)
{
	struct stat st;
	if (copy_listed(from, to, e, c, files_too) == 0)
		return 0;
	int saved = errno;
	c->lost = c->lost ||
		  (saved == ENOENT && fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
		   errno == ENOENT);
	errno = saved;
	return -1;
}

int move_over(int from, int to)
{
	DIR *d = fdopendir(openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	int failed = !d;
	while (!failed && (errno = 0, e = readdir(d))) {
		struct stat st;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		int below =
			openat(from, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0 && fstatat(to, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode)) {
			int into = openat(to, e->d_name,
					  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			failed = into < 0 || move_over(below, into) < 0;
			close_fd(&into);
		} else {
			failed = remove_at(to, e->d_name) < 0 ||
				 renameat(from, e->d_name, to, e->d_name) < 0;
		}
		close_fd(&below);
	}
	if (d)
		closedir(d);
	return failed ? -1 : 0;
}

static int copy_share(int from, int to, struct copying c)
{
	if (copy_tree(from, to, &c) == 0)
		return 0;
	return c.lost ? COPY_LOST : COPY_FAILED;
}

int copy_tree_wide(int from, int to, enum copy_how how)
{
	pid_t pids[WIDE_MAX];
	int of = MAX(2, MIN(2 * cpu_count(), (int)WIDE_MAX));
	for (int i = 1; i < of; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(copy_share(from, to,
					 (struct copying){.how = how, .mine = i, .of = of}));
	}
	int result = copy_share(from, to, (struct copying){.how = how, .of = of}), saved = errno;
	for (int i = 1; i < of; i++) {
		int status = 0, share = COPY_FAILED;
		errno = EIO;
		if (pids[i] < 0)
			share = copy_share(from, to,
					   (struct copying){.how = how, .mine = i, .of = of});
		else if (waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status))
			share = WEXITSTATUS(status);
		saved = share == COPY_FAILED ? errno : saved;
		result = MAX(result, share);
	}
	errno = saved;
	return result;
}
