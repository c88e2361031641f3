/* moving.h - copies the files of a listing from one folder to another by several processes, and
 * compares them. */
#ifndef BURST_JOBS_AGENT_MOVING_H
#define BURST_JOBS_AGENT_MOVING_H

#include <stddef.h>
#include <sys/types.h>

#include "listing.h"

/* The files of a listing on their way from one folder to another, by several processes: on a
 * network's file system each entry costs a round trip, and hashing takes a core for each process.
 */
struct moving {
	const struct listing *l;
	/* to -1: everything is compared in place, and nothing else may be there */
	int from, to;
	/* shared with the other processes: filled in; NULL: files must match the listing */
	char (*hashes)[65];
	uid_t owner; /* of all files of `from`; 0: any */
	int mine, of;
	char *parent; /* whose folders are open */
	int from_dir, to_dir;
};

enum { MOVED, MOVED_CHANGED, MOVED_FAILED = 64 /* + errno */ };

int moved_failed(void);
int moving_parent(struct moving *m, const char *path, const char **name);
int moving_file(struct moving *m, size_t at);

/* A child process that does a part of the work, and ends when its parent does. */
pid_t fork_share(void);
int moving_wide(struct moving m);

#endif
