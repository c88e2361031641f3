/* renders.c - the render cache: finished files by key, verified by hash, limited in size. */
#include "renders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/path.h"

#define BEGUN      "tmp-"              /* prefix of an incomplete file */
#define ROOM_BYTES ((int64_t)64 << 20) /* free disk space to keep */
enum {
	KEY_CHARS = SHA256_HEX - 1,
	NAME_CHARS = 2 * KEY_CHARS + 1,
	SHARD_CHARS = 2,
	BEGUN_S = 3600, /* older incomplete files are of dead processes */
	TRIM_SHARE = 8  /* a trim frees this part of the limit; a file must not be larger */
};

struct renders {
	char *dir;
	int64_t max_bytes;
	pthread_mutex_t lock; /* guards the fields below */
	int64_t added;        /* bytes since the last trim */
	bool off;             /* set by an error: no further file is kept */
	size_t damaged;       /* files removed since the last renders_report() */
	struct str trouble;   /* the error to report; "": none */
};

struct renders *renders_new(const char *dir, int64_t max_bytes)
{
	if (!dir || !*dir || max_bytes <= 0)
		return NULL;
	struct renders *r = xcalloc(1, sizeof(*r));
	r->dir = xstrdup(dir);
	r->max_bytes = max_bytes;
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

void renders_free(struct renders *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	str_free(&r->trouble);
	free(r->dir);
	free(r);
}

/* Stops further renders_put() and keeps the first error: later ones have the same cause. */
static void note_error(struct renders *r, const char *why)
{
	pthread_mutex_lock(&r->lock);
	if (!r->off)
		str_addf(&r->trouble,
			 "render cache %s: %s: renders of this run are not kept there\n", r->dir,
			 why);
	r->off = true;
	pthread_mutex_unlock(&r->lock);
}

static bool is_off(struct renders *r)
{
	pthread_mutex_lock(&r->lock);
	bool off = r->off;
	pthread_mutex_unlock(&r->lock);
	return off;
}

/* Whether the name is KEY.SHA256. */
static bool is_entry(const char *name)
{
	return strlen(name) == NAME_CHARS && starts_with_hex(name, KEY_CHARS) &&
	       name[KEY_CHARS] == '.' && starts_with_hex(name + KEY_CHARS + 1, KEY_CHARS);
}

static bool is_shard(const char *name)
{
	return strlen(name) == SHARD_CHARS && starts_with_hex(name, SHARD_CHARS);
}

/* Opens the folder of a key's files; -1 and errno. */
static int open_shard(int root, const char *key)
{
	char name[SHARD_CHARS + 1];

	snprintf(name, sizeof(name), "%.*s", SHARD_CHARS, key);
	return openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Lists the `wanted` names that start with `begin`. NULL-terminated; free with texts_free(). */
static char **list_names(int folder, bool (*wanted)(const char *name), const char *begin)
{
	int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	size_t count = 0, cap = 0;
	char **names = NULL;

	if (own >= 0 && !dir)
		close(own);
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (!strncmp(e->d_name, begin, strlen(begin)) && wanted(e->d_name)) {
			GROW(names, count, cap);
			names[count++] = xstrdup(e->d_name);
		}
	if (dir)
		closedir(dir);
	GROW(names, count, cap);
	names[count] = NULL;
	return names;
}

/* ---- use ---- */

/* Whether only this user can write to the folder, whose files become outputs. */
static bool is_private(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens a file and records a use. -1: its hash is not the one in its name, so it is removed. */
static int open_verified(struct renders *r, int shard, const char *name)
{
	int fd = openat(shard, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char hash[SHA256_HEX];
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && sha256_fd(fd, hash, NULL) == 0 &&
	    !strcmp(hash, name + KEY_CHARS + 1)) {
		(void)utimensat(shard, name, NULL, 0); /* records the last use */
		return fd;
	}
	close(fd);
	(void)unlinkat(shard, name, 0);
	pthread_mutex_lock(&r->lock);
	r->damaged++;
	pthread_mutex_unlock(&r->lock);
	return -1;
}

int renders_find(struct renders *r, const char *key, char sha256[SHA256_HEX], char **path)
{
	CLEANUP(fd_close) int root = r ? open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	CLEANUP(fd_close) int shard = root < 0 || !is_private(root) ? -1 : open_shard(root, key);
	int fd = -1;

	if (shard < 0)
		return -1;
	char **names = list_names(shard, is_entry, key);
	for (char **n = names; *n && fd < 0; n++) {
		fd = open_verified(r, shard, *n);
		if (fd < 0)
			continue;
		copy_text(sha256, SHA256_HEX, *n + KEY_CHARS + 1);
		*path = xasprintf("%s/%.*s/%s", r->dir, SHARD_CHARS, key, *n);
	}
	texts_free(names);
	return fd;
}

/* ---- keeping ---- */

/* Opens the cache's folder and makes it if needed. -1: it cannot be used, which is noted. */
static int open_root(struct renders *r)
{
	struct err err = {0};
	int root = path_mkdirs(r->dir, 0700, &err) < 0
			   ? -1
			   : open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root < 0) {
		note_error(r, err.kind ? err.msg : strerror(errno));
	} else if (!is_private(root)) {
		note_error(r, "others may write there (chmod 700 makes it private)");
		close(root);
		root = -1;
	}
	return root;
}

/* Copies fd's file to shard/name atomically. -1 and errno. */
static int write_entry(int root, int shard, const char *name, int fd)
{
	char temporary[sizeof(BEGUN) + 16], random[17];

	random_hex(random, 8);
	snprintf(temporary, sizeof(temporary), BEGUN "%.16s", random);
	CLEANUP(fd_close)
	int to = openat(root, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -1;
	if (fd_clone(fd, to) == 0 && renameat(root, temporary, shard, name) == 0)
		return 0;
	int saved = errno;
	(void)unlinkat(root, temporary, 0);
	errno = saved;
	return -1;
}

/* Whether the disk has room for a file of this size; if not, that is noted. */
static bool has_room(struct renders *r, int root, int64_t bytes)
{
	int64_t free_bytes = fd_free_bytes(root);

	if (free_bytes < 0 || free_bytes >= bytes + ROOM_BYTES)
		return true;
	note_error(r, "the disk is nearly full");
	return false;
}

/* Removes all files of this key except `name`. */
static void remove_others(int shard, const char *key, const char *name)
{
	char **names = list_names(shard, is_entry, key);

	for (char **n = names; *n; n++)
		if (strcmp(*n, name))
			(void)unlinkat(shard, *n, 0);
	texts_free(names);
}

/* Records a use of the key's file. Returns whether there is one. */
static bool touch_entry(int shard, const char *key)
{
	char **names = list_names(shard, is_entry, key);
	bool exists = *names != NULL;

	if (exists)
		(void)utimensat(shard, *names, NULL, 0);
	texts_free(names);
	return exists;
}

/* Counts the bytes of a new file; trims the cache once they are many. */
static void count_added(struct renders *r, int64_t bytes)
{
	pthread_mutex_lock(&r->lock);
	r->added += bytes;
	bool is_much = r->added > r->max_bytes / TRIM_SHARE;
	pthread_mutex_unlock(&r->lock);
	if (is_much)
		renders_trim(r);
}

void renders_put(struct renders *r, const char *key, int fd, const char *sha256, bool anew)
{
	CLEANUP(fd_close) int root = r && !is_off(r) ? open_root(r) : -1;
	char name[NAME_CHARS + 1];
	struct stat st;

	if (root < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > r->max_bytes / TRIM_SHARE || !has_room(r, root, st.st_size))
		return;
	snprintf(name, sizeof(name), "%.*s", SHARD_CHARS, key);
	if (mkdirat(root, name, 0700) < 0 && errno != EEXIST) {
		note_error(r, strerror(errno));
		return;
	}
	CLEANUP(fd_close) int shard = open_shard(root, key);
	if (shard < 0) {
		note_error(r, strerror(errno));
		return;
	}
	if (!anew && touch_entry(shard, key))
		return;
	snprintf(name, sizeof(name), "%.*s.%.*s", KEY_CHARS, key, KEY_CHARS, sha256);
	if (write_entry(root, shard, name, fd) < 0) {
		note_error(r, strerror(errno));
		return;
	}
	if (anew)
		remove_others(shard, key, name);
	count_added(r, st.st_size);
}

void renders_report(struct renders *r, struct str *notes)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	if (r->damaged)
		str_addf(notes, "render cache %s: %zu damaged file%s removed and not used\n",
			 r->dir, r->damaged, r->damaged == 1 ? "" : "s");
	str_add(notes, str_text(&r->trouble));
	str_reset(&r->trouble);
	r->damaged = 0;
	pthread_mutex_unlock(&r->lock);
}

/* ---- size ---- */

struct entry {
	char name[NAME_CHARS + 1];
	int64_t bytes, used_ms;
};

struct listing {
	struct entry *list;
	size_t count, cap;
};

static void listing_free_cleanup(struct listing *l)
{
	free(l->list);
}

static int64_t used_ms(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static void list_shard(int root, const char *shard_name, struct listing *out)
{
	CLEANUP(fd_close)
	int shard = openat(root, shard_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char **names = shard < 0 ? NULL : list_names(shard, is_entry, shard_name);
	struct stat st;

	for (char **n = names; n && *n; n++) {
		if (fstatat(shard, *n, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		GROW(out->list, out->count, out->cap);
		struct entry *e = &out->list[out->count++];
		COPY_TEXT(e->name, *n);
		e->bytes = st.st_size;
		e->used_ms = used_ms(&st);
	}
	if (names)
		texts_free(names);
}

static void list_all(int root, struct listing *out)
{
	char **shards = list_names(root, is_shard, "");

	for (char **s = shards; *s; s++)
		list_shard(root, *s, out);
	texts_free(shards);
}

static void remove_entry(int root, const struct entry *e)
{
	char path[SHARD_CHARS + 1 + NAME_CHARS + 1];

	snprintf(path, sizeof(path), "%.*s/%s", SHARD_CHARS, e->name, e->name);
	(void)unlinkat(root, path, 0);
}

static bool is_begun(const char *name)
{
	return !strncmp(name, BEGUN, sizeof(BEGUN) - 1);
}

/* Removes incomplete files of dead processes. Younger ones may belong to a live process. */
static void remove_begun(int root, int64_t older_than_s)
{
	char **names = list_names(root, is_begun, "");
	struct stat st;

	for (char **n = names; *n; n++)
		if (fstatat(root, *n, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (int64_t)time(NULL) - st.st_mtime >= older_than_s)
			(void)unlinkat(root, *n, 0);
	texts_free(names);
}

/* For qsort(): the least recently used first. */
static int compare_by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->used_ms > y->used_ms) - (x->used_ms < y->used_ms);
}

static int64_t sum_bytes(const struct listing *l)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < l->count; i++)
		bytes += l->list[i].bytes;
	return bytes;
}

void renders_trim(struct renders *r)
{
	CLEANUP(listing_free) struct listing all = {0};
	CLEANUP(fd_close)
	int root = r && r->added ? open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (root < 0 || flock(root, LOCK_EX | LOCK_NB) < 0) /* another process is trimming */
		return;
	pthread_mutex_lock(&r->lock);
	r->added = 0;
	pthread_mutex_unlock(&r->lock);
	list_all(root, &all);
	remove_begun(root, BEGUN_S);
	int64_t bytes = sum_bytes(&all);
	if (bytes <= r->max_bytes)
		return;
	qsort(all.list, all.count, sizeof(*all.list), compare_by_use);
	/* remove more than necessary, so that the next file does not start another trim */
	for (size_t i = 0; i < all.count && bytes > r->max_bytes - r->max_bytes / TRIM_SHARE; i++) {
		remove_entry(root, &all.list[i]);
		bytes -= all.list[i].bytes;
	}
}

/* Opens the cache's folder without making it. *root is -1 if it is missing. ERR_LOCAL. */
static int open_existing_root(const char *dir, int *root, struct err *err)
{
	*root = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (*root < 0 && dir && errno != ENOENT)
		return err_set(err, ERR_LOCAL, "render cache %s: %s", dir, strerror(errno));
	return 0;
}

static void measure_listing(const struct listing *all, struct renders_size *out)
{
	*out = (struct renders_size){.count = all->count, .bytes = sum_bytes(all)};
	for (size_t i = 0; i < all->count; i++) {
		int64_t used_s = all->list[i].used_ms / 1000;
		out->oldest_s = i ? MIN(out->oldest_s, used_s) : used_s;
		out->newest_s = MAX(out->newest_s, used_s);
	}
}

int renders_measure(const char *dir, struct renders_size *out, struct err *err)
{
	CLEANUP(listing_free) struct listing all = {0};
	CLEANUP(fd_close) int root = -1;

	*out = (struct renders_size){0};
	if (open_existing_root(dir, &root, err) < 0)
		return -1;
	if (root >= 0)
		list_all(root, &all);
	measure_listing(&all, out);
	return 0;
}

int renders_clear(const char *dir, struct renders_size *out, struct err *err)
{
	CLEANUP(listing_free) struct listing all = {0}, left = {0};
	CLEANUP(fd_close) int root = -1;

	*out = (struct renders_size){0};
	if (open_existing_root(dir, &root, err) < 0)
		return -1;
	if (root < 0)
		return 0;
	list_all(root, &all);
	measure_listing(&all, out);
	for (size_t i = 0; i < all.count; i++)
		remove_entry(root, &all.list[i]);
	remove_begun(root, 0);
	char **shards = list_names(root, is_shard, "");
	for (char **s = shards; *s; s++)
		(void)unlinkat(root, *s, AT_REMOVEDIR);
	texts_free(shards);
	list_all(root, &left);
	if (left.count)
		return err_set(err, ERR_LOCAL,
			       "render cache %s: %zu of %zu files cannot be removed", dir,
			       left.count, all.count);
	return 0;
}
