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
#include "walk.h"

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

static uint32_t hash_byte(uint32_t hash, char byte)
{
	return (hash ^ (unsigned char)byte) * 16777619u;
}

uint32_t hash_text(uint32_t hash, const char *text)
{
	for (; *text; text++)
		hash = hash_byte(hash, *text);
	return hash;
}

uint32_t hash_pick(uint32_t hash, uint32_t of)
{
	return (hash ^ hash >> 16) % of;
}

static int make_folder(const struct walked *w, mode_t mode, const struct copying *c)
{
	if (mkdirat(w->to, w->name, 0755) < 0 && (c->of == 1 || errno != EEXIST))
		return -1;
	/* its owner writes into it now */
	return mode == 0755 ? 0 : fchmodat(w->to, w->name, mode | 0700, 0);
}

/* Whether this process copies the files of the folder. */
static bool is_mine(const struct copying *c, const struct walked *w)
{
	uint32_t hash = 0;
	for (const char *p = w->path; p < w->name - 1; p++)
		hash = hash_byte(hash, *p);
	return (int)hash_pick(hash, (uint32_t)c->of) == c->mine;
}

static enum walk_step copy_entry(void *ctx, const struct walked *w)
{
	const struct copying *c = ctx;
	struct stat st;
	bool mine = c->of == 1 || is_mine(c, w);
	if (w->type != DT_DIR && w->type != DT_UNKNOWN && !mine)
		return WALK_ON;
	/* link without a stat: on a network file system each call costs a round trip */
	if (w->type == DT_REG && c->how == COPY_LINKS &&
	    linkat(w->dir, w->name, w->to, w->name, 0) == 0)
		return WALK_ON;
	if (fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return WALK_STOP;
	if (S_ISDIR(st.st_mode))
		return make_folder(w, st.st_mode & 0777, c) < 0 ? WALK_STOP : WALK_INTO;
	int failed = mine && S_ISLNK(st.st_mode)   ? copy_link(w->dir, w->to, w->name)
		     : mine && S_ISREG(st.st_mode) ? copy_plain(w->dir, w->to, w->name, &st, c->how)
						   : 0;
	return failed ? WALK_STOP : WALK_ON;
}

/* A missing entry is no error. Workers create and remove files beside the code (__pycache__). A
 * tree being removed loses entries too, and the two look alike. */
int copy_tree(int from, int to, struct copying *c)
{
	int failed = walk_tree(from, to, copy_entry, c);
	c->lost = failed && (errno == ENOENT || errno == ESTALE);
	return failed;
}

static enum walk_step move_entry(void *ctx, const struct walked *w)
{
	struct stat st, there;
	(void)ctx;
	if (fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return WALK_STOP;
	if (S_ISDIR(st.st_mode) && fstatat(w->to, w->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(there.st_mode))
		return WALK_INTO;
	return remove_at(w->to, w->name) < 0 || renameat(w->dir, w->name, w->to, w->name) < 0
		       ? WALK_STOP
		       : WALK_ON;
}

int move_over(int from, int to)
{
	return walk_tree(from, to, move_entry, NULL);
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
