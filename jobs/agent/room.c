/* room.c - tests by writing whether volume and disk have room: statvfs ignores quotas. */
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "events.h"
#include "files.h"

enum {
	PROBE_PIECE = 64 << 10,
	PROBE_MORE = 1 << 20,
	PROBE_LEAST = 4 << 20,
	PROBE_MOST = 64 << 20,
	PROBE_HOLDS_TIMES = 10, /* a result holds for this many times the duration of the test */
	PROBE_HOLDS_MS = 10 * 1000,
};

/* Returns false if the volume is full, with errno. */
static bool write_zeros(int fd, int64_t bytes)
{
	char *zeros = xcalloc(1, PROBE_PIECE);
	bool fine = true;
	for (; fine && bytes > 0; bytes -= PROBE_PIECE)
		fine = fd_write_all(fd, zeros, PROBE_PIECE) == 0;
	fine = fine ||
	       errno == EFBIG; /* a limit on file size does not mean that the volume is full */
	free(zeros);
	return fine && fsync(fd) == 0;
}

/* Writes a file of this size to find out whether the volume lacks the room. statvfs ignores quotas.
 */
static bool volume_full(struct agent *a, int dir, int64_t bytes)
{
	int64_t began = now_ms(a);
	unlinkat(dir, ".probe", 0);
	int fd = openat(dir, ".probe", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool full = fd < 0 ? errno == ENOSPC || errno == EDQUOT || errno == EROFS || errno == EIO
			   : !write_zeros(fd, bytes);
	if (fd >= 0)
		close(fd);
	unlinkat(dir, ".probe", 0);
	int64_t now = now_ms(a);
	a->room_bytes = full ? 0 : bytes;
	a->room_until_ms = now + MIN((now - began) * PROBE_HOLDS_TIMES, (int64_t)PROBE_HOLDS_MS);
	return full;
}

/* One test serves all files that fail together: nothing else runs meanwhile. */
static bool room_is_known(struct agent *a, int64_t bytes)
{
	return bytes <= a->room_bytes && now_ms(a) < a->room_until_ms;
}

void check_volume_for(struct agent *a, const char *words)
{
	int saved = errno;
	bool no_room = strstr(words, strerror(ENOSPC)) || strstr(words, strerror(EDQUOT));
	int64_t bytes = no_room ? PROBE_MOST
				: MIN(MAX(a->largest + PROBE_MORE, (int64_t)PROBE_LEAST),
				      (int64_t)PROBE_MOST);
	if (!a->fatal && !room_is_known(a, bytes)) {
		if (volume_full(a, a->dir_fd, bytes))
			fatal(a, "the volume is full or cannot be written");
		else if (a->out_fd >= 0 && volume_full(a, a->out_fd, bytes))
			fatal(a, "the pod's disk is full or cannot be written");
	}
	errno = saved;
}

void check_volume(struct agent *a)
{
	check_volume_for(a, "");
}

bool volume_is_to_blame(struct agent *a, const char *words)
{
	check_volume_for(a, words);
	return a->fatal;
}
