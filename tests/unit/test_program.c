/* test_program.c - programs that burst runs: output, exit status, time limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/program.h"
#include "base/str.h"
#include "folder.h"

#define PROGRAM(...)                                                                               \
	(&(struct program){.argv = (const char *const[]){__VA_ARGS__, NULL}, .limit_ms = 20000})

static void programs_tell_what_they_say_and_how_they_end(void **state)
{
	struct str out = STR_INIT, said = STR_INIT;
	struct err err = {0};

	(void)state;
	assert_int_equal(program_run(PROGRAM("sh", "-c", "echo one; echo two >&2; exit 3"), &out,
				     &said, &err),
			 3);
	assert_string_equal(str_text(&out), "one\n");
	assert_string_equal(str_text(&said), "two\n");
	assert_int_equal(program_run(PROGRAM("sh", "-c", "kill -TERM $$"), NULL, NULL, &err),
			 128 + SIGTERM);
	assert_int_equal(program_must(PROGRAM("sh", "-c", "echo first >&2; echo last >&2; exit 1"),
				      NULL, NULL, &err),
			 -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_string_equal(err.msg, "sh failed with exit status 1: last");
	str_free(&out);
	str_free(&said);
}

/* More than a pipe holds both ways: neither side may wait for the other. */
static void programs_read_and_write_at_once(void **state)
{
	struct str in = STR_INIT, out = STR_INIT;
	struct err err = {0};

	(void)state;
	while (in.len < (1 << 20))
		str_add(&in, "a line of the input of a program\n");
	struct program *p = PROGRAM("cat");
	p->input = str_text(&in);
	assert_int_equal(program_run(p, &out, NULL, &err), 0);
	assert_int_equal(out.len, in.len);
	assert_string_equal(str_text(&out), str_text(&in));
	p = PROGRAM("true");
	p->input = str_text(&in); /* one that reads nothing of it */
	assert_int_equal(program_run(p, NULL, NULL, &err), 0);
	str_free(&in);
	str_free(&out);
}

static void programs_that_cannot_be_run_or_do_not_end(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(program_run(PROGRAM("no-such-program-anywhere"), NULL, NULL, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	struct program *p = PROGRAM("true");
	p->folder = "/no/such/folder";
	assert_int_equal(program_run(p, NULL, NULL, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	p = PROGRAM("sleep", "60");
	p->limit_ms = 100;
	assert_int_equal(program_run(p, NULL, NULL, &err), -1);
	assert_int_equal(err.kind, ERR_TRANSIENT);
	p = PROGRAM("sh", "-c", "exec >&- 2>&-; sleep 60");
	p->limit_ms = 100;
	assert_int_equal(program_run(p, NULL, NULL, &err), -1);
	/* what it leaves behind keeps its files open, and is not waited for */
	int64_t began = clock_boot_ms();
	assert_int_equal(program_run(PROGRAM("sh", "-c", "sleep 5 & exit 4"), NULL, NULL, &err), 4);
	assert_true(clock_boot_ms() - began < 4000);
	assert_true(program_found("sh"));
	assert_false(program_found("no-such-program-anywhere"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_tell_what_they_say_and_how_they_end),
		cmocka_unit_test(programs_read_and_write_at_once),
		cmocka_unit_test(programs_that_cannot_be_run_or_do_not_end),
	};

	return cmocka_run_group_tests_name("program", tests, make_folder, drop_folder);
}
