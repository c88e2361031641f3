/* test_receive.c - outputs as they arrive: whole files, interrupted ones, files that rest, a full
 * disk. */
#include "sync/receive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/file.h>
#ifdef __linux__
#include <sys/mount.h>
#endif

#include "base/crypto.h"
#include "base/guard.h"
#include "receive_bed.h"
#include "sync_help.h"

static void a_file_comes_home(void **state)
{
	struct receive *r = begin_output(*state, "sub/folder/a.wav", receive_text, TEXT_LEN);

	assert_int_equal(receive_offset(r), 0);
	MUST(receive_add(r, receive_text, 10, err));
	MUST(receive_add(r, "", 0, err));
	MUST(receive_add(r, receive_text + 10, TEXT_LEN - 10, err));
	assert_false(have(*state, "sub/folder/a.wav"));
	MUST_FAIL(receive_keep_all(&r, 1, err), ERR_BUG);
	MUST(receive_finish(r, err));
	assert_false(have(*state, "sub/folder/a.wav"));
	assert_true(path_exists(receive_part_path(r)));
	MUST(receive_keep_all(&r, 1, err));
	assert_true(have(*state, "sub/folder/a.wav"));
	receive_drop(r, true);
	want_file(*state, "sub/folder/a.wav", receive_text, TEXT_LEN);
	assert_false(have(*state, "sub/folder/a.wav.part"));
}

/* The longest name there is leaves no room for what a part is called otherwise. */
static void the_longest_name(void **state)
{
	char name[4 + NAME_MAX + 1] = "sub/";

	memset(name + 4, 'x', NAME_MAX);
	name[4 + NAME_MAX] = '\0';
	for (int end = 4 + NAME_MAX; end > 4 + NAME_MAX - 8; end--) {
		name[end] = '\0';
		struct receive *r = begin_output(*state, name, receive_text, TEXT_LEN);
		MUST(receive_add(r, receive_text, 10, err));
		receive_drop(r, true); /* it is gone on with */
		r = begin_output(*state, name, receive_text, TEXT_LEN);
		assert_int_equal(receive_offset(r), 10);
		MUST(receive_add(r, receive_text + 10, TEXT_LEN - 10, err));
		MUST(receive_finish(r, err));
		assert_true(path_exists(receive_part_path(r)));
		MUST(receive_keep_all(&r, 1, err));
		receive_drop(r, true);
		want_file(*state, name, receive_text, TEXT_LEN);
	}
}

static void an_empty_file(void **state)
{
	struct receive *r = begin_output(*state, "empty", "", 0);

	MUST(receive_finish(r, err));
	MUST(receive_keep_all(&r, 1, err));
	receive_drop(r, false);
	want_file(*state, "empty", "", 0);
}

static struct receive *one_that_rests(char *dir, const char *name)
{
	struct receive *r = begin_output(dir, name, receive_text, TEXT_LEN);

	MUST(receive_add(r, receive_text, TEXT_LEN, err));
	receive_close_until_kept(r); /* not verified: nothing happens */
	MUST(receive_finish(r, err));
	receive_close_until_kept(r);
	return r;
}

/* Thousands of outputs of one command wait for its end: they have no descriptors meanwhile. */
static void those_that_rest_have_no_descriptors(void **state)
{
	struct receive *all[50];
	char name[32];
	int open = files_open();

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		snprintf(name, sizeof(name), "sub/%zu", i);
		all[i] = one_that_rests(*state, name);
	}
	assert_int_equal(files_open(), open);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		snprintf(name, sizeof(name), "sub/%zu", i);
		if (i % 2)
			MUST(receive_keep_all(&all[i], 1, err));
	}
	assert_int_equal(files_open(), open);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		snprintf(name, sizeof(name), "sub/%zu", i);
		receive_drop(all[i], false);
		assert_int_equal(have(*state, name), i % 2);
	}
	assert_false(have(*state, "sub/0.part"));
	assert_int_equal(files_open(), open);
}

/* Many at once, of folders that take turns: none is left out, and no descriptor stays open. */
static void many_are_kept_at_once(void **state)
{
	static const char *const names[] = {"a/1", "a/2", "b/1", "3", "a/3", "b/c/1", "b/2"};
	struct receive *all[ARRAY_LEN(names)];
	int open = files_open();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		all[i] = one_that_rests(*state, names[i]);
	MUST(receive_keep_all(all, ARRAY_LEN(all), err));
	assert_int_equal(files_open(), open);
	MUST(receive_keep_all(all, ARRAY_LEN(all), err)); /* a second time */
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		receive_drop(all[i], false);
		want_file(*state, names[i], receive_text, TEXT_LEN);
	}

	/* one that cannot be kept: those after it are not */
	for (size_t i = 0; i < 3; i++)
		all[i] = one_that_rests(*state, i == 0 ? "x/0" : i == 1 ? "x/1" : "x/2");
	CLEANUP(free_text) char *part = path_join(*state, "x/1.part");
	MUST(path_remove_tree(part, err));
	MUST_FAIL(receive_keep_all(all, 3, err), ERR_LOCAL);
	for (size_t i = 0; i < 3; i++)
		receive_drop(all[i], false);
	assert_true(have(*state, "x/0"));
	assert_false(have(*state, "x/2"));
	assert_int_equal(files_open(), open);
}

/* What was verified is what is kept: nobody puts another file in its place while it rests, nor a
 * link in the place of its folder. */
static void one_that_rests_is_not_exchanged(void **state)
{
	struct receive *r = one_that_rests(*state, "sub/a");

	CLEANUP(free_text) char *part = path_join(*state, "sub/a.part");
	MUST(path_remove_tree(part, err));
	put_text(*state, "sub/a.part", "another");
	MUST_FAIL(receive_keep_all(&r, 1, err), ERR_LOCAL);
	MUST_FAIL(receive_keep_all(&r, 1, err), ERR_BUG);
	receive_drop(r, false);
	want_file(*state, "sub/a.part", "another", 7); /* it is not ours to remove */
	assert_false(have(*state, "sub/a"));

	r = one_that_rests(*state, "sub/b");
	CLEANUP(free_text) char *folder = path_join(*state, "sub");
	CLEANUP(free_text) char *moved = path_join(*state, "moved");
	assert_int_equal(rename(folder, moved), 0);
	assert_int_equal(symlink("moved", folder), 0);
	MUST_FAIL(receive_keep_all(&r, 1, err), ERR_JOB);
	receive_drop(r, false);
}

static void an_old_file_is_replaced(void **state)
{
	put_text(*state, "a", "old");
	struct receive *r = begin_output(*state, "a", receive_text, TEXT_LEN);
	MUST(receive_add(r, receive_text, TEXT_LEN, err));
	MUST(receive_finish(r, err));
	want_file(*state, "a", "old", 3);
	MUST(receive_keep_all(&r, 1, err));
	receive_drop(r, false);
	want_file(*state, "a", receive_text, TEXT_LEN);
}

/* ---- going on ---- */

static void goes_on_at_every_byte(void **state)
{
	for (size_t cut = 0; cut <= TEXT_LEN; cut++) {
		struct receive *r = begin_output(*state, "a", receive_text, TEXT_LEN);
		MUST(receive_add(r, receive_text, cut, err));
		receive_drop(r, true);
		assert_int_equal(have(*state, "a.part"), cut > 0);
		r = begin_output(*state, "a", receive_text, TEXT_LEN);
		assert_int_equal(receive_offset(r), cut);
		MUST(receive_add(r, receive_text + cut, TEXT_LEN - cut, err));
		MUST(receive_finish(r, err));
		MUST(receive_keep_all(&r, 1, err));
		receive_drop(r, true);
		want_file(*state, "a", receive_text, TEXT_LEN);
	}
}

static void a_part_of_something_else(void **state)
{
	put_text(*state, "a.part", "Something else");
	struct receive *r = begin_output(*state, "a", receive_text, TEXT_LEN);
	int64_t at = receive_offset(r);
	assert_int_equal(at, 14);
	MUST(receive_add(r, receive_text + at, TEXT_LEN - (size_t)at, err));
	MUST_FAIL(receive_finish(r, err), ERR_TRANSIENT);
	receive_drop(r, true);
	r = begin_output(*state, "a", receive_text, TEXT_LEN);
	assert_int_equal(receive_offset(r), 0);
	receive_drop(r, false);

	put(*state, "b.part", receive_text, TEXT_LEN); /* longer than the whole: begun anew */
	r = begin_output(*state, "b", receive_text, TEXT_LEN - 1);
	assert_int_equal(receive_offset(r), 0);
	receive_drop(r, false);
}

static void one_at_a_time(void **state)
{
	struct receive *r = begin_output(*state, "a", receive_text, TEXT_LEN), *second = NULL;

	MUST_FAIL(
		receive_open(&second, *state, "a", TEXT_LEN, hash_of(receive_text, TEXT_LEN), err),
		ERR_BUSY);
	MUST(receive_add(r, receive_text, 10, err));
	MUST_FAIL(
		receive_open(&second, *state, "a", TEXT_LEN, hash_of(receive_text, TEXT_LEN), err),
		ERR_BUSY);
	MUST(receive_add(r, receive_text + 10, TEXT_LEN - 10, err));
	MUST(receive_finish(r, err));
	MUST(receive_keep_all(&r, 1, err));
	receive_drop(r, false);
	want_file(*state, "a", receive_text, TEXT_LEN);
}

/* ---- a full disk ---- */

/* A file system of 256 KiB in the scratch folder; false: that is not possible here. */
static bool mount_small(const char *scratch)
{
#ifdef __linux__
	CLEANUP(free_text) char *dir = path_join(scratch, "small");

	return mkdir(dir, 0700) == 0 && mount("none", dir, "tmpfs", 0, "size=256k") == 0;
#else
	(void)scratch;
	return false;
#endif
}

static int unmount_small(void **state)
{
#ifdef __linux__
	CLEANUP(free_text) char *dir = path_join(*state, "small");

	(void)umount(dir); /* not mounted where the test was skipped */
#endif
	return scratch_remove(state);
}

static void a_full_disk(void **state)
{
	if (!mount_small(*state)) {
		print_message("skipped: only root on Linux can make a small disk\n");
		skip(); /* before anything is allocated: it does not come back */
	}
	CLEANUP(free_text) char *dir = path_join(*state, "small");
	CLEANUP(free_text) char *bytes = big_bytes(1 << 20);
	struct err err = {0};
	int result = 0;

	struct receive *r = begin_output(dir, "big", bytes, 1 << 20);
	for (int64_t at = 0; at < 1 << 20 && result == 0; at += 65536)
		result = receive_add(r, bytes + at, 65536, &err);
	int64_t reached = receive_offset(r);
	receive_drop(r, true);
	assert_int_equal(result, -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_non_null(strstr(err.msg, "big.part"));
	assert_non_null(strstr(err.msg, strerror(ENOSPC)));
	assert_true(reached > 0 && have(dir, "big.part"));
	r = begin_output(dir, "big", bytes, 1 << 20);
	assert_int_equal(receive_offset(r), reached);
	receive_drop(r, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(a_file_comes_home),
		IN_SCRATCH(the_longest_name),
		IN_SCRATCH(an_empty_file),
		IN_SCRATCH(an_old_file_is_replaced),
		IN_SCRATCH(goes_on_at_every_byte),
		IN_SCRATCH(a_part_of_something_else),
		IN_SCRATCH(one_at_a_time),
		IN_SCRATCH(those_that_rest_have_no_descriptors),
		IN_SCRATCH(many_are_kept_at_once),
		IN_SCRATCH(one_that_rests_is_not_exchanged),
		cmocka_unit_test_setup_teardown(a_full_disk, scratch_make, unmount_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
