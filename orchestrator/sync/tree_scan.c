/* tree_scan.c - scans a folder: first walks it without reading, then reads the files that changed.
 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "ignore.h"
#include "tree_internal.h"

#define READ_ROOM  (256u << 10) /* bytes read at once */
#define READ_TRIES 3            /* for a file that changes meanwhile */
#define NS_PER_S   INT64_C(1000000000)

struct scan {
	const struct tree_scan_options *opts;
	int root; /* descriptor of the folder */
	struct tree *tree;
	struct ignore *ignore;
	char *room;
	struct stat written[2]; /* what this process's output is written to */
	int written_count;
	struct err *err;
};

static int64_t mtime_of(const struct stat *st)
{
#ifdef __APPLE__
	return st->st_mtimespec.tv_sec * NS_PER_S + st->st_mtimespec.tv_nsec;
#else
	return st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec;
#endif
}

static int64_t ctime_of(const struct stat *st)
{
#ifdef __APPLE__
	return st->st_ctimespec.tv_sec * NS_PER_S + st->st_ctimespec.tv_nsec;
#else
	return st->st_ctim.tv_sec * NS_PER_S + st->st_ctim.tv_nsec;
#endif
}

static void describe(struct tree_entry *e, const struct stat *st)
{
	e->size = e->type == TREE_FILE ? (int64_t)st->st_size : 0;
	e->executable = e->type == TREE_FILE && (st->st_mode & S_IXUSR);
	e->mtime_ns = mtime_of(st);
	e->ctime_ns = ctime_of(st);
	e->inode = (uint64_t)st->st_ino;
}

static bool stopped(struct scan *s)
{
	if (!s->opts->stop || !atomic_load(s->opts->stop))
		return false;
	err_set(s->err, ERR_INTERRUPTED, "stopped while scanning");
	return true;
}

static int local_error(struct scan *s, const char *path)
{
	return err_set(s->err, ERR_LOCAL, "%s: %s", path, strerror(errno));
}

/* ---- the walk ---- */

static void skip(struct scan *s, const char *path, enum tree_skip why, const struct stat *st)
{
	int64_t bytes = S_ISREG(st->st_mode) ? (int64_t)st->st_size : 0;

	s->tree->skipped[why]++;
	s->tree->skipped_bytes[why] += bytes;
	if (s->opts->skipped)
		s->opts->skipped(s->opts->ctx, path, why, bytes);
}

static bool excluded(const struct scan *s, const char *path)
{
	for (const char *const *p = s->opts->exclude; p && *p; p++)
		if (!strcmp(*p, path))
			return true;
	return false;
}

static int take_link(struct scan *s, const char *path, const struct stat *st)
{
	char target[TREE_LINK_TARGET_MAX + 1];
	ssize_t n = readlinkat(s->root, path, target, sizeof(target));

	if (n < 0)
		return errno == ENOENT ? 0 : local_error(s, path);
	if (n == (ssize_t)sizeof(target)) {
		skip(s, path, TREE_SKIP_NAME, st);
		return 0;
	}
	target[n] = '\0';
	bool fits = tree_target_fits(target);
	if (!fits || !tree_target_inside(path, target)) {
		skip(s, path, fits ? TREE_SKIP_OUTSIDE : TREE_SKIP_NAME, st);
		return 0;
	}
	struct tree_entry *e = tree_append(s->tree, path, TREE_LINK);
	describe(e, st);
	e->target = xstrdup(target);
	return 0;
}

static int walk(struct scan *s, const char *folder);

/* Rules are read before the walk of the folder, and dropped afterwards. */
static int take_folder(struct scan *s, const char *path, const struct stat *st)
{
	describe(tree_append(s->tree, path, TREE_FOLDER), st);
	if (ignore_enter(s->ignore, path, s->err) < 0)
		return -1;
	int result = walk(s, path);
	ignore_leave(s->ignore);
	return result;
}

/* The output of `burst run >log` beside its code. */
static void find_our_output(struct scan *s)
{
	struct stat st;

	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		    (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
			s->written[s->written_count++] = st;
}

static bool is_our_output(const struct scan *s, const struct stat *st)
{
	for (int i = 0; i < s->written_count; i++)
		if (s->written[i].st_dev == st->st_dev && s->written[i].st_ino == st->st_ino)
			return true;
	return false;
}

static struct {
	struct stat *list;
	size_t count, cap;
} held_back;

static bool is_kept(const struct stat *st)
{
	for (size_t i = 0; i < held_back.count; i++)
		if (held_back.list[i].st_dev == st->st_dev &&
		    held_back.list[i].st_ino == st->st_ino)
			return true;
	return false;
}

void tree_keep_back(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || is_kept(&st))
		return;
	GROW(held_back.list, held_back.count, held_back.cap);
	held_back.list[held_back.count++] = st;
}

static int take(struct scan *s, const char *path)
{
	struct stat st;

	if (fstatat(s->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : local_error(s, path);
	bool folder = S_ISDIR(st.st_mode);
	if (is_kept(&st))
		skip(s, path, TREE_SKIP_KEPT, &st);
	else if (ignore_drops(s->ignore, path, folder) || excluded(s, path))
		skip(s, path, TREE_SKIP_IGNORED, &st);
	else if (!tree_path_ok(path))
		skip(s, path, TREE_SKIP_NAME, &st);
	else if (s->tree->count >= TREE_MAX_ENTRIES)
		return err_set(s->err, ERR_CONFIG,
			       "more than %d files and folders: name what is not needed in "
			       ".burstignore",
			       TREE_MAX_ENTRIES);
	else if (folder)
		return take_folder(s, path, &st);
	else if (S_ISLNK(st.st_mode))
		return take_link(s, path, &st);
	else if (S_ISREG(st.st_mode) && is_our_output(s, &st))
		skip(s, path, TREE_SKIP_WRITTEN, &st);
	else if (S_ISREG(st.st_mode))
		describe(tree_append(s->tree, path, TREE_FILE), &st);
	else
		skip(s, path, TREE_SKIP_SPECIAL, &st);
	return 0;
}

/* Reads all names of a folder, each ended by NUL, and closes it, so that depth costs no
 * descriptors. */
static int list_folder(struct scan *s, const char *folder, struct str *names)
{
	int fd = path_open_below(s->root, *folder ? folder : ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR)
			return 0; /* it has vanished, or is something else by now */
		local_error(s, *folder ? folder : "the folder");
		fd_close(fd);
		return -1;
	}
	errno = 0;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			str_addn(names, entry->d_name, strlen(entry->d_name) + 1);
	int result = errno ? local_error(s, *folder ? folder : "the folder") : 0;
	closedir(dir);
	return result;
}

static int walk(struct scan *s, const char *folder)
{
	CLEANUP(str_free) struct str names = STR_INIT;
	CLEANUP(str_free) struct str path = STR_INIT;

	if (stopped(s) || list_folder(s, folder, &names) < 0)
		return -1;
	for (size_t at = 0; at < names.len; at += strlen(names.s + at) + 1) {
		str_reset(&path);
		if (*folder)
			str_addf(&path, "%s/", folder);
		str_add(&path, names.s + at);
		if (take(s, path.s) < 0)
			return -1;
	}
	return 0;
}

/* ---- reading ---- */

static bool same_stat(const struct tree_entry *e, const struct stat *st)
{
	return e->size == (int64_t)st->st_size && e->mtime_ns == mtime_of(st) &&
	       e->ctime_ns == ctime_of(st) && e->inode == (uint64_t)st->st_ino;
}

/* A file written within the file system's clock tick of a scan can change again with the same time:
 * it is read again. */
static bool settled(const struct tree_entry *e, int64_t scanned_ns)
{
	int64_t last = MAX(e->mtime_ns, e->ctime_ns);
	int64_t tick = last % NS_PER_S ? NS_PER_S / 50 : 2 * NS_PER_S;

	return e->ctime_ns && last < scanned_ns - tick;
}

/* Takes the hash from an earlier scan if the file is the one that was read then. */
static bool take_known(struct tree_entry *e, const struct tree *known)
{
	const struct tree_entry *was = known ? tree_find(known, e->path) : NULL;

	if (!was || was->type != TREE_FILE || was->data || was->size != e->size ||
	    was->mtime_ns != e->mtime_ns || was->ctime_ns != e->ctime_ns ||
	    was->inode != e->inode || !settled(was, known->scanned_ns))
		return false;
	memcpy(e->sha256, was->sha256, sizeof(e->sha256));
	return true;
}

static int hash_open_file(struct scan *s, struct tree_entry *e, int fd)
{
	struct sha256 *h = sha256_new();

	for (;;) {
		ssize_t n = read(fd, s->room, READ_ROOM);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || stopped(s)) {
			sha256_free(h);
			return n < 0 ? local_error(s, e->path) : -1;
		}
		if (n == 0)
			break;
		sha256_add(h, s->room, (size_t)n);
		s->tree->read_bytes += n;
	}
	sha256_finish(h, e->sha256);
	return 0;
}

enum read_result { READ_FAILED = -1, READ_DONE, READ_CHANGED, READ_GONE };

static enum read_result read_once(struct scan *s, struct tree_entry *e)
{
	CLEANUP(fd_close)
	int fd = path_open_below(s->root, e->path, O_RDONLY | O_NOCTTY);
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return READ_GONE;
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ELOOP ? READ_CHANGED : local_error(s, e->path);
	if (!S_ISREG(st.st_mode))
		return READ_CHANGED;
	describe(e, &st);
	if (hash_open_file(s, e, fd) < 0)
		return READ_FAILED;
	if (fstat(fd, &st) < 0)
		return local_error(s, e->path);
	return same_stat(e, &st) ? READ_DONE : READ_CHANGED;
}

static enum read_result read_file(struct scan *s, struct tree_entry *e)
{
	s->tree->read_files++;
	for (int i = 0; i < READ_TRIES; i++) {
		enum read_result got = read_once(s, e);
		if (got != READ_CHANGED)
			return got;
	}
	return err_set(s->err, ERR_LOCAL, "%s: changes while it is being read", e->path);
}

/* Gives each file its hash, and drops those that have vanished from the list. */
static int read_files(struct scan *s)
{
	struct tree *tree = s->tree;
	size_t kept = 0, at;
	int result = 0;

	for (at = 0; at < tree->count && result == 0; at++) {
		struct tree_entry *e = &tree->list[at];
		enum read_result got = READ_DONE;
		if (stopped(s))
			got = READ_FAILED;
		else if (e->type == TREE_FILE && !take_known(e, s->opts->known))
			got = read_file(s, e);
		if (got == READ_GONE) {
			free(e->path);
			continue;
		}
		result = got == READ_FAILED ? -1 : 0;
		tree->list[kept++] = *e;
	}
	for (; at < tree->count; at++)
		tree->list[kept++] = tree->list[at];
	tree->count = kept;
	return result;
}

int tree_scan(struct tree **out, const char *root, const struct tree_scan_options *opts,
	      struct err *err)
{
	static const struct tree_scan_options none;
	CLEANUP(fd_close) int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(tree_free) struct tree *tree = tree_new();
	CLEANUP(ignore_free) struct ignore *ignore = NULL;
	CLEANUP(free_text) char *room = xmalloc(READ_ROOM);
	struct scan s = {
		.opts = opts ? opts : &none, .root = fd, .tree = tree, .room = room, .err = err};

	if (fd < 0)
		return err_set(err, errno == ENOTDIR || errno == ENOENT ? ERR_CONFIG : ERR_LOCAL,
			       "%s: %s", root, strerror(errno));
	tree->scanned_ns = clock_wall_ms() * 1000000;
	find_our_output(&s);
	if (ignore_open(&ignore, root, err) < 0)
		return -1;
	s.ignore = ignore;
	if (walk(&s, "") < 0 || (!s.opts->list_only && read_files(&s) < 0))
		return err_wrap(err, "%s", root);
	tree_seal(tree);
	*out = TAKE(tree);
	return 0;
}
