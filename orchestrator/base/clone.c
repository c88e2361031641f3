/* clone.c - copies a whole file, by sharing its blocks where the file system can. */
#include "clone.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/fs.h>
#include <sys/ioctl.h>
#endif

#include "path.h"

enum { COPY_ROOM = 256 << 10 };

static int copy_bytes(int from, int to)
{
	CLEANUP(free_text) char *room = xmalloc(COPY_ROOM);

	for (off_t at = 0;;) {
		ssize_t n = pread(from, room, COPY_ROOM, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		if (fd_write_all(to, room, (size_t)n) < 0)
			return -1;
		at += n;
	}
}

int fd_clone(int from, int to)
{
#ifdef FICLONE
	if (ioctl(to, FICLONE, from) == 0)
		return 0;
#endif
	return copy_bytes(from, to);
}
