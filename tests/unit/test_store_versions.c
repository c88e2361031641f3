/* test_store_versions.c - ledgers of older and newer versions. */
#include "store_bed.h"

/* Where SQLite's file format keeps these, big-endian. */
#define AT_USER_VERSION 60

static void a_newer_ledger_is_refused(void **state)
{
	struct bed *bed = *state;
	CLEANUP(str_free) struct str before = STR_INIT, after = STR_INIT;

	make_ledger(bed);
	poke(bed->path, AT_USER_VERSION, "\0\0\1\0", 4);
	assert_int_equal(path_read(bed->path, 1 << 20, &before, NULL), 0);
	check_refused(bed->path, "newer burst (version 256");
	assert_int_equal(path_read(bed->path, 1 << 20, &after, NULL), 0);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.s, after.s, before.len);
}

static void a_ledger_without_a_true_version_is_damaged(void **state)
{
	struct bed *bed = *state;

	make_ledger(bed);
	poke(bed->path, AT_USER_VERSION, "\x94\xff\0\2", 4);
	check_refused(bed->path, "is damaged: move it away");
}

/* Whether it is opened to write or to read; it stays as it is. */
static void an_older_ledger_is_refused(void **state)
{
	struct bed *bed = *state;
	CLEANUP(str_free) struct str before = STR_INIT, after = STR_INIT;
	struct store *s = NULL;
	struct err err = {0};

	make_ledger(bed);
	poke(bed->path, AT_USER_VERSION, "\0\0\0\2", 4);
	assert_int_equal(path_read(bed->path, 1 << 20, &before, NULL), 0);
	check_refused(bed->path, "was written by an older burst (version 2, this one reads ");
	check_refused(bed->path, "move it aside with its -wal, or set BURST_STATE_DIR; \"burst "
				 "reap\" then lists pods that are left");
	assert_int_equal(store_open_to_read(&s, bed->path, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_non_null(strstr(err.msg, "was written by an older burst (version 2"));
	assert_int_equal(path_read(bed->path, 1 << 20, &after, NULL), 0);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.s, after.s, before.len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLOSED(a_newer_ledger_is_refused),
		CLOSED(a_ledger_without_a_true_version_is_damaged),
		CLOSED(an_older_ledger_is_refused),
	};

	return cmocka_run_group_tests_name("store versions", tests, make_folder, drop_folder);
}
