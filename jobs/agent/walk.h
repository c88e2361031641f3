/* walk.h - visits every folder of a tree, however deep, with a bounded number of descriptors. */
#ifndef BURST_JOBS_AGENT_WALK_H
#define BURST_JOBS_AGENT_WALK_H

struct walked {
	int dir;            /* the folder that is being read */
	int to;             /* the folder of the same path in the other tree; -1: no other tree */
	const char *path;   /* the entry's path below the root */
	const char *name;   /* its last part */
	unsigned char type; /* DT_REG and so on, or DT_UNKNOWN */
};

/* What follows after an entry. WALK_STOP: errno says why. */
enum walk_step { WALK_STOP = -1, WALK_ON, WALK_INTO /* the entry is a folder: visit it, too */ };
typedef enum walk_step walk_entry(void *ctx, const struct walked *w);

/* Visits the tree of folder `root`, and beside it the same folders of `to` (-1: no other tree). By
 * then entry() must have made the latter. Follows no link. Returns -1 with errno if a folder cannot
 * be read, or if entry() stopped. */
int walk_tree(int root, int to, walk_entry *entry, void *ctx);

#endif
