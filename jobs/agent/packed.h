/* packed.h - the archive of a tree: its files in one file, stored beside its listing.
 *
 * A pod unpacks the thousands of small files of an environment to its own disk by a few large
 * reads; on the volume each file costs a round trip. Sizes, dates and bytes come from the archive;
 * names, kinds and hashes come from the listing.
 *
 * "burst-archive 1 LENGTH\n", where LENGTH counts everything before the bytes; a line for each file
 * of the listing, in its order: "SIZE MTIME", or "-" for a file that is not in the archive; then
 * the bytes of the files, one after the other. */
#ifndef BURST_JOBS_AGENT_PACKED_H
#define BURST_JOBS_AGENT_PACKED_H

#include <stdint.h>

#include "listing.h"

enum {
	ARCHIVE_FILE_MOST = 64 << 20, /* a larger file is as fast to read in place */
	ARCHIVE_PIECE = 4 << 20,
	ARCHIVE_HEAD_MOST = 64 << 20,
	WHY_MAX = 200,
};

struct packed {
	int64_t size, mtime_s, offset; /* offset -1: not in the archive */
};

struct archive {
	struct packed *list; /* one for each entry of the listing */
	int64_t head, bytes; /* lengths of the head and of the bytes */
};

/* Writes the archive of `from` into the folder `dir`. On failure why[] holds the reason; the folder
 * works without an archive. */
void archive_write(const struct listing *l, int from, int dir, char why[WHY_MAX]);

/* Opens the archive of the tree in folder `from`. Returns -1 with errno: EBADMSG if it does not
 * match the listing. */
int archive_open(int from, const struct listing *l, struct archive *ar);

#endif
