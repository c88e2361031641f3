/* pack.h - packs entries of a tree as one tar stream (pax where ustar does not suffice); slices of
 * it may be packed with zstd level 1.
 *
 * Pulled: each pack_read() reads as much of the files as it needs to fill the caller's buffer;
 * memory stays below that buffer's size and 1 MiB. It blocks on local files: call it in a worker
 * thread, one at a time.
 *
 * The stream is deterministic: mtime in whole seconds, modes 0755 or 0644, uid and gid 0, no names.
 * It contains what the tree lists: a file whose content has changed since is an error. A stream
 * that ends in an error breaks off inside a file's content, so that no reader can take it for a
 * whole archive and keep it under the tree's id. */
#ifndef BURST_SYNC_PACK_H
#define BURST_SYNC_PACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "tree.h"

struct pack;

struct pack_plan {        /* all borrowed; must outlive the pack */
	const char *root; /* the folder that was scanned; NULL if every entry has its data */
	const struct tree_entry *const *entries; /* in the order in which they are packed */
	size_t count;
	const char *const *removed; /* paths for `.burst-delete`, the first entry, which exists if
				       removed_count > 0 */
	size_t removed_count;
	/* set by another thread: the next pack_read() returns ERR_INTERRUPTED; or NULL */
	const atomic_bool *stop;
};

/* The plan of a difference: its changed entries and its removed paths. */
struct pack_plan pack_plan_of(const struct tree_diff *diff, const char *root);

/* Loads libarchive, once, to see early whether it is installed (else ERR_LOCAL); the other
 * functions load it themselves. */
int pack_load_library(struct err *err);
/* Begins the stream. ERR_LOCAL: the root cannot be opened, or libarchive fails. */
int pack_open(struct pack **out, const struct pack_plan *plan, struct err *err);
/* Fills buf with up to `room` bytes, at least 1. Returns how many; 0 at the end of the archive; -1
 * and *err (ERR_LOCAL names the file; path below the root), after which every further call fails
 * the same way. */
ssize_t pack_read(struct pack *p, void *buf, size_t room, struct err *err);
void pack_close(struct pack *p); /* at any time; accepts NULL */

/* Appends `bytes` as one whole zstd frame; consecutive frames unpack to one stream. Returns false,
 * with *out unchanged, if that failed. */
bool pack_add_zstd_frame(struct str *out, const void *bytes, size_t len);

DEFINE_CLEANUP(pack_close, struct pack *)

#endif
