/* unpack.h - unpacks an archive to the container's disk by several processes. */
#ifndef BURST_JOBS_AGENT_UNPACK_H
#define BURST_JOBS_AGENT_UNPACK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "listing.h"
#include "packed.h"

/* Consecutive files of the archive, read at once; or one file that stays on the volume. */
struct stretch {
	size_t first, past;
};

struct unpacking {
	const struct listing *l;
	const struct archive *ar;
	int fd, from, to; /* the archive, the tree's folder, and the folder to fill */
	struct stretch *stretches;
	size_t count;
	_Atomic size_t *next; /* index shared by all processes; `count` ends them */
};

/* Unpacks the opened archive to the folder `name` of `to`. Returns -1 with why[] set. */
int archive_unpack(struct unpacking *u, int to, const char *name, const char *there,
		   char why[WHY_MAX]);

/* Unpacks the tree `id` to the folder `name` of `to`, on the pod's own disk. The tree is in `path`
 * below `root`; `there` is its absolute path. The result is complete and matches its id, or it does
 * not exist. Files too large for an archive become links to the volume and are compared there.
 * Returns -1 with why[] set. */
int archive_take(int root, const char *path, const char *there, const char *id, int to,
		 const char *name, int64_t *bytes, char why[WHY_MAX]);

#endif
