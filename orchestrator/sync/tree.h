/* tree.h - lists what a folder holds, sorted, with the hash of each file, and one id for all of it.
 *
 * Two trees with the same id have the same paths, types, x bits, contents and link targets; times
 * and inodes do not count. The functions here read local files and may take long: call them in a
 * worker thread. Several threads may read a tree that does not change. */
#ifndef BURST_SYNC_TREE_H
#define BURST_SYNC_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/crypto.h"
#include "base/err.h"
#include "base/mem.h"

#define TREE_MAX_ENTRIES     1000000
#define TREE_MANIFEST_MAX    (512u << 20)    /* bytes of a manifest's text */
#define TREE_LINK_TARGET_MAX 1024            /* bytes */
#define TREE_DELETE_NAME     ".burst-delete" /* at the root this name belongs to the pack format */
/* at the root this name belongs to the agent: the listing whose hash is the tree's id */
#define TREE_LISTING_NAME ".burst-tree"

enum tree_type { TREE_FILE, TREE_FOLDER, TREE_LINK };

struct tree_entry {
	char *path; /* below the root; path_is_safe() */
	enum tree_type type;
	bool executable;  /* files: the x bit of the owner; no other part of the mode travels */
	int64_t size;     /* files: bytes; else 0 */
	int64_t mtime_ns; /* since 1970 */
	int64_t ctime_ns; /* with inode and mtime: shows whether this is still the file that was
			     read. 0: unknown */
	uint64_t inode;   /* 0: unknown */
	char sha256[SHA256_HEX]; /* files: of the content; else "" */
	char *target;            /* links: relative, stays inside the tree; else NULL */
	void *data;              /* entries of tree_add(): the content; NULL: it is in the folder */
};

enum tree_skip {
	TREE_SKIP_IGNORED, /* a rule or the exclude list; a folder counts once and is not entered */
	TREE_SKIP_OUTSIDE, /* a symlink that leaves the tree */
	TREE_SKIP_SPECIAL, /* socket, device, pipe */
	TREE_SKIP_WRITTEN, /* what this process's output is written to: it grows meanwhile */
	TREE_SKIP_KEPT,    /* tree_keep_back() */
	TREE_SKIP_NAME,    /* not path_is_safe(), too long, or a reserved one */
	TREE_SKIP_KINDS
};

struct tree {
	struct tree_entry *list; /* sorted by the bytes of path; a folder precedes its contents */
	size_t count, cap;
	int64_t bytes;      /* sum of the files' sizes */
	int64_t scanned_ns; /* wall clock when the scan began; 0: never scanned */
	char id[SHA256_HEX];
	int64_t skipped[TREE_SKIP_KINDS]; /* paths */
	int64_t read_files; /* that the scan had to read; the other hashes came from `known` */
};

/* For -v: called once for each path left out. The path may hold any bytes: show it with
 * str_add_printable(). */
typedef void tree_skipped(void *ctx, const char *path, enum tree_skip why);
/* "ignored", "link out of the tree", ... for the user. Static. */
const char *tree_skip_name(enum tree_skip why);

struct tree_scan_options {
	const struct tree *known; /* an earlier scan: only files whose size, times or inode changed
				     are read; or NULL */
	const char *const
		*exclude; /* paths below the root that are not synced besides the rules (the output
			     folder, if it is inside); NULL-terminated; or NULL */
	bool list_only;   /* reads no file: entries have no hash, and the tree no id */
	tree_skipped *skipped; /* or NULL */
	void *ctx;             /* for skipped */
};

/* Makes every later scan leave out the file or folder that this path leads to, whatever its name in
 * the tree: it holds keys, or is burst's own. Compares device and inode. Not during a scan. */
void tree_keep_back(const char *path);

/* Scans the folder. opts may be NULL. A file that changes while it is read is read again, up to
 * three times, then ERR_LOCAL; so is a file or folder that cannot be read. One that vanishes
 * meanwhile is left out. ERR_CONFIG: root is not a folder, or holds more than TREE_MAX_ENTRIES.
 * Free the result with tree_free(). */
int tree_scan(struct tree **out, const char *root, const struct tree_scan_options *opts,
	      struct err *err);

/* An empty tree, to be filled by tree_add(). */
struct tree *tree_new(void);
/* Adds a file that is not in the folder: copies bytes, adds missing parent folders, and updates the
 * id. name must be path_is_safe(). ERR_CONFIG if another entry has that name (the same content is
 * fine). */
int tree_add(struct tree *tree, const char *name, const void *bytes, size_t len, bool executable,
	     struct err *err);

/* Returns NULL if the tree lacks the path. For tests. */
const struct tree_entry *tree_find(const struct tree *tree, const char *path);
void tree_free(struct tree *tree); /* accepts NULL */

/* The text form, one entry a line, with everything but `data` and the counters of skipped paths.
 * tree_save() replaces the file atomically. tree_load(): ERR_NOT_FOUND if there is no file;
 * ERR_CONFIG if any byte is not as tree_save() writes it (the caller then scans from nothing). */
int tree_save(const struct tree *tree, const char *path, struct err *err);
int tree_load(struct tree **out, const char *path, struct err *err);
/* tree_load() for bytes in memory, which may be anything. For tests. */
int tree_parse(struct tree **out, const char *bytes, size_t len, struct err *err);

/* What turns `old` into `new`. Everything is borrowed from the two trees, which must outlive it. */
struct tree_diff {
	const struct tree_entry **
		changed; /* of new: added, or with another content, type, x bit or target; sorted */
	size_t changed_count;
	const char *
		*removed; /* of old: gone, or now of another type; a folder's contents precede it */
	size_t removed_count;
	int64_t bytes; /* of the changed files */
};
/* old == NULL: everything is new. Cannot fail. */
void tree_diff(struct tree_diff *out, const struct tree *old, const struct tree *new);
void tree_diff_free(struct tree_diff *diff);

DEFINE_CLEANUP(tree_free, struct tree *)
static inline void tree_diff_free_cleanup(struct tree_diff *diff)
{
	tree_diff_free(diff);
}

#endif
