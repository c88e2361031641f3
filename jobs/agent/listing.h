/* listing.h - the listing of a tree: a line for each entry, sorted by path.
 *
 * The hash of its text is the tree's id (orchestrator/sync/tree.c). A tree on the volume contains
 * its listing. Other pods can write to the volume, so the agent copies a tree to the container's
 * disk and uses it only if the copy matches the id that the client named. */
#ifndef BURST_JOBS_AGENT_LISTING_H
#define BURST_JOBS_AGENT_LISTING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "bounds.h"

#define LISTING_NAME  ".burst-tree"
#define LISTING_TITLE "burst-tree 1\n"
#define ARCHIVE_NAME  ".burst-archive"

enum { LISTING_MAX = 512 << 20, LISTING_CHUNK = 32, WIDE_MAX = 16 };

struct listed {
	char *path, *target;
	char sha256[65];
	char type; /* 'f': a file, 'x': an executable one, 'd': a folder, 'l': a link */
	size_t turn;
};

struct listing {
	struct listed *list;
	size_t count, cap;
};

void listing_free(struct listing *l);
void listing_add(struct listing *l, char type, const char *path, const char *sha256,
		 const char *target);

/* Sorts the list. Of equal paths the last entry counts. */
void listing_sort(struct listing *l);

/* Needs a sorted list. */
struct listed *listing_find(const struct listing *l, const char *path);

/* Removes a path, and everything below it if it is a folder. Needs a sorted list. */
void listing_remove(struct listing *l, const char *path);

/* Appends the title, then "TYPE PATH" for each entry. A file's hash stands before the path; a
 * link's target follows it after a tab. orchestrator/sync/tree.c writes the same bytes. */
void listing_text(const struct listing *l, struct str *out);
void listing_id(const struct listing *l, char hex[65]);

/* Changes `text`. Returns -1 if it is no listing. */
int listing_parse(struct listing *l, char *text, size_t len);

/* Reads the listing of the tree in folder `dir`. Its id must be `id` unless that is NULL. Returns
 * -1 with errno: ENOENT if it is missing, EBADMSG if it differs. */
int listing_read(struct listing *l, int dir, const char *id);
int listing_write(const struct listing *l, int dir);

/* Returns whether a file in a tree's folder is burst's own and not part of the tree. */
bool is_beside_tree(const char *name);

/* Lists a folder of the container's disk, without hashes. Skips sockets and devices. Returns -1:
 * *bad names the entry, errno the reason. */
int listing_walk(struct listing *l, int dir, char bad[PATH_BYTES_MAX]);

/* Makes the listing's folders and links in `to`. Files come from elsewhere. */
int listing_frame(const struct listing *l, int to);
bool is_file(const struct listed *e);

#endif
