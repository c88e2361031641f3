/* checkpoint.c - $BURST_CHECKPOINT: the folder of a command that outlives it, and its snapshots. */
#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "files.h"
#include "json.h"
#include "sha256.h"
#include "trees.h"

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

/* ---- a snapshot: what the folder holds ---- */

/* Sets words[]; returns SNAPSHOT_UNFIT. */
static enum snapshot_end refuse_entry(struct snapshot *s, const char *path, const char *why)
{
	snprintf(s->words, sizeof(s->words), "%.180s %s", path, why);
	return SNAPSHOT_UNFIT;
}

/* SNAPSHOT_MOVING if the entry vanished by errno; else SNAPSHOT_FAILED with words[]. */
static enum snapshot_end end_by_errno(struct snapshot *s, const char *path)
{
	if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ESTALE)
		return SNAPSHOT_MOVING;
	snprintf(s->words, sizeof(s->words), "%.180s: %s", path, strerror(errno));
	return SNAPSHOT_FAILED;
}

/* Returns SNAPSHOT_TAKEN if the link stays inside the folder. */
static enum snapshot_end read_target(struct snapshot *s, int dir, const char *name, struct entry *e)
{
	char target[PATH_BYTES_MAX];
	if (read_link(dir, name, target) < 0)
		return end_by_errno(s, e->path);
	if (!link_inside(e->path, target))
		return refuse_entry(s, e->path,
				    "is a link that leaves the folder: use a relative one");
	e->target = xstrdup(target);
	return SNAPSHOT_TAKEN;
}

/* Returns SNAPSHOT_TAKEN if the entry can travel. */
static enum snapshot_end judge_entry(struct snapshot *s, int dir, const char *name, struct entry *e)
{
	if (!path_is_safe(e->path))
		return refuse_entry(s, "a file",
				    "has a name with control characters, or one that is no "
				    "UTF-8 text or too long");
	if (S_ISLNK(e->st.st_mode))
		return read_target(s, dir, name, e);
	if (S_ISREG(e->st.st_mode) && s->owner && e->st.st_uid != s->owner)
		return refuse_entry(s, e->path, "belongs to another user");
	if (!S_ISREG(e->st.st_mode) && !S_ISDIR(e->st.st_mode))
		return refuse_entry(s, e->path, "is not a file, folder or link");
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
		r->end = refuse_entry(r->s, "it", "holds more than 100000 files");
		return WALK_STOP;
	}
	GROW(f->list, f->count, f->cap);
	struct entry *e = &f->list[f->count++];
	*e = (struct entry){.path = xstrdup(w->path)};
	r->end = fstatat(w->dir, w->name, &e->st, AT_SYMLINK_NOFOLLOW) < 0
			 ? end_by_errno(r->s, e->path)
			 : judge_entry(r->s, w->dir, w->name, e);
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

/* Returns whether a file may change again without another change time. */
static bool has_just_changed(const struct folder *f)
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

/* Lists the folder and makes its print. Returns SNAPSHOT_TAKEN, or why it cannot be saved. */
static enum snapshot_end read_folder(struct snapshot *s, struct folder *f, char print[65])
{
	struct reading r = {s, f, SNAPSHOT_TAKEN};
	int failed = walk_tree(s->from, -1, read_entry, &r);
	if (r.end != SNAPSHOT_TAKEN)
		return r.end;
	if (failed)
		return end_by_errno(s, "one of its folders");
	if (f->count)
		qsort(f->list, f->count, sizeof(*f->list), by_path);
	make_print(f, print);
	return SNAPSHOT_TAKEN;
}

/* ---- a snapshot: the tar file ---- */

struct writer {
	struct snapshot *s;
	int fd;
	struct sha256 sha;
};

/* Appends bytes to the tar file and its hash. */
static enum snapshot_end tar_put(struct writer *w, const void *bytes, size_t len)
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

static enum snapshot_end tar_put_padding(struct writer *w, int64_t size)
{
	static const char zeros[TAR_BLOCK];
	return tar_put(w, zeros, (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK));
}

/* Writes octal text, or base 256 if the number is too large for that. */
static void tar_put_number(char *to, size_t room, int64_t value)
{
	if (value <= OCTAL_SIZE_MAX) {
		snprintf(to, room, "%0*llo", (int)room - 1, (long long)value);
		return;
	}
	for (size_t i = room; i-- > 1; value >>= 8)
		to[i] = (char)(value & 0xff);
	to[0] = (char)0x80;
}

static enum snapshot_end tar_put_header(struct writer *w, char type, const char *path, int64_t size,
					const struct stat *st, const char *target)
{
	char h[TAR_BLOCK] = {0};
	unsigned sum = 0;
	memcpy(h, path, MIN(strlen(path), (size_t)100));
	tar_put_number(h + 100, 8, st->st_mode & 0777);
	tar_put_number(h + 108, 8, 0);
	tar_put_number(h + 116, 8, 0);
	tar_put_number(h + 124, 12, size);
	tar_put_number(h + 136, 12, MAX((int64_t)st->st_mtim.tv_sec, (int64_t)0));
	memset(h + 148, ' ', 8);
	h[156] = type;
	memcpy(h + 157, target, MIN(strlen(target), (size_t)100));
	memcpy(h + 257, "ustar  ", 8); /* GNU's: long names have an entry of their own */
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum & 0777777);
	return tar_put(w, h, sizeof(h));
}

/* GNU's entry for a name that a header cannot hold; nothing for a short one. */
static enum snapshot_end tar_put_long_name(struct writer *w, char type, const char *text)
{
	static const struct stat none = {.st_mode = 0644};
	size_t len = strlen(text);
	if (len <= 100)
		return SNAPSHOT_TAKEN;
	enum snapshot_end end =
		tar_put_header(w, type, "././@LongLink", (int64_t)len + 1, &none, "");
	if (end == SNAPSHOT_TAKEN)
		end = tar_put(w, text, len + 1);
	return end == SNAPSHOT_TAKEN ? tar_put_padding(w, (int64_t)len + 1) : end;
}

/* Appends a file's bytes. SNAPSHOT_MOVING: the file is another or shorter than it was. */
static enum snapshot_end tar_put_content(struct writer *w, const struct entry *e)
{
	struct stat st;
	int fd = open_below(w->s->from, e->path, &st);
	if (fd < 0)
		return end_by_errno(w->s, e->path);
	char *part = xcalloc(1, SLICE);
	int64_t left = st.st_ino == e->st.st_ino ? e->st.st_size : -1;
	enum snapshot_end end = left < 0 ? SNAPSHOT_MOVING : SNAPSHOT_TAKEN;
	while (left > 0 && end == SNAPSHOT_TAKEN) {
		ssize_t n = read(fd, part, (size_t)MIN(left, (int64_t)SLICE));
		if (n < 0 && errno == EINTR)
			continue;
		end = n < 0    ? end_by_errno(w->s, e->path)
		      : n == 0 ? SNAPSHOT_MOVING
			       : tar_put(w, part, (size_t)n);
		left -= n;
	}
	free(part);
	close(fd);
	return end == SNAPSHOT_TAKEN ? tar_put_padding(w, e->st.st_size) : end;
}

static enum snapshot_end tar_put_entry(struct writer *w, const struct entry *e)
{
	bool is_dir = S_ISDIR(e->st.st_mode);
	const char *target = e->target ? e->target : "";
	char type = is_dir ? '5' : e->target ? '2' : '0';
	enum snapshot_end end = tar_put_long_name(w, 'L', e->path);
	if (end == SNAPSHOT_TAKEN)
		end = tar_put_long_name(w, 'K', target);
	if (end == SNAPSHOT_TAKEN)
		end = tar_put_header(w, type, e->path, type == '0' ? e->st.st_size : 0, &e->st,
				     target);
	return end == SNAPSHOT_TAKEN && type == '0' ? tar_put_content(w, e) : end;
}

/* Writes the whole tar file; sets bytes and sha256. */
static enum snapshot_end tar_put_all(struct writer *w, const struct folder *f)
{
	static const char end_mark[2 * TAR_BLOCK];
	enum snapshot_end end = SNAPSHOT_TAKEN;
	sha_start(&w->sha);
	w->s->bytes = 0;
	for (size_t i = 0; i < f->count && end == SNAPSHOT_TAKEN; i++)
		end = tar_put_entry(w, &f->list[i]);
	if (end == SNAPSHOT_TAKEN)
		end = tar_put(w, end_mark, sizeof(end_mark));
	sha_hex(&w->sha, w->s->sha256);
	return end;
}

/* Returns whether the files alone are more than may travel. A sparse file counts with its holes. */
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
	enum snapshot_end end = read_folder(s, &before, s->print);
	bool nothing_yet = !before.count && !*s->known;
	if (end == SNAPSHOT_TAKEN && (nothing_yet || !strcmp(s->print, s->known)))
		end = SNAPSHOT_SAME;
	if (end == SNAPSHOT_TAKEN && has_just_changed(&before))
		end = SNAPSHOT_MOVING;
	if (end == SNAPSHOT_TAKEN && is_too_large(s, &before))
		end = SNAPSHOT_LARGE;
	if (end == SNAPSHOT_TAKEN)
		end = tar_put_all(&w, &before);
	if (end == SNAPSHOT_TAKEN)
		end = read_folder(s, &after, print);
	if (end == SNAPSHOT_TAKEN && strcmp(print, s->print) != 0)
		end = SNAPSHOT_MOVING;
	folder_free(&before);
	folder_free(&after);
	return end;
}

/* ---- a snapshot, unpacked ---- */

/* Runs in a child: copies the file's bytes to the pipe. Exits with 0 if their hash fits. */
static void copy_and_hash(int from, int to, const char *sha256)
{
	struct sha256 sha;
	char hex[65];
	sha_start(&sha);
	if (copy_all(from, to, &sha) < 0)
		_exit(1);
	sha_hex(&sha, hex);
	_exit(strcmp(hex, sha256) != 0);
}

/* Unpacks the tar file into the folder `to`. Its bytes are not trusted. Returns -1 with words[] set
 * if they have another hash or cannot be unpacked; the folder is then of no use. */
static int snapshot_unpack(int from, const char *sha256, int to, char words[SNAPSHOT_WORDS])
{
	struct tar t = {0};
	int in = -1, out = -1, status = 0;
	pid_t pid = make_pipe(&in, &out) < 0 ? -1 : fork();
	if (pid == 0)
		copy_and_hash(from, out, sha256);
	close_fd(&out);
	int failed = pid < 0 || tree_fill(&t, in, NULL, to, NULL) < 0;
	close_fd(&in);
	if (failed)
		snprintf(words, SNAPSHOT_WORDS, "%s", t.error[0] ? t.error : strerror(errno));
	if (pid > 0 && (waitpid(pid, &status, 0) != pid || status) && !failed) {
		snprintf(words, SNAPSHOT_WORDS, "its bytes are not those that were saved");
		failed = 1;
	}
	return failed ? -1 : 0;
}

enum {
	LOOK_MS = 1000, /* how often a folder is looked at that has not changed */
	AGAIN_MS = 200, /* after a change during the copy; doubles */
	AGAIN_MOST_MS = 5000,
	TRIES_AT_EXIT = 5,
	TRIES_TOLD = 12,        /* changes in a row after which the client warns: a minute or so */
	TROUBLE_MS = 30 * 1000, /* before the next try after a snapshot that could not be taken */
	ANSWER_MAX = 1024,
};

static const char PART[] = "checkpoint/.part";

void checkpoint_read_start(struct agent *a, const struct json *op)
{
	const struct json *how = json_get(op, "checkpoint");
	a->checkpoint_every_ms = MAX(json_int(how, "every_ms", 0), (int64_t)0);
	a->checkpoint_mean_s = MAX(json_int(how, "mean_s", 0), (int64_t)0);
	a->checkpoint_on_volume = json_yes(how, "volume");
	a->checkpoint_most = MAX(json_int(how, "most_bytes", INT64_MAX), (int64_t)0);
}

/* ---- the command's folder ---- */

/* Opens this run's checkpoints on the container's disk, and removes those of other runs. */
static int open_checkpoints_of_run(struct agent *a)
{
	int all = open_folder(a->disk_fd, "checkpoint", true), of_run = -1;
	if (all >= 0) {
		tidy_folder(all, "", a->run);
		of_run = open_folder(all, a->run, true);
	}
	close_fd(&all);
	return of_run;
}

/* Makes an empty folder that belongs to the command's user; removes what was there. */
static int make_folder_for_command(const struct agent *a, int dir, const char *name)
{
	bool theirs = a->separate && !a->worker_root;
	if (remove_at(dir, name) < 0 || mkdirat(dir, name, 0755) < 0)
		return -1;
	return theirs ? fchownat(dir, name, WORKER_UID, WORKER_UID, AT_SYMLINK_NOFOLLOW) : 0;
}

/* The file that holds the hash of the snapshot which filled the folder. The caller frees the path.
 */
static char *seed_path(const struct agent *a, const char *id)
{
	return xasprintf("%s/checkpoint/%s/.%s.from", a->disk, a->run, id);
}

/* Returns whether the pod's folder is as new as the task's snapshot (given; NULL: none). */
static bool may_continue(const struct agent *a, const char *id, const struct json *given)
{
	CLEANUP(str_free) struct str seed = {0};
	CLEANUP(free_text) char *path = seed_path(a, id);
	return !given || !strcmp(json_text(given, "attempt", ""), a->attempt) ||
	       (read_file(path, 64, &seed) == 0 &&
		!strcmp(str_text(&seed), json_text(given, "sha256", "")));
}

/* Reports why a snapshot could not be read or taken. */
static void report_trouble(struct agent *a, const char *id, const char *error, const char *words,
			   int64_t bytes)
{
	struct str *b = event_begin(a, "checkpoint");
	js_text(b, "id", id);
	js_text(b, "error", error);
	js_text(b, "words", words);
	js_int(b, "bytes", bytes);
	event_end(a);
}

/* Runs in a child: unpacks the snapshot as the command's user. Prints what went wrong. */
static int fill_folder(struct agent *a)
{
	const struct filling *f = &a->filling;
	char words[SNAPSHOT_WORDS] = "";
	if (a->separate && !a->worker_root && child_switch(a, WORKER_UID) < 0)
		snprintf(words, sizeof(words), "%s", strerror(errno));
	else if (snapshot_unpack(f->from, f->sha256, f->to, words) == 0)
		return 0;
	printf("%s", words);
	fflush(stdout);
	return 1;
}

/* Returns the child's pid, or 0 after reporting why the snapshot cannot be read. */
static pid_t fill_begin(struct agent *a, struct command *c, int dir, const struct json *given)
{
	struct filling *f = &a->filling;
	struct stat st;
	const char *path = json_text(given, "path", ""), *slash = strrchr(path, '/');
	CLEANUP(free_text) char *fresh = xasprintf(".%s.new", c->id);
	pid_t pid = -1;
	*f = (struct filling){.from = -1, .to = -1};
	snprintf(f->sha256, sizeof(f->sha256), "%s", json_text(given, "sha256", ""));
	snprintf(c->checkpoint.spare, sizeof(c->checkpoint.spare), "%s", slash ? slash + 1 : "");
	f->from = path_inside(path) ? open_below(a->volume_fd, path, &st) : (errno = EINVAL, -1);
	if (f->from >= 0 && make_folder_for_command(a, dir, fresh) == 0)
		f->to = open_at(dir, fresh);
	if (f->to >= 0)
		pid = spawn_own(a, fill_folder, &c->filled);
	close_fd(&f->from);
	close_fd(&f->to);
	if (pid <= 0)
		report_trouble(a, c->id, "lost", strerror(errno), 0);
	else
		snprintf(c->checkpoint.seed, sizeof(c->checkpoint.seed), "%s", f->sha256);
	return pid > 0 ? pid : 0;
}

static void folder_ready(struct agent *a, struct command *c)
{
	struct checkpoint *k = &c->checkpoint;
	k->began_ms = now_ms(a);
	k->due_ms = k->began_ms + a->checkpoint_every_ms;
}

pid_t checkpoint_prepare(struct agent *a, struct command *c, const char *task)
{
	struct json_doc doc;
	const struct json *given = json_get(json_read(&doc, task, strlen(task)), "checkpoint");
	struct stat st;
	CLEANUP(close_fd) int dir = open_checkpoints_of_run(a);
	pid_t pid = 0;
	c->checkpoint.dir = xasprintf("%s/checkpoint/%s/%s", a->disk, a->run, c->id);
	bool there = dir >= 0 && fstatat(dir, c->id, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		     S_ISDIR(st.st_mode) && may_continue(a, c->id, given);
	if (dir >= 0 && !there && make_folder_for_command(a, dir, c->id) == 0 && given)
		pid = fill_begin(a, c, dir, given);
	if (there)
		snprintf(c->checkpoint.from, sizeof(c->checkpoint.from), "%s",
			 json_text(given, "sha256", ""));
	if (!pid)
		folder_ready(a, c);
	json_free(&doc);
	return pid;
}

void checkpoint_filled(struct agent *a, struct command *c, int status)
{
	struct checkpoint *k = &c->checkpoint;
	struct str words = {0};
	CLEANUP(free_text) char *fresh = xasprintf(".%s.new", c->id), *seed = seed_path(a, c->id);
	int dir = open_checkpoints_of_run(a);
	read_all(c->filled, ANSWER_MAX, &words);
	if (status == 0 && dir >= 0 && remove_at(dir, c->id) == 0 &&
	    renameat(dir, fresh, dir, c->id) == 0) {
		write_beside(seed, k->seed, 0600);
		memcpy(k->from, k->seed, sizeof(k->from));
		k->spare[0] = 0;
	} else {
		report_trouble(a, c->id, "lost", words.len ? words.s : "it could not be unpacked",
			       0);
		if (dir >= 0)
			remove_at(dir, fresh);
	}
	close_fd(&dir);
	close_fd(&c->filled);
	str_free(&words);
	folder_ready(a, c);
}

void checkpoint_env(const struct command *c, struct env *env)
{
	env_set(env, "BURST_CHECKPOINT", c->checkpoint.dir);
}

void checkpoint_forget(struct agent *a, const char *id)
{
	CLEANUP(free_text) char *path = xasprintf("%s/checkpoint/%s/%s", a->disk, a->run, id);
	if (access(path, F_OK) == 0)
		remove_in_background(path);
}

void checkpoint_free(struct command *c)
{
	close_fd(&c->filled);
	free(c->checkpoint.dir);
}

/* ---- when snapshots are taken ---- */

/* Removes this pod's older snapshots of the segment, since the newest one is durable. Keeps the one
 * that its command could not begin with, which may hold more. */
static void remove_older(struct agent *a)
{
	const struct save *v = &a->save;
	int dir = open_folder(a->dir_fd, "checkpoint", false);
	CLEANUP(close_dir) DIR *d = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *e;
	size_t len = strlen(v->id);
	CLEANUP(free_text) char *newest = xasprintf("%s.%lld", v->id, (long long)v->number);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, v->id, len) && e->d_name[len] == '.' &&
		    !strchr(e->d_name + len + 1, '.') && strcmp(e->d_name, newest) != 0 &&
		    strcmp(e->d_name, v->spare) != 0)
			unlinkat(dir, e->d_name, 0);
}

/* Syncs the complete file and gives it its name. */
static int keep_snapshot(struct agent *a, int fd)
{
	int dir = open_folder(a->dir_fd, "checkpoint", true);
	CLEANUP(free_text) char *name = xasprintf("%s.%lld", a->save.id, (long long)a->save.number);
	int failed = dir < 0 || fsync(fd) < 0 || renameat(a->dir_fd, PART, dir, name) < 0;
	close_fd(&dir);
	return failed ? -1 : 0;
}

static int open_part(struct agent *a)
{
	int folder = open_folder(a->dir_fd, "checkpoint", true);
	close_fd(&folder);
	unlinkat(a->dir_fd, PART, 0);
	return create_at(a->dir_fd, PART, 0644);
}

/* Runs in a child: takes the snapshot. Prints the result for read_answer(). */
static int save_work(struct agent *a)
{
	struct snapshot s = {.from = open_at(AT_FDCWD, a->save.dir),
			     .owner = a->separate && !a->worker_root ? WORKER_UID : 0,
			     .most = a->checkpoint_most,
			     .known = a->save.known};
	int fd = open_part(a);
	enum snapshot_end end = SNAPSHOT_FAILED;
	if (s.from < 0)
		snprintf(s.words, sizeof(s.words), "the folder is gone");
	else if (fd < 0)
		snprintf(s.words, sizeof(s.words), "it cannot be written: %s", strerror(errno));
	else
		end = snapshot_take(&s, fd);
	if (end == SNAPSHOT_TAKEN && keep_snapshot(a, fd) < 0) {
		end = SNAPSHOT_FAILED;
		snprintf(s.words, sizeof(s.words), "it cannot be kept: %s", strerror(errno));
	}
	if (end != SNAPSHOT_TAKEN)
		unlinkat(a->dir_fd, PART, 0);
	printf("%d %lld %s %s %s", (int)end, (long long)s.bytes, *s.sha256 ? s.sha256 : "-",
	       *s.print ? s.print : "-", s.words);
	fflush(stdout);
	return 0;
}

/* Returns false if no child can be started. */
static bool save_child(struct agent *a, int (*work)(struct agent *))
{
	struct save *v = &a->save;
	v->pid = spawn_own(a, work, &v->out);
	if (v->pid > 0)
		return true;
	v->pid = 0;
	return false;
}

static void save_begin(struct agent *a, struct command *c)
{
	struct save *v = &a->save;
	struct checkpoint *k = &c->checkpoint;
	*v = (struct save){.out = -1, .began_ms = now_ms(a)};
	snprintf(v->id, sizeof(v->id), "%s", c->id);
	snprintf(v->dir, sizeof(v->dir), "%s", k->dir);
	snprintf(v->known, sizeof(v->known), "%s", k->print);
	memcpy(v->from, k->from, sizeof(v->from));
	memcpy(v->spare, k->spare, sizeof(v->spare));
	v->ran_ms = v->began_ms - k->began_ms;
	v->number = (int64_t)a->next; /* no other snapshot of this pod has it */
	if (!save_child(a, save_work))
		k->due_ms = now_ms(a) + TROUBLE_MS;
}

/* The time between two snapshots: the job's, or by what the last one took. */
static int64_t interval_ms(const struct agent *a, const struct checkpoint *k)
{
	double took_s = (double)MAX(k->took_ms, (int64_t)1) / 1000,
	       between_s = (double)MAX(a->checkpoint_mean_s, (int64_t)1);
	return a->checkpoint_every_ms ? a->checkpoint_every_ms
				      : (int64_t)(checkpoint_every_s(took_s, between_s) * 1000);
}

/* Reports a snapshot; durable: the volume keeps it. */
static void report_snapshot(struct agent *a, bool durable)
{
	const struct save *v = &a->save;
	struct str *b = event_begin(a, "checkpoint");
	js_text(b, "id", v->id);
	js_int(b, "number", v->number);
	js_int(b, "bytes", v->bytes);
	js_text(b, "sha256", v->sha256);
	js_int(b, "ms", now_ms(a) - v->began_ms);
	js_bool(b, "durable", durable);
	js_text(b, "from", v->from);
	js_int(b, "ran_ms", v->ran_ms);
	event_end(a);
	events_sync(a);
}

/* The file is complete. Its event waits for those of all outputs that were finished before. w: the
 * command's worker; NULL: the command has ended. */
static void on_snapshot_taken(struct agent *a, const struct worker *w)
{
	if (w && a->outputs) {
		command_watched(a, w->command, w->pid);
		scan_folder(a, w->command, "", LOOK_SAVE);
	}
	a->save.waiting = true;
	job_add(a, JOB_SAVE, a->save.id);
}

static void on_saved(struct agent *a, struct command *c)
{
	struct checkpoint *k = &c->checkpoint;
	k->took_ms = now_ms(a) - a->save.began_ms;
	k->due_ms = a->save.began_ms + interval_ms(a, k);
	k->told = SNAPSHOT_TAKEN;
	snprintf(k->print, sizeof(k->print), "%s", a->save.print);
}

/* Plans the next try, and reports the reason unless it was the last one reported. */
static void on_not_saved(struct agent *a, struct command *c, enum snapshot_end end, int64_t bytes,
			 const char *words)
{
	static const char *const errors[] = {[SNAPSHOT_MOVING] = "moving",
					     [SNAPSHOT_LARGE] = "large",
					     [SNAPSHOT_UNFIT] = "unfit",
					     [SNAPSHOT_FAILED] = "failed"};
	struct checkpoint *k = &c->checkpoint;
	k->due_ms = now_ms(a) + TROUBLE_MS;
	if (end == SNAPSHOT_MOVING)
		k->due_ms = now_ms(a) +
			    MIN((int64_t)AGAIN_MS << MIN(k->tries, 8), (int64_t)AGAIN_MOST_MS);
	if (k->told == (int)end || (end == SNAPSHOT_MOVING && k->tries < TRIES_TOLD))
		return;
	k->told = (int)end;
	report_trouble(a, c->id, errors[end], words, bytes);
}

/* Reads what save_work() printed. *words: the reason of a failure. */
static enum snapshot_end read_answer(struct save *v, char *text, const char **words)
{
	int end = SNAPSHOT_FAILED, at = 0;
	long long bytes = 0;
	*words = "its child ended early";
	if (sscanf(text, "%d %lld %64s %64s %n", &end, &bytes, v->sha256, v->print, &at) < 4 || !at)
		return SNAPSHOT_FAILED;
	v->bytes = bytes;
	*words = text + at;
	return (enum snapshot_end)end;
}

/* Plans the command's next snapshot by the end of this one. */
static void on_save_ended(struct agent *a, struct command *c, enum snapshot_end end,
			  const char *words)
{
	struct checkpoint *k = &c->checkpoint;
	int64_t took_ms = now_ms(a) - a->save.began_ms;
	k->tries = end == SNAPSHOT_MOVING ? k->tries + 1 : 0;
	k->last = k->exited_ms && a->save.began_ms >= k->exited_ms &&
		  (end != SNAPSHOT_MOVING || k->tries > TRIES_AT_EXIT);
	if (end == SNAPSHOT_TAKEN)
		on_saved(a, c);
	else if (end == SNAPSHOT_SAME)
		k->due_ms = now_ms(a) + MAX((int64_t)LOOK_MS, 10 * took_ms);
	else
		on_not_saved(a, c, end, a->save.bytes, words);
}

/* The worker of the command whose snapshot this is. NULL: the command has ended. */
static const struct worker *saved_worker(const struct agent *a)
{
	for (int i = 0; i < a->worker_count; i++) {
		const struct command *c = a->workers[i].command;
		int64_t began_ms = c && !strcmp(c->id, a->save.id) ? c->checkpoint.began_ms : 0;
		if (began_ms && began_ms <= a->save.began_ms)
			return &a->workers[i];
	}
	return NULL;
}

/* The command whose snapshot this is. NULL: it has ended. */
static struct command *saved_command(const struct agent *a)
{
	const struct worker *w = saved_worker(a);
	return w ? w->command : NULL;
}

void checkpoint_outputs_copied(struct agent *a)
{
	struct save *v = &a->save;
	struct command *c = saved_command(a);
	v->waiting = false;
	report_snapshot(a, false);
	if (a->checkpoint_on_volume)
		v->flushing = save_child(a, sync_work);
	else
		remove_older(a);
	if (c && !v->flushing)
		on_save_ended(a, c, SNAPSHOT_TAKEN, "");
}

/* The volume was made durable (fine), or could not be. */
static void on_flushed(struct agent *a, bool fine)
{
	struct command *c = saved_command(a);
	if (fine) {
		report_snapshot(a, true);
		remove_older(a);
	}
	if (c)
		on_save_ended(a, c, fine ? SNAPSHOT_TAKEN : SNAPSHOT_FAILED,
			      "the volume does not keep it");
}

bool checkpoint_exited(struct agent *a, pid_t pid, int status)
{
	struct save *v = &a->save;
	CLEANUP(str_free) struct str text = {0};
	const char *words;
	if (!v->pid || pid != v->pid)
		return false;
	v->pid = 0;
	read_all(v->out, ANSWER_MAX, &text);
	close_fd(&v->out);
	str_addc(&text, 0);
	if (v->flushing) {
		on_flushed(a, status == 0);
	} else {
		enum snapshot_end end = read_answer(v, text.s, &words);
		struct command *c = saved_command(a);
		if (end == SNAPSHOT_TAKEN)
			on_snapshot_taken(a, saved_worker(a));
		else if (c)
			on_save_ended(a, c, end, words);
	}
	return true;
}

void checkpoint_tick(struct agent *a)
{
	struct command *first = NULL;
	if (a->save.pid || a->save.waiting || a->fatal)
		return;
	for (int i = 0; i < a->worker_count; i++) {
		struct command *c = a->workers[i].command;
		if (c && c->checkpoint.began_ms && now_ms(a) >= c->checkpoint.due_ms &&
		    (!first || c->checkpoint.due_ms < first->checkpoint.due_ms))
			first = c;
	}
	if (first)
		save_begin(a, first);
}

bool checkpoint_settled(struct agent *a, struct command *c)
{
	struct checkpoint *k = &c->checkpoint;
	if ((c->code == 0 && !c->halted) || k->last || !k->began_ms || a->fatal)
		return true;
	if (!k->exited_ms) {
		k->exited_ms = now_ms(a);
		k->due_ms = 0;
	}
	return false;
}
