/* moving.h - copies the files of a listing from one folder to another by several processes, and
 * compares them. */
#ifndef BURST_JOBS_AGENT_MOVING_H
#define BURST_JOBS_AGENT_MOVING_H

#include <stddef.h>
#include <sys/types.h>

#include "listing.h"

/* Files of a listing that several processes copy from one folder to another. On a network file
 * system each entry costs a round trip, and one process can hash with one core only. */
struct moving {
	const struct listing *l;
	/* to -1: files are compared in place, and nothing unlisted may be there */
	int from, to;
	/* Shared by the processes, which fill it in. NULL: files must match the listing. */
	char (*hashes)[65];
	uid_t owner; /* required owner of all files; 0: any */
	int mine, of;
	char *parent; /* path of the open folders */
	int from_dir, to_dir;
};

enum { MOVED, MOVED_CHANGED, MOVED_FAILED = 64 /* MOVED_FAILED + errno */ };

int moved_failed(void);
int moving_parent(struct moving *m, const char *path, const char **name);
int moving_file(struct moving *m, size_t at);

/* Forks a child that does a part of the work and ends with its parent. */
pid_t fork_share(void);
int moving_wide(struct moving m);

#endif
