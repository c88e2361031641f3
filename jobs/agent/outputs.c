/* outputs.c - finds the files that a command writes, and tells which of them are finished. */
#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "base/pattern.h"
#include "files.h"
#include "json.h"
#include "sha256.h"
#include "trees.h"

/* ---- the outputs of a command ----
 *
 * An output is finished once it was renamed to its name, or once its writer has closed it. The end
 * of a process closes its files, too. So a file counts as torn if it was closed by a kill, by the
 * death of a command that did not end itself, or perhaps by that. */

enum {
	WATCHES_MAX = 8192,
	UNFIT_MAX = 100, /* names that are reported for one command */
	/* A process that the kernel kills frees its memory first, then closes its files. */
	OOM_DYING_MS = 10 * 1000,
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

/* The first output with the hash of this name. */
static struct output **output_row(struct command *c, const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */
	for (const char *p = name; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619u;
	return &c->outputs[(hash ^ hash >> 16) % OUTPUT_ROWS];
}

static struct output *output_find(struct command *c, const char *name)
{
	for (struct output *o = *output_row(c, name); o; o = o->next)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}

static struct output *output_get(struct command *c, const char *name)
{
	struct output *o = output_find(c, name);
	if (o)
		return o;
	o = xcalloc(1, sizeof(*o));
	o->name = xstrdup(name);
	o->next = *output_row(c, name);
	*output_row(c, name) = o;
	return o;
}

void output_forget(struct command *c, const char *name)
{
	struct output *o = output_find(c, name);
	if (o)
		o->reported = false;
}

/* Returns whether the code has the same file under this name. Copies keep the times. */
static bool is_input(const struct agent *a, const char *name, const struct stat *st)
{
	struct stat was;
	CLEANUP(free_text) char *path = a->code ? xasprintf("%s/%s", a->code, name) : NULL;
	return path && lstat(path, &was) == 0 &&
	       ((S_ISLNK(st->st_mode) && S_ISLNK(was.st_mode)) ||
		(was.st_size == st->st_size && was.st_mtim.tv_sec == st->st_mtim.tv_sec &&
		 was.st_mtim.tv_nsec == st->st_mtim.tv_nsec));
}

static void log_output(struct agent *a, const struct command *c, const char *name, const char *what)
{
	CLEANUP(free_text) char *line = xasprintf("output %s: %s", name, what);
	event_log(a, 0, c->id, line, strlen(line));
}

/* Reports a matching file whose name cannot be fetched, once. */
static void report_unfit_output(struct agent *a, struct command *c, const char *name)
{
	struct output *o = output_get(c, name);
	if (o->reported || c->unfit++ >= UNFIT_MAX)
		return;
	o->reported = true;
	struct str *b = event_begin(a, "output");
	js_text(b, "id", c->id);
	js_text(b, "name", name);
	js_text(b, "error", "name");
	event_end(a);
}

bool is_being_written(const char *name)
{
	size_t len = strlen(name);
	return (len >= 4 && !strcmp(name + len - 4, ".tmp")) ||
	       (len >= 5 && !strcmp(name + len - 5, ".part"));
}

/* Returns whether the file may have been closed by the death of its writer. o NULL: no. */
static bool is_doubtful(const struct command *c, const struct output *o)
{
	return o &&
	       (o->oom || (o->closed_ms && c->doubt_from_ms && o->closed_ms >= c->doubt_from_ms));
}

/* Notes that the kernel killed a process of the pod for want of memory. The kernel counts a process
 * before it kills it, so what closed before the count rose was closed by its writer. */
static void check_oom_kills(struct agent *a, struct command *c)
{
	static const char line[] = "the kernel killed a process for want of memory: what it had "
				   "open is not finished";
	int64_t kills = oom_kills(a->oom_fd);
	if (kills <= c->oom_kills)
		return;
	c->oom_kills = kills;
	c->oom_until_ms = now_ms(a) + OOM_DYING_MS;
	event_log(a, 0, c->id, line, strlen(line));
}

/* Returns whether the file may be unfinished; only at the end. o NULL: nothing was seen of it. */
static bool is_torn(const struct command *c, const struct output *o)
{
	if (!c->exited)
		return false;
	if (is_doubtful(c, o))
		return true;
	if (!o || o->closed == ENDING_NOT)
		return c->blind && (!c->by_itself || c->oom_until_ms);
	return o->closed == ENDING_KILLED || !c->by_itself;
}

/* Logs and counts a file that is not kept. */
static void note_torn_output(struct agent *a, struct command *c, const char *name)
{
	log_output(a, c, name,
		   c->blind || is_doubtful(c, output_find(c, name))
			   ? "may not be finished, and is not kept"
			   : "was still being written when the command ended, and is not kept");
	c->torn++;
	if (!c->torn_name)
		c->torn_name = xstrdup(name);
}

/* Queues the copy of a file if it is a new or changed output of the job, and finished. */
static void offer_output(struct agent *a, struct command *c, const char *name,
			 const struct stat *st)
{
	if (!is_output(a, name) || is_input(a, name, st))
		return;
	if (!S_ISREG(st->st_mode)) {
		if (!c->odd)
			log_output(a, c, name, "is no plain file, and is not fetched");
		c->odd = true;
		return;
	}
	if (!path_is_safe(name))
		return report_unfit_output(a, c, name);
	struct output *o = output_find(c, name);
	if (o && o->reported && o->ino == st->st_ino && o->size == st->st_size &&
	    o->mtime.tv_sec == st->st_mtim.tv_sec && o->mtime.tv_nsec == st->st_mtim.tv_nsec)
		return;
	if (is_torn(c, o))
		return note_torn_output(a, c, name);
	o = output_get(c, name);
	o->reported = true;
	o->ino = st->st_ino;
	o->size = st->st_size;
	o->mtime = st->st_mtim;
	c->output_count++;
	struct job *j = job_add(a, JOB_OUTPUT, c->id);
	j->try = c->try;
	j->name = xstrdup(name);
	j->dir = xstrdup(c->dir);
}

/* Opens a folder of a command's private tree; "" is the root. Follows no link: the command can
 * replace a folder by a link at any time. */
static int open_command_folder(const struct command *c, const char *folder)
{
	int root = open_at(AT_FDCWD, c->dir);
	int fd = root < 0 ? -1 : open_folder(root, *folder ? folder : ".", false);
	close_fd(&root);
	return fd;
}

static void remember_watch(struct command *c, int wd, const char *folder)
{
	if (wd >= c->watches) {
		c->watched = xrealloc(c->watched, ((size_t)wd + 1) * sizeof(char *));
		memset(c->watched + c->watches, 0,
		       ((size_t)wd + 1 - (size_t)c->watches) * sizeof(char *));
		c->watches = wd + 1;
	}
	free(c->watched[wd]);
	c->watched[wd] = xstrdup(folder);
}

/* Watches the folder. Without a watch, the command is blind. */
static void watch_folder(struct command *c, const char *folder, int fd)
{
	if (c->notify < 0 || c->blind)
		return;
	CLEANUP(free_text) char *path = xasprintf("/proc/self/fd/%d/.", fd);
	int wd = c->watches < WATCHES_MAX
			 ? inotify_add_watch(c->notify, path,
					     IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR |
						     IN_DONT_FOLLOW)
			 : -1;
	if (wd >= 0)
		remember_watch(c, wd, folder);
	else
		c->blind = true;
}

struct folders { /* still to be visited */
	char **list;
	size_t count, cap;
};

enum writers { WRITERS_UNKNOWN, WRITERS_NONE, WRITERS_SOME };

/* Returns whether a process can write to the file now: only if none can does the system grant a
 * lease, to the file's owner. There are file systems without leases. */
static enum writers writers_of(int dir, const char *base, const struct stat *st)
{
	int fd = openat(dir, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return WRITERS_UNKNOWN;
	int was = setfsuid(st->st_uid);
	enum writers writers = WRITERS_UNKNOWN;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
		writers = WRITERS_NONE;
		fcntl(fd, F_SETLEASE, F_UNLCK);
	} else if (errno == EAGAIN) {
		writers = WRITERS_SOME;
	}
	setfsuid((uid_t)was);
	close(fd);
	return writers;
}

/* Handles a file that was there before its folder was watched: nothing tells whether it was renamed
 * to its name. If the command's end has begun, the file may have been open until then. */
static void on_file_found(struct agent *a, struct command *c, int dir, const char *name,
			  const char *base, const struct stat *st)
{
	if (c->ending != ENDING_NOT)
		output_get(c, name)->closed = c->ending;
	else if (now_ms(a) < c->oom_until_ms)
		output_get(c, name)->oom = true;
	else if (a->stream && S_ISREG(st->st_mode) && !is_input(a, name, st) &&
		 writers_of(dir, base, st) == WRITERS_NONE)
		offer_output(a, c, name, st);
}

/* Returns whether a process that left the command's group, and outlived it, has the file open. */
static bool is_still_written(const struct agent *a, const struct command *c, int dir,
			     const char *name, const char *base, const struct stat *st)
{
	return c->exited && S_ISREG(st->st_mode) && is_output(a, name) && !is_input(a, name, st) &&
	       writers_of(dir, base, st) == WRITERS_SOME;
}

/* Offers what is finished at a snapshot: a command that continues from that skips it. */
static void offer_finished(struct agent *a, struct command *c, int dir, const char *name,
			   const char *base, const struct stat *st)
{
	const struct output *o = output_find(c, name);
	enum ending closed = o ? o->closed : c->ending;
	bool dies =
		!c->exited && (closed != ENDING_NOT || (o ? o->oom : now_ms(a) < c->oom_until_ms));
	if (!S_ISREG(st->st_mode) || is_being_written(base) || dies || is_torn(c, o))
		return;
	enum writers writers = writers_of(dir, base, st);
	if (writers == WRITERS_NONE || (writers == WRITERS_UNKNOWN && o))
		offer_output(a, c, name, st);
}

/* Adds a folder to `left`, or handles a file by `look`. */
static void visit_entry(struct agent *a, struct command *c, int dir, const char *name,
			const char *base, enum look look, struct folders *left)
{
	struct stat st;
	if (fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		if (strlen(name) >= PATH_BYTES_MAX || !may_hold_output(a, name))
			return;
		GROW(left->list, left->count, left->cap);
		left->list[left->count++] = xstrdup(name);
	} else if (look == LOOK_OFFER) {
		if (is_still_written(a, c, dir, name, base, &st))
			note_torn_output(a, c, name);
		else
			offer_output(a, c, name, &st);
	} else if (look == LOOK_SAVE) {
		if (is_output(a, name))
			offer_finished(a, c, dir, name, base, &st);
	} else if (is_output(a, name)) {
		on_file_found(a, c, dir, name, base, &st);
	}
}

/* Visits one folder, with one descriptor: a command can make any number of levels. */
static void visit_folder(struct agent *a, struct command *c, const char *folder, enum look look,
			 struct folders *left)
{
	int fd = open_command_folder(c, folder);
	if (fd < 0) {
		c->blind = c->blind || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP);
		return;
	}
	watch_folder(c, folder, fd);
	DIR *d = fdopendir(fd);
	if (!d) {
		close(fd);
		c->blind = true;
		return;
	}
	struct dirent *e;
	while ((e = next_entry(d))) {
		char *name = xasprintf("%s%s%s", folder, *folder ? "/" : "", e->d_name);
		visit_entry(a, c, dirfd(d), name, e->d_name, look, left);
		free(name);
	}
	closedir(d);
}

void scan_folder(struct agent *a, struct command *c, const char *folder, enum look look)
{
	struct folders left = {0};
	if (may_hold_output(a, folder))
		visit_folder(a, c, folder, look, &left);
	while (left.count) {
		char *next = left.list[--left.count];
		visit_folder(a, c, next, look, &left);
		free(next);
	}
	free(left.list);
}

static void on_file_event(struct agent *a, struct command *c, const char *name, uint32_t mask,
			  const struct stat *st)
{
	if (!is_output(a, name) || !(mask & (IN_CLOSE_WRITE | IN_MOVED_TO)))
		return;
	struct output *o = output_get(c, name);
	if (mask & IN_CLOSE_WRITE) {
		o->closed = c->ending;
		o->closed_ms = now_ms(a);
		o->oom = o->closed_ms < c->oom_until_ms;
	}
	if (!(mask & IN_MOVED_TO) || c->ending == ENDING_KILLED)
		return;
	o->closed = ENDING_NOT;
	o->closed_ms = 0;
	o->oom = false;
	if (a->stream)
		offer_output(a, c, name, st);
}

/* Handles one event. With `stream`, a file that is renamed to a matching name is offered at once. A
 * closed one may be opened again, so it waits for the command's end. */
static void on_watch_event(struct agent *a, struct command *c, const struct inotify_event *e)
{
	if (e->mask & IN_Q_OVERFLOW)
		c->blind = true;
	if (e->wd < 0 || e->wd >= c->watches || !c->watched[e->wd] || !e->len)
		return;
	const char *folder = c->watched[e->wd];
	CLEANUP(free_text) char *name = xasprintf("%s%s%s", folder, *folder ? "/" : "", e->name);
	int fd = open_command_folder(c, folder);
	struct stat st;
	bool moved = e->mask & IN_MOVED_TO;
	if (fd < 0 || fstatat(fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st.st_mode = 0;
	if (S_ISDIR(st.st_mode))
		scan_folder(a, c, name, moved && a->stream ? LOOK_OFFER : LOOK_WATCH);
	else if (st.st_mode)
		on_file_event(a, c, name, e->mask, &st);
	close_fd(&fd);
}

/* Returns whether the process runs. One that has just ended has closed its files, and the events of
 * that may come before the signal of its end. */
static bool is_alive(pid_t pid)
{
	siginfo_t info = {0};
	return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

void command_watched(struct agent *a, struct command *c, pid_t pid)
{
	char bytes[16 << 10] __attribute__((aligned(8)));
	ssize_t n;
	if (!pid)
		check_oom_kills(a, c);
	while (c->notify >= 0 && (n = read(c->notify, bytes, sizeof(bytes))) > 0) {
		check_oom_kills(a, c);
		if (c->ending == ENDING_NOT && !is_alive(pid))
			c->ending = ENDING_BEGUN;
		for (char *p = bytes; p < bytes + n;) {
			const struct inotify_event *e = (const struct inotify_event *)p;
			on_watch_event(a, c, e);
			p += sizeof(*e) + e->len;
		}
	}
}

void command_watch(struct agent *a, struct command *c)
{
	if (c->notify >= 0 || c->blind || c->exited || !a->outputs || !*a->outputs ||
	    access(c->dir, F_OK) < 0)
		return;
	c->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (c->notify < 0)
		c->blind = true;
	else
		scan_folder(a, c, "", LOOK_WATCH);
}
