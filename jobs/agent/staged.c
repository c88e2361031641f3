/* staged.c - reads a stream that the client put on the volume before the pod existed:
 * staged/NAME.0, NAME.1, ... */
#include "staged.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "bounds.h"
#include "files.h"
#include "process.h"
#include "sha256.h"

static char *staged_part(const struct tree_args *args, int part)
{
	return xasprintf("%s/staged/%s.%d", args->volume, args->from, part);
}

static int staged_copy(const char *path, int out, struct sha256 *sha)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *room = xcalloc(1, SLICE);
	ssize_t n = -1;
	while (fd >= 0 && (n = read(fd, room, SLICE)) > 0) {
		sha_add(sha, room, (size_t)n);
		if (fd_write_all(out, room, (size_t)n) < 0)
			break;
	}
	close_fd(&fd);
	free(room);
	return n == 0 ? 0 : -1;
}

pid_t staged_start(const struct tree_args *args)
{
	int in = -1, out = -1;
	if (make_pipe(&in, &out) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		struct sha256 sha;
		char hex[65];
		int failed = 0;
		close_fd(&in);
		sha_start(&sha);
		for (int i = 0; i < atoi(args->parts) && !failed; i++) {
			char *path = staged_part(args, i);
			failed = staged_copy(path, out, &sha);
			free(path);
		}
		sha_hex(&sha, hex);
		_exit(failed || strcmp(hex, args->sha256) ? 1 : 0);
	}
	close_fd(&out);
	dup2(in, 0);
	close_fd(&in);
	return pid;
}

void staged_remove(const struct tree_args *args)
{
	for (int i = 0; args->from && i < atoi(args->parts); i++) {
		char *path = staged_part(args, i);
		unlink(path);
		free(path);
	}
}
