/* test_stage_folder.c - what the pods of a stage are given of the output folder: plain files, and
 * nothing that a link leads to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "runs/stage_folder.h"
#include "folder.h"

static int make_root(void **state)
{
	if (enter_folder(state) < 0)
		return -1;
	write_text("secret/key", "a private key");
	write_text("out/manifest.jsonl", "");
	write_text("out/fine/deep/x.txt", "fine");
	return symlink("../secret", "out/folder") < 0 || symlink("../secret/key", "out/file") < 0 ||
			       mkfifo("out/pipe", 0600) < 0
		       ? -1
		       : 0;
}

static int make_with(const char *name, struct err *err)
{
	struct stage_input output = {.name = (char *)name};
	struct stage_folder f = {
		.dir = "made", .output_dir = "out", .inputs = &output, .count = 1, .tree = ""};

	return stage_folder_make(&f, err);
}

static void test_plain_files(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct err err = {0};

	(void)state;
	if (make_with("fine/deep/x.txt", &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(path_read("made/.burst-stage/missing/fine/deep/x.txt", 100, &text, &err),
			 0);
	assert_string_equal(str_text(&text), "fine");
}

static void test_nothing_else(void **state)
{
	static const char *const names[] = {"folder/key", "file",   "pipe",
					    "fine",       "absent", "absent/x"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct err err = {0};
		CLEANUP(free_text) char *copy = xasprintf("made/.burst-stage/missing/%s", names[i]);
		if (make_with(names[i], &err) == 0 || path_exists(copy))
			fail_msg("%s was taken", names[i]);
		if (!strstr(err.msg, names[i]))
			fail_msg("%s: %s", names[i], err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_files),
		cmocka_unit_test(test_nothing_else),
	};

	return cmocka_run_group_tests_name("stage_folder", tests, make_root, leave_folder);
}
