/* ssh_memory.c - libssh2's memory: counted, limited, and freed with the session. The server chooses
 * some sizes (the name of a signal may have 4 GiB), so libssh2 gets no more than MEMORY_MOST; ssh.c
 * then ends the session. */
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

static bool has_room(struct ssh *s, size_t size)
{
	s->flooded = s->flooded || size > MEMORY_MOST || s->memory > MEMORY_MOST - size;
	return !s->flooded;
}

void *ssh_on_alloc(size_t size, void **abstract)
{
	struct ssh *s = *abstract;

	if (!has_room(s, size))
		return NULL;
	struct block *b = xmalloc(sizeof(*b) + size);
	b->size = size;
	link_block(s, b);
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
	if (size > b->size && !has_room(*abstract, size - b->size))
		return NULL;
	unlink_block(*abstract, b);
	b = xrealloc(b, sizeof(*b) + size);
	b->size = size;
	link_block(*abstract, b);
	return b + 1;
}
