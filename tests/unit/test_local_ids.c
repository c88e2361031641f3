/* test_local_ids.c - the users of a pod that root starts: which ones, and whose its files become.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "providers/local/vendor.h"
#include "scratch.h"

static const struct {
	const char *name, *uid_map;
	uid_t first;
	unsigned count;
} maps[] = {
	{"a machine's own root", "         0          0 4294967295\n", 0x7fb50000, 65536},
	{"a container with the first 65536 users", "0 100000 65536\n", 32768, 32768},
	{"a container that an ordinary user started", "0 1000 1\n1 100000 65536\n", 32769, 32768},
	{"the larger part counts", "0 1000 5000\n100000 200000 131072\n", 165536, 65536},
	{"a range that holds ours", "0 0 1000\n2142000000 2142000000 1000000\n", 0x7fb50000, 65536},
	{"one user", "0 1000 1\n", 0, 0},
	{"users of accounts alone", "0 0 1000\n", 0, 0},
	{"too few", "0 1000 1\n2000 100000 1023\n", 0, 0},
	{"nothing", "", 0, 0},
	{"no numbers", "root users\n\n", 0, 0},
};

static void users_are_never_those_of_accounts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		struct pod_ids ids = {1, 1};
		bool found = ids_choose_from(maps[i].uid_map, &ids);
		if (found != (maps[i].count > 0) || ids.first != maps[i].first ||
		    ids.count != maps[i].count)
			fail_msg("%s: got %u from %lu, want %u from %lu", maps[i].name, ids.count,
				 (unsigned long)ids.first, maps[i].count,
				 (unsigned long)maps[i].first);
	}
}

/* ---- whose files ---- */

static char dir[FOLDER_MAX];

static char *below(const char *name)
{
	return path_join(dir, name);
}

static void put(const char *name, uid_t uid, gid_t gid)
{
	CLEANUP(free_text) char *path = below(name);
	CLEANUP(free_text) char *parent = path_dir(path);

	assert_int_equal(path_mkdirs(parent, 0755, NULL), 0);
	assert_int_equal(path_write(path, "x", 1, 0600, NULL), 0);
	assert_int_equal(chown(path, uid, gid), 0);
}

static void owned(const char *name, uid_t uid, gid_t gid)
{
	CLEANUP(free_text) char *path = below(name);
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	if (st.st_uid != uid || st.st_gid != gid)
		fail_msg("%s: owned by %u:%u, want %u:%u", name, st.st_uid, st.st_gid, uid, gid);
}

static void give_a_tree(void)
{
	const struct pod_ids ids = {0x7fb50000, 65536}, none = {0};
	CLEANUP(free_text)
	char *volume = below("v"), *link = below("v/link"), *inner = below("v/a/link"),
	     *gone = below("none");
	CLEANUP(free_text) char *outside = below("outside");
	struct err err = {0};

	put("outside/file", 5, 5);
	put("v/a/roots", 0, 0);
	put("v/a/somebodys", 1000, 100);
	put("v/a/theirs", ids.first + 7, ids.first);
	put("v/a/far", 900000, 900000);
	assert_int_equal(symlink(outside, link), 0);
	assert_int_equal(symlink("../../outside/file", inner), 0);
	assert_int_equal(ids_give_tree(&none, volume, &err), 0);
	owned("v", 0, 0);
	assert_int_equal(ids_give_tree(&ids, volume, &err), 0);
	owned("v", ids.first, ids.first);
	owned("v/a", ids.first, ids.first);
	owned("v/link", ids.first, ids.first);
	owned("v/a/roots", ids.first, ids.first);
	owned("v/a/somebodys", ids.first + 1000, ids.first + 100);
	owned("v/a/theirs", ids.first + 7, ids.first);
	owned("v/a/far", ids.first, ids.first);
	owned("outside", 0, 0);
	owned("outside/file", 5, 5);
	/* not looked at again until root has had it back */
	put("v/new", 0, 0);
	assert_int_equal(ids_give_tree(&ids, volume, &err), 0);
	owned("v/new", 0, 0);
	assert_int_equal(ids_take_back(volume, &err), 0);
	assert_int_equal(ids_give_tree(&ids, volume, &err), 0);
	owned("v/new", ids.first, ids.first);
	/* a volume is a folder, never what a link leads to */
	assert_int_equal(ids_give_tree(&ids, link, &err), -1);
	assert_int_equal(ids_give_tree(&ids, gone, &err), -1);
	owned("outside", 0, 0);
}

static void a_tree_is_given(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip(); /* which frees nothing: hence a function of its own */
	give_a_tree();
}

/* A folder of pods that cannot be read is no proof that there is no pod. */
static void pods_that_cannot_be_listed(void **state)
{
	CLEANUP(free_text) char *pods = path_join(dir, "pods");
	struct store store = {.dir = dir};
	struct err err = {0};
	char **ids = record_living(&store, &err);

	(void)state;
	assert_non_null(ids);
	assert_null(ids[0]);
	record_free_ids(ids);
	assert_int_equal(path_write(pods, "", 0, 0600, &err), 0);
	assert_null(record_living(&store, &err));
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_non_null(strstr(err.msg, pods));
}

static int make_dir(void **state)
{
	(void)state;
	new_folder_at(dir);
	return 0;
}

static int drop_dir(void **state)
{
	(void)state;
	return path_remove_tree(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_are_never_those_of_accounts),
		cmocka_unit_test_setup_teardown(a_tree_is_given, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(pods_that_cannot_be_listed, make_dir, drop_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
