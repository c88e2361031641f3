/* ssh_memory.c - libssh2's memory: counted, and freed with the session. ssh.c compares the count
 * with MEMORY_MOST after each turn. */
#include <stdlib.h>

#include "ssh.h"
#include "ssh_impl.h"

static void link_block(struct ssh *s, struct block *b)
{
	b->before = &s->blocks;
	b->after = s->blocks.after;
	b->before->after = b->after->before = b;
	s->memory += b->size;
}

static void unlink_block(struct ssh *s, struct block *b)
{
	b->before->after = b->after;
	b->after->before = b->before;
	s->memory -= b->size;
}

static struct block *block_of(void *bytes)
{
	return (struct block *)bytes - 1;
}

void *ssh_on_alloc(size_t size, void **abstract)
{
	struct block *b = xmalloc(sizeof(*b) + size);

	b->size = size;
	link_block(*abstract, b);
	return b + 1;
}

void ssh_on_free(void *bytes, void **abstract)
{
	if (!bytes)
		return;
	unlink_block(*abstract, block_of(bytes));
	free(block_of(bytes));
}

void *ssh_on_realloc(void *bytes, size_t size, void **abstract)
{
	if (!bytes)
		return ssh_on_alloc(size, abstract);
	struct block *b = block_of(bytes);
	unlink_block(*abstract, b);
	b = xrealloc(b, sizeof(*b) + size);
	b->size = size;
	link_block(*abstract, b);
	return b + 1;
}
