/* test_caps.c - many processes begin runs against one ledger at once: together they take no more
 * than the day has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmd/launch/launch.h"
#include "runs/runs.h"
#include "base/clock.h"
#include "base/path.h"
#include "folder.h"

#define DOLLAR INT64_C(1000000)

static int make_top(void **state)
{
	struct err err = {0};

	setenv("TZ", "UTC", 1);
	if (enter_folder(state) < 0)
		return -1;
	setenv("HOME", folder, 1);
	setenv("XDG_CONFIG_HOME", folder, 1);
	return path_mkdirs("burst", 0700, &err) < 0 || path_mkdirs("a", 0700, &err) < 0 ||
			       path_mkdirs("b", 0700, &err) < 0
		       ? -1
		       : 0;
}

/* A client that is about to rent: its config is read, its run has an id. */
struct client {
	struct cmd_context ctx;
	struct launch l;
};

static void client_open(struct client *c, const char *config, const char *run)
{
	CLEANUP(free_text) char *path = path_join(folder, config);
	CLEANUP(free_text) char *ledger = path_join(folder, "ledger.db");
	struct config_source ask = {.file = path,
				    .need_job = true,
				    .providers = provider_registry,
				    .jobs = job_registry};
	struct err err = {0};

	*c = (struct client){.ctx = {.quiet = true, .state_dir = folder}};
	if (store_open(&c->ctx.store, ledger, &err) < 0 ||
	    config_open(&c->ctx.config, &ask, &err) < 0)
		fail_msg("%s", err.msg);
	cmd_open_runs(&c->ctx);
	launch_init(&c->l, &c->ctx);
	COPY_TEXT(c->l.run.row.id, run);
	c->l.run.row.status = RUN_RUNNING;
	COPY_TEXT(c->l.run.row.config, path);
	c->l.run.row.started_ms = clock_wall_ms();
	if (run_lock_folder(&c->l.run, RUN_CLIENT, &err) < 0)
		fail_msg("%s", err.msg);
}

static void client_close(struct client *c)
{
	launch_free(&c->l);
	config_free(c->ctx.config);
	store_close(c->ctx.store);
}

static void write_configs(const char *own, const char *a, const char *b)
{
	static const char rest[] =
		"provider = \"local\"; job = { type = \"command\"; run = \"true\"; };";
	CLEANUP(free_text) char *text_a = xasprintf("%s\n%s\n", a, rest);
	CLEANUP(free_text) char *text_b = xasprintf("%s\n%s\n", b, rest);

	write_text("burst/burst.cfg", own);
	write_text("a/burst.cfg", text_a);
	write_text("b/burst.cfg", text_b);
	unlink("ledger.db");
	unlink("ledger.db-wal");
	unlink("ledger.db-shm");
}

static int begin(struct client *c, struct err *err)
{
	struct run_caps own = {.config = c->l.order.config,
			       .max_cost_microusd = c->l.order.max_cost_microusd};

	if (caps_plan(&own.over, &c->l, false, err) < 0)
		return -1;
	return run_caps_begin(&c->l.run, &own, err);
}

/* In a process of its own: begins, says how, and holds its run until it is told to end. */
static void be_client(const char *config, int number, int says, int waits)
{
	struct client c;
	struct err err = {0};
	char id[24], word;

	snprintf(id, sizeof(id), "run-%d", number);
	client_open(&c, config, id);
	int64_t began = clock_boot_ms();
	int status = begin(&c, &err);
	int64_t said[3] = {status == 0 ? 0 : (int64_t)err.kind, c.l.run.row.max_cost_microusd,
			   clock_boot_ms() - began};
	if (status < 0 && err.kind != ERR_CAP)
		fprintf(stderr, "%s\n", err.msg);
	(void)!write(says, said, sizeof(said));
	(void)!read(waits, &word, 1);
	client_close(&c);
	_exit(0);
}

/* How many of so many at once began; *given: what all of them may cost. */
static int begin_at_once(int count, int64_t *given, int64_t *slowest_ms)
{
	static int number; /* no two runs have one id */
	int says[2], waits[2], began = 0;

	*given = *slowest_ms = 0;
	assert_int_equal(pipe(says) | pipe(waits), 0);
	for (int i = 0; i < count; i++, number++)
		if (fork() == 0) {
			close(waits[1]);
			be_client(i % 2 ? "a/burst.cfg" : "b/burst.cfg", number, says[1], waits[0]);
		}
	for (int i = 0; i < count; i++) {
		int64_t said[3];
		assert_int_equal(read(says[0], said, sizeof(said)), sizeof(said));
		/* no "busy", however many there are */
		assert_true(said[0] == 0 || said[0] == ERR_CAP);
		began += said[0] == 0;
		*given += said[0] == 0 ? said[1] : 0;
		*slowest_ms = MAX(*slowest_ms, said[2]);
	}
	close(waits[1]); /* they end */
	while (wait(NULL) > 0)
		;
	close(waits[0]);
	close(says[0]);
	close(says[1]);
	return began;
}

static void twenty_at_once_share_a_day(void **state)
{
	int64_t given, slowest_ms;

	(void)state;
	write_configs("caps = { per_day = 5.00; };", "caps = { max_cost = 1.50; };",
		      "caps = { max_cost = 1.50; };");
	/* three whole ones, and the rest of the day */
	assert_int_equal(begin_at_once(20, &given, &slowest_ms), 4);
	assert_int_equal(given, 5 * DOLLAR);
	print_message("the slowest of 20 waited %lld ms for the ledger\n", (long long)slowest_ms);
	/* their clients have ended without having rented anything: nothing of it is taken */
	assert_int_equal(begin_at_once(20, &given, &slowest_ms), 4);
	assert_int_equal(given, 5 * DOLLAR);
}

static void a_projects_file_lowers_and_never_raises(void **state)
{
	int64_t given, slowest_ms;

	(void)state;
	write_configs("caps = { per_day = 5.00; };", "caps = { max_cost = 2.00; per_day = 1.00; };",
		      "caps = { max_cost = 2.00; per_day = 100.00; };");
	begin_at_once(20, &given, &slowest_ms);
	assert_int_equal(given, 5 * DOLLAR);
	struct client c;
	struct caps caps;
	struct err err = {0};
	client_open(&c, "a/burst.cfg", "x");
	assert_int_equal(caps_plan(&caps, &c.l, false, &err), 0);
	assert_int_equal(caps.count, 2);
	assert_int_equal(caps.list[0].cap_microusd, 5 * DOLLAR);
	assert_false(caps.list[0].project);
	assert_int_equal(caps.list[1].cap_microusd, DOLLAR);
	assert_true(caps.list[1].project);
	assert_int_equal(begin(&c, &err), 0);
	assert_int_equal(c.l.run.row.max_cost_microusd, DOLLAR);
	/* the other project has its own dollars, within those of all */
	struct client other;
	client_open(&other, "b/burst.cfg", "y");
	assert_int_equal(caps_plan(&caps, &other.l, false, &err), 0);
	assert_int_equal(caps.list[0].reserved_microusd, DOLLAR);
	assert_int_equal(caps.list[1].reserved_microusd, 0);
	assert_int_equal(begin(&other, &err), 0);
	assert_int_equal(other.l.run.row.max_cost_microusd, 2 * DOLLAR);
	client_close(&other);
	client_close(&c);
}

static void pods_count_where_they_were_paid(void **state)
{
	struct client c;
	struct caps caps;
	struct err err = {0};
	int64_t now = clock_wall_ms();
	struct run_row run = {
		.id = "old", .type = "command", .status = RUN_DONE, .started_ms = now - 1000};
	struct pod_row pod = {.attempt = "0123456789abcdef",
			      .run = "old",
			      .state = POD_ROW_GONE,
			      .create_ms = now - 1000,
			      .released_ms = now,
			      .gone_ms = now,
			      .billed_ms = 1000,
			      .cost_microusd = 400000};

	(void)state;
	write_configs("caps = { per_day = 5.00; per_month = 9.00; };",
		      "caps = { per_day = 1.00; };", "caps = { per_day = 1.00; };");
	CLEANUP(free_text) char *path = path_join(folder, "a/burst.cfg");
	COPY_TEXT(run.config, path);
	client_open(&c, "a/burst.cfg", "new");
	assert_int_equal(
		store_put_run(c.ctx.store, &run, &err) | store_put_pod(c.ctx.store, &pod, &err), 0);
	/* another that nobody could prove gone: it may bill for an hour */
	pod = (struct pod_row){.attempt = "1123456789abcdef",
			       .run = "old",
			       .state = POD_ROW_LIVE,
			       .create_ms = now - 1000,
			       .price_microusd_h = 100000,
			       .hard_end_s = now / 1000 + 3600};
	assert_int_equal(store_put_pod(c.ctx.store, &pod, &err), 0);
	assert_int_equal(caps_plan(&caps, &c.l, false, &err), 0);
	assert_int_equal(caps.count, 3);
	assert_in_range(caps.list[0].spent_microusd, 400000, 400100);
	assert_in_range(caps.list[0].reserved_microusd, 100000 - 100, 100000 + 300);
	assert_int_equal(caps.list[0].holders, 1);
	assert_string_equal(caps.list[1].key, "per_month");
	assert_in_range(caps.list[1].spent_microusd, 400000, 400100);
	assert_in_range(caps.list[2].spent_microusd, 400000, 400100);
	client_close(&c);
	client_open(&c, "b/burst.cfg", "new");
	assert_int_equal(caps_plan(&caps, &c.l, false, &err), 0);
	assert_int_equal(caps.list[2].spent_microusd, 0);
	assert_int_equal(caps.list[2].reserved_microusd, 0);
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twenty_at_once_share_a_day),
		cmocka_unit_test(a_projects_file_lowers_and_never_raises),
		cmocka_unit_test(pods_count_where_they_were_paid),
	};

	return cmocka_run_group_tests_name("caps", tests, make_top, leave_folder);
}
