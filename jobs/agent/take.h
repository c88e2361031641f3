/* take.h - takes trees from the volume to the container's disk, compared with their id, and puts
 * them there. */
#ifndef BURST_JOBS_AGENT_TAKE_H
#define BURST_JOBS_AGENT_TAKE_H

#include <sys/types.h>

#include "bounds.h"
#include "listing.h"

/* Why a tree cannot be taken: `missing` or `changed` are the volume's fault, and to put the tree
 * there anew helps. */
enum taken { TAKEN, TAKEN_MISSING, TAKEN_CHANGED, TAKEN_FAILED };

/* Opens the folder `path` below `root` and reads its listing, which must have the hash `id`. TAKEN:
 * *from and *l are the caller's to close and free. Else neither is; TAKEN_FAILED: errno. */
enum taken open_listed(int root, const char *path, const char *id, int *from, struct listing *l);

/* The tree `id` that lies in `path` below `root`, copied to the folder `name` of `to`, where only
 * we can write. There it is whole and what its id says, or not at all. TAKEN_FAILED: errno. */
enum taken tree_take(int root, const char *path, const char *id, int to, const char *name);

/* Is what lies there, and nothing else, the tree `id`? For what is too large to be copied for each
 * container. */
enum taken tree_compare(int root, const char *path, const char *id);

/* Puts a folder of the container's disk onto the volume, as `name` (NULL: its id) of `under`.
 * A script may have put hard links there, to files that only the agent can read: with an `owner`,
 * every file must belong to it. With `no_archive`, WHY_MAX bytes, an archive lies in it, or
 * that says why not. -1: errno, *bad: on what. */
int tree_keep(int from, uid_t owner, int root, const char *under, const char *name, char id[65],
	      char bad[PATH_BYTES_MAX], char *no_archive);

#endif
