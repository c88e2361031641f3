/* test_pack.c - tar streams: read back by tar and by our own reader. */
#include "sync/pack.h"

#include "sync_help.h"

#include <fcntl.h>
#include <locale.h>

/* Pulls everything in pieces of `room` bytes into a file. -1: the pack failed, and the file holds
 * what came before. */
static int pull(struct pack *p, const char *to, size_t room, bool zstd, struct err *err)
{
	CLEANUP(file_close) FILE *f = fopen(to, "we");
	CLEANUP(free_text) char *buf = xmalloc(room);
	CLEANUP(str_free) struct str squeezed = STR_INIT;
	ssize_t n;

	assert_non_null(f);
	while ((n = pack_read(p, buf, room, err)) > 0) {
		str_reset(&squeezed);
		if (zstd)
			assert_true(pack_add_zstd_frame(&squeezed, buf, (size_t)n));
		size_t len = zstd ? squeezed.len : (size_t)n;
		assert_int_equal(fwrite(zstd ? squeezed.s : buf, 1, len, f), len);
	}
	return (int)n;
}

static int pack_tree(const struct tree *old, const struct tree *tree, const char *root, bool zstd,
		     const char *to, size_t room, struct err *why)
{
	struct tree_diff diff;
	struct pack *open = NULL;

	tree_diff(&diff, old, tree);
	struct pack_plan plan = pack_plan_of(&diff, root);
	MUST(pack_open(&open, &plan, err));
	CLEANUP(pack_close) struct pack *p = open;
	int result = pull(p, to, room, zstd, why);
	tree_diff_free(&diff);
	return result;
}

static struct tree *scan(const char *root)
{
	struct tree *tree = NULL;

	MUST(tree_scan(&tree, root, NULL, err));
	return tree;
}

static void make_tree(const char *root)
{
	CLEANUP(free_text) char *big = xmalloc(1000003);
	CLEANUP(free_text) char *link = path_join(root, "dir/link");
	CLEANUP(free_text) char *script = path_join(root, "script.sh");
	CLEANUP(free_text) char *hollow = path_join(root, "hollow");
	struct str deep = STR_INIT;

	for (size_t i = 0; i < 1000003; i++)
		big[i] = (char)(i * i >> 7);
	put(root, "big.bin", big, 1000003);
	put_text(root, "empty", "");
	put_text(root, "dir/a file", "with a space\n");
	put_text(root, "dir/\xc3\xa4\xe2\x82\xac.txt", "not ASCII\n");
	put(root, "exactly.bin", big, 262144);
	put(root, "block.bin", big, 512);
	for (int i = 0; i < 30; i++)
		str_add(&deep, "a-rather-long-name/");
	str_add(&deep, "leaf");
	put_text(root, deep.s, "deep\n");
	str_free(&deep);
	put_text(root, "script.sh", "#!/bin/sh\n");
	assert_int_equal(chmod(script, 0700), 0);
	assert_int_equal(mkdir(hollow, 0755), 0);
	assert_int_equal(symlink("../big.bin", link), 0);
}

/* The system's tar unpacks what was packed, and a scan of that gives the same id. */
static void round_trip(void **state, bool zstd, size_t room)
{
	if (!have_program("tar") || (zstd && !have_program("zstd")))
		skip();
	CLEANUP(free_text) char *root = path_join(*state, "in");
	CLEANUP(free_text) char *tar = path_join(*state, "x.tar");
	CLEANUP(free_text) char *out = path_join(*state, "out");
	CLEANUP(free_text)
	char *command = xasprintf("mkdir -p '%s' && %s '%s' | tar -x -C '%s' -f - 2>&1", out,
				  zstd ? "zstd -dc" : "cat", tar, out);
	int status;

	make_tree(root);
	CLEANUP(tree_free) struct tree *in = scan(root);
	MUST(pack_tree(NULL, in, root, zstd, tar, room, err));
	CLEANUP(free_text) char *words = said(command, &status);
	assert_string_equal(words, "");
	assert_int_equal(status, 0);
	CLEANUP(tree_free) struct tree *back = scan(out);
	assert_string_equal(back->id, in->id);
	assert_int_equal(tree_find(back, "big.bin")->mtime_ns / 1000000000,
			 tree_find(in, "big.bin")->mtime_ns / 1000000000);
}

static void plain(void **state)
{
	round_trip(state, false, 65536);
}

static void plain_in_odd_pieces(void **state)
{
	round_trip(state, false, 777);
}

static void compressed(void **state)
{
	round_trip(state, true, 65536);
}

static void compressed_at_once(void **state)
{
	round_trip(state, true, 8u << 20);
}

static void in_another_locale(void **state)
{
	if (!setlocale(LC_ALL, "C.UTF-8"))
		skip();
	round_trip(state, false, 65536);
	setlocale(LC_ALL, "C");
}

static void the_same_bytes_twice(void **state)
{
	CLEANUP(free_text) char *root = path_join(*state, "in");
	CLEANUP(free_text) char *one = path_join(*state, "1.tar");
	CLEANUP(free_text) char *two = path_join(*state, "2.tar");
	CLEANUP(str_free) struct str a = STR_INIT, b = STR_INIT;

	make_tree(root);
	CLEANUP(tree_free) struct tree *tree = scan(root);
	MUST(pack_tree(NULL, tree, root, false, one, 1000, err));
	MUST(pack_tree(NULL, tree, root, false, two, 65536, err));
	MUST(path_read(one, 16u << 20, &a, err));
	MUST(path_read(two, 16u << 20, &b, err));
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.s, b.s, a.len);
}

static void a_difference(void **state)
{
	if (!have_program("tar"))
		skip();
	CLEANUP(free_text) char *root = path_join(*state, "in");
	CLEANUP(free_text) char *tar = path_join(*state, "x.tar");
	CLEANUP(free_text) char *gone = path_join(root, "gone");
	CLEANUP(free_text)
	char *list =
		xasprintf("tar -tf '%s' && tar -xOf '%s' .burst-delete | tr '\\0' '|'", tar, tar);

	put_text(root, "stays", "1");
	put_text(root, "changes", "1");
	put_text(root, "gone/a", "1");
	CLEANUP(tree_free) struct tree *old = scan(root);
	put_text(root, "changes", "2 now longer");
	put_text(root, "new", "2");
	MUST(path_remove_tree(gone, err));
	CLEANUP(tree_free) struct tree *new = scan(root);
	MUST(tree_add(new, "voices/v.wav", "RIFF", 4, false, err));
	MUST(pack_tree(old, new, root, false, tar, 65536, err));
	CLEANUP(free_text) char *words = said(list, NULL);
	assert_string_equal(words,
			    ".burst-delete\nchanges\nnew\nvoices/\nvoices/v.wav\ngone/a|gone");
}

static void nothing_but_added_files(void **state)
{
	if (!have_program("tar"))
		skip();
	CLEANUP(free_text) char *tar = path_join(*state, "x.tar");
	CLEANUP(free_text) char *list = xasprintf("tar -xOf '%s' kit/w.py", tar);
	CLEANUP(tree_free) struct tree *tree = tree_new();

	MUST(tree_add(tree, "kit/w.py", "print(1)\n", 9, true, err));
	MUST(tree_add(tree, "kit/none", "", 0, false, err));
	MUST(pack_tree(NULL, tree, NULL, false, tar, 65536, err));
	CLEANUP(free_text) char *words = said(list, NULL);
	assert_string_equal(words, "print(1)\n");
}

/* ---- files that change between the scan and the packing ---- */

static void spoil_grow(const char *root)
{
	put_text(root, "m", "longer than it was");
}
static void spoil_shrink(const char *root)
{
	put_text(root, "m", "s");
}
static void spoil_content(const char *root)
{
	put_text(root, "m", "OTHER BYTES");
}
static void spoil_gone(const char *root)
{
	CLEANUP(free_text) char *path = path_join(root, "m");

	assert_int_equal(unlink(path), 0);
}
static void spoil_link(const char *root)
{
	CLEANUP(free_text) char *path = path_join(root, "m");

	spoil_gone(root);
	assert_int_equal(symlink("/etc/passwd", path), 0);
}
static void spoil_pipe(const char *root)
{
	CLEANUP(free_text) char *path = path_join(root, "m");

	spoil_gone(root);
	assert_int_equal(mkfifo(path, 0600), 0);
}

static const struct {
	const char *name;
	void (*spoil)(const char *root);
} spoilers[] = {
	{"grows", spoil_grow},   {"shrinks", spoil_shrink},     {"has other bytes", spoil_content},
	{"is gone", spoil_gone}, {"is a link now", spoil_link}, {"is a pipe now", spoil_pipe},
};

static void what_changed_is_named(void **state)
{
	if (!have_program("tar") || !have_program("zstd"))
		skip();
	CLEANUP(free_text) char *tar = path_join(*state, "x.tar");
	CLEANUP(free_text) char *plain_read = xasprintf("tar -xOf '%s' 2>&1", tar);
	CLEANUP(free_text) char *zstd_read = xasprintf("zstd -dc '%s' | tar -xOf - 2>&1", tar);

	for (size_t i = 0; i < ARRAY_LEN(spoilers) * 2; i++) {
		CLEANUP(free_text) char *name = xasprintf("in%zu", i);
		CLEANUP(free_text) char *root = path_join(*state, name);
		bool zstd = i % 2;
		struct err err = {0};
		int status;

		put_text(root, "a", "before");
		put_text(root, "m", "other bytes");
		put_text(root, "z", "behind");
		CLEANUP(tree_free) struct tree *tree = scan(root);
		spoilers[i / 2].spoil(root);
		if (pack_tree(NULL, tree, root, zstd, tar, 512, &err) == 0)
			fail_msg("%s: was packed", spoilers[i / 2].name);
		assert_int_equal(err.kind, ERR_LOCAL);
		assert_true(starts_with(err.msg, "m: "));
		free(said(zstd ? zstd_read : plain_read, &status));
		if (status == 0)
			fail_msg("%s: the broken stream (%s) passes for a whole one",
				 spoilers[i / 2].name, zstd ? "zstd" : "tar");
	}
}

/* A file that grows under the reader's hands: after its first slice is out. */
static void changes_while_it_is_read(void **state)
{
	CLEANUP(free_text) char *root = path_join(*state, "in");
	CLEANUP(free_text) char *big = xcalloc(1, 2u << 20);
	CLEANUP(free_text) char *path = path_join(root, "m");
	char buf[4096];
	struct err why = {0};
	struct tree_diff diff;
	struct pack *open = NULL;
	ssize_t n;

	put(root, "m", big, 2u << 20);
	CLEANUP(tree_free) struct tree *tree = scan(root);
	tree_diff(&diff, NULL, tree);
	struct pack_plan plan = pack_plan_of(&diff, root);
	MUST(pack_open(&open, &plan, err));
	CLEANUP(pack_close) struct pack *p = open;
	assert_int_equal(pack_read(p, buf, sizeof(buf), &why), sizeof(buf));
	assert_int_equal(truncate(path, 1u << 20), 0);
	while ((n = pack_read(p, buf, sizeof(buf), &why)) > 0)
		;
	assert_int_equal(n, -1);
	assert_int_equal(why.kind, ERR_LOCAL);
	assert_true(starts_with(why.msg, "m: "));
	assert_int_equal(pack_read(p, buf, sizeof(buf), &why), -1);
	tree_diff_free(&diff);
}

static void can_be_stopped(void **state)
{
	CLEANUP(free_text) char *root = path_join(*state, "in");
	CLEANUP(free_text) char *tar = path_join(*state, "x.tar");
	atomic_bool stop = true;
	struct tree_diff diff;
	struct pack *open = NULL;

	put_text(root, "a", "1");
	CLEANUP(tree_free) struct tree *tree = scan(root);
	tree_diff(&diff, NULL, tree);
	struct pack_plan plan = pack_plan_of(&diff, root);
	plan.stop = &stop;
	MUST(pack_open(&open, &plan, err));
	CLEANUP(pack_close) struct pack *p = open;
	MUST_FAIL(pull(p, tar, 4096, false, err), ERR_INTERRUPTED);
	tree_diff_free(&diff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(plain, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(plain_in_odd_pieces, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(compressed, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(compressed_at_once, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(in_another_locale, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(the_same_bytes_twice, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(a_difference, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(nothing_but_added_files, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(what_changed_is_named, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(changes_while_it_is_read, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(can_be_stopped, scratch_make, scratch_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
