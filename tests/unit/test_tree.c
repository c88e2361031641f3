/* test_tree.c - trees: listings, ids, links that leave. */
#include "sync/tree.h"

#include "sync_help.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static struct tree *scan_with(const char *root, const struct tree_scan_options *opts)
{
	struct tree *tree = NULL;

	MUST(tree_scan(&tree, root, opts, err));
	return tree;
}

static struct tree *scan(const char *root)
{
	return scan_with(root, NULL);
}

/* "d dir|f dir/a|..." */
static char *listing(const struct tree *tree)
{
	struct str text = STR_INIT;

	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_entry *e = &tree->list[i];
		char kind = e->type == TREE_FOLDER ? 'd'
			    : e->type == TREE_LINK ? 'l'
			    : e->executable        ? 'x'
						   : 'f';
		str_addf(&text, "%s%c %s", i ? "|" : "", kind, e->path);
	}
	str_add(&text, "");
	return text.s ? str_detach(&text) : xstrdup("");
}

static void want_listing(const struct tree *tree, const char *want)
{
	CLEANUP(free_text) char *got = listing(tree);

	assert_string_equal(got, want);
}

static void set_mode(const char *dir, const char *name, mode_t mode)
{
	CLEANUP(free_text) char *path = path_join(dir, name);

	assert_int_equal(chmod(path, mode), 0);
}

static void make_link(const char *dir, const char *name, const char *target)
{
	CLEANUP(free_text) char *path = path_join(dir, name);

	assert_int_equal(symlink(target, path), 0);
}

static void what_is_there(void **state)
{
	put_text(*state, "b/x.py", "x = 1\n");
	put_text(*state, "a", "hello");
	put_text(*state, "b-1", "");
	put_text(*state, "run.sh", "");
	set_mode(*state, "run.sh", 0755);
	make_link(*state, "b/l", "../a");
	CLEANUP(tree_free) struct tree *tree = scan(*state);
	want_listing(tree, "f a|d b|f b-1|l b/l|f b/x.py|x run.sh");
	assert_int_equal(tree->bytes, 11);
	assert_int_equal(tree->read_files, 4);
	assert_int_equal(tree->read_bytes, 11);
	assert_string_equal(tree_find(tree, "a")->sha256,
			    "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
	assert_string_equal(tree_find(tree, "b/l")->target, "../a");
	assert_null(tree_find(tree, "b/none"));
}

static void an_empty_folder(void **state)
{
	CLEANUP(tree_free) struct tree *tree = scan(*state);
	CLEANUP(tree_free) struct tree *none = tree_new();

	want_listing(tree, "");
	assert_string_equal(tree->id, none->id);
}

static void the_id(void **state)
{
	put_text(*state, "a", "1");
	put_text(*state, "d/b", "2");
	CLEANUP(tree_free) struct tree *first = scan(*state);
	put_text(*state, "a", "1"); /* another time, the same bytes */
	CLEANUP(tree_free) struct tree *same = scan(*state);
	assert_string_equal(first->id, same->id);
	set_mode(*state, "a", 0755);
	CLEANUP(tree_free) struct tree *mode = scan(*state);
	assert_string_not_equal(first->id, mode->id);
	set_mode(*state, "a", 0640);
	put_text(*state, "d/b", "3");
	CLEANUP(tree_free) struct tree *content = scan(*state);
	assert_string_not_equal(first->id, content->id);
	put_text(*state, "d/b", "2");
	CLEANUP(tree_free) struct tree *back = scan(*state);
	assert_string_equal(first->id, back->id);
}

/* ---- what stays behind ---- */

static void count_skipped(void *ctx, const char *path, enum tree_skip why, int64_t bytes)
{
	str_addf(ctx, "%s: %s, %lld\n", path, tree_skip_name(why), (long long)bytes);
}

static const struct {
	const char *link, *target;
	bool travels;
} links[] = {
	{"l1", "a", true},
	{"l2", "./a", true},
	{"l3", ".", true},
	{"l4", "nowhere", true},
	{"l5", "..", false},
	{"l6", "../a", false},
	{"l7", "/etc/passwd", false},
	{"l8", "d/../..", false},
	{"d/l1", "..", true},
	{"d/l2", "../a", true},
	{"d/l3", "../../a", false},
	{"d/l4", "../e/../../a", false},
	{"d/l5", ".././a", true},
	{"d/l6", "..//..//a", false},
	{"d/e/l1", "../../a", true},
	{"d/e/l2", "../../../a", false},
	{"l9", "a\nb", false},
};

static void links_that_leave(void **state)
{
	put_text(*state, "a", "");
	put_text(*state, "d/e/x", "");
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		make_link(*state, links[i].link, links[i].target);
	CLEANUP(tree_free) struct tree *tree = scan(*state);
	int64_t left = 0;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		left += !links[i].travels;
		if ((tree_find(tree, links[i].link) != NULL) != links[i].travels)
			fail_msg("%s -> %s: got %d, want %d", links[i].link, links[i].target,
				 !links[i].travels, links[i].travels);
	}
	assert_int_equal(tree->skipped[TREE_SKIP_OUTSIDE] + tree->skipped[TREE_SKIP_NAME], left);
}

static void what_stays_behind(void **state)
{
	CLEANUP(str_free) struct str said_of = STR_INIT;
	static const char *const exclude[] = {"out", "d/renders", NULL};
	struct tree_scan_options opts = {
		.exclude = exclude, .skipped = count_skipped, .ctx = &said_of};
	CLEANUP(free_text) char *pipe = path_join(*state, "pipe");

	put_text(*state, ".gitignore", "*.o\n");
	put_text(*state, "d/.gitignore", "!keep.o\n");
	put_text(*state, "x.o", "12345");
	put_text(*state, "d/keep.o", "");
	put_text(*state, "d/renders/a.mp4", "123");
	put_text(*state, "out/a", "1");
	put_text(*state, "d/out/a", "1");
	put_text(*state, ".git/HEAD", "1");
	put_text(*state, "back\\slash", "12");
	put_text(*state, ".burst-delete", "12");
	assert_int_equal(mkfifo(pipe, 0600), 0);
	CLEANUP(tree_free) struct tree *tree = scan_with(*state, &opts);
	want_listing(tree, "f .gitignore|d d|f d/.gitignore|f d/keep.o|d d/out|f d/out/a");
	assert_int_equal(tree->skipped[TREE_SKIP_IGNORED], 4);
	assert_int_equal(tree->skipped_bytes[TREE_SKIP_IGNORED], 5);
	assert_int_equal(tree->skipped[TREE_SKIP_SPECIAL], 1);
	assert_int_equal(tree->skipped[TREE_SKIP_NAME], 2);
	assert_int_equal(tree->skipped_bytes[TREE_SKIP_NAME], 4);
	assert_non_null(strstr(said_of.s, "x.o: ignored, 5\n"));
	assert_non_null(strstr(said_of.s, "out: ignored, 0\n"));
	assert_non_null(strstr(said_of.s, "pipe: a socket, pipe or device, 0\n"));
}

/* By what it is, so that neither a hard link nor a rule that takes it back helps; below the kept
 * folder a scan goes on as ever. */
static void what_is_kept_back(void **state)
{
	CLEANUP(free_text) char *folder = path_join(*state, "conf");
	CLEANUP(free_text) char *key = path_join(*state, "key");
	CLEANUP(free_text) char *other = path_join(*state, "d/other");
	CLEANUP(free_text) char *absent = path_join(*state, "absent");

	put_text(*state, "conf/burst.cfg", "1");
	put_text(*state, "key", "12");
	put_text(*state, "d/x", "");
	put_text(*state, ".gitignore", "!key\n!conf\n");
	make_link(*state, "to-key", "key");
	assert_int_equal(link(key, other), 0);
	tree_keep_back(folder);
	tree_keep_back(key);
	tree_keep_back(key);
	tree_keep_back(absent);
	CLEANUP(tree_free) struct tree *tree = scan(*state);
	want_listing(tree, "f .gitignore|d d|f d/x|l to-key");
	assert_int_equal(tree->skipped[TREE_SKIP_KEPT], 3);
	assert_int_equal(tree->skipped_bytes[TREE_SKIP_KEPT], 4);
	CLEANUP(tree_free) struct tree *below = scan(folder);
	want_listing(below, "f burst.cfg");
}

static void no_folder_there(void **state)
{
	CLEANUP(free_text) char *none = path_join(*state, "none");
	CLEANUP(free_text) char *file = path_join(*state, "file");
	struct tree *tree = NULL;

	put_text(*state, "file", "");
	MUST_FAIL(tree_scan(&tree, none, NULL, err), ERR_CONFIG);
	MUST_FAIL(tree_scan(&tree, file, NULL, err), ERR_CONFIG);
}

static void can_be_stopped(void **state)
{
	atomic_bool stop = true;
	struct tree_scan_options opts = {.stop = &stop};
	struct tree *tree = NULL;

	put_text(*state, "a", "");
	MUST_FAIL(tree_scan(&tree, *state, &opts, err), ERR_INTERRUPTED);
}

static void very_deep(void **state)
{
	CLEANUP(str_free) struct str deep = STR_INIT;

	for (int i = 0; i < 400; i++)
		str_add(&deep, "d/");
	str_add(&deep, "f");
	put_text(*state, deep.s, "1");
	CLEANUP(tree_free) struct tree *tree = scan(*state);
	assert_int_equal(tree->count, 401);
}

/* ---- scanning again ---- */

static void only_what_changed_is_read(void **state)
{
	put_text(*state, "a", "one");
	put_text(*state, "b", "two");
	put_text(*state, "c", "3");
	CLEANUP(tree_free) struct tree *first = scan(*state);
	first->scanned_ns +=
		INT64_C(10000000000); /* as if the files were old when they were scanned */

	struct tree_scan_options opts = {.known = first};
	CLEANUP(tree_free) struct tree *second = scan_with(*state, &opts);
	assert_int_equal(second->read_files, 0);
	assert_string_equal(second->id, first->id);

	/* the same size and the same time: the inode's own time gives it away */
	struct timespec times[2] = {{0}};
	CLEANUP(free_text) char *b = path_join(*state, "b");
	times[0].tv_sec = times[1].tv_sec = tree_find(first, "b")->mtime_ns / 1000000000;
	times[0].tv_nsec = times[1].tv_nsec = tree_find(first, "b")->mtime_ns % 1000000000;
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* past the file system's tick */
	put_text(*state, "b", "owt");
	assert_int_equal(utimensat(AT_FDCWD, b, times, 0), 0);
	put_text(*state, "new", "n");
	CLEANUP(tree_free) struct tree *third = scan_with(*state, &opts);
	assert_int_equal(third->read_files, 2);
	assert_string_not_equal(third->id, first->id);
}

static void a_fresh_file_is_read_again(void **state)
{
	put_text(*state, "a", "one");
	CLEANUP(tree_free) struct tree *first = scan(*state);
	first->scanned_ns =
		tree_find(first, "a")->mtime_ns; /* written to in the very moment of the scan */
	struct tree_scan_options opts = {.known = first};
	CLEANUP(tree_free) struct tree *second = scan_with(*state, &opts);
	assert_int_equal(second->read_files, 1);
}

struct churn {
	const char *dir;
	atomic_bool stop;
};

static void *churn(void *ctx)
{
	struct churn *c = ctx;

	for (unsigned i = 0; !atomic_load(&c->stop); i++) {
		CLEANUP(free_text) char *name = xasprintf("t/%u", i % 50);
		CLEANUP(free_text) char *path = path_join(c->dir, name);
		FILE *f = fopen(path, "we");
		if (f) {
			fprintf(f, "%u", i);
			fclose(f);
		}
		if (i % 3 == 0)
			unlink(path);
	}
	return NULL;
}

/* Files come and go while the tree is scanned: a result, or an error that names a file; never a
 * hang or a crash. */
static void while_others_write(void **state)
{
	struct churn c = {.dir = *state};
	pthread_t thread;

	put_text(*state, "t/0", "");
	assert_int_equal(pthread_create(&thread, NULL, churn, &c), 0);
	for (int i = 0; i < 200; i++) {
		struct tree *tree = NULL;
		struct err err = {0};
		if (tree_scan(&tree, *state, NULL, &err) < 0 && err.kind != ERR_LOCAL)
			fail_msg("%s", err.msg);
		tree_free(tree);
	}
	atomic_store(&c.stop, true);
	pthread_join(thread, NULL);
}

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

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(what_is_there),
		IN_SCRATCH(an_empty_folder),
		IN_SCRATCH(the_id),
		IN_SCRATCH(links_that_leave),
		IN_SCRATCH(what_stays_behind),
		IN_SCRATCH(no_folder_there),
		IN_SCRATCH(can_be_stopped),
		IN_SCRATCH(very_deep),
		IN_SCRATCH(only_what_changed_is_read),
		IN_SCRATCH(a_fresh_file_is_read_again),
		IN_SCRATCH(while_others_write),
		IN_SCRATCH(added_files),
		IN_SCRATCH(differences),
		IN_SCRATCH(saved_and_loaded),
		IN_SCRATCH(any_broken_byte),
		cmocka_unit_test(foreign_bytes),
		IN_SCRATCH(what_is_kept_back), /* last: inodes are used again */
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
