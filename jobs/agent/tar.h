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
	char *bytes, *room;  /* bytes that were read and not yet used; fd is read into it */
	size_t have, at;
	char *path, *link; /* of the entry at hand; from an extended header before it, or its own */
	bool pax_size, first;
	int64_t size, mtime;
	int mode;
	char type;
	int root;                /* the folder that is being built */
	struct listing *listing; /* the listing of it; NULL: none is wanted */
	char *parent_path;       /* the folder of the last entry, kept open */
	int parent;
	long files;
	char error[300];
};

int tar_error(struct tar *t, const char *fmt, ...) PRINTF(2, 3);

/* At least one byte, at most `most`, at *p; 0 at the end of the stream. */
size_t tar_some(struct tar *t, size_t most, char **p);
int tar_pad(struct tar *t, int64_t size);

/* Octal text, or base 256 when the first bit is set. -1: neither, or too large. */
int64_t tar_number(const unsigned char *p, size_t len);
char *tar_content(struct tar *t, int64_t size, int64_t most);

/* The next entry of a file, folder or link. 1: there is one; 0: the archive has ended; -1:
 * t->error. */
int tar_next(struct tar *t);

#endif
