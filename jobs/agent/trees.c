/* trees.c - visits, lists, copies and moves the trees of a disk. */
#include "trees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "files.h"
#include "sha256.h"

/* ---- a walk of all folders of a tree ---- */

struct walk {
	int root, to;
	walk_entry *entry;
	void *ctx;
	char **left; /* folders that are still to be visited */
	size_t count, cap;
};

static int visit_entry(struct walk *v, const struct walked *w)
{
	enum walk_step step = v->entry(v->ctx, w);
	if (step == WALK_INTO) {
		GROW(v->left, v->count, v->cap);
		v->left[v->count++] = xstrdup(w->path);
	}
	return step == WALK_STOP ? -1 : 0;
}

/* Visits one folder ("" is the root) without descriptors of others: a tree can be deeper than
 * those. */
static int visit_folder(struct walk *v, const char *folder)
{
	const char *path = *folder ? folder : ".";
	int dir = open_folder(v->root, path, false);
	int to = dir < 0 || v->to < 0 ? -1 : open_folder(v->to, path, false);
	DIR *d = dir < 0 || (v->to >= 0 && to < 0) ? NULL : fdopendir(dir);
	struct dirent *e;
	int failed = !d;
	while (!failed && (e = next_entry(d))) {
		char *below = xasprintf("%s%s%s", folder, *folder ? "/" : "", e->d_name);
		struct walked w = {dir, to, below, below + strlen(below) - strlen(e->d_name)};
		failed = visit_entry(v, &w) < 0;
		free(below);
	}
	failed = failed || errno; /* it could not be read to its end */
	int saved = errno;
	if (d)
		closedir(d);
	else
		close_fd(&dir);
	close_fd(&to);
	errno = saved;
	return failed ? -1 : 0;
}

int walk_tree(int root, int to, walk_entry *entry, void *ctx)
{
	struct walk v = {.root = root, .to = to, .entry = entry, .ctx = ctx};
	int failed = visit_folder(&v, "");
	while (v.count) {
		char *next = v.left[--v.count];
		failed = failed || visit_folder(&v, next) < 0;
		free(next);
	}
	free(v.left);
	return failed ? -1 : 0;
}

/* ---- listings ---- */

enum { LISTING_MAX = 512 << 20 };

void listing_free(struct listing *l)
{
	for (size_t i = 0; i < l->count; i++) {
		free(l->list[i].path);
		free(l->list[i].target);
	}
	free(l->list);
	*l = (struct listing){0};
}

void listing_add(struct listing *l, char type, const char *path, const char *sha256,
		 const char *target)
{
	GROW(l->list, l->count, l->cap);
	struct listed *e = &l->list[l->count];
	*e = (struct listed){.type = type, .path = xstrdup(path), .turn = l->count++};
	if (target)
		e->target = xstrdup(target);
	if (sha256)
		memcpy(e->sha256, sha256, 65);
}

static int listed_order(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int order = strcmp(x->path, y->path);
	return order ? order : x->turn < y->turn ? -1 : x->turn > y->turn;
}

void listing_sort(struct listing *l)
{
	size_t kept = 0;
	if (l->count)
		qsort(l->list, l->count, sizeof(*l->list), listed_order);
	for (size_t i = 0; i < l->count; i++) {
		if (i + 1 < l->count && !strcmp(l->list[i].path, l->list[i + 1].path)) {
			free(l->list[i].path);
			free(l->list[i].target);
		} else {
			l->list[kept++] = l->list[i];
		}
	}
	l->count = kept;
	for (size_t i = 0; i < kept; i++)
		l->list[i].turn = i;
}

struct listed *listing_find(const struct listing *l, const char *path)
{
	size_t low = 0, high = l->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(l->list[mid].path, path);
		if (!order)
			return &l->list[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static bool lies_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);
	return !strncmp(path, folder, len) && (path[len] == '/' || !path[len]);
}

void listing_remove(struct listing *l, const char *path)
{
	struct listed *e = listing_find(l, path);
	bool folder = e && e->type == 'd';
	size_t kept = e ? (size_t)(e - l->list) : l->count;
	for (size_t i = kept; i < l->count; i++) {
		struct listed *it = &l->list[i];
		if (it == e || (folder && lies_below(it->path, path))) {
			free(it->path);
			free(it->target);
			it->path = it->target = NULL;
		}
	}
	for (size_t i = kept; i < l->count; i++)
		if (l->list[i].path)
			l->list[kept++] = l->list[i];
	l->count = kept;
	for (size_t i = 0; i < kept; i++)
		l->list[i].turn = i; /* entries added later sort behind these */
}

bool is_file(const struct listed *e)
{
	return e->type == 'f' || e->type == 'x';
}

void listing_text(const struct listing *l, struct str *out)
{
	str_add(out, LISTING_TITLE);
	for (size_t i = 0; i < l->count; i++) {
		const struct listed *e = &l->list[i];
		str_addc(out, e->type);
		str_addc(out, ' ');
		if (is_file(e)) {
			str_addn(out, e->sha256, 64);
			str_addc(out, ' ');
		}
		str_add(out, e->path);
		if (e->type == 'l') {
			str_addc(out, '\t');
			str_add(out, e->target);
		}
		str_addc(out, '\n');
	}
}

static void hash_text(const char *text, size_t len, char hex[65])
{
	struct sha256 sha;
	sha_start(&sha);
	sha_add(&sha, text, len);
	sha_hex(&sha, hex);
}

void listing_id(const struct listing *l, char hex[65])
{
	CLEANUP(str_free) struct str text = {0};
	listing_text(l, &text);
	hash_text(text.s, text.len, hex);
}

/* Adds the entry of one line without its newline, which it changes. Returns -1 if it is invalid. */
static int listing_line(struct listing *l, char *line)
{
	char type = line[0], *path = line + 2, *hash = NULL, *target = NULL;
	if (!type || !strchr("fxdl", type) || line[1] != ' ')
		return -1;
	if (type == 'f' || type == 'x') {
		hash = path;
		if (!starts_with_hex(hash, 64) || hash[64] != ' ')
			return -1;
		hash[64] = 0;
		path = hash + 65;
	} else if (type == 'l') {
		target = strchr(path, '\t');
		if (!target || !target[1])
			return -1;
		*target++ = 0;
	}
	if (!path_inside(path) || (l->count && strcmp(l->list[l->count - 1].path, path) >= 0))
		return -1;
	listing_add(l, type, path, hash, target);
	return 0;
}

int listing_parse(struct listing *l, char *text, size_t len)
{
	size_t title = strlen(LISTING_TITLE);
	*l = (struct listing){0};
	if (len < title || memcmp(text, LISTING_TITLE, title) || text[len - 1] != '\n' ||
	    memchr(text, 0, len))
		return -1;
	for (char *p = text + title, *nl; p < text + len; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(text + len - p));
		*nl = 0;
		if (listing_line(l, p) < 0) {
			listing_free(l);
			return -1;
		}
	}
	return 0;
}

int listing_read(struct listing *l, int dir, const char *id)
{
	struct stat st;
	CLEANUP(str_free) struct str text = {0};
	char hex[65];
	*l = (struct listing){0};
	int fd = open_below(dir, LISTING_NAME, &st);
	int failed = fd < 0 || read_all(fd, LISTING_MAX, &text) < 0;
	if (!failed) {
		hash_text(str_text(&text), text.len, hex);
		failed = (id && strcmp(hex, id)) || listing_parse(l, text.s, text.len) < 0;
		if (failed)
			errno = EBADMSG;
	}
	if (failed && errno == ELOOP)
		errno = EBADMSG;
	close_fd(&fd);
	return failed ? -1 : 0;
}

int listing_write(const struct listing *l, int dir)
{
	struct str text = {0};
	remove_at(dir, LISTING_NAME);
	int fd = create_at(dir, LISTING_NAME, 0644);
	listing_text(l, &text);
	int failed = fd < 0 || fd_write_all(fd, text.s, text.len) < 0;
	str_free(&text);
	if (fd >= 0 && close(fd) < 0)
		failed = 1;
	return failed ? -1 : 0;
}

bool is_beside_tree(const char *name)
{
	return !strcmp(name, LISTING_NAME) || !strcmp(name, ARCHIVE_NAME);
}

struct listing_walk {
	struct listing *l;
	char *bad;
};

static enum walk_step list_entry(void *ctx, const struct walked *w)
{
	struct listing_walk *k = ctx;
	struct stat st;
	if (w->path == w->name && is_beside_tree(w->name))
		return WALK_ON;
	snprintf(k->bad, PATH_BYTES_MAX, "%s", w->path);
	if (strpbrk(w->path, "\n\t") || !path_inside(w->path))
		return errno = EINVAL, WALK_STOP;
	if (fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return WALK_STOP;
	if (S_ISREG(st.st_mode)) {
		listing_add(k->l, st.st_mode & 0100 ? 'x' : 'f', w->path, NULL, NULL);
	} else if (S_ISDIR(st.st_mode)) {
		listing_add(k->l, 'd', w->path, NULL, NULL);
		return WALK_INTO;
	} else if (S_ISLNK(st.st_mode)) {
		char target[PATH_BYTES_MAX];
		if (read_link(w->dir, w->name, target) < 1 || strchr(target, '\n'))
			return errno = EINVAL, WALK_STOP;
		listing_add(k->l, 'l', w->path, NULL, target);
	}
	return WALK_ON;
}

int listing_walk(struct listing *l, int dir, char bad[PATH_BYTES_MAX])
{
	struct listing_walk k = {l, bad};
	return walk_tree(dir, -1, list_entry, &k);
}

int listing_frame(const struct listing *l, int to)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct listed *e = &l->list[i];
		const char *name;
		if (e->type != 'd' && e->type != 'l')
			continue;
		int dir = open_parent(to, e->path, false, &name);
		int failed = dir < 0 || (e->type == 'd' ? mkdirat(dir, name, 0755)
							: symlinkat(e->target, dir, name)) < 0;
		close_fd(&dir);
		if (failed)
			return -1;
	}
	return 0;
}

/* ---- copies of a whole folder ---- */

static int copy_bytes(int from, int to)
{
	ssize_t n;
	while ((n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0)) > 0)
		;
	return n == 0 ? 0 : copy_all(from, to, NULL);
}

#define FICLONE_REQUEST _IOW(0x94, 9, int)

/* Copies one plain file: by reflink if possible, else by its bytes. */
static int copy_plain(int from, int to, const char *name, const struct stat *st)
{
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(close_fd)
	int out = in < 0 ? -1
			 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				  st->st_mode & 0777);
	int failed = in < 0 || out < 0 ||
		     (ioctl(out, FICLONE_REQUEST, in) < 0 && copy_bytes(in, out) < 0);
	if (!failed) {
		fchmod(out, st->st_mode & 0777);
		futimens(out, (struct timespec[]){st->st_atim, st->st_mtim});
	}
	close_fd(&in);
	return failed ? -1 : 0;
}

static int copy_link(int from, int to, const char *name)
{
	char target[PATH_BYTES_MAX];
	return read_link(from, name, target) < 0 ? -1 : symlinkat(target, to, name);
}

/* Makes a folder with the same mode, open to its owner, who writes into it now. */
static int make_same_folder(int to, const char *name, const struct stat *st)
{
	return mkdirat(to, name, 0755) < 0 || fchmodat(to, name, (st->st_mode & 0777) | 0700, 0) < 0
		       ? -1
		       : 0;
}

/* A missing entry is no error: programs create and remove files beside the code (__pycache__). */
static enum walk_step copy_entry(void *ctx, const struct walked *w)
{
	struct stat st;
	(void)ctx;
	if (fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? WALK_ON : WALK_STOP;
	if (S_ISDIR(st.st_mode))
		return make_same_folder(w->to, w->name, &st) < 0 ? WALK_STOP : WALK_INTO;
	int failed = S_ISLNK(st.st_mode)   ? copy_link(w->dir, w->to, w->name)
		     : S_ISREG(st.st_mode) ? copy_plain(w->dir, w->to, w->name, &st)
					   : 0;
	return failed && errno != ENOENT ? WALK_STOP : WALK_ON;
}

int copy_tree(int from, int to)
{
	return walk_tree(from, to, copy_entry, NULL);
}

/* Renames one entry; folders that exist on both sides are visited instead. */
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
