/* take.h - copies trees between the volume and the container's disk, and compares them with their
 * id. */
#ifndef BURST_JOBS_AGENT_TAKE_H
#define BURST_JOBS_AGENT_TAKE_H

#include <sys/types.h>

#include "bounds.h"
#include "listing.h"

/* Why a tree cannot be taken. TAKEN_MISSING and TAKEN_CHANGED blame the volume: sending the tree
 * again helps. */
enum taken { TAKEN, TAKEN_MISSING, TAKEN_CHANGED, TAKEN_FAILED };

/* Opens the folder `path` below `root` and reads its listing, which must have the hash `id`. On
 * TAKEN the caller closes *from and frees *l. TAKEN_FAILED sets errno. */
enum taken open_listed(int root, const char *path, const char *id, int *from, struct listing *l);

/* Copies the tree `id` from `path` below `root` to the folder `name` of `to`, where only the agent
 * can write. The copy is complete and matches its id, or it does not exist. TAKEN_FAILED sets
 * errno. */
enum taken tree_take(int root, const char *path, const char *id, int to, const char *name);

/* Compares the folder with the tree `id`; extra entries differ too. For trees too large to copy for
 * each container. */
enum taken tree_compare(int root, const char *path, const char *id);

/* Copies a folder of the container's disk to the volume, as `name` (NULL: its id) of `under`. With
 * an `owner`, every file must belong to it: a script may have made hard links to files that only
 * the agent can read. With `no_archive` (WHY_MAX bytes), adds an archive or writes there why not.
 * Returns -1 with errno; *bad names the entry. */
int tree_keep(int from, uid_t owner, int root, const char *under, const char *name, char id[65],
	      char bad[PATH_BYTES_MAX], char *no_archive);

#endif
