/* listing.h - what a tree holds: a line for each entry, sorted by path. The hash of the text is the
 * tree's id (orchestrator/sync/tree.c). A tree lies on the volume with its listing in it. Others
 * may write to the volume. Nothing there is believed unless it fits an id that the client named: a
 * tree is copied to the container's disk, and the copy is compared. */
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
	char type; /* 'f': a file, 'x': one that can be run, 'd': a folder, 'l': a link */
	size_t turn;
};

struct listing {
	struct listed *list;
	size_t count, cap;
};

void listing_free(struct listing *l);
void listing_add(struct listing *l, char type, const char *path, const char *sha256,
		 const char *target);

/* Sorted; of a path that came twice the last one counts. */
void listing_sort(struct listing *l);

/* Only while it is sorted. */
struct listed *listing_find(const struct listing *l, const char *path);

/* Only while it is sorted: a path, and all below it where it is a folder. */
void listing_remove(struct listing *l, const char *path);
void listing_text(const struct listing *l, struct str *out);
void listing_id(const struct listing *l, char hex[65]);

/* `text` is changed. -1: no listing. */
int listing_parse(struct listing *l, char *text, size_t len);

/* Of the tree in folder `dir`; id: what it must be, NULL where that does not matter. -1: there is
 * none (ENOENT), it is another one (EBADMSG), it cannot be read. */
int listing_read(struct listing *l, int dir, const char *id);
int listing_write(const struct listing *l, int dir);

/* What lies in the folder of a tree and is no part of it. */
bool is_beside_tree(const char *name);

/* What a folder of the container's disk holds, but for the hashes. Sockets and the like stay
 * behind. -1: *bad is what it was about, errno why. */
int listing_walk(struct listing *l, int dir, const char *under, char bad[PATH_BYTES_MAX]);

/* Folders and links, made from what the listing says: nothing but the files' bytes comes from the
 * other side. */
int listing_frame(const struct listing *l, int to);
bool is_file(const struct listed *e);

#endif
