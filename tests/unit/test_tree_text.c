/* test_tree_text.c - a tree's text form, and its differences. */
#include "tree_bed.h"

/* ---- added files ---- */

static void added_files(void **state)
{
	put_text(*state, "a", "1");
	CLEANUP(tree_free) struct tree *tree = scan(*state);
	CLEANUP(tree_free) struct tree *other = scan(*state);

	MUST(tree_add(tree, "voices/de/v.wav", "RIFF", 4, false, err));
	MUST(tree_add(tree, "voices/de/v.wav", "RIFF", 4, false, err));
	MUST(tree_add(tree, "0", "", 0, true, err));
	want_listing(tree, "x 0|f a|d voices|d voices/de|f voices/de/v.wav");
	assert_int_equal(tree->bytes, 5);
	assert_string_not_equal(tree->id, other->id);
	MUST_FAIL(tree_add(tree, "voices/de/v.wav", "RIFX", 4, false, err), ERR_CONFIG);
	MUST_FAIL(tree_add(tree, "voices", "RIFX", 4, false, err), ERR_CONFIG);
	MUST_FAIL(tree_add(tree, "a/b", "x", 1, false, err), ERR_CONFIG);
	MUST_FAIL(tree_add(tree, "../b", "x", 1, false, err), ERR_CONFIG);
	MUST_FAIL(tree_add(tree, TREE_DELETE_NAME, "x", 1, false, err), ERR_CONFIG);
	MUST_FAIL(tree_add(tree, TREE_LISTING_NAME, "x", 1, false, err), ERR_CONFIG);
	/* the same bytes in the folder itself give the same id */
	put_text(*state, "voices/de/v.wav", "RIFF");
	put_text(*state, "0", "");
	set_mode(*state, "0", 0755);
	CLEANUP(tree_free) struct tree *real = scan(*state);
	assert_string_equal(real->id, tree->id);
}

/* ---- differences ---- */

static void want_diff(const struct tree *old, const struct tree *new, const char *changed,
		      const char *removed)
{
	CLEANUP(str_free) struct str got = STR_INIT, gone = STR_INIT;
	CLEANUP(tree_diff_free) struct tree_diff diff;

	tree_diff(&diff, old, new);
	for (size_t i = 0; i < diff.changed_count; i++)
		str_addf(&got, "%s%s", i ? "|" : "", diff.changed[i]->path);
	for (size_t i = 0; i < diff.removed_count; i++)
		str_addf(&gone, "%s%s", i ? "|" : "", diff.removed[i]);
	assert_string_equal(str_text(&got), changed);
	assert_string_equal(str_text(&gone), removed);
}

static void differences(void **state)
{
	CLEANUP(free_text) char *swap = path_join(*state, "swap");
	CLEANUP(free_text) char *link = path_join(*state, "link");
	CLEANUP(free_text) char *gone = path_join(*state, "gone");

	put_text(*state, "same", "1");
	put_text(*state, "changes", "1");
	put_text(*state, "becomes-x", "1");
	put_text(*state, "gone/deep/a", "1");
	put_text(*state, "swap/inside", "1");
	make_link(*state, "link", "same");
	CLEANUP(tree_free) struct tree *old = scan(*state);
	want_diff(NULL, old,
		  "becomes-x|changes|gone|gone/deep|gone/deep/a|link|same|swap|swap/inside", "");
	want_diff(old, old, "", "");

	put_text(*state, "changes", "22");
	set_mode(*state, "becomes-x", 0700);
	MUST(path_remove_tree(gone, err));
	MUST(path_remove_tree(swap, err));
	MUST(path_remove_tree(link, err));
	put_text(*state, "swap", "a file now");
	put_text(*state, "new/a", "1");
	make_link(*state, "link", "swap");
	CLEANUP(tree_free) struct tree *new = scan(*state);
	want_diff(old, new, "becomes-x|changes|link|new|new/a|swap",
		  "swap/inside|swap|gone/deep/a|gone/deep|gone");
	want_diff(new, old, "becomes-x|changes|gone|gone/deep|gone/deep/a|link|swap|swap/inside",
		  "swap|new/a|new");
}

/* ---- the text form ---- */

static void saved_and_loaded(void **state)
{
	CLEANUP(free_text) char *root = path_join(*state, "in");
	CLEANUP(free_text) char *file = path_join(*state, "tree");
	struct tree *back = NULL;

	MUST_FAIL(tree_load(&back, file, err), ERR_NOT_FOUND);
	put_text(root, "a b/\xc3\xa4 c", "1");
	put_text(root, "x", "");
	set_mode(root, "x", 0755);
	make_link(root, "l", "a b/none of this");
	CLEANUP(tree_free) struct tree *tree = scan(root);
	MUST(tree_save(tree, file, err));
	MUST(tree_load(&back, file, err));
	assert_string_equal(back->id, tree->id);
	assert_int_equal(back->scanned_ns, tree->scanned_ns);
	assert_int_equal(back->bytes, tree->bytes);
	assert_int_equal(back->count, tree->count);
	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_entry *a = &tree->list[i], *b = &back->list[i];
		assert_string_equal(a->path, b->path);
		assert_true(a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
			    a->inode == b->inode);
	}
	tree_free(back);
}

/* Every byte of a saved tree is changed, dropped and cut at: all of it is noticed. */
static void any_broken_byte(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *file = path_join(*state, "tree");
	CLEANUP(free_text) char *root = path_join(*state, "in");

	put_text(root, "d/a", "1");
	make_link(root, "d/l", "a");
	CLEANUP(tree_free) struct tree *tree = scan(root);
	MUST(tree_save(tree, file, err));
	MUST(path_read(file, 1 << 20, &text, err));
	for (size_t i = 0; i < text.len; i++) {
		struct tree *back = NULL;
		if (tree_parse(&back, text.s, i, NULL) == 0)
			fail_msg("cut at %zu: passes", i);
		for (int c = 0; c < 256; c++) {
			char was = text.s[i];
			text.s[i] = (char)c;
			/* times and inodes may be anything; what counts is that nothing else passes
			 */
			if (tree_parse(&back, text.s, text.len, NULL) == 0) {
				assert_string_equal(back->id, tree->id);
				tree_free(back);
				back = NULL;
			}
			text.s[i] = was;
		}
	}
}

static const struct {
	const char *name, *text;
} broken[] = {
	{"nothing", ""},
	{"another version", "burst-tree 2 0 0 x\n"},
	{"no end", "burst-tree 1 0 0"},
	{"a huge count", "burst-tree 1 0 99999999999999999999 x\n"},
	{"a negative count", "burst-tree 1 0 -1 x\n"},
	{"fewer lines than said", "burst-tree 1 0 5 x\nd 0 0 0 a\n"},
	{"an unsafe path", "burst-tree 1 0 1 x\nd 0 0 0 ../a\n"},
	{"a missing folder", "burst-tree 1 0 1 x\nd 0 0 0 a/b\n"},
	{"a file as a folder", "burst-tree 1 0 2 x\nl 0 0 0 a\tb\nd 0 0 0 a/b\n"},
	{"not sorted", "burst-tree 1 0 2 x\nd 0 0 0 b\nd 0 0 0 a\n"},
	{"twice", "burst-tree 1 0 2 x\nd 0 0 0 a\nd 0 0 0 a\n"},
	{"a link out", "burst-tree 1 0 1 x\nl 0 0 0 a\t../b\n"},
	{"a link without target", "burst-tree 1 0 1 x\nl 0 0 0 a\n"},
	{"a short hash", "burst-tree 1 0 1 x\nf 0 0 0 1 abc a\n"},
	{"a negative size", "burst-tree 1 0 1 x\nf 0 0 0 -1 "
			    "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 a\n"},
	{"a wrong id",
	 "burst-tree 1 0 1 0000000000000000000000000000000000000000000000000000000000000000\nd 0 0 "
	 "0 a\n"},
};

static void foreign_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		struct tree *tree = NULL;
		struct err err = {0};
		if (tree_parse(&tree, broken[i].text, strlen(broken[i].text), &err) == 0)
			fail_msg("%s: passes", broken[i].name);
		assert_int_equal(err.kind, ERR_CONFIG);
		assert_null(tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(added_files),         IN_SCRATCH(differences),
		IN_SCRATCH(saved_and_loaded),    IN_SCRATCH(any_broken_byte),
		cmocka_unit_test(foreign_bytes), /* last: inodes are used again */
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
