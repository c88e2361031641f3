/* take.h - copies trees between the volume and the container's disk, and compares them with their
 * id. */
#ifndef BURST_JOBS_AGENT_TAKE_H
#define BURST_JOBS_AGENT_TAKE_H

#include <sys/types.h>

#include "bounds.h"
#include "listing.h"

/* Why a tree cannot be taken: `missing` or `changed` mean that the volume is to blame, and that
 * sending the tree again helps. */
enum taken { TAKEN, TAKEN_MISSING, TAKEN_CHANGED, TAKEN_FAILED };

/* Opens the folder `path` below `root` and reads its listing, which must have the hash `id`. TAKEN:
 * the caller closes *from and frees *l. Otherwise there is nothing to free; TAKEN_FAILED: errno. */
enum taken open_listed(int root, const char *path, const char *id, int *from, struct listing *l);

/* Copies the tree `id` from `path` below `root` to the folder `name` of `to`, where only the agent
 * can write: whole and matching its id, or not at all. TAKEN_FAILED: errno. */
enum taken tree_take(int root, const char *path, const char *id, int to, const char *name);

/* Whether the folder holds the tree `id` and nothing else. For trees too large to copy for each
 * container. */
enum taken tree_compare(int root, const char *path, const char *id);

/* Puts a folder of the container's disk onto the volume, as `name` (NULL: its id) of `under`. A
 * script may have made hard links there to files that only the agent can read: with an `owner`,
 * every file must belong to it. With `no_archive`, WHY_MAX bytes, an archive is added, or that says
 * why not. -1: errno, *bad: the entry. */
int tree_keep(int from, uid_t owner, int root, const char *under, const char *name, char id[65],
	      char bad[PATH_BYTES_MAX], char *no_archive);

#endif
