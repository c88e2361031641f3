/* snapshot.h - a checkpoint's folder as one tar file, and back. */
#ifndef BURST_JOBS_AGENT_SNAPSHOT_H
#define BURST_JOBS_AGENT_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SNAPSHOT_WORDS = 300, SNAPSHOT_ENTRIES_MAX = 100000 };

enum snapshot_end {
	SNAPSHOT_TAKEN,
	SNAPSHOT_SAME,   /* nothing has changed since the last one */
	SNAPSHOT_MOVING, /* the command changed the folder meanwhile */
	SNAPSHOT_LARGE,  /* more than `most` */
	SNAPSHOT_UNFIT,  /* the folder holds what cannot travel; words: what */
	SNAPSHOT_FAILED  /* words: why */
};

struct snapshot {
	int from;          /* the folder */
	uid_t owner;       /* of every file; 0: any */
	int64_t most;      /* bytes of the tar file */
	const char *known; /* print[] of the last snapshot; "": there is none */
	/* results */
	char print[65]; /* a hash of names, sizes and times */
	int64_t bytes;
	char sha256[65];
	char words[SNAPSHOT_WORDS];
};

/* Writes the folder to the file `to`, which the caller has opened. What was written is whole only
 * if the result is SNAPSHOT_TAKEN: the folder was the same before and after the copy. Leaves out
 * names that end in .tmp or .part, and what lies below such folders: these are being written. */
enum snapshot_end snapshot_take(struct snapshot *s, int to);

/* Unpacks the tar file into the folder `to`. Its bytes are not trusted. Returns -1 with words[] set
 * if they have another hash or cannot be unpacked; the folder is then of no use. */
int snapshot_unpack(int from, const char *sha256, int to, char words[SNAPSHOT_WORDS]);

#endif
