/* packed.h - the archive of a tree: its files in one file beside its listing. A pod writes the
 * thousands of small files of an environment from it to its own disk by a few large reads; on the
 * volume each file costs a round trip. Only sizes, dates and bytes come from the archive: names,
 * kinds and hashes are the listing's.
 *
 * "burst-archive 1 LENGTH\n", where LENGTH is that of everything before the bytes; a line for each
 * file of the listing, in its order: "SIZE MTIME", or "-" for a file that is not in the archive;
 * then the bytes of the files, one after the other. */
#ifndef BURST_JOBS_AGENT_PACKED_H
#define BURST_JOBS_AGENT_PACKED_H

#include <stdint.h>

#include "listing.h"

enum {
	ARCHIVE_FILE_MOST = 64 << 20, /* a larger file is read as quickly in place */
	ARCHIVE_PIECE = 4 << 20,
	ARCHIVE_HEAD_MOST = 64 << 20,
	WHY_MAX = 200,
};

struct packed {
	int64_t size, mtime_s, offset; /* offset -1: it is not in the archive */
};

struct archive {
	struct packed *list; /* of each entry of the listing */
	int64_t head, bytes; /* lengths of the head and of the bytes */
};

/* Writes the archive of `from` into the folder `dir`, or why[] says why it did not; the folder
 * works without one. */
void archive_write(const struct listing *l, int from, int dir, char why[WHY_MAX]);

/* The archive of the tree in the folder `from`. -1: errno; EBADMSG: it is not a whole archive of
 * that listing. */
int archive_open(int from, const struct listing *l, struct archive *ar);

#endif
