/* test_program.c - programs that burst runs: output, exit status, time limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/path.h"
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
	assert_true(program_exists("sh"));
	assert_false(program_exists("no-such-program-anywhere"));
}

static bool locked(const char *path)
{
	CLEANUP(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static void wait_until_free(const char *path)
{
	int64_t until = clock_boot_ms() + 5000;

	while (locked(path) && clock_boot_ms() < until)
		poll(NULL, 0, 5);
	assert_false(locked(path));
}

/* A grandchild holds a lock for as long as it lives. */
#define KEEPS_LOCK "flock -x lock sh -c 'echo on >held; sleep 60'"

static void all_that_it_started_ends_at_its_limit(void **state)
{
	static const char *const commands[] = {
		KEEPS_LOCK "; true",                 /* it waits for the grandchild */
		KEEPS_LOCK " & wait",                /* a job in the background */
		"trap '' TERM INT HUP; " KEEPS_LOCK, /* deaf to all that can be refused */
	};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		struct program *p = PROGRAM("sh", "-c", commands[i]);
		p->limit_ms = 500;
		unlink("held");
		assert_int_equal(program_run(p, NULL, NULL, &err), -1);
		assert_int_equal(err.kind, ERR_TRANSIENT);
		assert_int_equal(access("held", F_OK), 0);
		wait_until_free("lock");
	}
}

static void a_long_one_ends_with_us(void **state)
{
	(void)state;
	for (int asked = 0; asked < 2; asked++) {
		CLEANUP(str_free) struct str pid = STR_INIT;
		unlink("held");
		pid_t child = fork();
		if (child == 0) {
			struct program *p = PROGRAM("flock", "-x", "--no-fork", "lock", "sh", "-c",
						    "echo $$ >new; mv new held; exec sleep 60");
			p->is_long = asked;
			program_run(p, NULL, NULL, NULL);
			_exit(0);
		}
		while (access("held", F_OK) < 0)
			poll(NULL, 0, 5);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		if (!asked) { /* it lives on */
			assert_true(locked("lock"));
			assert_int_equal(path_read("held", 20, &pid, NULL), 0);
			kill((pid_t)atol(str_text(&pid)), SIGKILL);
		}
		wait_until_free("lock");
	}
}

/* It ends, and leaves one behind that writes without end. */
static void endless_output_of_what_is_left_is_not_waited_for(void **state)
{
	struct str out = STR_MAX(1000);
	struct err err = {0};
	int64_t began = clock_boot_ms();

	(void)state;
	assert_int_equal(program_run(PROGRAM("sh", "-c", "yes & exit 3"), &out, NULL, &err), 3);
	assert_true(clock_boot_ms() - began < 15000);
	str_free(&out);
}

static volatile sig_atomic_t told;

static void take_note(int number)
{
	told = number;
}

/* A signal to us ends a program that has a time limit: no other process limits its time. */
static void a_signal_to_us_ends_it(void **state)
{
	struct sigaction act = {.sa_handler = take_note}, before;
	struct program *p = PROGRAM("sh", "-c",
				    "trap 'echo bye >said; exit 0' TERM; kill -TERM $PPID; "
				    "while :; do sleep .01; done");
	struct err err = {0};
	struct str said = STR_INIT;

	(void)state;
	told = 0;
	sigaction(SIGTERM, &act, &before);
	assert_int_equal(program_run(p, NULL, NULL, &err), -1);
	sigaction(SIGTERM, &before, NULL);
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	assert_int_equal(err.signal, SIGTERM);
	assert_int_equal(told, SIGTERM); /* and it still takes its course */
	assert_int_equal(path_read("said", 100, &said, &err), 0);
	assert_string_equal(str_text(&said), "bye\n");
	/* one that is ignored ends nothing */
	signal(SIGHUP, SIG_IGN);
	assert_int_equal(
		program_run(PROGRAM("sh", "-c", "kill -HUP $PPID; exit 7"), NULL, NULL, &err), 7);
	signal(SIGHUP, SIG_DFL);
	str_free(&said);
}

/* Without a limit, signals are passed on to it, and its end is waited for. */
static void a_program_gets_the_signals_to_us(void **state)
{
	struct program *p = PROGRAM("sh", "-c",
				    "trap 'echo one >>said; n=1' TERM; kill -TERM $PPID; "
				    "until [ \"$n\" ]; do sleep .01; done; exit 9");
	struct err err = {0};
	struct str said = STR_INIT;

	(void)state;
	unlink("said");
	p->limit_ms = 0;
	p->forwards = true;
	assert_int_equal(program_run(p, NULL, NULL, &err), 9);
	assert_int_equal(path_read("said", 100, &said, &err), 0);
	assert_string_equal(str_text(&said), "one\n"); /* once */
	str_free(&said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_tell_what_they_say_and_how_they_end),
		cmocka_unit_test(programs_read_and_write_at_once),
		cmocka_unit_test(programs_that_cannot_be_run_or_do_not_end),
		cmocka_unit_test(all_that_it_started_ends_at_its_limit),
		cmocka_unit_test(a_long_one_ends_with_us),
		cmocka_unit_test(endless_output_of_what_is_left_is_not_waited_for),
		cmocka_unit_test(a_signal_to_us_ends_it),
		cmocka_unit_test(a_program_gets_the_signals_to_us),
	};

	return cmocka_run_group_tests_name("program", tests, enter_folder, leave_folder);
}
