/* entries.h - makes a folder of the entries of a tar stream. */
#ifndef BURST_JOBS_AGENT_ENTRIES_H
#define BURST_JOBS_AGENT_ENTRIES_H

#include <stdbool.h>

#include "lanes.h"
#include "listing.h"
#include "tar.h"

/* Does a link at `path` to `target` stay in the tree? Judged by the text alone; no link is ever
 * followed. */
bool link_inside(const char *path, const char *target);

/* Reads everything from fd into the folder `root` and its listing, unless that is NULL. -1:
 * t->error says why. */
int tree_fill_from(struct tar *t, int fd, struct lanes *lanes, int root, struct listing *listing);
int tree_fill(struct tar *t, int fd, int root, struct listing *listing);

#endif
