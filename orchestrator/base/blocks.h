/* blocks.h - hashes a file as blocks of one size. Zeros at the end of a block do not count: stores
 * that keep blocks identify them so. */
#ifndef BURST_BASE_BLOCKS_H
#define BURST_BASE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct file_block {
	unsigned char sha256[32];
	int64_t bytes; /* without the zeros at its end */
};

struct file_blocks {
	struct file_block *list; /* NULL: an empty file */
	size_t count;
	int64_t bytes; /* of the whole file */
};

/* Reads the whole file (so not from the loop's thread); every block but the last has block_bytes (>
 * 0). *out is written only on success and ended with blocks_free(). ERR_LOCAL. */
int blocks_of_file(struct file_blocks *out, const char *path, int64_t block_bytes, struct err *err);
void blocks_free(struct file_blocks *blocks); /* it is empty then; accepts NULL */

#endif
