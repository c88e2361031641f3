/* tree_bed.h - folders that are scanned, and what is found there. */
#ifndef BURST_TESTS_TREE_BED_H
#define BURST_TESTS_TREE_BED_H

#include "sync/tree.h"

#include "sync_help.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static inline struct tree *scan_with(const char *root, const struct tree_scan_options *opts)
{
	struct tree *tree = NULL;

	MUST(tree_scan(&tree, root, opts, err));
	return tree;
}

static inline struct tree *scan(const char *root)
{
	return scan_with(root, NULL);
}

/* "d dir|f dir/a|..." */
static inline char *listing(const struct tree *tree)
{
	struct str text = STR_INIT;

	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_entry *e = &tree->list[i];
		char kind = e->type == TREE_FOLDER ? 'd'
			    : e->type == TREE_LINK ? 'l'
			    : e->executable        ? 'x'
						   : 'f';
		str_addf(&text, "%s%c %s", i ? "|" : "", kind, e->path);
	}
	str_add(&text, "");
	return text.s ? str_detach(&text) : xstrdup("");
}

static inline void want_listing(const struct tree *tree, const char *want)
{
	CLEANUP(free_text) char *got = listing(tree);

	assert_string_equal(got, want);
}

static inline void set_mode(const char *dir, const char *name, mode_t mode)
{
	CLEANUP(free_text) char *path = path_join(dir, name);

	assert_int_equal(chmod(path, mode), 0);
}

static inline void make_link(const char *dir, const char *name, const char *target)
{
	CLEANUP(free_text) char *path = path_join(dir, name);

	assert_int_equal(symlink(target, path), 0);
}

#endif
