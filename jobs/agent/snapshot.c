/* snapshot.c - a checkpoint's folder as one tar file, and back. */
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "bounds.h"
#include "entries.h"
#include "files.h"
#include "process.h"
#include "sha256.h"
#include "walk.h"

#define OCTAL_SIZE_MAX INT64_C(077777777777)

struct entry {
	char *path, *target; /* target: of a link; else NULL */
	struct stat st;
};

struct folder {
	struct entry *list;
	size_t count, cap;
};

static void folder_free(struct folder *f)
{
	for (size_t i = 0; i < f->count; i++) {
		free(f->list[i].path);
		free(f->list[i].target);
	}
	free(f->list);
	*f = (struct folder){0};
}

/* ---- what the folder holds ---- */

static enum snapshot_end unfit(struct snapshot *s, const char *path, const char *why)
{
	snprintf(s->words, sizeof(s->words), "%.180s %s", path, why);
	return SNAPSHOT_UNFIT;
}

/* A file that vanishes while the folder is read shows that the folder is being changed. */
static enum snapshot_end read_failed(struct snapshot *s, const char *path)
{
	if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ESTALE)
		return SNAPSHOT_MOVING;
	snprintf(s->words, sizeof(s->words), "%.180s: %s", path, strerror(errno));
	return SNAPSHOT_FAILED;
}

static bool is_being_written(const char *name)
{
	size_t len = strlen(name);
	return (len >= 4 && !strcmp(name + len - 4, ".tmp")) ||
	       (len >= 5 && !strcmp(name + len - 5, ".part"));
}

static enum snapshot_end read_target(struct snapshot *s, int dir, const char *name, struct entry *e)
{
	char target[PATH_BYTES_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
	if (n < 0)
		return read_failed(s, e->path);
	target[n] = 0;
	if (!link_inside(e->path, target))
		return unfit(s, e->path, "is a link that leaves the folder: use a relative one");
	e->target = xstrdup(target);
	return SNAPSHOT_TAKEN;
}

/* Returns SNAPSHOT_TAKEN if the entry can travel. */
static enum snapshot_end judge(struct snapshot *s, int dir, const char *name, struct entry *e)
{
	if (!path_is_safe(e->path))
		return unfit(s, "a file",
			     "has a name with control characters, or one that is no "
			     "UTF-8 text or too long");
	if (S_ISLNK(e->st.st_mode))
		return read_target(s, dir, name, e);
	if (S_ISREG(e->st.st_mode) && s->owner && e->st.st_uid != s->owner)
		return unfit(s, e->path, "belongs to another user");
	if (!S_ISREG(e->st.st_mode) && !S_ISDIR(e->st.st_mode))
		return unfit(s, e->path, "is not a file, folder or link");
	return SNAPSHOT_TAKEN;
}

struct reading {
	struct snapshot *s;
	struct folder *f;
	enum snapshot_end end;
};

static enum walk_step read_entry(void *ctx, const struct walked *w)
{
	struct reading *r = ctx;
	struct folder *f = r->f;
	if (is_being_written(w->name))
		return WALK_ON;
	if (f->count >= SNAPSHOT_ENTRIES_MAX) {
		r->end = unfit(r->s, "it", "holds more than 100000 files");
		return WALK_STOP;
	}
	GROW(f->list, f->count, f->cap);
	struct entry *e = &f->list[f->count++];
	*e = (struct entry){.path = xstrdup(w->path)};
	r->end = fstatat(w->dir, w->name, &e->st, AT_SYMLINK_NOFOLLOW) < 0
			 ? read_failed(r->s, e->path)
			 : judge(r->s, w->dir, w->name, e);
	if (r->end != SNAPSHOT_TAKEN)
		return WALK_STOP;
	return S_ISDIR(e->st.st_mode) ? WALK_INTO : WALK_ON;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* Two equal prints mean that the command changed nothing in between: every change of a file's bytes
 * or of its name moves its change time. */
static void make_print(const struct folder *f, char print[65])
{
	struct sha256 sha;
	sha_start(&sha);
	for (size_t i = 0; i < f->count; i++) {
		const struct entry *e = &f->list[i];
		bool is_dir = S_ISDIR(e->st.st_mode);
		char *line =
			xasprintf("%o %lld %lld %lld.%09ld %lld.%09ld ", (unsigned)e->st.st_mode,
				  (long long)e->st.st_ino, is_dir ? 0LL : (long long)e->st.st_size,
				  is_dir ? 0LL : (long long)e->st.st_mtim.tv_sec,
				  is_dir ? 0L : e->st.st_mtim.tv_nsec,
				  is_dir ? 0LL : (long long)e->st.st_ctim.tv_sec,
				  is_dir ? 0L : e->st.st_ctim.tv_nsec);
		sha_add(&sha, line, strlen(line));
		sha_add(&sha, e->path, strlen(e->path) + 1);
		sha_add(&sha, e->target ? e->target : "", e->target ? strlen(e->target) + 1 : 1);
		free(line);
	}
	sha_hex(&sha, print);
}

/* A file that was changed within the grain of its times may change again without a trace. */
static bool changed_just_now(const struct folder *f)
{
	enum { GRAIN_MS = 50 };
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < f->count; i++) {
		const struct timespec *at = &f->list[i].st.st_ctim;
		int64_t ms = ((int64_t)now.tv_sec - at->tv_sec) * 1000 +
			     (now.tv_nsec - at->tv_nsec) / 1000000;
		if (!S_ISDIR(f->list[i].st.st_mode) && ms >= 0 && ms < GRAIN_MS)
			return true;
	}
	return false;
}

static enum snapshot_end read_whole(struct snapshot *s, struct folder *f, char print[65])
{
	struct reading r = {s, f, SNAPSHOT_TAKEN};
	int failed = walk_tree(s->from, -1, read_entry, &r);
	if (r.end != SNAPSHOT_TAKEN)
		return r.end;
	if (failed)
		return read_failed(s, "one of its folders");
	if (f->count)
		qsort(f->list, f->count, sizeof(*f->list), by_path);
	make_print(f, print);
	return SNAPSHOT_TAKEN;
}

/* ---- the tar file ---- */

struct writer {
	struct snapshot *s;
	int fd;
	struct sha256 sha;
};

static enum snapshot_end put(struct writer *w, const void *bytes, size_t len)
{
	if (w->s->bytes + (int64_t)len > w->s->most)
		return SNAPSHOT_LARGE;
	if (fd_write_all(w->fd, bytes, len) < 0) {
		snprintf(w->s->words, sizeof(w->s->words), "it cannot be written: %s",
			 strerror(errno));
		return SNAPSHOT_FAILED;
	}
	sha_add(&w->sha, bytes, len);
	w->s->bytes += (int64_t)len;
	return SNAPSHOT_TAKEN;
}

static enum snapshot_end put_padding(struct writer *w, int64_t size)
{
	static const char zeros[TAR_BLOCK];
	return put(w, zeros, (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK));
}

static void number(char *to, size_t room, int64_t value)
{
	if (value <= OCTAL_SIZE_MAX) {
		snprintf(to, room, "%0*llo", (int)room - 1, (long long)value);
		return;
	}
	for (size_t i = room; i-- > 1; value >>= 8)
		to[i] = (char)(value & 0xff);
	to[0] = (char)0x80;
}

static enum snapshot_end put_header(struct writer *w, char type, const char *path, int64_t size,
				    const struct stat *st, const char *target)
{
	char h[TAR_BLOCK] = {0};
	unsigned sum = 0;
	memcpy(h, path, MIN(strlen(path), (size_t)100));
	number(h + 100, 8, st->st_mode & 0777);
	number(h + 108, 8, 0);
	number(h + 116, 8, 0);
	number(h + 124, 12, size);
	number(h + 136, 12, MAX((int64_t)st->st_mtim.tv_sec, (int64_t)0));
	memset(h + 148, ' ', 8);
	h[156] = type;
	memcpy(h + 157, target, MIN(strlen(target), (size_t)100));
	memcpy(h + 257, "ustar  ", 8); /* GNU's: long names have an entry of their own */
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum & 0777777);
	return put(w, h, sizeof(h));
}

static enum snapshot_end put_long(struct writer *w, char type, const char *text)
{
	static const struct stat none = {.st_mode = 0644};
	size_t len = strlen(text);
	if (len <= 100)
		return SNAPSHOT_TAKEN;
	enum snapshot_end end = put_header(w, type, "././@LongLink", (int64_t)len + 1, &none, "");
	if (end == SNAPSHOT_TAKEN)
		end = put(w, text, len + 1);
	return end == SNAPSHOT_TAKEN ? put_padding(w, (int64_t)len + 1) : end;
}

static enum snapshot_end put_content(struct writer *w, const struct entry *e)
{
	struct stat st;
	int fd = open_below(w->s->from, e->path, &st);
	if (fd < 0)
		return read_failed(w->s, e->path);
	char *part = xcalloc(1, SLICE);
	int64_t left = st.st_ino == e->st.st_ino ? e->st.st_size : -1;
	enum snapshot_end end = left < 0 ? SNAPSHOT_MOVING : SNAPSHOT_TAKEN;
	while (left > 0 && end == SNAPSHOT_TAKEN) {
		ssize_t n = read(fd, part, (size_t)MIN(left, (int64_t)SLICE));
		if (n < 0 && errno == EINTR)
			continue;
		end = n < 0    ? read_failed(w->s, e->path)
		      : n == 0 ? SNAPSHOT_MOVING
			       : put(w, part, (size_t)n);
		left -= n;
	}
	free(part);
	close(fd);
	return end == SNAPSHOT_TAKEN ? put_padding(w, e->st.st_size) : end;
}

static enum snapshot_end put_entry(struct writer *w, const struct entry *e)
{
	bool is_dir = S_ISDIR(e->st.st_mode);
	const char *target = e->target ? e->target : "";
	char type = is_dir ? '5' : e->target ? '2' : '0';
	enum snapshot_end end = put_long(w, 'L', e->path);
	if (end == SNAPSHOT_TAKEN)
		end = put_long(w, 'K', target);
	if (end == SNAPSHOT_TAKEN)
		end = put_header(w, type, e->path, type == '0' ? e->st.st_size : 0, &e->st, target);
	return end == SNAPSHOT_TAKEN && type == '0' ? put_content(w, e) : end;
}

static enum snapshot_end put_all(struct writer *w, const struct folder *f)
{
	static const char end_mark[2 * TAR_BLOCK];
	enum snapshot_end end = SNAPSHOT_TAKEN;
	sha_start(&w->sha);
	w->s->bytes = 0;
	for (size_t i = 0; i < f->count && end == SNAPSHOT_TAKEN; i++)
		end = put_entry(w, &f->list[i]);
	if (end == SNAPSHOT_TAKEN)
		end = put(w, end_mark, sizeof(end_mark));
	sha_hex(&w->sha, w->s->sha256);
	return end;
}

/* Whether its files alone are more than may travel. A file of zeros without blocks counts whole. */
static bool is_too_large(struct snapshot *s, const struct folder *f)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < f->count && bytes <= s->most; i++)
		if (S_ISREG(f->list[i].st.st_mode))
			bytes += MIN((int64_t)f->list[i].st.st_size, INT64_MAX - bytes);
	if (bytes > s->most)
		s->bytes = bytes;
	return bytes > s->most;
}

enum snapshot_end snapshot_take(struct snapshot *s, int to)
{
	struct folder before = {0}, after = {0};
	struct writer w = {.s = s, .fd = to};
	char print[65] = "";
	enum snapshot_end end = read_whole(s, &before, s->print);
	bool nothing_yet = !before.count && !*s->known;
	if (end == SNAPSHOT_TAKEN && (nothing_yet || !strcmp(s->print, s->known)))
		end = SNAPSHOT_SAME;
	if (end == SNAPSHOT_TAKEN && changed_just_now(&before))
		end = SNAPSHOT_MOVING;
	if (end == SNAPSHOT_TAKEN && is_too_large(s, &before))
		end = SNAPSHOT_LARGE;
	if (end == SNAPSHOT_TAKEN)
		end = put_all(&w, &before);
	if (end == SNAPSHOT_TAKEN)
		end = read_whole(s, &after, print);
	if (end == SNAPSHOT_TAKEN && strcmp(print, s->print) != 0)
		end = SNAPSHOT_MOVING;
	folder_free(&before);
	folder_free(&after);
	return end;
}

/* ---- back ---- */

/* Runs in a child: passes on the file's bytes and hashes them. Exits with 0 if the hash fits. */
static void pass_on(int from, int to, const char *sha256)
{
	struct sha256 sha;
	char *part = xcalloc(1, SLICE), hex[65];
	ssize_t n;
	sha_start(&sha);
	while ((n = read(from, part, SLICE)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || fd_write_all(to, part, (size_t)n) < 0)
			_exit(1);
		sha_add(&sha, part, (size_t)n);
	}
	sha_hex(&sha, hex);
	_exit(strcmp(hex, sha256) != 0);
}

int snapshot_unpack(int from, const char *sha256, int to, char words[SNAPSHOT_WORDS])
{
	struct tar t = {0};
	int in = -1, out = -1, status = 0;
	pid_t pid = make_pipe(&in, &out) < 0 ? -1 : fork();
	if (pid == 0)
		pass_on(from, out, sha256);
	close_fd(&out);
	int failed = pid < 0 || tree_fill(&t, in, to, NULL) < 0;
	close_fd(&in);
	if (failed)
		snprintf(words, SNAPSHOT_WORDS, "%s", t.error[0] ? t.error : strerror(errno));
	if (pid > 0 && (waitpid(pid, &status, 0) != pid || status) && !failed) {
		snprintf(words, SNAPSHOT_WORDS, "its bytes are not those that were saved");
		failed = 1;
	}
	return failed ? -1 : 0;
}
