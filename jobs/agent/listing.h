/* listing.h - the listing of a tree: a line for each entry, sorted by path. The hash of its text is
 * the tree's id (orchestrator/sync/tree.c). A tree on the volume contains its listing. Others can
 * write to the volume, so nothing there is used unless it matches an id that the client named: a
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

/* Sorts; of a repeated path the last entry counts. */
void listing_sort(struct listing *l);

/* Only once it is sorted. */
struct listed *listing_find(const struct listing *l, const char *path);

/* Only once it is sorted: a path, and everything below it if it is a folder. */
void listing_remove(struct listing *l, const char *path);

/* The title, then "TYPE PATH" for each entry: files have their hash before the path, links a tab
 * and their target behind it. orchestrator/sync/tree.c writes the same bytes. */
void listing_text(const struct listing *l, struct str *out);
void listing_id(const struct listing *l, char hex[65]);

/* `text` is changed. -1: no listing. */
int listing_parse(struct listing *l, char *text, size_t len);

/* The listing of the tree in folder `dir`; id: what it must be, NULL: any. -1: it is missing
 * (ENOENT), another one (EBADMSG), or cannot be read. */
int listing_read(struct listing *l, int dir, const char *id);
int listing_write(const struct listing *l, int dir);

/* Whether a name in a tree's folder is not part of the tree. */
bool is_beside_tree(const char *name);

/* Lists a folder of the container's disk, without hashes. Sockets and the like are left out. -1:
 * *bad names the entry, errno the reason. */
int listing_walk(struct listing *l, int dir, const char *under, char bad[PATH_BYTES_MAX]);

/* Makes folders and links from the listing: only the files' bytes come from the other side. */
int listing_frame(const struct listing *l, int to);
bool is_file(const struct listed *e);

#endif
