/* test_tree.c - trees: listings, ids, links that leave. */
#include <stdatomic.h>

#include "tree_bed.h"

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

static void count_skipped(void *ctx, const char *path, enum tree_skip why)
{
	str_addf(ctx, "%s: %s\n", path, tree_skip_name(why));
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
	assert_int_equal(tree->skipped[TREE_SKIP_SPECIAL], 1);
	assert_int_equal(tree->skipped[TREE_SKIP_NAME], 2);
	assert_non_null(strstr(said_of.s, "x.o: ignored\n"));
	assert_non_null(strstr(said_of.s, "out: ignored\n"));
	assert_non_null(strstr(said_of.s, "pipe: a socket, pipe or device\n"));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(what_is_there),
		IN_SCRATCH(an_empty_folder),
		IN_SCRATCH(the_id),
		IN_SCRATCH(links_that_leave),
		IN_SCRATCH(what_stays_behind),
		IN_SCRATCH(no_folder_there),
		IN_SCRATCH(very_deep),
		IN_SCRATCH(only_what_changed_is_read),
		IN_SCRATCH(a_fresh_file_is_read_again),
		IN_SCRATCH(while_others_write),
		IN_SCRATCH(what_is_kept_back), /* last: inodes are used again */
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
