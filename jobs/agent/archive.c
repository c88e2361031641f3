/* archive.c - copies trees between the volume and the container's disk, file by file or as an
 * archive, and compares them with their id. */
#include "trees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "files.h"
#include "sha256.h"

/* ---- file by file ---- */

enum { LISTING_CHUNK = 32 /* consecutive files that one process copies */ };

/* Files of a listing that several processes copy from one folder to another. */
struct moving {
	const struct listing *l;
	/* to -1: files are compared in place, and nothing unlisted may be there */
	int from, to;
	/* Shared by the processes, which fill it in. NULL: files must match the listing. */
	char (*hashes)[65];
	uid_t owner; /* required owner of all files; 0: any */
	struct parent from_dir, to_dir;
};

enum { MOVED, MOVED_CHANGED };

/* Tells a changed file (missing, or of another kind) from an I/O error, which is the machine's
 * fault. */
static int moved_lacks(void)
{
	return errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == ENXIO
		       ? MOVED_CHANGED
		       : share_failed();
}

/* Opens a file to read. Waits if another process is about to free a descriptor. */
static int moving_open(int dir, const char *name)
{
	for (int tries = 0;; tries++) {
		int in = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (in >= 0 || errno != EAGAIN || tries >= 1000)
			return in;
		poll(NULL, 0, 50);
	}
}

/* Gives a new file its mode and time, and closes it. Returns `result`, or that this has failed. */
static int moved_close(int out, const struct listed *e, struct timespec mtime, int result)
{
	if (out >= 0 && result == MOVED) {
		fchmod(out, e->type == 'x' ? 0755 : 0644);
		futimens(out, (struct timespec[]){mtime, mtime});
	}
	return out >= 0 && close(out) < 0 && result == MOVED ? share_failed() : result;
}

static int moving_file(struct moving *m, size_t at)
{
	const struct listed *e = &m->l->list[at];
	const char *name;
	struct stat st;
	struct sha256 sha;
	char hex[65];
	int out = -1;
	if (parent_open(&m->from_dir, m->from, e->path, false, &name) < 0 ||
	    (m->to >= 0 && parent_open(&m->to_dir, m->to, e->path, false, &name) < 0))
		return moved_lacks();
	int in = moving_open(m->from_dir.fd, name);
	if (in < 0)
		return moved_lacks();
	if (fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return close(in), MOVED_CHANGED;
	if (m->owner && st.st_uid != m->owner)
		return close(in), errno = EPERM, share_failed();
	sha_start(&sha);
	int failed = (m->to >= 0 && (out = create_at(m->to_dir.fd, name, 0600)) < 0) ||
		     copy_all(in, out, &sha) < 0;
	int result = moved_close(out, e, st.st_mtim, failed ? share_failed() : MOVED);
	close(in);
	sha_hex(&sha, hex);
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
	if (parent_open(&m->from_dir, m->from, e->path, false, &name) < 0)
		return moved_lacks();
	if (read_link(m->from_dir.fd, name, target) < 0)
		return errno == EINVAL ? MOVED_CHANGED : moved_lacks();
	return strcmp(target, e->target) ? MOVED_CHANGED : MOVED;
}

/* Checks that the listing has every entry of this folder ("" is the root). */
static int moving_folder(struct moving *m, const char *path)
{
	int fd = open_folder(m->from, *path ? path : ".", false);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return moved_lacks();
	int result = MOVED;
	struct dirent *e;
	while (result == MOVED && (e = next_entry(d))) {
		if (!*path && is_beside_tree(e->d_name))
			continue;
		char *below = xasprintf("%s%s%s", path, *path ? "/" : "", e->d_name);
		if (!listing_find(m->l, below))
			result = MOVED_CHANGED;
		free(below);
	}
	if (result == MOVED && errno)
		result = share_failed();
	closedir(d);
	return result;
}

static int moving_share(const void *ctx, int mine, int of)
{
	struct moving m = *(const struct moving *)ctx;
	m.from_dir = m.to_dir = (struct parent){.fd = -1};
	int result = m.to < 0 && mine == 0 ? moving_folder(&m, "") : MOVED;
	for (size_t i = 0; i < m.l->count && result == MOVED; i++) {
		const struct listed *e = &m.l->list[i];
		if ((int)(i / LISTING_CHUNK % (size_t)of) != mine)
			continue;
		if (is_file(e))
			result = moving_file(&m, i);
		else if (m.to < 0)
			result = e->type == 'l' ? moving_link(&m, e) : moving_folder(&m, e->path);
	}
	parent_close(&m.from_dir);
	parent_close(&m.to_dir);
	return result;
}

static int moving_wide(struct moving m)
{
	return share_wide(m.l->count / LISTING_CHUNK + 1, moving_share, &m);
}

/* ---- the archive of a tree ---- */

#define ARCHIVE_MOST                                                                               \
	(INT64_C(8) << 30) /* a larger one is not an environment of programs, and would fill       \
			      volume and disk */

enum { ARCHIVE_HEAD_MOST = 64 << 20 };

#define ARCHIVE_TITLE "burst-archive 1 %012lld\n"

/* Returns whether the folder's file system has less room, as far as it says. */
static bool has_less(int dir, int64_t bytes)
{
	int64_t room = fd_free_bytes(dir);
	return room >= 0 && room < bytes;
}

/* Plans the archive of this folder. Returns -1 with errno set. */
static int archive_measure(const struct listing *l, int from, struct archive *ar)
{
	ar->list = xcalloc(1, (l->count + 1) * sizeof(*ar->list));
	for (size_t i = 0; i < l->count; i++) {
		struct packed *p = &ar->list[i];
		struct stat st;
		p->offset = -1;
		if (!is_file(&l->list[i]))
			continue;
		int fd = open_below(from, l->list[i].path, &st);
		if (fd < 0)
			return -1;
		close(fd);
		p->size = st.st_size;
		p->mtime_s = st.st_mtim.tv_sec;
		if (p->size <= ARCHIVE_FILE_MOST) {
			p->offset = ar->bytes;
			ar->bytes += p->size;
		}
	}
	return 0;
}

static void archive_head(const struct listing *l, const struct archive *ar, struct str *out)
{
	char title[40];
	int len = snprintf(title, sizeof(title), ARCHIVE_TITLE, 0LL);
	str_addn(out, title, (size_t)len);
	for (size_t i = 0; i < l->count; i++) {
		const struct packed *p = &ar->list[i];
		if (is_file(&l->list[i]) && p->offset < 0)
			str_add(out, "-\n");
		else if (is_file(&l->list[i]))
			str_addf(out, "%lld %lld\n", (long long)p->size, (long long)p->mtime_s);
	}
	snprintf(title, sizeof(title), ARCHIVE_TITLE, (long long)out->len);
	memcpy(out->s, title, (size_t)len);
}

static int archive_add(FILE *to, int from, const char *path, int64_t size, char *part)
{
	struct stat st;
	int64_t left = size;
	ssize_t n = 1;
	int fd = open_below(from, path, &st);
	if (fd < 0)
		return -1;
	while (left > 0 && (n = read(fd, part, (size_t)MIN(left, (int64_t)SLICE))) > 0 &&
	       fwrite(part, 1, (size_t)n, to) == (size_t)n)
		left -= n;
	if (left && n >= 0 && !ferror(to))
		errno = EBADMSG;
	close_fd(&fd);
	return left ? -1 : 0;
}

static int archive_fill(const struct listing *l, const struct archive *ar, int from, FILE *to)
{
	struct str head = {0};
	char *part = xcalloc(1, SLICE);
	archive_head(l, ar, &head);
	int failed = fwrite(head.s, 1, head.len, to) != head.len;
	for (size_t i = 0; i < l->count && !failed; i++)
		if (ar->list[i].offset >= 0)
			failed = archive_add(to, from, l->list[i].path, ar->list[i].size, part) < 0;
	failed = failed || fflush(to) == EOF || fsync(fileno(to)) < 0;
	free(part);
	str_free(&head);
	return failed ? -1 : 0;
}

/* Writes the archive of `from` into the folder `dir`. On failure why[] holds the reason; the folder
 * works without an archive. */
static void archive_write(const struct listing *l, int from, int dir, char why[WHY_MAX])
{
	struct archive ar = {0};
	why[0] = 0;
	int failed = archive_measure(l, from, &ar);
	if (!failed && ar.bytes > ARCHIVE_MOST) {
		snprintf(why, WHY_MAX, "its small files are %lld MB",
			 (long long)(ar.bytes / 1000000));
	} else if (!failed && has_less(dir, 2 * ar.bytes)) {
		snprintf(why, WHY_MAX, "the volume has little room left");
	} else if (!failed) {
		int fd = create_at(dir, ARCHIVE_NAME, 0644);
		FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
		if (to)
			setvbuf(to, NULL, _IOFBF, ARCHIVE_PIECE);
		failed = !to || archive_fill(l, &ar, from, to) < 0;
		int saved = errno;
		if (to && fclose(to) == EOF && !failed)
			failed = 1, saved = errno;
		if (failed)
			unlinkat(dir, ARCHIVE_NAME, 0);
		errno = saved;
	}
	if (failed)
		snprintf(why, WHY_MAX, "%s", strerror(errno));
	free(ar.list);
}

/* Reads a number in [least, most] and the byte that ends it. Returns -1 if it is invalid. */
static int archive_number(const char **at, char end, int64_t least, int64_t most, int64_t *out)
{
	char *after;
	errno = 0;
	long long n = strtoll(*at, &after, 10);
	if (after == *at || *after != end || errno || n < least || n > most || **at == ' ' ||
	    **at == '+')
		return -1;
	*at = after + 1;
	*out = n;
	return 0;
}

static int archive_lines(const struct listing *l, const char *at, struct archive *ar)
{
	for (size_t i = 0; i < l->count; i++) {
		struct packed *p = &ar->list[i];
		p->offset = -1;
		if (!is_file(&l->list[i]))
			continue;
		if (!strncmp(at, "-\n", 2)) {
			at += 2;
			continue;
		}
		if (archive_number(&at, ' ', 0, ARCHIVE_FILE_MOST, &p->size) < 0 ||
		    archive_number(&at, '\n', INT32_MIN, INT64_C(1) << 40, &p->mtime_s) < 0)
			return -1;
		p->offset = ar->head + ar->bytes;
		ar->bytes += p->size;
	}
	return *at ? -1 : 0;
}

/* Reads the head, which stands before the bytes. `st` is the archive's. */
static int archive_head_read(int fd, const struct stat *st, const struct listing *l,
			     struct archive *ar)
{
	char title[40], again[40];
	int len = snprintf(title, sizeof(title), ARCHIVE_TITLE, 0LL);
	long long head = 0;
	*ar = (struct archive){0};
	if (pread_all(fd, title, (size_t)len, 0) < 0)
		return -1;
	title[len] = 0;
	const char *digits = strrchr(title, ' ');
	head = digits ? atoll(digits) : 0;
	snprintf(again, sizeof(again), ARCHIVE_TITLE, head);
	if (strcmp(title, again) || head < len ||
	    head > MIN((int64_t)ARCHIVE_HEAD_MOST, (int64_t)st->st_size))
		return errno = EBADMSG, -1;
	char *text = xcalloc(1, (size_t)head - (size_t)len + 1);
	ar->head = head;
	ar->list = xcalloc(1, (l->count + 1) * sizeof(*ar->list));
	int failed = pread_all(fd, text, (size_t)(head - len), len) < 0;
	if (!failed && (archive_lines(l, text, ar) < 0 || ar->head + ar->bytes != st->st_size))
		errno = EBADMSG, failed = 1;
	free(text);
	if (failed)
		free(ar->list);
	return failed ? -1 : 0;
}

/* Opens the archive of the tree in folder `from`. Returns -1 with errno: EBADMSG if it does not
 * match the listing. */
static int archive_open(int from, const struct listing *l, struct archive *ar)
{
	struct stat st;
	int fd = open_below(from, ARCHIVE_NAME, &st);
	if (fd >= 0 && archive_head_read(fd, &st, l, ar) < 0)
		close_fd(&fd);
	return fd;
}

/* ---- whole trees ---- */

static enum taken taken_of(int moved)
{
	return moved == MOVED ? TAKEN : moved == MOVED_CHANGED ? TAKEN_CHANGED : TAKEN_FAILED;
}

/* Opens the folder `path` below `root` and reads its listing, which must have the hash `id`. On
 * TAKEN the caller closes *from and frees *l. TAKEN_FAILED sets errno. */
static enum taken open_listed(int root, const char *path, const char *id, int *from,
			      struct listing *l)
{
	*from = open_folder(root, path, false);
	if (*from >= 0 && listing_read(l, *from, id) == 0)
		return TAKEN;
	close_fd(from);
	return errno == EBADMSG || errno == ELOOP || errno == ENOTDIR ? TAKEN_CHANGED
	       : errno == ENOENT                                      ? TAKEN_MISSING
								      : TAKEN_FAILED;
}

enum taken tree_take(int root, const char *path, const char *id, int to, const char *name)
{
	struct listing l;
	int from;
	enum taken result = open_listed(root, path, id, &from, &l);
	if (result != TAKEN)
		return result;
	char *temp = xasprintf(".%s.%d", name, getpid());
	remove_at(to, temp);
	int dir = make_at(to, temp);
	result = TAKEN_FAILED;
	if (dir >= 0 && listing_frame(&l, dir) == 0)
		result = taken_of(moving_wide((struct moving){.l = &l, .from = from, .to = dir}));
	if (result == TAKEN && renameat(to, temp, to, name) < 0)
		result = TAKEN_FAILED;
	int saved = errno;
	remove_at(to, temp);
	close_fd(&dir);
	close_fd(&from);
	listing_free(&l);
	free(temp);
	errno = saved;
	return result;
}

enum taken tree_compare(int root, const char *path, const char *id)
{
	struct listing l;
	int from;
	enum taken result = open_listed(root, path, id, &from, &l);
	if (result != TAKEN)
		return result;
	result = taken_of(moving_wide((struct moving){.l = &l, .from = from, .to = -1}));
	close_fd(&from);
	listing_free(&l);
	return result;
}

int tree_keep(int from, uid_t owner, int root, const char *under, const char *name, char id[65],
	      char bad[PATH_BYTES_MAX], char *no_archive)
{
	struct listing l = {0};
	bad[0] = 0;
	if (listing_walk(&l, from, bad) < 0)
		return listing_free(&l), -1;
	bad[0] = 0;
	listing_sort(&l);
	size_t room = (l.count + 1) * 65;
	char(*hashes)[65] =
		mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int to = open_folder(root, under, true);
	char *temp = xasprintf(".kept.%ld.%d", (long)time(NULL), getpid());
	int dir = to < 0 ? -1 : make_at(to, temp);
	int failed = hashes == MAP_FAILED || dir < 0 || listing_frame(&l, dir) < 0;
	if (!failed)
		failed = moving_wide((struct moving){.l = &l,
						     .from = from,
						     .to = dir,
						     .hashes = hashes,
						     .owner = owner}) != MOVED;
	for (size_t i = 0; !failed && i < l.count; i++)
		if (is_file(&l.list[i]))
			memcpy(l.list[i].sha256, hashes[i], 65);
	if (!failed) {
		listing_id(&l, id);
		failed = listing_write(&l, dir) < 0;
		if (!failed && no_archive)
			archive_write(&l, from, dir, no_archive);
		failed = failed || syncfs(dir) < 0;
	}
	if (!failed && renameat(to, temp, to, name ? name : id) < 0)
		failed = name != NULL || (errno != EEXIST && errno != ENOTEMPTY);
	int saved = errno;
	if (to >= 0)
		remove_at(to, temp);
	if (hashes != MAP_FAILED)
		munmap(hashes, room);
	close_fd(&dir);
	close_fd(&to);
	listing_free(&l);
	free(temp);
	errno = saved;
	return failed ? -1 : 0;
}

/* ---- an archive, unpacked by several processes ---- */

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

static int unpack_failed(void)
{
	return errno == EBADMSG ? MOVED_CHANGED : share_failed();
}

/* Writes one file. part[] holds it already, at *ready, or is filled piece by piece. */
static int unpack_file(const struct unpacking *u, struct parent *to, size_t at, char *part,
		       const char *ready)
{
	const struct listed *e = &u->l->list[at];
	const struct packed *p = &u->ar->list[at];
	const char *name;
	char hex[65];
	struct sha256 sha;
	int out = parent_open(to, u->to, e->path, false, &name) < 0 ? -1
								    : create_at(to->fd, name, 0600);
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
	int result = failed ? unpack_failed() : strcmp(hex, e->sha256) ? MOVED_CHANGED : MOVED;
	return moved_close(out, e, (struct timespec){.tv_sec = p->mtime_s}, result);
}

static int unpack_stretch(const struct unpacking *u, struct parent *to, struct stretch c,
			  char *part)
{
	const struct packed *p = u->ar->list;
	if (p[c.first].offset < 0) {
		struct moving there = {.l = u->l, .from = u->from, .to = -1, .from_dir.fd = -1};
		int result = moving_file(&there, c.first);
		parent_close(&there.from_dir);
		return result;
	}
	int64_t begin = p[c.first].offset, end = begin;
	for (size_t i = c.first; i < c.past; i++)
		end = p[i].offset < 0 ? end : p[i].offset + p[i].size;
	bool at_once = end - begin <= ARCHIVE_PIECE;
	if (at_once && pread_all(u->fd, part, (size_t)(end - begin), begin) < 0)
		return unpack_failed();
	int result = MOVED;
	for (size_t i = c.first; i < c.past && result == MOVED; i++)
		if (p[i].offset >= 0)
			result = unpack_file(u, to, i, part,
					     at_once ? part + (p[i].offset - begin) : NULL);
	return result;
}

static int unpack_share(const void *ctx, int mine, int of)
{
	const struct unpacking *u = ctx;
	struct parent to = {.fd = -1};
	char *part = xcalloc(1, ARCHIVE_PIECE);
	int result = MOVED;
	(void)mine;
	(void)of;
	for (size_t i; result == MOVED && (i = atomic_fetch_add(u->next, 1)) < u->count;)
		result = unpack_stretch(u, &to, u->stretches[i], part);
	if (result != MOVED)
		atomic_store(u->next, u->count); /* stop the other processes */
	free(part);
	parent_close(&to);
	return result;
}

static int unpack_wide(struct unpacking *u)
{
	u->next = mmap(NULL, sizeof(*u->next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (u->next == MAP_FAILED)
		return share_failed();
	stretches_cut(u);
	int worst = share_wide(u->count + 1, unpack_share, u);
	free(u->stretches);
	munmap((void *)u->next, sizeof(*u->next));
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
		close_fd(&dir);
		free(target);
	}
	return failed ? -1 : 0;
}

int archive_unpack(struct unpacking *u, int to, const char *name, const char *there,
		   char why[WHY_MAX])
{
	int result = SHARE_FAILED;
	if (has_less(to, u->ar->bytes + (int64_t)u->l->count * 2048 + ARCHIVE_SPARE))
		return snprintf(why, WHY_MAX, "the pod's disk has no room for its %lld MB",
				(long long)(u->ar->bytes / 1000000)),
		       -1;
	char *temp = xasprintf(".%s.%d", name, getpid());
	u->to = make_at(to, temp);
	if (u->to >= 0 && listing_frame(u->l, u->to) == 0 &&
	    archive_links(u->l, u->ar, u->to, there) == 0)
		result = unpack_wide(u);
	if (result == MOVED && (remove_at(to, name) < 0 || renameat(to, temp, to, name) < 0))
		result = SHARE_FAILED;
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
