/* tree.c - lists a folder with the hash of each file, and one id for all of it */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "ignore.h"

/* ---- tree ----
 * Lists a folder with the hash of each file and computes the tree's id. */

/* 2000-01-01: added files have no time of their own, and 1970 is too early for zip */
#define ADDED_MTIME_NS (946684800 * INT64_C(1000000000))

static void free_entry(struct tree_entry *e)
{
	free(e->path);
	free(e->target);
	free(e->data);
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	for (size_t i = 0; i < tree->count; i++)
		free_entry(&tree->list[i]);
	free(tree->list);
	free(tree);
}

const char *tree_skip_name(enum tree_skip why)
{
	switch (why) {
	case TREE_SKIP_IGNORED: return "ignored";
	case TREE_SKIP_OUTSIDE: return "a link out of the tree";
	case TREE_SKIP_SPECIAL: return "a socket, pipe or device";
	case TREE_SKIP_WRITTEN: return "what this command writes";
	case TREE_SKIP_KEPT: return "keys, or files of burst itself";
	case TREE_SKIP_NAME: return "a name that cannot be sent";
	case TREE_SKIP_KINDS: break;
	}
	return "?";
}

/* A new entry at the end, not sorted yet; the pointer is valid until the next one. */
static struct tree_entry *tree_append(struct tree *tree, const char *path, enum tree_type type)
{
	GROW(tree->list, tree->count, tree->cap);
	struct tree_entry *e = &tree->list[tree->count++];

	*e = (struct tree_entry){.path = xstrdup(path), .type = type};
	return e;
}

static int compare_path(const void *a, const void *b)
{
	return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

/* Sorts the entries, sums up their bytes and computes the tree's id. */
static void tree_seal(struct tree *tree)
{
	struct sha256 *h = sha256_new();
	CLEANUP(str_free) struct str line = STR_INIT;

	if (tree->count)
		qsort(tree->list, tree->count, sizeof(*tree->list), compare_path);
	tree->bytes = 0;
	sha256_add(h, "burst-tree 1\n", 13);
	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_entry *e = &tree->list[i];
		str_reset(&line);
		switch (e->type) {
		case TREE_FILE:
			str_addf(&line, "%c %s %s\n", e->executable ? 'x' : 'f', e->sha256,
				 e->path);
			break;
		case TREE_FOLDER: str_addf(&line, "d %s\n", e->path); break;
		case TREE_LINK: str_addf(&line, "l %s\t%s\n", e->path, e->target); break;
		}
		sha256_add(h, line.s, line.len);
		tree->bytes += e->size;
	}
	sha256_finish(h, tree->id);
}

struct tree *tree_new(void)
{
	struct tree *tree = xcalloc(1, sizeof(*tree));

	tree_seal(tree);
	return tree;
}

const struct tree_entry *tree_find(const struct tree *tree, const char *path)
{
	struct tree_entry key = {.path = (char *)path};

	return tree->count ? bsearch(&key, tree->list, tree->count, sizeof(key), compare_path)
			   : NULL;
}

static bool is_plain_text(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	return utf8_valid(text, strlen(text));
}

/* Whether an entry may have this path: it is safe, and no name that belongs to the pack format or
 * the agent. */
static bool is_sendable_path(const char *path)
{
	return path_is_safe(path) && strcmp(path, TREE_DELETE_NAME) != 0 &&
	       strcmp(path, TREE_LISTING_NAME) != 0;
}

/* Whether the text form can hold this target of a link. */
static bool is_writable_target(const char *target)
{
	return *target && strlen(target) <= TREE_LINK_TARGET_MAX && is_plain_text(target);
}

/* Whether the target of the link at path stays inside the tree. Allows steps up only at the start
 * of the target, and no more than there are folders above the link. The same rule applies to every
 * other link on the way, so the end of a chain of links is inside, too. */
static bool is_target_inside(const char *path, const char *target)
{
	size_t depth = 0;
	bool down = false;

	if (*target == '/')
		return false;
	for (const char *p = path; *p; p++)
		depth += *p == '/';
	for (const char *part = target; *part;) {
		size_t n = strcspn(part, "/");
		bool up = n == 2 && part[0] == '.' && part[1] == '.';
		if (up && (down || depth-- == 0))
			return false;
		down |= n > 0 && !up && !(n == 1 && part[0] == '.');
		part += n + (part[n] == '/');
	}
	return true;
}

/* Adds the missing folders above path. */
static int add_parents(struct tree *tree, const char *path, struct err *err)
{
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		CLEANUP(free_text) char *folder = xstrndup(path, (size_t)(p - path));
		const struct tree_entry *e = tree_find(tree, folder);
		if (e && e->type != TREE_FOLDER)
			return err_set(err, ERR_CONFIG, "%s: %s is not a folder", path, folder);
		if (!e) {
			tree_append(tree, folder, TREE_FOLDER)->mtime_ns = ADDED_MTIME_NS;
			tree_seal(tree);
		}
	}
	return 0;
}

int tree_add(struct tree *tree, const char *name, const void *bytes, size_t len, bool executable,
	     struct err *err)
{
	char hex[SHA256_HEX];
	const struct tree_entry *there = tree_find(tree, name);

	if (!is_sendable_path(name))
		return err_set(err, ERR_CONFIG, "'%s' cannot be the name of a file on a pod", name);
	sha256_hex(bytes, len, hex);
	if (there && there->type == TREE_FILE && there->executable == executable &&
	    !strcmp(there->sha256, hex))
		return 0;
	if (there)
		return err_set(err, ERR_CONFIG, "%s: is in the tree already, with another content",
			       name);
	if (tree->count >= TREE_MAX_ENTRIES)
		return err_set(err, ERR_CONFIG, "more than %d files and folders", TREE_MAX_ENTRIES);
	if (add_parents(tree, name, err) < 0)
		return -1;

	struct tree_entry *e = tree_append(tree, name, TREE_FILE);
	e->executable = executable;
	e->size = (int64_t)len;
	e->mtime_ns = ADDED_MTIME_NS;
	COPY_TEXT(e->sha256, hex);
	e->data = xmalloc(len);
	if (len)
		memcpy(e->data, bytes, len);
	tree_seal(tree);
	return 0;
}

/* ---- differences ---- */

static bool same_entry(const struct tree_entry *a, const struct tree_entry *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == TREE_FILE)
		return a->executable == b->executable && !strcmp(a->sha256, b->sha256);
	return a->type == TREE_FOLDER || !strcmp(a->target, b->target);
}

static void reverse(const char **list, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		const char *other = list[i];
		list[i] = list[count - 1 - i];
		list[count - 1 - i] = other;
	}
}

void tree_diff(struct tree_diff *out, const struct tree *old, const struct tree *new)
{
	struct tree_diff diff = {0};
	size_t was = 0, changed_cap = 0, removed_cap = 0;
	size_t old_count = old ? old->count : 0;

	for (size_t is = 0; was < old_count || is < new->count;) {
		const struct tree_entry *a = was < old_count ? &old->list[was] : NULL;
		const struct tree_entry *b = is < new->count ? &new->list[is] : NULL;
		int order = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);
		was += order <= 0;
		is += order >= 0;
		if (order == 0 && same_entry(a, b))
			continue;
		if (order < 0 || (order == 0 && a->type != b->type)) {
			GROW(diff.removed, diff.removed_count, removed_cap);
			diff.removed[diff.removed_count++] = a->path;
		}
		if (order >= 0) {
			GROW(diff.changed, diff.changed_count, changed_cap);
			diff.changed[diff.changed_count++] = b;
			diff.bytes += b->size;
		}
	}
	if (diff.removed_count)
		reverse(diff.removed, diff.removed_count);
	*out = diff;
}

void tree_diff_free(struct tree_diff *diff)
{
	free(diff->changed);
	free(diff->removed);
	*diff = (struct tree_diff){0};
}

/* ---- tree text ----
 * A tree as a file:
 *
 * burst-tree 1 SCANNED_NS COUNT ID f MTIME_NS CTIME_NS INODE SIZE SHA256 PATH (x instead of f:
 * executable) d MTIME_NS CTIME_NS INODE PATH l MTIME_NS CTIME_NS INODE PATH<tab>TARGET
 *
 * The reader accepts exactly what the writer writes: it writes again what it has read, and
 * compares the two. */

/* Bytes of one file: 8 TiB, so that the sum of a million files does not overflow. */
#define TREE_FILE_MAX (INT64_C(1) << 43)

static void write_tree(const struct tree *tree, struct str *to)
{
	str_addf(to, "burst-tree 1 %" PRId64 " %zu %s\n", tree->scanned_ns, tree->count, tree->id);
	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_entry *e = &tree->list[i];
		char kind = e->type == TREE_FOLDER ? 'd'
			    : e->type == TREE_LINK ? 'l'
			    : e->executable        ? 'x'
						   : 'f';
		str_addf(to, "%c %" PRId64 " %" PRId64 " %" PRIu64 " ", kind, e->mtime_ns,
			 e->ctime_ns, e->inode);
		if (e->type == TREE_FILE)
			str_addf(to, "%" PRId64 " %s ", e->size, e->sha256);
		str_add(to, e->path);
		if (e->type == TREE_LINK)
			str_addf(to, "\t%s", e->target);
		str_addc(to, '\n');
	}
}

int tree_save(const struct tree *tree, const char *path, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	write_tree(tree, &text);
	return path_write(path, text.s, text.len, 0600, err);
}

/* Whether the folder above path is in the tree. */
static bool has_parent(const struct tree *tree, const char *path)
{
	CLEANUP(free_text) char *dir = path_dir(path);
	const struct tree_entry *e = strchr(path, '/') ? tree_find(tree, dir) : NULL;

	return !strchr(path, '/') || (e && e->type == TREE_FOLDER);
}

/* Moves *line behind the `read` bytes and a blank. Returns false if there is no blank. */
static bool step_over_blank(char **line, int read)
{
	bool blank = read && (*line)[read] == ' ';

	*line += blank ? read + 1 : 0;
	return blank;
}

/* Appends the entry to the tree. Returns false if the line is not valid. An unusual spelling of a
 * number would be written differently: the comparison finds it. */
static bool parse_entry(struct tree *tree, char *line)
{
	struct tree_entry e = {0};
	char kind, *target = NULL;
	int read = 0;

	if (sscanf(line, "%c %" SCNd64 " %" SCNd64 " %" SCNu64 "%n", &kind, &e.mtime_ns,
		   &e.ctime_ns, &e.inode, &read) != 4 ||
	    !strchr("fxdl", kind) || !step_over_blank(&line, read))
		return false;
	e.type = kind == 'd' ? TREE_FOLDER : kind == 'l' ? TREE_LINK : TREE_FILE;
	e.executable = kind == 'x';
	if (e.type == TREE_FILE &&
	    (sscanf(line, "%" SCNd64 " %64s%n", &e.size, e.sha256, &read) != 2 || e.size < 0 ||
	     e.size > TREE_FILE_MAX || !sha256_is_hex(e.sha256) || !step_over_blank(&line, read)))
		return false;
	if (e.type == TREE_LINK) {
		target = strchr(line, '\t');
		if (!target)
			return false;
		*target++ = '\0';
		if (!is_writable_target(target) || !is_target_inside(line, target))
			return false;
	}
	/* sorted, each path once: the list can be searched while it grows */
	if (!is_sendable_path(line) || !has_parent(tree, line) ||
	    (tree->count && strcmp(tree->list[tree->count - 1].path, line) >= 0))
		return false;
	e.path = xstrdup(line);
	e.target = target ? xstrdup(target) : NULL;
	GROW(tree->list, tree->count, tree->cap);
	tree->list[tree->count++] = e;
	return true;
}

/* Ends the next line with NUL and returns it; *text moves behind it. NULL: there is none, or it
 * holds a NUL byte. */
static char *next_line(char **text, const char *end)
{
	char *line = *text, *stop = memchr(line, '\n', (size_t)(end - line));

	if (!stop || memchr(line, '\0', (size_t)(stop - line)))
		return NULL;
	*stop = '\0';
	*text = stop + 1;
	return line;
}

/* Fills the tree from its text form, which it changes. */
static int parse_lines(struct tree *tree, char *text, size_t len, struct err *err)
{
	const char *end = text + len;
	char *line = next_line(&text, end);
	int64_t count;

	if (!line || !starts_with(line, "burst-tree 1 "))
		return err_set(err, ERR_CONFIG, "not a list of a tree");
	if (sscanf(line, "burst-tree 1 %" SCNd64 " %" SCNd64 " ", &tree->scanned_ns, &count) != 2 ||
	    count < 0 || count > TREE_MAX_ENTRIES)
		return err_set(err, ERR_CONFIG, "line 1 is broken");
	for (int64_t i = 0; i < count; i++) {
		line = next_line(&text, end);
		if (!line || !parse_entry(tree, line))
			return err_set(err, ERR_CONFIG, "line %" PRId64 " is broken", i + 2);
	}
	tree_seal(tree);
	return 0;
}

int tree_parse(struct tree **out, const char *bytes, size_t len, struct err *err)
{
	CLEANUP(tree_free) struct tree *tree = tree_new();
	CLEANUP(str_free) struct str again = STR_INIT;
	CLEANUP(free_text) char *copy = xmalloc(len);

	if (len > TREE_MANIFEST_MAX)
		return err_set(err, ERR_CONFIG, "larger than %u bytes", TREE_MANIFEST_MAX);
	if (len)
		memcpy(copy, bytes, len);
	if (parse_lines(tree, copy, len, err) < 0)
		return -1;
	write_tree(tree, &again);
	if (again.len != len || memcmp(again.s, bytes, len))
		return err_set(err, ERR_CONFIG, "the id does not fit, or a number is not plain");
	*out = TAKE(tree);
	return 0;
}

int tree_load(struct tree **out, const char *path, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (path_read(path, TREE_MANIFEST_MAX, &text, err) < 0)
		return -1;
	if (tree_parse(out, str_text(&text), text.len, err) < 0)
		return err_wrap(err, "%s", path);
	return 0;
}

/* ---- tree scan ----
 * Scans a folder: first walks it without reading, then reads the files that changed. */

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

static void set_stat(struct tree_entry *e, const struct stat *st)
{
	e->size = e->type == TREE_FILE ? (int64_t)st->st_size : 0;
	e->executable = e->type == TREE_FILE && (st->st_mode & S_IXUSR);
	e->mtime_ns = mtime_of(st);
	e->ctime_ns = ctime_of(st);
	e->inode = (uint64_t)st->st_ino;
}

static int local_error(struct scan *s, const char *path)
{
	return err_set(s->err, ERR_LOCAL, "%s: %s", path, strerror(errno));
}

/* ---- the walk ---- */

static void skip_path(struct scan *s, const char *path, enum tree_skip why)
{
	s->tree->skipped[why]++;
	if (s->opts->skipped)
		s->opts->skipped(s->opts->ctx, path, why);
}

static bool is_excluded(const struct scan *s, const char *path)
{
	for (const char *const *p = s->opts->exclude; p && *p; p++)
		if (!strcmp(*p, path))
			return true;
	return false;
}

/* Adds the link, or skips one that leads out of the tree or whose target cannot be sent. */
static int add_link(struct scan *s, const char *path, const struct stat *st)
{
	char target[TREE_LINK_TARGET_MAX + 1];
	ssize_t n = readlinkat(s->root, path, target, sizeof(target));

	if (n < 0)
		return errno == ENOENT ? 0 : local_error(s, path);
	if (n == (ssize_t)sizeof(target)) {
		skip_path(s, path, TREE_SKIP_NAME);
		return 0;
	}
	target[n] = '\0';
	bool fits = is_writable_target(target);
	if (!fits || !is_target_inside(path, target)) {
		skip_path(s, path, fits ? TREE_SKIP_OUTSIDE : TREE_SKIP_NAME);
		return 0;
	}
	struct tree_entry *e = tree_append(s->tree, path, TREE_LINK);
	set_stat(e, st);
	e->target = xstrdup(target);
	return 0;
}

static int walk(struct scan *s, const char *folder);

/* Adds the folder and all below it. The folder's rules count only during its walk. */
static int add_folder(struct scan *s, const char *path, const struct stat *st)
{
	set_stat(tree_append(s->tree, path, TREE_FOLDER), st);
	if (ignore_enter(s->ignore, path, s->err) < 0)
		return -1;
	int result = walk(s, path);
	ignore_leave(s->ignore);
	return result;
}

/* Notes the files that stdout and stderr write to, as of `burst run >log` beside its code. */
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

/* Adds the file, folder (with all below it) or link at path, or skips it. */
static int add_or_skip(struct scan *s, const char *path)
{
	struct stat st;

	if (fstatat(s->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : local_error(s, path);
	bool folder = S_ISDIR(st.st_mode);
	if (is_kept(&st))
		skip_path(s, path, TREE_SKIP_KEPT);
	else if (ignore_drops(s->ignore, path, folder) || is_excluded(s, path))
		skip_path(s, path, TREE_SKIP_IGNORED);
	else if (!is_sendable_path(path))
		skip_path(s, path, TREE_SKIP_NAME);
	else if (s->tree->count >= TREE_MAX_ENTRIES)
		return err_set(
			s->err, ERR_CONFIG,
			"more than %d files and folders: name what is not needed in .burstignore",
			TREE_MAX_ENTRIES);
	else if (folder)
		return add_folder(s, path, &st);
	else if (S_ISLNK(st.st_mode))
		return add_link(s, path, &st);
	else if (S_ISREG(st.st_mode) && is_our_output(s, &st))
		skip_path(s, path, TREE_SKIP_WRITTEN);
	else if (S_ISREG(st.st_mode))
		set_stat(tree_append(s->tree, path, TREE_FILE), &st);
	else
		skip_path(s, path, TREE_SKIP_SPECIAL);
	return 0;
}

/* Reads all names of a folder, each ended by NUL, and closes it, so that depth costs no
 * descriptors. */
static int read_names(struct scan *s, const char *folder, struct str *names)
{
	int fd = path_open_below(s->root, *folder ? folder : ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR)
			return 0; /* the folder has vanished, or is something else by now */
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

	if (read_names(s, folder, &names) < 0)
		return -1;
	for (size_t at = 0; at < names.len; at += strlen(names.s + at) + 1) {
		str_reset(&path);
		if (*folder)
			str_addf(&path, "%s/", folder);
		str_add(&path, names.s + at);
		if (add_or_skip(s, path.s) < 0)
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

/* Whether the file's times were older than a clock tick of the file system when it was scanned. A
 * newer file could change again with the same times, so it is read again. */
static bool is_settled(const struct tree_entry *e, int64_t scanned_ns)
{
	int64_t last = MAX(e->mtime_ns, e->ctime_ns);
	/* times in whole seconds: a file system with coarse times (FAT: two seconds) */
	int64_t tick = last % NS_PER_S ? NS_PER_S / 50 : 2 * NS_PER_S;

	return e->ctime_ns && last < scanned_ns - tick;
}

/* Copies the hash from an earlier scan (NULL: none) if the file is the one that was read then.
 * Returns whether it did. */
static bool reuse_known_hash(struct tree_entry *e, const struct tree *known)
{
	const struct tree_entry *was = known ? tree_find(known, e->path) : NULL;

	if (!was || was->type != TREE_FILE || was->data || was->size != e->size ||
	    was->mtime_ns != e->mtime_ns || was->ctime_ns != e->ctime_ns ||
	    was->inode != e->inode || !is_settled(was, known->scanned_ns))
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
		if (n < 0) {
			sha256_free(h);
			return local_error(s, e->path);
		}
		if (n == 0)
			break;
		sha256_add(h, s->room, (size_t)n);
	}
	sha256_finish(h, e->sha256);
	return 0;
}

enum read_result { READ_FAILED = -1, READ_DONE, READ_CHANGED, READ_GONE };

/* Sets the entry's stat and hash from its file. READ_CHANGED: it changed meanwhile, or is no plain
 * file now. */
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
	set_stat(e, &st);
	if (hash_open_file(s, e, fd) < 0)
		return READ_FAILED;
	if (fstat(fd, &st) < 0)
		return local_error(s, e->path);
	return same_stat(e, &st) ? READ_DONE : READ_CHANGED;
}

/* read_once(), up to READ_TRIES times while the file changes; then ERR_LOCAL. */
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

/* Gives each file its hash, and removes files that have vanished from the list. */
static int read_files(struct scan *s)
{
	struct tree *tree = s->tree;
	size_t kept = 0, at;
	int result = 0;

	for (at = 0; at < tree->count && result == 0; at++) {
		struct tree_entry *e = &tree->list[at];
		enum read_result got = READ_DONE;
		if (e->type == TREE_FILE && !reuse_known_hash(e, s->opts->known))
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
