/* entries.h - makes a folder of the entries of a tar stream. */
#ifndef BURST_JOBS_AGENT_ENTRIES_H
#define BURST_JOBS_AGENT_ENTRIES_H

#include <stdbool.h>

#include "lanes.h"
#include "listing.h"
#include "tar.h"

/* Returns whether a link at `path` to `target` points inside the tree. Judges the text alone;
 * follows no link. */
bool link_inside(const char *path, const char *target);

/* Unpacks everything from fd into the folder `root`. Adds to `listing` unless that is NULL. Returns
 * -1 with t->error set. */
int tree_fill_from(struct tar *t, int fd, struct lanes *lanes, int root, struct listing *listing);
int tree_fill(struct tar *t, int fd, int root, struct listing *listing);

#endif
