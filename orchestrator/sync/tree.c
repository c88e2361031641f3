/* tree.c - lists a folder with the hash of each file and computes the tree's id. */
#include "tree.h"

#include <stdlib.h>

#include "base/path.h"
#include "base/str.h"
#include "tree_internal.h"

/* 2000-01-01: added files have no time of their own, and 1970 is too early for zip */
#define ADDED_MTIME_NS (946684800 * INT64_C(1000000000))

struct tree *tree_new(void)
{
	struct tree *tree = xcalloc(1, sizeof(*tree));

	tree_seal(tree);
	return tree;
}

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

struct tree_entry *tree_append(struct tree *tree, const char *path, enum tree_type type)
{
	GROW(tree->list, tree->count, tree->cap);
	struct tree_entry *e = &tree->list[tree->count++];

	*e = (struct tree_entry){.path = xstrdup(path), .type = type};
	return e;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

void tree_seal(struct tree *tree)
{
	struct sha256 *h = sha256_new();
	CLEANUP(str_free) struct str line = STR_INIT;

	if (tree->count)
		qsort(tree->list, tree->count, sizeof(*tree->list), by_path);
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

const struct tree_entry *tree_find(const struct tree *tree, const char *path)
{
	struct tree_entry key = {.path = (char *)path};

	return tree->count ? bsearch(&key, tree->list, tree->count, sizeof(key), by_path) : NULL;
}

static bool plain_text(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	return utf8_valid(text, strlen(text));
}

bool tree_path_ok(const char *path)
{
	return path_is_safe(path) && strcmp(path, TREE_DELETE_NAME) != 0 &&
	       strcmp(path, TREE_LISTING_NAME) != 0;
}

bool tree_target_fits(const char *target)
{
	return *target && strlen(target) <= TREE_LINK_TARGET_MAX && plain_text(target);
}

/* Allows steps up only at the start of the target, and no more than there are folders above the
 * link. The same rule applies to every other link on the way, so the end of the chain is inside. */
bool tree_target_inside(const char *path, const char *target)
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

	if (!tree_path_ok(name))
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
