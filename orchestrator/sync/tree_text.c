/* tree_text.c - a tree as a file:
 *
 *     burst-tree 1 SCANNED_NS COUNT ID
 *     f MTIME_NS CTIME_NS INODE SIZE SHA256 PATH        (x instead of f: executable)
 *     d MTIME_NS CTIME_NS INODE PATH
 *     l MTIME_NS CTIME_NS INODE PATH<tab>TARGET
 *
 * The reader accepts exactly what the writer writes: it writes again what it has read, and compares
 * the two. */
#include "tree.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/path.h"
#include "base/str.h"
#include "tree_internal.h"

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

/* One word of a line, ended by a space, which becomes its NUL. */
static char *word(char **line)
{
	char *start = *line, *space = strchr(start, ' ');

	if (!space)
		return NULL;
	*space = '\0';
	*line = space + 1;
	return start;
}

/* Takes the next word of the line as a number. Returns false at the end of the line. */
static bool number(char **line, int64_t *out)
{
	char *text = word(line);

	if (!text)
		return false;
	/* an unusual spelling would be written differently: the comparison finds it */
	*out = strtoll(text, NULL, 10);
	return true;
}

static bool hash(char **line, char hex[SHA256_HEX])
{
	char *text = word(line);

	if (!sha256_is_hex(text))
		return false;
	memcpy(hex, text, SHA256_HEX);
	return true;
}

static bool has_parent(const struct tree *tree, const char *path)
{
	CLEANUP(free_text) char *dir = path_dir(path);
	const struct tree_entry *e = strchr(path, '/') ? tree_find(tree, dir) : NULL;

	return !strchr(path, '/') || (e && e->type == TREE_FOLDER);
}

/* Appends the entry to the tree. Returns false if the line is not valid. */
static bool read_entry(struct tree *tree, char *line)
{
	struct tree_entry e = {0};
	char *kind = word(&line), *target = NULL;

	if (!kind || !kind[0] || kind[1] || !strchr("fxdl", kind[0]))
		return false;
	e.type = kind[0] == 'd' ? TREE_FOLDER : kind[0] == 'l' ? TREE_LINK : TREE_FILE;
	e.executable = kind[0] == 'x';
	if (!number(&line, &e.mtime_ns) || !number(&line, &e.ctime_ns))
		return false;
	char *inode = word(&line);
	if (!inode)
		return false;
	e.inode = strtoull(inode, NULL, 10);
	if (e.type == TREE_FILE && (!number(&line, &e.size) || e.size < 0 ||
				    e.size > TREE_FILE_MAX || !hash(&line, e.sha256)))
		return false;
	if (e.type == TREE_LINK) {
		target = strchr(line, '\t');
		if (!target)
			return false;
		*target++ = '\0';
		if (!tree_target_fits(target) || !tree_target_inside(line, target))
			return false;
	}
	/* sorted, each path once: the list can be searched while it grows */
	if (!tree_path_ok(line) || !has_parent(tree, line) ||
	    (tree->count && strcmp(tree->list[tree->count - 1].path, line) >= 0))
		return false;
	e.path = xstrdup(line);
	e.target = target ? xstrdup(target) : NULL;
	GROW(tree->list, tree->count, tree->cap);
	tree->list[tree->count++] = e;
	return true;
}

/* Takes the next line off; NULL: none, or it holds a NUL byte. */
static char *next_line(char **text, const char *end)
{
	char *line = *text, *stop = memchr(line, '\n', (size_t)(end - line));

	if (!stop || memchr(line, '\0', (size_t)(stop - line)))
		return NULL;
	*stop = '\0';
	*text = stop + 1;
	return line;
}

static int read_tree(struct tree *tree, char *text, size_t len, struct err *err)
{
	const char *end = text + len;
	char *line = next_line(&text, end);
	int64_t count;

	if (!line || !starts_with(line, "burst-tree 1 "))
		return err_set(err, ERR_CONFIG, "not a list of a tree");
	line += strlen("burst-tree 1 ");
	if (!number(&line, &tree->scanned_ns) || !number(&line, &count) || count < 0 ||
	    count > TREE_MAX_ENTRIES)
		return err_set(err, ERR_CONFIG, "line 1 is broken");
	for (int64_t i = 0; i < count; i++) {
		line = next_line(&text, end);
		if (!line || !read_entry(tree, line))
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
	if (read_tree(tree, copy, len, err) < 0)
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
