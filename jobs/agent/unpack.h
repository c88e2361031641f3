/* unpack.h - unpacks an archive to the container's disk by several processes. */
#ifndef BURST_JOBS_AGENT_UNPACK_H
#define BURST_JOBS_AGENT_UNPACK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "listing.h"
#include "packed.h"

/* Several files that follow each other in the archive, read at once; or one that stays on the
 * volume. */
struct stretch {
	size_t first, past;
};

struct unpacking {
	const struct listing *l;
	const struct archive *ar;
	int fd, from, to; /* the archive, the folder that it belongs to, and the folder to fill */
	struct stretch *stretches;
	size_t count;
	_Atomic size_t *next; /* shared by all processes; `count` ends them */
};

/* The folder `name` of `to`, from the opened archive. -1: why[]. */
int archive_unpack(struct unpacking *u, int to, const char *name, const char *there,
		   char why[WHY_MAX]);

/* Puts the tree `id`, which is in `path` below `root` (`there` as an absolute path), onto the pod's
 * own disk: the folder `name` of `to`, whole and matching its id. Files too large for an archive
 * become links to the volume and are compared there. -1: why[] says why not. */
int archive_take(int root, const char *path, const char *there, const char *id, int to,
		 const char *name, int64_t *bytes, char why[WHY_MAX]);

#endif
