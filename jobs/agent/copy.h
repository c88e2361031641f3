/* copy.h - copies a whole folder, by several processes if wanted, and moves one over another. */
#ifndef BURST_JOBS_AGENT_COPY_H
#define BURST_JOBS_AGENT_COPY_H

#include <stdbool.h>
#include <stdint.h>

enum copy_how { COPY_BYTES, COPY_LINKS };

/* FNV-1a, from `hash` on. */
uint32_t hash_text(uint32_t hash, const char *text);
uint32_t hash_pick(uint32_t hash, uint32_t of);

/* How a tree is copied, and which part of it by this process: each makes the folders that it meets
 * missing, and one folder in `of` is its own with the files in it. Whose a folder is its path says,
 * since that is the same for all whatever comes to the tree meanwhile and in whatever order it is
 * listed. */
struct copying {
	enum copy_how how;
	int mine, of;
	uint32_t path; /* a hash of where it is */
	bool lost;     /* something was listed and is gone: the copy ends there */
};

/* Everything in folder `from` into folder `to`. */
int copy_tree(int from, int to, struct copying *c);

/* The entries of `from` move into `to`, folders over folders; what is in the way of anything else
 * is removed. */
int move_over(int from, int to);

enum { COPY_FAILED = 1, COPY_LOST };

/* The same by several processes at once: folders lie on file systems where each entry waits for the
 * other side of a network, or on machines with many cores. 0, COPY_LOST, or COPY_FAILED with errno.
 */
int copy_tree_wide(int from, int to, enum copy_how how);

#endif
