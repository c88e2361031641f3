/* receive_bed.c - one output, to be received into a scratch folder. */
#include "receive_bed.h"

#include "base/crypto.h"

const char receive_text[TEXT_LEN + 1] =
	"The quick brown fox jumps over the lazy dog, at byte 47 it rests.";

const char *hash_of(const void *bytes, size_t len)
{
	static char hex[SHA256_HEX];

	sha256_hex(bytes, len, hex);
	return hex;
}

struct receive *begin_output(const char *dir, const char *name, const void *bytes, size_t len)
{
	struct receive *r = NULL;

	MUST(receive_open(&r, dir, name, (int64_t)len, hash_of(bytes, len), err));
	return r;
}

void want_file(const char *dir, const char *name, const void *bytes, size_t len)
{
	CLEANUP(free_text) char *path = path_join(dir, name);
	CLEANUP(str_free) struct str got = STR_INIT;

	MUST(path_read(path, 64u << 20, &got, err));
	assert_int_equal(got.len, len);
	if (len)
		assert_memory_equal(got.s, bytes, len);
}

char *big_bytes(size_t len)
{
	char *bytes = xmalloc(len);

	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)((i * 2654435761u) >> 13);
	return bytes;
}
