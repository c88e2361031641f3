/* test_runs.c - the library under the commands, without a command: what begins a run, what refuses
 * to, and what each leaves behind. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "runs/runs.h"
#include "folder.h"
#include "small_job.h"

/* What a command adds to a run: how often it was asked, and what it says. */
struct command {
	int kept, reserved;
	enum err_kind refuses; /* ERR_NONE: it reserves what the run may cost */
};

static int keep(void *ctx, struct run *run, struct err *err)
{
	struct command *c = ctx;

	(void)err;
	assert_true(run->lock >= 0); /* nothing else writes into the folder */
	c->kept++;
	return 0;
}

static int reserve(void *ctx, struct run *run, struct err *err)
{
	struct command *c = ctx;

	c->reserved++;
	return c->refuses ? err_set(err, c->refuses, "no")
			  : store_put_run(run->runs->store, &run->row, err);
}

struct bed {
	struct runs rs;
	struct run run;
	struct command command;
	struct run_want want;
};

static void bed_open(struct bed *b, struct store *store, const char *output)
{
	*b = (struct bed){.rs = {.state_dir = folder, .store = store}};
	run_init(&b->run, &b->rs);
	b->run.setup.job_ops = &small_job;
	b->run.output_dir = path_join(folder, output);
	b->want = (struct run_want){.id = "",
				    .job = "quiz",
				    .config = "/there/burst.cfg",
				    .commit = "",
				    .keep = keep,
				    .reserve = reserve,
				    .ctx = &b->command};
}

static void bed_close(struct bed *b)
{
	engine_unblock_signals();
	run_free(&b->run);
}

static void test_begin(void **state)
{
	struct store *store = store_memory();
	struct run_row row;
	struct err err = {0};
	struct bed b;

	(void)state;
	bed_open(&b, store, "out");
	b.run.setup.conf.max_duration_ms = 5000;
	assert_int_equal(run_begin(&b.run, &b.want, &err), 0);
	assert_int_equal(b.command.kept + b.command.reserved, 2);
	assert_int_equal(store_run(store, b.run.row.id, &row, &err), 0);
	assert_int_equal(row.status, RUN_RUNNING);
	assert_string_equal(row.job, "quiz");
	assert_string_equal(row.type, "small");
	assert_string_equal(row.config, "/there/burst.cfg");
	assert_int_equal(row.total, 1);
	assert_int_equal(row.ends_by_ms, row.started_ms + 5000);
	assert_true(run_has_client(&b.rs, row.id));
	bed_close(&b);
	assert_false(run_is_alive(&b.rs, row.id));
	store_close(store);
}

/* A cap leaves no trace of the run; any other failure leaves the folder to `burst reap`. */
static void test_begin_is_refused(void **state)
{
	static const struct {
		const char *name;
		enum err_kind kind;
		bool folder;
	} cases[] = {{"a cap has nothing left", ERR_CAP, false},
		     {"the ledger cannot be written", ERR_LOCAL, true}};
	struct store *store = store_memory();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run_row row;
		struct err err = {0};
		struct bed b;
		bed_open(&b, store, "out");
		b.command.refuses = cases[i].kind;
		int status = run_begin(&b.run, &b.want, &err);
		if (status != -1 || err.kind != cases[i].kind ||
		    path_exists(b.run.dir) != cases[i].folder ||
		    store_run(store, b.run.row.id, &row, &err) == 0)
			fail_msg("%s: %d (%s), folder %d", cases[i].name, status, err.msg,
				 path_exists(b.run.dir));
		bed_close(&b);
	}
	store_close(store);
}

static void test_id_of_a_queue(void **state)
{
	struct store *store = store_memory();
	struct err err = {0};
	struct bed b;

	(void)state;
	for (int i = 0; i < 2; i++) { /* the second one finds that the run has started */
		bed_open(&b, store, "out");
		b.want.id = "k7x2fd";
		int status = run_begin(&b.run, &b.want, &err);
		assert_int_equal(status, i ? -1 : 0);
		assert_int_equal(err.kind, i ? ERR_BUG : ERR_NONE);
		assert_string_equal(b.run.row.id, i ? "" : "k7x2fd");
		bed_close(&b);
	}
	store_close(store);
}

static void test_paths_that_the_ledger_cannot_hold(void **state)
{
	struct store *store = store_memory();
	struct err err = {0};
	struct bed b;
	char long_path[sizeof(b.run.row.config) + 1];

	(void)state;
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	bed_open(&b, store, "out");
	b.want.config = long_path;
	assert_int_equal(run_begin(&b.run, &b.want, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_int_equal(b.command.kept + b.command.reserved, 0);
	bed_close(&b);
	store_close(store);
}

/* Two runs in one process are two clients. */
static void test_locks(void **state)
{
	struct store *store = store_memory();
	struct err err = {0};
	struct bed one, two;

	(void)state;
	bed_open(&one, store, "out");
	bed_open(&two, store, "out");
	assert_int_equal(run_lock_job(&one.run, "/there/burst.cfg", "quiz", &err), 0);
	assert_int_equal(run_lock_output(&one.run, &err), 0);
	assert_int_equal(run_lock_job(&two.run, "/there/burst.cfg", "other", &err), 0);
	fd_close(two.run.job_lock);
	two.run.job_lock = -1;
	assert_int_equal(run_lock_job(&two.run, "/there/burst.cfg", "quiz", &err), -1);
	assert_int_equal(err.kind, ERR_BUSY);
	assert_int_equal(run_lock_output(&two.run, &err), -1);
	assert_int_equal(err.kind, ERR_BUSY);
	assert_true(run_output_is_locked(one.run.output_dir));
	bed_close(&one);
	assert_false(run_output_is_locked(two.run.output_dir));
	bed_close(&two);
	store_close(store);
}

/* Of a client that was killed a moment ago, while a child of it had not executed its program. */
static void test_an_output_lock_that_a_child_keeps(void **state)
{
	struct store *store = store_memory();
	struct err err = {0};
	struct bed b;

	(void)state;
	bed_open(&b, store, "out");
	assert_int_equal(path_mkdirs(b.run.output_dir, 0700, &err), 0);
	int fd = open(b.run.output_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	pid_t child = fork();
	if (child == 0) {
		usleep(300000);
		_exit(0);
	}
	close(fd);
	assert_true(run_output_is_locked(b.run.output_dir));
	assert_int_equal(run_lock_output(&b.run, &err), 0);
	waitpid(child, NULL, 0);
	bed_close(&b);
	store_close(store);
}

/* A delivery writes into the folder that its render holds, and leaves it held. */
static void test_a_lent_lock(void **state)
{
	struct store *store = store_memory();
	struct err err = {0};
	struct bed one, two;

	(void)state;
	bed_open(&one, store, "out");
	bed_open(&two, store, "out");
	assert_int_equal(run_lock_output(&one.run, &err), 0);
	run_lend_output(&two.run, &one.run);
	bed_close(&two);
	assert_true(run_output_is_locked(one.run.output_dir));
	bed_close(&one);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begin),
		cmocka_unit_test(test_begin_is_refused),
		cmocka_unit_test(test_id_of_a_queue),
		cmocka_unit_test(test_paths_that_the_ledger_cannot_hold),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_an_output_lock_that_a_child_keeps),
		cmocka_unit_test(test_a_lent_lock),
	};

	return cmocka_run_group_tests_name("runs", tests, make_folder, drop_folder);
}
