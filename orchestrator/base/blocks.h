/* blocks.h - hashes a file as blocks of one size, as a store of blocks identifies them: by the hash
 * of a block without the zeros at its end. */
#ifndef BURST_BASE_BLOCKS_H
#define BURST_BASE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct file_block {
	unsigned char sha256[32];
	int64_t bytes; /* that were hashed: without the zeros at the block's end */
};

struct file_blocks {
	struct file_block *list; /* NULL: an empty file */
	size_t count;
	int64_t bytes; /* of the whole file */
};

/* Reads the whole file, so it blocks: not for the loop's thread. Every block but the last covers
 * block_bytes (> 0) of the file. *out is written only on success; free with blocks_free().
 * ERR_LOCAL: the file cannot be read. */
int blocks_of_file(struct file_blocks *out, const char *path, int64_t block_bytes, struct err *err);
void blocks_free(struct file_blocks *blocks); /* leaves *blocks empty; accepts NULL */

#endif
