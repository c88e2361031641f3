/* walk.c - visits every folder of a tree, however deep, with a bounded number of descriptors. */
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "files.h"

/* Folders on one path that are open at a time, in each tree. To open every folder from the root
 * would cost a round trip for each part of its path, if the tree is on a network file system. */
enum { LEVELS_OPEN = 8 };

struct walk {
	int root, to;
	walk_entry *entry;
	void *ctx;
	char **left; /* folders that lie too deep below the last one that was opened from the root
		      */
	size_t count, cap;
};

static int visit_folder(struct walk *v, int dir, int to, const char *folder, int level);

static int open_at(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int visit_below(struct walk *v, const struct walked *w, int level)
{
	if (level == LEVELS_OPEN) {
		GROW(v->left, v->count, v->cap);
		v->left[v->count++] = xstrdup(w->path);
		return 0;
	}
	int dir = open_at(w->dir, w->name);
	int to = dir < 0 || w->to < 0 ? -1 : open_at(w->to, w->name);
	return visit_folder(v, dir, to, w->path, level + 1);
}

static int visit_entry(struct walk *v, int dir, int to, const char *folder, const struct dirent *e,
		       int level)
{
	char *path = xasprintf("%s%s%s", folder, *folder ? "/" : "", e->d_name);
	struct walked w = {dir, to, path, path + strlen(path) - strlen(e->d_name), e->d_type};
	enum walk_step step = v->entry(v->ctx, &w);
	int failed = step == WALK_INTO ? visit_below(v, &w, level) : step == WALK_STOP ? -1 : 0;
	int saved = errno;
	free(path);
	errno = saved;
	return failed;
}

/* Closes dir and to. */
static int visit_folder(struct walk *v, int dir, int to, const char *folder, int level)
{
	DIR *d = dir < 0 || (v->to >= 0 && to < 0) ? NULL : fdopendir(dir);
	struct dirent *e;
	int failed = !d;
	while (!failed && (errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			failed = visit_entry(v, dir, to, folder, e, level) < 0;
	failed = failed || errno; /* readdir() failed before the end of the list */
	int saved = errno;
	if (d)
		closedir(d);
	else
		close_fd(&dir);
	close_fd(&to);
	errno = saved;
	return failed ? -1 : 0;
}

static int visit_from_root(struct walk *v, const char *folder)
{
	int dir = *folder ? open_folder(v->root, folder, false) : open_at(v->root, ".");
	int to = dir < 0 || v->to < 0 ? -1
		 : *folder            ? open_folder(v->to, folder, false)
				      : open_at(v->to, ".");
	return visit_folder(v, dir, to, folder, 1);
}

int walk_tree(int root, int to, walk_entry *entry, void *ctx)
{
	struct walk v = {.root = root, .to = to, .entry = entry, .ctx = ctx};
	int failed = visit_from_root(&v, ""), saved = errno;
	while (v.count) {
		char *next = v.left[--v.count];
		if (!failed) {
			failed = visit_from_root(&v, next);
			saved = errno;
		}
		free(next);
	}
	free(v.left);
	errno = saved;
	return failed;
}
