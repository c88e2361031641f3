/* tar.h - reads a tar stream: ustar with pax headers and GNU's long names. */
#ifndef BURST_JOBS_AGENT_TAR_H
#define BURST_JOBS_AGENT_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mem.h"
#include "lanes.h"
#include "listing.h"

enum { TAR_BLOCK = 512, DELETE_LIST_MAX = 64 << 20 };

struct tar {
	int fd;
	struct lanes *lanes; /* the source; NULL: fd */
	pid_t merging;       /* the child that merges the lanes into fd; 0: none */
	char *bytes,
		*room; /* bytes: read but not yet used; room: the buffer that fd is read into */
	size_t have, at;
	char *path,
		*link; /* of the current entry, from its own header or an extended one before it */
	bool pax_size, first;
	int64_t size, mtime;
	int mode;
	char type;
	int root;                /* the folder to build */
	struct listing *listing; /* its listing; NULL: none is needed */
	char *parent_path;       /* parent folder of the last entry, kept open */
	int parent;
	long files;
	char error[300];
};

int tar_error(struct tar *t, const char *fmt, ...) PRINTF(2, 3);

/* Sets *p to at least one byte, at most `most`. Returns 0 at the end of the stream. */
size_t tar_some(struct tar *t, size_t most, char **p);
int tar_pad(struct tar *t, int64_t size);

/* Reads octal text, or base 256 if the first bit is set. Returns -1 if it is invalid or too large.
 */
int64_t tar_number(const unsigned char *p, size_t len);
char *tar_content(struct tar *t, int64_t size, int64_t most);

/* Reads the next file, folder or link. Returns 1 for an entry, 0 at the end of the archive, -1 with
 * t->error set. */
int tar_next(struct tar *t);

#endif
