/* blocks.c - cuts a file into blocks of one size, each with the hash of its bytes. */
#include "blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "crypto.h"

enum { SLICE = 1 << 20 };

/* As much of a block as there is; -1: *errno. */
static int64_t read_block(int fd, char *to, int64_t most)
{
	int64_t got = 0;

	while (got < most) {
		ssize_t n = read(fd, to + got, (size_t)MIN(most - got, (int64_t)SLICE));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += n;
	}
	return got;
}

static struct file_block block_of(const char *bytes, int64_t len)
{
	struct file_block block = {.bytes = len};

	while (block.bytes && !bytes[block.bytes - 1])
		block.bytes--;
	sha256_raw(bytes, (size_t)block.bytes, block.sha256);
	return block;
}

int blocks_of_file(struct file_blocks *out, const char *path, int64_t block_bytes, struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(free_text) char *room = xmalloc((size_t)block_bytes);
	struct file_blocks blocks = {0};
	size_t cap = 0;
	int64_t got = fd < 0 ? -1 : 1;

	while (got > 0) {
		got = read_block(fd, room, block_bytes);
		if (got <= 0)
			break;
		GROW(blocks.list, blocks.count, cap);
		blocks.list[blocks.count++] = block_of(room, got);
		blocks.bytes += got;
	}
	if (got < 0) {
		err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
		blocks_free(&blocks);
		return -1;
	}
	*out = blocks;
	return 0;
}

void blocks_free(struct file_blocks *blocks)
{
	if (!blocks)
		return;
	free(blocks->list);
	*blocks = (struct file_blocks){0};
}
