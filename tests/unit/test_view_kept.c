/* test_view_kept.c - the copy of the view that others read; phases of rows. */
#include "view_bed.h"

/* ---- the copy that others read ---- */

static void test_copy(void **state)
{
	char *dir = new_folder();
	CLEANUP(free_text) char *path = path_join(dir, "view");
	struct view got = {0};

	(void)state;
	for (seed = 1; seed < 50; seed++) {
		struct view v = random_view();
		v.watched = false;
		view_put(&v, path);
		assert_true(view_get(&got, path));
		CLEANUP(free_text) char *was = drawn(&v, 150, 50), *is = drawn(&got, 150, 50);
		assert_string_equal(is, was);
		view_free(&v);
	}
	assert_int_equal(path_write(path, "{\"job\":\"qu", 10, 0600, NULL), 0);
	assert_false(view_get(&got, path));
	assert_string_not_equal(got.run, ""); /* as it was */
	assert_int_equal(path_write(path,
				    "{\"pods\":[1,{\"phase\":99,\"cost\":-1}],\"total\":\"x\"}", 47,
				    0600, NULL),
			 0);
	assert_true(view_get(&got, path));
	assert_int_equal(got.pods[1].phase, POD_NEVER);
	assert_int_equal(got.pods[1].cost_microusd, 0);
	unlink(path);
	assert_false(view_get(&got, path));
	view_free(&got);
	assert_int_equal(remove_folder(dir), 0);
}

/* ---- phases of rows, images ---- */

static void test_phase_of_row(void **state)
{
	static const struct {
		const char *name;
		struct pod_row row;
		enum pod_phase phase;
	} cases[] = {
		{"its create is under way", {.state = POD_ROW_INTENT}, POD_RENTING},
		{"no answer to its create", {.state = POD_ROW_AMBIGUOUS}, POD_AMBIGUOUS},
		{"rented", {.state = POD_ROW_LIVE, .id = "p", .rented_ms = 1}, POD_BOOTING},
		{"its sshd listens",
		 {.state = POD_ROW_LIVE, .id = "p", .running_ms = 1, .reached_ms = 2},
		 POD_CONNECTING},
		{"connected",
		 {.state = POD_ROW_LIVE, .id = "p", .reached_ms = 1, .connected_ms = 2},
		 POD_PREPARING},
		{"synced",
		 {.state = POD_ROW_LIVE, .id = "p", .connected_ms = 2, .synced_ms = 3},
		 POD_LOADING},
		{"ready",
		 {.state = POD_ROW_LIVE, .id = "p", .synced_ms = 3, .ready_ms = 4},
		 POD_WORKING},
		{"its release is under way",
		 {.state = POD_ROW_RELEASING, .id = "p", .ready_ms = 4, .release_ms = 5},
		 POD_RELEASING},
		{"released",
		 {.state = POD_ROW_RELEASING, .id = "p", .release_ms = 5, .released_ms = 6},
		 POD_CONFIRMING},
		{"gone", {.state = POD_ROW_GONE, .id = "p", .released_ms = 6}, POD_GONE},
		{"it never was", {.state = POD_ROW_FAILED}, POD_NEVER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (phase_of_row(&cases[i].row) != cases[i].phase)
			fail_msg("%s: %s, not %s", cases[i].name,
				 pod_phase_name(phase_of_row(&cases[i].row)),
				 pod_phase_name(cases[i].phase));
}

static void test_pull_percent(void **state)
{
	static const struct {
		const char *name, *log;
		int percent;
	} cases[] = {
		{"nothing", "", -1},
		{"it begins", "pulling image a/b:1\n", -1},
		{"a percentage", "pulling image a/b:1\npulling: 12%\npulling: 41.7 %\n", 41},
		{"layers",
		 "3f4a: Downloading [==>  ]  10MB/40MB\n77aa: Downloading [>   ]  0.5MB/60MB\n", 7},
		{"a layer is there",
		 "3f4a: Downloading [==>  ]  10MB/40MB\n3f4a: Download complete\n3f4a: Pull "
		 "complete\n"
		 "77aa: Downloading [>   ]  0MB/60MB\n77aa: Extracting [>  ] 30MB/60MB\n",
		 91},
		{"units", "3f4a: Downloading 500kB/1GB\n77aa: Downloading [>   ] 499.5MB/1GB\n",
		 17},
		{"it is there", "pulling: 41%\nimage a/b:1 pulled\n", -1},
		{"its container runs", "pulling: 41%\ncreate container\ncontainer: 99%\n", -1},
		{"again from the start", "pulling: 41%\nimage a/b:1 pulled\npulling: 3%\n", 3},
		{"no percentage", "pulling: 4100%\npulling: x%\n%\n", -1},
		{"more than all", "3f4a: Downloading 50MB/40MB\n", -1},
		{"numbers without end", "3f4a: Downloading 1e999MB/9999999999999999999999999MB\n",
		 -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (pull_percent(cases[i].log) != cases[i].percent)
			fail_msg("%s: %d, not %d", cases[i].name, pull_percent(cases[i].log),
				 cases[i].percent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_phase_of_row),
		cmocka_unit_test(test_pull_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
