/* fuzz_tree.c - any bytes as the text form of a tree (orchestrator/sync/tree.c). What is
 * accepted must survive being compared and searched, and every path of it must be safe.
 *
 * Most inputs die at the id, which no fuzzer guesses: the input is therefore tried a second time
 * with its id put right. */
#include <stdlib.h>

#include "sync/tree.h"
#include "base/path.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The id that these lines would have, were they well formed: computed the plain way, from the text
 * alone. */
static void id_of(const char *text, const char *end, char hex[SHA256_HEX])
{
	CLEANUP(str_free) struct str canon = STR_INIT;

	str_add(&canon, "burst-tree 1\n");
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		const char *p = text, *line_end = stop ? stop : end;
		int words = *text == 'f' || *text == 'x' ? 5 : 4;
		char kind = *text;
		for (int i = 0; i < words - (words == 5) && p < line_end; i++) {
			const char *space = memchr(p, ' ', (size_t)(line_end - p));
			p = space ? space + 1 : line_end;
		}
		if (words == 5) { /* the size does not count, the hash does */
			const char *space = memchr(p, ' ', (size_t)(line_end - p));
			p = space ? space + 1 : line_end;
		}
		str_addf(&canon, "%c ", kind);
		str_addn(&canon, p, (size_t)(line_end - p));
		str_addc(&canon, '\n');
		text = line_end + 1;
	}
	sha256_hex(canon.s, canon.len, hex);
}

static void try_one(const char *bytes, size_t len)
{
	struct tree *tree = NULL;
	struct tree_diff diff;

	if (tree_parse(&tree, bytes, len, NULL) < 0)
		return;
	for (size_t i = 0; i < tree->count; i++)
		if (!path_is_safe(tree->list[i].path) ||
		    tree_find(tree, tree->list[i].path) != &tree->list[i])
			abort();
	tree_diff(&diff, tree, tree);
	if (diff.changed_count || diff.removed_count)
		abort();
	tree_diff_free(&diff);
	tree_diff(&diff, NULL, tree);
	if (diff.changed_count != tree->count)
		abort();
	tree_diff_free(&diff);
	tree_free(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *line = memchr(text, '\n', size);
	CLEANUP(str_free) struct str right = STR_INIT;
	char hex[SHA256_HEX];

	try_one(text, size);
	if (!line)
		return 0;
	size_t lines = 0;
	for (const char *p = line + 1; p < text + size; p++)
		lines += *p == '\n';
	id_of(line + 1, text + size, hex);
	str_addf(&right, "burst-tree 1 0 %zu %s\n", lines, hex);
	str_addn(&right, line + 1, size - (size_t)(line + 1 - text));
	try_one(right.s, right.len);
	return 0;
}
