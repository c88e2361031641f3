/* outputs.c - finds the outputs of a command while it runs and after it has exited. */
#include "outputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/pattern.h"
#include "bounds.h"
#include "copy.h"
#include "events.h"
#include "files.h"
#include "json.h"
#include "todo.h"

enum {
	WATCHES_MAX = 8192,
};

static bool is_output(const struct agent *a, const char *name)
{
	for (char **p = a->outputs; p && *p; p++)
		if (pattern_match(*p, name))
			return true;
	return false;
}

/* True if the folder lies above or below the plain start of a pattern, or is the same. */
bool may_hold_output(const struct agent *a, const char *dir)
{
	size_t len = strlen(dir);
	for (char **p = a->outputs; p && *p; p++) {
		size_t plain = strcspn(*p, "*?[\\");
		while (plain && (*p)[plain - 1] != '/')
			plain--;
		size_t folder = plain ? plain - 1 : 0; /* "out/" -> "out" */
		if (!len || !folder)
			return true;
		bool on_the_way = !strncmp(*p, dir, MIN(len, folder));
		if (on_the_way &&
		    (len == folder || (len < folder ? (*p)[len] : dir[folder]) == '/'))
			return true;
	}
	return false;
}

static struct output **output_row(struct command *c, const char *name)
{
	return &c->outputs[hash_pick(hash_text(2166136261u, name), OUTPUT_ROWS)];
}

static struct output *output_find(struct command *c, const char *name)
{
	for (struct output *o = *output_row(c, name); o; o = o->next)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}

void output_forget(struct command *c, const char *name)
{
	struct output **at = output_row(c, name), *o;
	while ((o = *at) && strcmp(o->name, name))
		at = &o->next;
	if (!o)
		return;
	*at = o->next;
	free(o->name);
	free(o);
}

/* Returns whether the file came with the code and is unchanged. Copies keep the times. */
static bool is_input(const struct agent *a, const char *name, const struct stat *st)
{
	struct stat was;
	char *path = a->code ? xasprintf("%s/%s", a->code, name) : NULL;
	bool same = path && lstat(path, &was) == 0 && was.st_size == st->st_size &&
		    was.st_mtim.tv_sec == st->st_mtim.tv_sec &&
		    was.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
	free(path);
	return same;
}

/* Reports a matching file whose name cannot be fetched, once for each command. */
static void output_unfit(struct agent *a, struct command *c, const char *name)
{
	if (c->unfit)
		return;
	c->unfit = true;
	struct str *b = event_begin(a, "output");
	js_text(b, "id", c->id);
	js_text(b, "name", name);
	js_text(b, "error", "name");
	event_end(a);
}

static void output_offer(struct agent *a, struct command *c, const char *name,
			 const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || !is_output(a, name) || is_input(a, name, st))
		return;
	if (!path_is_safe(name))
		return output_unfit(a, c, name);
	struct output *o = output_find(c, name);
	if (o && o->ino == st->st_ino && o->size == st->st_size &&
	    o->mtime.tv_sec == st->st_mtim.tv_sec && o->mtime.tv_nsec == st->st_mtim.tv_nsec)
		return;
	if (!o) {
		o = xcalloc(1, sizeof(*o));
		o->name = xstrdup(name);
		o->next = *output_row(c, name);
		*output_row(c, name) = o;
	}
	o->ino = st->st_ino;
	o->size = st->st_size;
	o->mtime = st->st_mtim;
	c->output_count++;
	struct job *j = job_add(a, JOB_OUTPUT, c->id);
	j->try = c->try;
	j->name = xstrdup(name);
	j->dir = xstrdup(c->dir);
}

/* Scans a command's private tree; "" is the root. Follows no link: the command can replace a folder
 * by one at any time. */
static int command_folder(const struct command *c, const char *folder)
{
	int root = open(c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0 || !*folder)
		return root;
	int fd = open_folder(root, folder, false);
	close(root);
	return fd;
}

static void watch_folder(struct agent *a, struct command *c, const char *folder, bool offer);

void scan_folder(struct agent *a, struct command *c, const char *folder, bool offer)
{
	int fd = command_folder(c, folder);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		struct stat st;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		char *name = xasprintf("%s%s%s", folder, *folder ? "/" : "", e->d_name);
		if (S_ISDIR(st.st_mode) && strlen(name) < PATH_BYTES_MAX)
			watch_folder(a, c, name, offer);
		else if (offer)
			output_offer(a, c, name, &st);
		free(name);
	}
	if (d)
		closedir(d);
}

static void watch_folder(struct agent *a, struct command *c, const char *folder, bool offer)
{
	if (!may_hold_output(a, folder))
		return;
	int fd = c->notify >= 0 && c->watches < WATCHES_MAX ? command_folder(c, folder) : -1;
	if (fd >= 0) {
		char *path = xasprintf("/proc/self/fd/%d/.", fd);
		int wd = inotify_add_watch(c->notify, path,
					   IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
		if (wd >= c->watches) {
			c->watched = xrealloc(c->watched, ((size_t)wd + 1) * sizeof(char *));
			memset(c->watched + c->watches, 0,
			       ((size_t)wd + 1 - (size_t)c->watches) * sizeof(char *));
			c->watches = wd + 1;
		}
		if (wd >= 0) {
			free(c->watched[wd]);
			c->watched[wd] = xstrdup(folder);
		}
		free(path);
		close(fd);
	}
	scan_folder(a, c, folder, offer);
}

/* A file renamed to a matching name is complete. A created file may still grow, so it waits for the
 * scan at the exit. */
static void watched_event(struct agent *a, struct command *c, const struct inotify_event *e)
{
	if (e->wd < 0 || e->wd >= c->watches || !c->watched[e->wd] || !e->len)
		return;
	const char *folder = c->watched[e->wd];
	char *name = xasprintf("%s%s%s", folder, *folder ? "/" : "", e->name);
	int fd = command_folder(c, folder);
	struct stat st;
	if (fd >= 0 && fstatat(fd, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode))
			watch_folder(a, c, name, (e->mask & IN_MOVED_TO) != 0);
		else if (e->mask & IN_MOVED_TO)
			output_offer(a, c, name, &st);
	}
	close_fd(&fd);
	free(name);
}

void command_watched(struct agent *a, struct command *c)
{
	char bytes[16 << 10] __attribute__((aligned(8)));
	ssize_t n;
	while ((n = read(c->notify, bytes, sizeof(bytes))) > 0)
		for (char *p = bytes; p < bytes + n;) {
			const struct inotify_event *e = (const struct inotify_event *)p;
			watched_event(a, c, e);
			p += sizeof(*e) + e->len;
		}
}

void command_watch(struct agent *a, struct command *c)
{
	if (!a->stream || c->notify >= 0 || c->exited || access(c->dir, F_OK) < 0)
		return;
	c->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (c->notify >= 0)
		watch_folder(a, c, "", false);
}
