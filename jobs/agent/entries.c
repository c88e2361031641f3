/* entries.c - makes a folder of the entries of a tar stream. */
#include "entries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "bounds.h"
#include "files.h"
#include "sha256.h"

static void tree_forget_parent(struct tar *t)
{
	close_fd(&t->parent);
	free(t->parent_path);
	t->parent_path = NULL;
}

/* Opens the entry's folder without following a link, and makes it if it is missing. Keeps it open
 * for the next entries. */
static int tree_parent(struct tar *t, const char **name)
{
	const char *slash = strrchr(t->path, '/');
	size_t len = slash ? (size_t)(slash - t->path) : 0;
	*name = slash ? slash + 1 : t->path;
	if (t->parent >= 0 && strlen(t->parent_path) == len &&
	    !memcmp(t->parent_path, t->path, len))
		return t->parent;
	tree_forget_parent(t);
	t->parent = open_parent(t->root, t->path, true, name);
	t->parent_path = xstrndup(t->path, len);
	if (t->parent < 0)
		tar_error(t, "%s: %s", t->path,
			  errno == ELOOP || errno == ENOTDIR ? "a part of it is not a folder"
							     : strerror(errno));
	return t->parent;
}

static int tree_clear(struct tar *t, int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISDIR(st.st_mode)) {
		int copy = dup(dir);
		tree_forget_parent(t); /* the entry may be the folder that is kept open */
		int failed = remove_at(copy, name);
		close(copy);
		return failed;
	}
	return unlinkat(dir, name, 0);
}

static void tree_listed(struct tar *t, char type, const char *sha256, const char *target)
{
	if (t->listing)
		listing_add(t->listing, type, t->path, sha256, target);
}

static int tree_file(struct tar *t)
{
	const char *name;
	int dir = tree_parent(t, &name);
	if (dir < 0)
		return -1;
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST && tree_clear(t, dir, name) == 0 &&
	    (dir = tree_parent(t, &name)) >= 0)
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	int failed = 0;
	struct sha256 sha;
	char hex[65];
	sha_start(&sha);
	for (int64_t left = t->size; left > 0 && !failed;) {
		char *p;
		size_t n = tar_some(t, (size_t)MIN(left, (int64_t)SLICE), &p);
		failed = n ? fd_write_all(fd, p, n) : tar_error(t, "the stream ended early");
		sha_add(&sha, p, n);
		left -= (int64_t)n;
	}
	sha_hex(&sha, hex);
	tree_listed(t, t->mode & 0100 ? 'x' : 'f', hex, NULL);
	if (failed)
		tar_error(t, "%s: %s", t->path, strerror(errno));
	fchmod(fd, (mode_t)(t->mode | 0400));
	struct timespec when = {.tv_sec = t->mtime};
	futimens(fd, (struct timespec[]){when, when});
	if (close(fd) < 0 && !failed)
		failed = tar_error(t, "%s: %s", t->path, strerror(errno));
	t->files++;
	return failed ? -1 : tar_pad(t, t->size);
}

static int tree_folder(struct tar *t)
{
	const char *name;
	struct stat st;
	int dir = tree_parent(t, &name);
	if (dir < 0)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
	    unlinkat(dir, name, 0) < 0)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	tree_listed(t, 'd', NULL, NULL);
	return fchmodat(dir, name, (mode_t)(t->mode | 0700), 0) < 0
		       ? tar_error(t, "%s: %s", t->path, strerror(errno))
		       : 0;
}

bool link_inside(const char *path, const char *target)
{
	long depth = 0;
	if (!*target || *target == '/')
		return false;
	for (const char *p = path; (p = strchr(p, '/')); p++)
		depth++;
	for (const char *p = target; p;) {
		const char *slash = strchr(p, '/');
		size_t n = slash ? (size_t)(slash - p) : strlen(p);
		if (n == 2 && p[0] == '.' && p[1] == '.')
			depth--;
		else if (n && !(n == 1 && p[0] == '.'))
			depth++;
		if (depth < 0)
			return false;
		p = slash ? slash + 1 : NULL;
	}
	return true;
}

static int tree_symlink(struct tar *t)
{
	const char *name;
	if (!link_inside(t->path, t->link))
		return tar_error(t, "%s: a link out of the tree", t->path);
	int dir = tree_parent(t, &name);
	if (dir < 0)
		return -1;
	if (tree_clear(t, dir, name) < 0 || (dir = tree_parent(t, &name)) < 0 ||
	    symlinkat(t->link, dir, name) < 0)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	tree_listed(t, 'l', NULL, t->link);
	t->files++;
	return 0;
}

/* Replaces an entry listed before. Searches only older entries: tree_fill() sorts later. */
static void tree_listed_again(struct tar *t, const char *old)
{
	for (size_t i = t->listing ? t->listing->count : 0; i-- > 0;)
		if (!strcmp(t->listing->list[i].path, old)) {
			char hex[65];
			memcpy(hex, t->listing->list[i].sha256, 65);
			tree_listed(t, t->listing->list[i].type, hex, NULL);
			return;
		}
}

static int tree_hard_link(struct tar *t)
{
	const char *name, *old_name, *old = t->link;
	struct stat st;
	while (!strncmp(old, "./", 2))
		old += 2;
	int dir = tree_parent(t, &name);
	int from = dir >= 0 && path_inside(old) ? open_parent(t->root, old, false, &old_name) : -1;
	bool fine = from >= 0 && fstatat(from, old_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode);
	if (fine && strcmp(old, t->path)) {
		fine = tree_clear(t, dir, name) == 0 && (dir = tree_parent(t, &name)) >= 0 &&
		       linkat(from, old_name, dir, name, 0) == 0;
		tree_listed_again(t, old);
		t->files++;
	}
	close_fd(&from);
	return fine ? 0 : tar_error(t, "%s: a hard link to what is not in the tree", t->path);
}

/* Removes the paths that this tree lost; they are separated by NUL. */
static int tree_delete(struct tar *t)
{
	char *list = tar_content(t, t->size, DELETE_LIST_MAX), *p = list;
	int failed = !list;
	for (; !failed && p < list + t->size; p += strlen(p) + 1) {
		const char *name;
		if (!*p)
			continue;
		if (!path_inside(p)) {
			failed = tar_error(t, "a path to delete that leaves the tree");
			break;
		}
		int dir = open_parent(t->root, p, false, &name);
		if (t->listing)
			listing_remove(t->listing, p);
		if (dir >= 0 && remove_at(dir, name) < 0)
			failed = tar_error(t, "%s: %s", p, strerror(errno));
		close_fd(&dir);
	}
	free(list);
	return failed ? -1 : 0;
}

static int tree_entry(struct tar *t)
{
	bool first = t->first;
	t->first = false;
	if (!strcmp(t->path, ".") || !*t->path)
		return t->type == '5' ? 0 : tar_error(t, "an entry without a name");
	if (!path_inside(t->path))
		return tar_error(t, "an entry that leaves the tree");
	if (!strcmp(t->path, LISTING_NAME) || strpbrk(t->path, "\n\t") || strpbrk(t->link, "\n\t"))
		return tar_error(t, "an entry whose name cannot be listed");
	switch (t->type) {
	case '0':
	case 0:
	case '7':
		if (first && !strcmp(t->path, ".burst-delete"))
			return tree_delete(t);
		return tree_file(t);
	case '1': return tree_hard_link(t);
	case '2': return tree_symlink(t);
	case '5': return tree_folder(t);
	default: return tar_error(t, "%s: only files, folders and links are taken", t->path);
	}
}

int tree_fill_from(struct tar *t, int fd, struct lanes *lanes, int root, struct listing *listing)
{
	*t = (struct tar){.fd = fd,
			  .lanes = lanes,
			  .root = root,
			  .listing = listing,
			  .parent = -1,
			  .first = true,
			  .room = xcalloc(1, SLICE / 4)};
	int more;
	while ((more = tar_next(t)) == 1)
		if (tree_entry(t) < 0) {
			more = -1;
			break;
		}
	char *rest;
	while (more == 0 && tar_some(t, SLICE, &rest)) /* read the padding of the last record */
		;
	tree_forget_parent(t);
	free(t->path);
	free(t->link);
	free(t->room);
	if (listing)
		listing_sort(listing);
	return more;
}

int tree_fill(struct tar *t, int fd, int root, struct listing *listing)
{
	return tree_fill_from(t, fd, NULL, root, listing);
}
