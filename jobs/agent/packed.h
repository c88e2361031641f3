/* packed.h - the files of a tree in one file beside its listing. A pod writes the thousands of
 * small files of an environment from it to its own disk by a few large reads; on the volume each of
 * them would wait for the other side of a network. Only sizes, dates and bytes come from it: names,
 * kinds and hashes are the listing's.
 *
 * "burst-archive 1 LENGTH\n", LENGTH being that of all that comes before the bytes; a line for each
 * file of the listing, in its order: "SIZE MTIME", or "-" for one that stays where it is; the bytes
 * of the others, one after the other. */
#ifndef BURST_JOBS_AGENT_PACKED_H
#define BURST_JOBS_AGENT_PACKED_H

#include <stdint.h>

#include "listing.h"

enum {
	ARCHIVE_FILE_MOST = 64 << 20, /* a larger file is read as fast where it lies */
	ARCHIVE_PIECE = 4 << 20,
	ARCHIVE_HEAD_MOST = 64 << 20,
	WHY_MAX = 200,
};

struct packed {
	int64_t size, mtime_s, offset; /* offset -1: it stays where it is */
};

struct archive {
	struct packed *list; /* of each entry of the listing */
	int64_t head, bytes; /* how long what comes before the bytes is, and these */
};

/* Writes the archive of what is in `from` into the folder `dir`, or why[] says why there is none;
 * the folder serves without. */
void archive_write(const struct listing *l, int from, int dir, char why[WHY_MAX]);

/* The archive of the tree that lies in the folder `from`. -1: errno, EBADMSG: it is no whole
 * archive of that listing. */
int archive_open(int from, const struct listing *l, struct archive *ar);

#endif
