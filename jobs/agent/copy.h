/* copy.h - copies a whole folder, by several processes if wanted, and moves one over another. */
#ifndef BURST_JOBS_AGENT_COPY_H
#define BURST_JOBS_AGENT_COPY_H

#include <stdbool.h>
#include <stdint.h>

enum copy_how { COPY_BYTES, COPY_LINKS };

/* FNV-1a, continued from `hash`. */
uint32_t hash_text(uint32_t hash, const char *text);
uint32_t hash_pick(uint32_t hash, uint32_t of);

/* How a tree is copied, and which part of it this process copies. Each process makes the folders
 * that it finds missing. It copies the files of one folder in `of`. A hash of the path selects the
 * folder's process, so all processes agree even if the tree changes or is listed in another order.
 */
struct copying {
	enum copy_how how;
	int mine, of;
	bool lost; /* a listed entry is missing, so the copy stopped */
};

/* Copies all entries of folder `from` into folder `to`. */
int copy_tree(int from, int to, struct copying *c);

/* Moves the entries of `from` into `to`. Merges folders; removes anything else in the way. */
int move_over(int from, int to);

enum { COPY_FAILED = 1, COPY_LOST };

/* Copies with several processes: on a network file system each entry costs a round trip, and some
 * machines have many cores. Returns 0, COPY_LOST, or COPY_FAILED with errno. */
int copy_tree_wide(int from, int to, enum copy_how how);

#endif
