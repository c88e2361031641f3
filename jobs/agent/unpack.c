/* unpack.c - unpacks an archive to the container's disk by several processes. */
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "files.h"
#include "machine.h"
#include "moving.h"
#include "sha256.h"
#include "take.h"

/* disk space left for what workers write */
#define ARCHIVE_SPARE (INT64_C(256) << 20)

/* Puts files that stay on the volume first: they are large, and one of them occupies a process the
 * longest. */
static void stretches_cut(struct unpacking *u)
{
	const struct packed *p = u->ar->list;
	u->stretches = xcalloc(1, (u->l->count + 1) * sizeof(*u->stretches));
	for (size_t i = 0; i < u->l->count; i++)
		if (is_file(&u->l->list[i]) && p[i].offset < 0)
			u->stretches[u->count++] = (struct stretch){i, i + 1};
	for (size_t i = 0, past; i < u->l->count; i = past) {
		int64_t bytes = 0;
		past = i + 1;
		if (p[i].offset < 0)
			continue;
		for (bytes = p[i].size; past < u->l->count && bytes + p[past].size <= ARCHIVE_PIECE;
		     past++)
			bytes += p[past].size;
		u->stretches[u->count++] = (struct stretch){i, past};
	}
}

/* Writes one file. part[] holds it already, at *ready, or is filled piece by piece. */
static int unpack_file(const struct unpacking *u, struct moving *m, size_t at, char *part,
		       const char *ready)
{
	const struct listed *e = &u->l->list[at];
	const struct packed *p = &u->ar->list[at];
	const char *name;
	char hex[65];
	struct sha256 sha;
	if (moving_parent(m, e->path, &name) < 0)
		return moved_failed();
	int out =
		openat(m->to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int failed = out < 0;
	sha_start(&sha);
	for (int64_t done = 0, n; done < p->size && !failed; done += n) {
		n = MIN(p->size - done, (int64_t)ARCHIVE_PIECE);
		failed = (!ready && pread_all(u->fd, part, (size_t)n, p->offset + done) < 0) ||
			 fd_write_all(out, ready ? ready : part, (size_t)n) < 0;
		if (!failed)
			sha_add(&sha, ready ? ready : part, (size_t)n);
	}
	sha_hex(&sha, hex);
	int result = failed                   ? errno == EBADMSG ? MOVED_CHANGED : moved_failed()
				       : strcmp(hex, e->sha256) ? MOVED_CHANGED
					      : MOVED;
	if (result == MOVED) {
		fchmod(out, e->type == 'x' ? 0755 : 0644);
		futimens(out, (struct timespec[]){{.tv_sec = p->mtime_s}, {.tv_sec = p->mtime_s}});
	}
	if (out >= 0 && close(out) < 0 && result == MOVED)
		result = moved_failed();
	return result;
}

static int unpack_stretch(const struct unpacking *u, struct moving *m, struct stretch c, char *part)
{
	const struct packed *p = u->ar->list;
	if (p[c.first].offset < 0) {
		struct moving there = {
			.l = u->l, .from = u->from, .to = -1, .from_dir = -1, .to_dir = -1};
		int result = moving_file(&there, c.first);
		close_fd(&there.from_dir);
		free(there.parent);
		return result;
	}
	int64_t begin = p[c.first].offset, end = begin;
	for (size_t i = c.first; i < c.past; i++)
		end = p[i].offset < 0 ? end : p[i].offset + p[i].size;
	bool at_once = end - begin <= ARCHIVE_PIECE;
	if (at_once && pread_all(u->fd, part, (size_t)(end - begin), begin) < 0)
		return errno == EBADMSG ? MOVED_CHANGED : moved_failed();
	int result = MOVED;
	for (size_t i = c.first; i < c.past && result == MOVED; i++)
		if (p[i].offset >= 0)
			result = unpack_file(u, m, i, part,
					     at_once ? part + (p[i].offset - begin) : NULL);
	return result;
}

static int unpack_share(const struct unpacking *u)
{
	struct moving m = {.l = u->l, .from = u->to, .to = u->to, .from_dir = -1, .to_dir = -1};
	char *part = xcalloc(1, ARCHIVE_PIECE);
	int result = MOVED;
	for (size_t i; result == MOVED && (i = atomic_fetch_add(u->next, 1)) < u->count;)
		result = unpack_stretch(u, &m, u->stretches[i], part);
	if (result != MOVED)
		atomic_store(u->next, u->count); /* stop the other processes */
	free(part);
	close_fd(&m.from_dir);
	close_fd(&m.to_dir);
	free(m.parent);
	return result;
}

static int unpack_wide(struct unpacking *u)
{
	pid_t pids[WIDE_MAX];
	u->next = mmap(NULL, sizeof(*u->next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (u->next == MAP_FAILED)
		return moved_failed();
	stretches_cut(u);
	int of = (int)MIN((size_t)MAX(2, MIN(2 * cpu_count(), (int)WIDE_MAX)), u->count + 1);
	for (int i = 1; i < of; i++) {
		pids[i] = fork_share();
		if (pids[i] == 0)
			_exit(unpack_share(u));
	}
	int worst = unpack_share(u);
	for (int i = 1; i < of; i++) {
		int status = 0, result = MOVED_FAILED + EIO;
		if (pids[i] < 0)
			result = MOVED; /* another process did this one's part */
		else if (waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status))
			result = WEXITSTATUS(status);
		worst = MAX(worst, result);
	}
	free(u->stretches);
	munmap((void *)u->next, sizeof(*u->next));
	if (worst >= MOVED_FAILED)
		errno = worst - MOVED_FAILED;
	return worst;
}

/* Makes links to the files that stay in the folder `there` on the volume. */
static int archive_links(const struct listing *l, const struct archive *ar, int to,
			 const char *there)
{
	int failed = 0;
	for (size_t i = 0; i < l->count && !failed; i++) {
		const char *name;
		if (!is_file(&l->list[i]) || ar->list[i].offset >= 0)
			continue;
		char *target = xasprintf("%s/%s", there, l->list[i].path);
		int dir = open_parent(to, l->list[i].path, false, &name);
		failed = dir < 0 || symlinkat(target, dir, name) < 0;
		int saved = errno;
		close_fd(&dir);
		free(target);
		errno = saved;
	}
	return failed ? -1 : 0;
}

int archive_unpack(struct unpacking *u, int to, const char *name, const char *there,
		   char why[WHY_MAX])
{
	struct statvfs v;
	char *temp = xasprintf(".%s.%d", name, getpid());
	int64_t room = fstatvfs(to, &v) == 0
			       ? (int64_t)v.f_bavail * (int64_t)v.f_frsize - ARCHIVE_SPARE
			       : INT64_MAX;
	int result = MOVED_FAILED;
	if (room < u->ar->bytes + (int64_t)u->l->count * 2048) {
		snprintf(why, WHY_MAX, "the pod's disk has no room for its %lld MB",
			 (long long)(u->ar->bytes / 1000000));
		free(temp);
		return -1;
	}
	u->to = mkdirat(to, temp, 0755) < 0
			? -1
			: openat(to, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (u->to >= 0 && listing_frame(u->l, u->to) == 0 &&
	    archive_links(u->l, u->ar, u->to, there) == 0)
		result = unpack_wide(u);
	if (result == MOVED && (remove_at(to, name) < 0 || renameat(to, temp, to, name) < 0))
		result = MOVED_FAILED;
	if (result == MOVED_CHANGED)
		snprintf(why, WHY_MAX, "its archive is not what was put there");
	else if (result != MOVED)
		snprintf(why, WHY_MAX, "%s", strerror(errno));
	remove_at(to, temp);
	close_fd(&u->to);
	free(temp);
	return result == MOVED ? 0 : -1;
}

int archive_take(int root, const char *path, const char *there, const char *id, int to,
		 const char *name, int64_t *bytes, char why[WHY_MAX])
{
	struct listing l;
	struct archive ar;
	int from, taken = -1;
	if (open_listed(root, path, id, &from, &l) != TAKEN)
		return snprintf(why, WHY_MAX, "it is missing or was changed"), -1;
	int fd = archive_open(from, &l, &ar);
	if (fd < 0) {
		snprintf(why, WHY_MAX, "%s",
			 errno == ENOENT ? "it has no archive"
			 : errno == EBADMSG || errno == ELOOP
				 ? "its archive is not what was put there"
				 : strerror(errno));
	} else {
		taken = archive_unpack(
			&(struct unpacking){.l = &l, .ar = &ar, .fd = fd, .from = from}, to, name,
			there, why);
		*bytes = ar.bytes;
		free(ar.list);
	}
	close_fd(&fd);
	close_fd(&from);
	listing_free(&l);
	return taken;
}
