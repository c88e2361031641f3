/* copy.h - copies a whole folder, by several processes if wanted, and moves one over another. */
#ifndef BURST_JOBS_AGENT_COPY_H
#define BURST_JOBS_AGENT_COPY_H

#include <stdbool.h>
#include <stdint.h>

enum copy_how { COPY_BYTES, COPY_LINKS };

/* FNV-1a, from `hash` on. */
uint32_t hash_text(uint32_t hash, const char *text);
uint32_t hash_pick(uint32_t hash, uint32_t of);

/* How a tree is copied, and which part of it this process copies. Each process makes the folders
 * that it finds missing; one folder in `of` is its own, with the files in it. The path decides
 * whose a folder is: it is the same for all processes, whatever is added to the tree meanwhile and
 * in whatever order it is listed. */
struct copying {
	enum copy_how how;
	int mine, of;
	uint32_t path; /* a hash of where it is */
	bool lost;     /* a listed entry is gone: the copy ends there */
};

/* Everything in folder `from` into folder `to`. */
int copy_tree(int from, int to, struct copying *c);

/* Moves the entries of `from` into `to`, folders over folders; anything else in the way is removed.
 */
int move_over(int from, int to);

enum { COPY_FAILED = 1, COPY_LOST };

/* The same by several processes at once: on a network's file system each entry costs a round trip,
 * and some machines have many cores. 0, COPY_LOST, or COPY_FAILED with errno. */
int copy_tree_wide(int from, int to, enum copy_how how);

#endif
