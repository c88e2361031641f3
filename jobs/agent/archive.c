/* archive.c - copies trees between the volume and the container's disk, file by file or as an
 * archive, and compares them with their id. */
#include "trees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "files.h"
#include "sha256.h"

/* ---- the files of a listing, by several processes ----
 *
 * On a network file system each file costs a round trip, and some machines have many cores. */

enum {
	WIDE_MAX = 16,
	SHARE_FAILED = 64, /* SHARE_FAILED + errno */
	LISTING_CHUNK = 64 /* consecutive files that one process takes at a time */
};

/* What one process has read of an archive at once. */
struct window {
	char *bytes;
	int64_t begin, end, most; /* offsets in the archive; most: where its chunk ends */
};

struct packed {
	int64_t size, mtime_s, offset; /* offset -1: not in the archive */
};

struct archive {
	int fd;
	struct packed *list; /* one for each entry of the listing */
	int64_t head, bytes; /* lengths of the head and of the bytes */
};

/* Files of a listing that several processes copy from one folder to another. */
struct moving {
	const struct listing *l;
	/* to -1: files are compared in place, and nothing unlisted may be there */
	int from, to;
	bool links; /* files become hard links, where the file system has them */
	/* Files come from here. Those that it does not hold are compared in `from`. NULL: all are
	 * in `from`. */
	const struct archive *ar;
	/* Shared by the processes, which fill it in. NULL: files must match the listing. */
	char (*hashes)[65];
	uid_t owner;           /* required owner of all files; 0: any */
	_Atomic size_t *turns; /* shared by the processes: the next turn */
	/* of each process */
	struct parent from_dir, to_dir;
	struct window window;
};

/* The result of moving_*(): MOVED_CHANGED: the tree differs from its listing; SHARE_FAILED and
 * more: an I/O error. */
enum { MOVED, MOVED_CHANGED };

/* The result for an I/O error, which carries errno out of a child process. */
static int failed_by_errno(void)
{
	return SHARE_FAILED + (errno > 0 && errno < 190 ? errno : 0);
}

/* MOVED_CHANGED if an entry is missing or of another kind; else an I/O error, the machine's fault.
 */
static int lacking_by_errno(void)
{
	return errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == ENXIO
		       ? MOVED_CHANGED
		       : failed_by_errno();
}

/* Opens a plain file to read. Waits if another process is about to free a descriptor. Returns MOVED
 * and *in, or why there is none. */
static int moving_open(const struct moving *m, const char *name, int *in, struct stat *st)
{
	for (int tries = 0;; tries++) {
		*in = openat(m->from_dir.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (*in >= 0 || errno != EAGAIN || tries >= 1000)
			break;
		poll(NULL, 0, 50);
	}
	if (*in < 0)
		return lacking_by_errno();
	int result = fstat(*in, st) < 0 || !S_ISREG(st->st_mode) ? MOVED_CHANGED
		     : m->owner && st->st_uid != m->owner ? (errno = EPERM, failed_by_errno())
							  : MOVED;
	if (result != MOVED)
		close_fd(in);
	return result;
}

/* Copies a file of the archive. Reads many small ones at once. */
static int copy_packed(struct moving *m, const struct packed *p, int out, struct sha256 *sha)
{
	struct window *w = &m->window;
	for (int64_t at = p->offset, end = at + p->size, n; at < end; at += n) {
		if (at < w->begin || at >= w->end) {
			n = MIN(MAX(w->most, end) - at, (int64_t)ARCHIVE_PIECE);
			w->begin = w->end = 0;
			if (pread_all(m->ar->fd, w->bytes, (size_t)n, at) < 0)
				return -1;
			w->begin = at;
			w->end = at + n;
		}
		n = MIN(end, w->end) - at;
		if (fd_write_all(out, w->bytes + (at - w->begin), (size_t)n) < 0)
			return -1;
		sha_add(sha, w->bytes + (at - w->begin), (size_t)n);
	}
	return 0;
}

static const struct packed *packed_at(const struct moving *m, size_t at)
{
	return m->ar && m->ar->list[at].offset >= 0 ? &m->ar->list[at] : NULL;
}

/* Copies a file from `in` or the archive to `out` (-1: reads it), and compares or notes its hash.
 */
static int moving_copy(struct moving *m, size_t at, int in, int out, struct timespec mtime)
{
	const struct listed *e = &m->l->list[at];
	const struct packed *p = packed_at(m, at);
	struct sha256 sha;
	char hex[65];
	sha_start(&sha);
	if ((p ? copy_packed(m, p, out, &sha) : copy_all(in, out, &sha)) < 0)
		return errno == EBADMSG ? MOVED_CHANGED : failed_by_errno();
	if (out >= 0) {
		fchmod(out, e->type == 'x' ? 0755 : 0644);
		futimens(out, (struct timespec[]){mtime, mtime});
	}
	sha_hex(&sha, hex);
	if (m->hashes)
		memcpy(m->hashes[at], hex, 65);
	return m->hashes || !strcmp(hex, e->sha256) ? MOVED : MOVED_CHANGED;
}

/* Moves one file: links, copies or compares it. */
static int moving_file(struct moving *m, size_t at)
{
	const char *path = m->l->list[at].path, *name = path;
	const struct packed *p = packed_at(m, at);
	bool copies = m->to >= 0 && (p || !m->ar);
	struct stat st = {0};
	int in = -1, out = -1, result = MOVED;
	if ((copies && parent_open(&m->to_dir, m->to, path, false, &name) < 0) ||
	    (!p && parent_open(&m->from_dir, m->from, path, false, &name) < 0))
		return lacking_by_errno();
	if (m->links && linkat(m->from_dir.fd, name, m->to_dir.fd, name, 0) == 0)
		return MOVED;
	if (p)
		st.st_mtim.tv_sec = p->mtime_s;
	else
		result = moving_open(m, name, &in, &st);
	if (result == MOVED && copies && (out = create_at(m->to_dir.fd, name, 0600)) < 0)
		result = failed_by_errno();
	if (result == MOVED)
		result = moving_copy(m, at, in, out, st.st_mtim);
	close_fd(&in);
	return out >= 0 && close(out) < 0 && result == MOVED ? failed_by_errno() : result;
}

static int moving_link(struct moving *m, const struct listed *e)
{
	const char *name;
	char target[PATH_BYTES_MAX];
	if (parent_open(&m->from_dir, m->from, e->path, false, &name) < 0)
		return lacking_by_errno();
	if (read_link(m->from_dir.fd, name, target) < 0)
		return errno == EINVAL ? MOVED_CHANGED : lacking_by_errno();
	return strcmp(target, e->target) ? MOVED_CHANGED : MOVED;
}

/* Checks that the listing has every entry of this folder ("" is the root). */
static int moving_folder(struct moving *m, const char *path)
{
	int fd = open_folder(m->from, *path ? path : ".", false);
	CLEANUP(close_dir) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return lacking_by_errno();
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
		result = failed_by_errno();
	return result;
}

/* Moves LISTING_CHUNK entries; without a target, also compares folders and links. */
static int moving_chunk(struct moving *m, size_t first)
{
	size_t past = MIN(first + LISTING_CHUNK, m->l->count);
	int result = m->to < 0 && first == 0 ? moving_folder(m, "") : MOVED;
	for (size_t i = first; i < past && m->ar; i++)
		if (packed_at(m, i))
			m->window.most = m->ar->list[i].offset + m->ar->list[i].size;
	for (size_t i = first; i < past && result == MOVED; i++) {
		const struct listed *e = &m->l->list[i];
		if (is_file(e))
			result = m->ar && !packed_at(m, i) ? MOVED : moving_file(m, i);
		else if (m->to < 0)
			result = e->type == 'l' ? moving_link(m, e) : moving_folder(m, e->path);
	}
	return result;
}

/* Does one turn. The first l->count turns are for files that are not in the archive: they are
 * large, and one of them occupies a process the longest. Each later turn is a chunk. */
static int moving_turn(struct moving *m, size_t turn)
{
	size_t count = m->l->count;
	if (turn >= count)
		return moving_chunk(m, (turn - count) * LISTING_CHUNK);
	return is_file(&m->l->list[turn]) && !packed_at(m, turn) ? moving_file(m, turn) : MOVED;
}

/* Takes turns until none is left: the part of one process. */
static int moving_share(struct moving m, size_t turns)
{
	int result = MOVED;
	m.from_dir = m.to_dir = (struct parent){.fd = -1};
	m.window.bytes = m.ar ? xmalloc(ARCHIVE_PIECE) : NULL;
	for (size_t turn; result == MOVED && (turn = atomic_fetch_add(m.turns, 1)) < turns;)
		result = moving_turn(&m, turn);
	if (result != MOVED)
		atomic_store(m.turns, turns); /* stop the other processes */
	free(m.window.bytes);
	parent_close(&m.from_dir);
	parent_close(&m.to_dir);
	return result;
}

/* Forks a child that ends with its parent. */
static pid_t fork_share(void)
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(SHARE_FAILED);
	return pid;
}

/* Memory that children share. NULL with errno. */
static void *share_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Returns the largest result of the processes, and sets errno if it is SHARE_FAILED or more. What a
 * process that cannot be forked does not do, the others do. */
static int moving_wide(struct moving m)
{
	pid_t pids[WIDE_MAX];
	size_t chunks = m.l->count / LISTING_CHUNK + 1, turns = m.l->count + chunks;
	int of = (int)MIN((size_t)MAX(2, MIN(2 * cpu_count(), (int)WIDE_MAX)), chunks);
	m.turns = share_map(sizeof(*m.turns));
	if (!m.turns)
		return failed_by_errno();
	atomic_store(m.turns, m.ar ? 0 : m.l->count);
	for (int i = 1; i < of; i++) {
		pids[i] = fork_share();
		if (pids[i] == 0)
			_exit(moving_share(m, turns));
	}
	int worst = moving_share(m, turns);
	for (int i = 1; i < of; i++) {
		int status = 0;
		if (pids[i] < 0)
			continue;
		bool ended = waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status);
		worst = MAX(worst, ended ? WEXITSTATUS(status) : SHARE_FAILED + EIO);
	}
	munmap((void *)m.turns, sizeof(*m.turns));
	if (worst >= SHARE_FAILED)
		errno = worst - SHARE_FAILED;
	return worst;
}

/* ---- the archive of a tree ---- */

#define ARCHIVE_MOST                                                                               \
	(INT64_C(8) << 30) /* a larger one is not an environment of programs, and would fill       \
			      volume and disk */

enum { ARCHIVE_HEAD_MOST = 64 << 20 };

#define ARCHIVE_TITLE "burst-archive 1 %012lld\n"

/* Returns whether the folder's file system has less room, as far as it says. */
static bool has_less_room(int dir, int64_t bytes)
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

/* Writes what stands before the bytes. The title comes twice, because it holds its own length. */
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

/* Appends the file's bytes. EBADMSG: it is shorter than it was. */
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
	CLEANUP(str_free) struct str head = {0};
	CLEANUP(free_text) char *part = xcalloc(1, SLICE);
	archive_head(l, ar, &head);
	int failed = fwrite(head.s, 1, head.len, to) != head.len;
	for (size_t i = 0; i < l->count && !failed; i++)
		if (ar->list[i].offset >= 0)
			failed = archive_add(to, from, l->list[i].path, ar->list[i].size, part) < 0;
	failed = failed || fflush(to) == EOF || fsync(fileno(to)) < 0;
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
	} else if (!failed && has_less_room(dir, 2 * ar.bytes)) {
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

/* Reads the lines of the head. Returns -1 if they do not fit the listing. */
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
	*ar = (struct archive){.fd = fd};
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

/* Makes symlinks in m->to for the files that the archive does not hold: they are large, and stay in
 * the folder `there` on the volume. -1 and errno. */
static int archive_links(const struct moving *m, const char *there)
{
	int failed = 0;
	for (size_t i = 0; i < m->l->count && !failed; i++) {
		const char *name;
		const char *path = m->l->list[i].path;
		if (!is_file(&m->l->list[i]) || packed_at(m, i))
			continue;
		char *target = xasprintf("%s/%s", there, path);
		int dir = open_parent(m->to, path, false, &name);
		failed = dir < 0 || symlinkat(target, dir, name) < 0;
		close_fd(&dir);
		free(target);
	}
	return failed ? -1 : 0;
}

/* Fills the folder `name` of `to` under another name, then renames it: it is complete and matches
 * the listing, or it does not exist. there: the path of the tree whose archive is unpacked. */
static int build_tree(struct moving m, int to, const char *name, const char *there)
{
	CLEANUP(free_text) char *temp = xasprintf(".%s.%d", name, getpid());
	remove_at(to, temp);
	m.to = make_at(to, temp);
	bool framed = m.to >= 0 && listing_frame(m.l, m.to) == 0 &&
		      (!m.ar || archive_links(&m, there) == 0);
	int result = framed ? moving_wide(m) : failed_by_errno();
	if (result == MOVED && renameat(to, temp, to, name) < 0)
		result = failed_by_errno();
	int saved = errno;
	remove_at(to, temp);
	close_fd(&m.to);
	errno = saved;
	return result;
}

enum taken tree_take(int root, const char *path, const char *id, int to, const char *name)
{
	struct listing l;
	int from;
	enum taken result = open_listed(root, path, id, &from, &l);
	if (result != TAKEN)
		return result;
	result = taken_of(build_tree((struct moving){.l = &l, .from = from}, to, name, NULL));
	close_fd(&from);
	listing_free(&l);
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

enum taken tree_link(int root, const char *path, const char *id, int to, struct listing *l)
{
	int from;
	enum taken result = open_listed(root, path, id, &from, l);
	if (result != TAKEN)
		return result;
	result = listing_frame(l, to) < 0
			 ? TAKEN_FAILED
			 : taken_of(moving_wide(
				   (struct moving){.l = l, .from = from, .to = to, .links = true}));
	close_fd(&from);
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
	char(*hashes)[65] = share_map(room);
	int to = open_folder(root, under, true);
	CLEANUP(free_text) char *temp = xasprintf(".kept.%ld.%d", (long)time(NULL), getpid());
	int dir = to < 0 ? -1 : make_at(to, temp);
	int failed = !hashes || dir < 0 || listing_frame(&l, dir) < 0;
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
	if (hashes)
		munmap(hashes, room);
	close_fd(&dir);
	close_fd(&to);
	listing_free(&l);
	errno = saved;
	return failed ? -1 : 0;
}

/* disk space left for what workers write */
#define ARCHIVE_SPARE (INT64_C(256) << 20)

/* Builds the tree `name` of `to` from the archive. Returns -1 with why[] set. */
static int archive_unpack(struct moving m, int to, const char *name, const char *there,
			  char why[WHY_MAX])
{
	if (has_less_room(to, m.ar->bytes + (int64_t)m.l->count * 2048 + ARCHIVE_SPARE))
		return snprintf(why, WHY_MAX, "the pod's disk has no room for its %lld MB",
				(long long)(m.ar->bytes / 1000000)),
		       -1;
	int result = build_tree(m, to, name, there);
	if (result == MOVED_CHANGED)
		snprintf(why, WHY_MAX, "its archive is not what was put there");
	else if (result != MOVED)
		snprintf(why, WHY_MAX, "%s", strerror(errno));
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
		taken = archive_unpack((struct moving){.l = &l, .from = from, .ar = &ar}, to, name,
				       there, why);
		*bytes = ar.bytes;
		free(ar.list);
	}
	close_fd(&fd);
	close_fd(&from);
	listing_free(&l);
	return taken;
}
