/* test_crypto.c - hashes, random bytes, base64, and SSH keys held against ssh-keygen where there is
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/blocks.h"
#include "base/crypto.h"
#include "base/path.h"
#include "folder.h"
#include "sha256_file.h"

static const struct {
	const char *name, *text, *hex;
} hashes[] = {
	{"nothing", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"abc", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	{"two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static void hash_of_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hashes); i++) {
		char hex[SHA256_HEX];
		sha256_hex(hashes[i].text, strlen(hashes[i].text), hex);
		if (strcmp(hex, hashes[i].hex))
			fail_msg("%s: got %s, want %s", hashes[i].name, hex, hashes[i].hex);
	}
}

static void hash_in_pieces(void **state)
{
	char text[1000], whole[SHA256_HEX], pieces[SHA256_HEX];
	struct sha256 *h = sha256_new();

	(void)state;
	memset(text, 'x', sizeof(text));
	sha256_hex(text, sizeof(text), whole);
	for (size_t at = 0, step = 0; at < sizeof(text); at += step, step++)
		sha256_add(h, text + at, MIN(step, sizeof(text) - at));
	sha256_finish(h, pieces);
	assert_string_equal(pieces, whole);
	sha256_free(sha256_new());
	sha256_free(NULL);
}

static void hash_of_file(void **state)
{
	CLEANUP(free_text) char *path = in_folder("blob");
	size_t len = 200001; /* not a whole number of any buffer */
	CLEANUP(free_text) char *bytes = xmalloc(len);
	char want[SHA256_HEX], got[SHA256_HEX] = "";
	int64_t size = 0;
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i * 31);
	sha256_hex(bytes, len, want);
	assert_int_equal(path_write(path, bytes, len, 0600, &err), 0);
	assert_int_equal(sha256_file(path, got, &size, &err), 0);
	assert_string_equal(got, want);
	assert_int_equal(size, len);
	assert_int_equal(sha256_file(path, got, NULL, &err), 0);

	CLEANUP(free_text) char *absent = in_folder("absent");
	assert_int_equal(sha256_file(absent, got, NULL, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(sha256_file(folder, got, NULL, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
}

static void random_differs(void **state)
{
	char a[33], b[33];
	unsigned char seen[256] = {0}, many[8192];
	size_t distinct = 0;

	(void)state;
	random_hex(a, 16);
	random_hex(b, 16);
	assert_int_equal(strlen(a), 32);
	assert_int_equal(strspn(a, "0123456789abcdef"), 32);
	assert_string_not_equal(a, b);
	assert_true(random_u64() != random_u64());
	random_hex(a, 0);
	assert_string_equal(a, "");
	/* the back of a hex text is where its bytes are kept while it is written */
	random_bytes(many, sizeof(many));
	for (size_t i = 0; i < sizeof(many); i++)
		seen[many[i]] = 1;
	for (size_t i = 0; i < sizeof(seen); i++)
		distinct += seen[i];
	assert_true(distinct > 250);
}

static void random_differs_after_fork(void **state)
{
	int ends[2];
	uint64_t ours, theirs = 0;

	(void)state;
	random_u64(); /* the generator is seeded before the fork: a child must not repeat us */
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		uint64_t value = random_u64();
		_exit(write(ends[1], &value, sizeof(value)) == sizeof(value) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	ours = random_u64();
	assert_int_equal(read(ends[0], &theirs, sizeof(theirs)), sizeof(theirs));
	assert_true(ours != theirs);
	close(ends[0]);
	close(ends[1]);
}

static const struct {
	const char *plain, *text;
} base64s[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
	{"\xff\xef\xbe", "/+++"},
};

static void base64_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(base64s); i++) {
		CLEANUP(str_free) struct str text = STR_INIT, plain = STR_INIT;
		base64_add(&text, base64s[i].plain, strlen(base64s[i].plain));
		assert_string_equal(str_text(&text), base64s[i].text);
		assert_int_equal(base64_decode(&plain, text.s ? text.s : "", text.len, NULL), 0);
		assert_int_equal(plain.len, strlen(base64s[i].plain));
		assert_string_equal(str_text(&plain), base64s[i].plain);
	}
}

static void base64_every_length(void **state)
{
	unsigned char bytes[2000];

	(void)state;
	random_bytes(bytes, sizeof(bytes));
	for (size_t len = 0; len < sizeof(bytes); len += len < 20 ? 1 : 97) {
		CLEANUP(str_free) struct str text = STR_INIT, plain = STR_INIT;
		base64_add(&text, bytes, len);
		assert_int_equal(text.len, (len + 2) / 3 * 4);
		assert_int_equal(base64_decode(&plain, str_text(&text), text.len, NULL), 0);
		assert_int_equal(plain.len, len);
		assert_memory_equal(str_text(&plain), bytes, len);
	}
}

static void base64_refuses(void **state)
{
	static const struct {
		const char *name, *text;
	} bad[] = {
		{"no padding", "Zg"},
		{"one character", "Z"},
		{"padding in the middle", "Zg==Zg=="},
		{"only padding", "===="},
		{"too much padding", "Z==="},
		{"a gap in the padding", "Zg=x"},
		{"white space", "Zm9v\n   "},
		{"url alphabet", "_-__"},
		{"bits left over, one byte", "Zh=="},
		{"bits left over, two", "Zm9="},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP(str_free) struct str to = STR_INIT;
		struct err err = {0};
		str_add(&to, "kept");
		if (base64_decode(&to, bad[i].text, strlen(bad[i].text), &err) == 0)
			fail_msg("%s: accepted", bad[i].name);
		assert_int_equal(err.kind, ERR_BUG);
		assert_string_equal(str_text(&to), "kept");
	}
}

static void key_looks_right(void **state)
{
	struct ssh_key a, b;

	(void)state;
	ssh_key_make(&a, "burst-test");
	ssh_key_make(&b, "burst-test");
	assert_true(starts_with(a.private_pem, "-----BEGIN OPENSSH PRIVATE KEY-----\n"));
	assert_true(ends_with(a.private_pem, "\n-----END OPENSSH PRIVATE KEY-----\n"));
	assert_true(starts_with(a.public_line, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"));
	assert_true(ends_with(a.public_line, " burst-test"));
	assert_string_not_equal(a.public_line, b.public_line);
	assert_string_not_equal(a.private_pem, b.private_pem);
	for (const char *line = a.private_pem; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 70);
	ssh_key_free(&a);
	ssh_key_free(&b);
	assert_null(a.private_pem);
	ssh_key_free(&a);
}

/* What `ssh-keygen -y` reads back from the private text; "" when it refuses. */
static void ssh_keygen_reads(const char *private_pem, struct str *out)
{
	CLEANUP(free_text) char *path = in_folder("key");
	CLEANUP(str_free) struct str command = STR_INIT;
	char line[4096];

	assert_int_equal(path_write(path, private_pem, strlen(private_pem), 0600, NULL), 0);
	str_add(&command, "ssh-keygen -y -P '' -f ");
	str_add_shell(&command, path);
	FILE *f = popen(command.s, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		str_add(out, line);
	int status = pclose(f);
	if (status != 0)
		str_reset(out);
	if (out->len && out->s[out->len - 1] == '\n')
		out->s[--out->len] = '\0';
	unlink(path);
}

static void key_is_read_by_ssh_keygen(void **state)
{
	/* comments of different lengths meet every length of padding */
	static const char *const comments[] = {"",       "a",       "ab",
					       "abc",    "abcd",    "abcde",
					       "abcdef", "abcdefg", "with spaces and \xc3\xa9"};

	(void)state;
	if (system("command -v ssh-keygen >/dev/null") != 0) {
		print_message("skipped: no ssh-keygen on this machine\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_LEN(comments); i++) {
		CLEANUP(str_free) struct str got = STR_INIT;
		struct ssh_key key;
		ssh_key_make(&key, comments[i]);
		ssh_keygen_reads(key.private_pem, &got);
		/* it drops the space before an empty comment */
		size_t len = strlen(key.public_line) - (comments[i][0] ? 0 : 1);
		if (got.len != len || memcmp(str_text(&got), key.public_line, len))
			fail_msg("comment \"%s\": got \"%s\", want \"%s\"", comments[i],
				 str_text(&got), key.public_line);
		ssh_key_free(&key);
	}
}

/* Against the hashes of the same bytes by sha256_hex, which others vouch for. */
static void blocks_of_files(void **state)
{
	static const struct {
		const char *name, *bytes;
		size_t len;
		size_t blocks[4]; /* what is left of each of 4 bytes without its zeros */
		size_t count;
	} files[] = {
		{"nothing", "", 0, {0}, 0},
		{"less than one", "abc", 3, {3}, 1},
		{"just one", "abcd", 4, {4}, 1},
		{"one and a bit", "abcde", 5, {4, 1}, 2},
		{"zeros at an end", "ab\0\0cdef", 8, {2, 4}, 2},
		{"zeros within", "a\0\0d", 4, {4}, 1},
		{"only zeros", "\0\0\0\0\0\0", 6, {0, 0}, 2},
		{"a whole one of zeros", "abcd\0\0\0\0efg", 11, {4, 0, 3}, 3},
	};
	CLEANUP(free_text) char *path = in_folder("blocks");
	struct file_blocks got;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		assert_int_equal(path_write(path, files[i].bytes, files[i].len, 0600, NULL), 0);
		assert_int_equal(blocks_of_file(&got, path, 4, &err), 0);
		if (got.count != files[i].count || got.bytes != (int64_t)files[i].len)
			fail_msg("%s: %zu blocks of %lld bytes", files[i].name, got.count,
				 (long long)got.bytes);
		for (size_t k = 0; k < got.count; k++) {
			char want[SHA256_HEX], hex[SHA256_HEX];
			sha256_hex(files[i].bytes + 4 * k, files[i].blocks[k], want);
			for (size_t b = 0; b < 32; b++)
				snprintf(hex + 2 * b, 3, "%02x", got.list[k].sha256[b]);
			if (strcmp(hex, want) || got.list[k].bytes != (int64_t)files[i].blocks[k])
				fail_msg("%s: block %zu: %s, %lld bytes", files[i].name, k, hex,
					 (long long)got.list[k].bytes);
		}
		blocks_free(&got);
	}
	CLEANUP(free_text) char *absent = in_folder("no-such-file");
	assert_int_equal(blocks_of_file(&got, absent, 4, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_int_equal(blocks_of_file(&got, folder, 4, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_of_text),
		cmocka_unit_test(hash_in_pieces),
		cmocka_unit_test(hash_of_file),
		cmocka_unit_test(blocks_of_files),
		cmocka_unit_test(random_differs),
		cmocka_unit_test(random_differs_after_fork),
		cmocka_unit_test(base64_both_ways),
		cmocka_unit_test(base64_every_length),
		cmocka_unit_test(base64_refuses),
		cmocka_unit_test(key_looks_right),
		cmocka_unit_test(key_is_read_by_ssh_keygen),
	};

	return cmocka_run_group_tests_name("crypto", tests, make_folder, drop_folder);
}
