/* test_pooled.c - pods that pass from run to run: which pod serves which run, and that its row has
 * one owner whatever the two sides do, with the ledger in memory and in SQLite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/str.h"
#include "engine/image.h"
#include "engine/pooled.h"
#include "scratch.h"

static const struct {
	const char *has, *wanted;
	bool serves;
} pairs[] = {
	{"abc 0 0 0 0", "abc 0 0 0 0", true},
	{"abc 0 0 0 0", "abd 0 0 0 0", false},
	{"abc 0 4 16 40", "abc 0 2 8 20", true},
	{"abc 0 2 16 40", "abc 0 4 16 40", false},
	{"abc 0 4 8 40", "abc 0 4 16 40", false},
	{"abc 0 4 16 20", "abc 0 4 16 40", false},
	{"abc 1 0 0 0", "abc 0 0 0 0", true},
	{"abc 0 0 0 0", "abc 1 0 0 0", false},
	{"", "abc 0 0 0 0", false},
	{"abc 0 0", "abc 0 0 0 0", false},
};

static void which_pod_serves(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		if (pooled_serves(pairs[i].has, pairs[i].wanted) != pairs[i].serves)
			fail_msg("\"%s\" for \"%s\"", pairs[i].has, pairs[i].wanted);
}

/* ---- what a pod that burst prepared by itself is good for ---- */

static struct job_needs its_needs;

static const struct job_needs *needs_of(struct job *job)
{
	(void)job;
	return &its_needs;
}

static void describe(const struct job_needs *needs, const char *image, char pool[96])
{
	static const struct job_ops ops = {.needs = needs_of};
	struct run_row run = {.config = "c", .job = "j"};
	struct engine_setup setup = {.job_ops = &ops, .run = &run, .image = image};

	its_needs = *needs;
	pooled_describe(&setup, pool);
}

/* It may have this machine's network, which a project must not get. */
static void who_gets_a_pod_of_bursts_own(void **state)
{
	static const struct {
		const char *what, *image;
		struct job_needs needs;
		bool serves;
	} wanted[] = {
		{"the same", "i", {.setup = "s", .install = "p\n", .setup_is_ours = true}, true},
		{"that text, a server of the project's",
		 "i",
		 {.setup = "s", .install = "p\n"},
		 false},
		{"both texts as one", "i", {.setup = "s\np"}, false},
		{"both texts as one, and it says ours",
		 "i",
		 {.setup = "s\np\n", .install = "", .setup_is_ours = true},
		 false},
		{"texts in the image's name", "i\n\ns\np", {.setup = ""}, false},
		{"a command", "i", {.setup = "s", .install = "p\n", .command = true}, false},
	};
	const struct job_needs ours = {.setup = "s", .install = "p\n", .setup_is_ours = true};
	char has[96], other[96];

	(void)state;
	describe(&ours, "i", has);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		describe(&wanted[i].needs, wanted[i].image, other);
		if (pooled_serves(has, other) != wanted[i].serves)
			fail_msg("%s", wanted[i].what);
	}
}

static void which_set_up_fits_a_pod(void **state)
{
	static const struct {
		const char *what;
		struct job_needs before, now;
		bool fits;
	} cases[] = {
		{"ours",
		 {.setup = "s", .setup_is_ours = true},
		 {.setup = "s", .setup_is_ours = true},
		 true},
		{"another voice",
		 {.setup = "s", .setup_is_ours = true},
		 {.setup = "t", .setup_is_ours = true},
		 false},
		{"a script is added",
		 {.setup = "s", .setup_is_ours = true},
		 {.setup = "s\nevil\n"},
		 false},
		{"its text, a server of the project's",
		 {.setup = "s", .setup_is_ours = true},
		 {.setup = "s"},
		 false},
		{"none any more", {.setup = "s", .setup_is_ours = true}, {.setup = NULL}, false},
		{"the project's own, mended", {.setup = "s"}, {.setup = "t"}, true},
		{"the project's, then ours",
		 {.setup = "s"},
		 {.setup = "s", .setup_is_ours = true},
		 true},
		{"none before", {.setup = NULL}, {.setup = "t"}, true},
	};
	char key[20];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		engine_setup_key(&cases[i].before, key);
		if (engine_setup_fits(key, &cases[i].now) != cases[i].fits)
			fail_msg("%s", cases[i].what);
	}
}

static struct pod_row offered(void)
{
	return (struct pod_row){.attempt = "0123456789abcdef",
				.run = "a",
				.provider = "local",
				.id = "p1",
				.state = POD_ROW_LIVE,
				.host = "h",
				.reach = REACH_SSH,
				.port = 22,
				.pool = "abc 0 0 0 0",
				.price_microusd_h = 3600000,
				.create_ms = 1000,
				.rented_ms = 2000,
				.ready_ms = 21000,
				.compute_ms = 500,
				.cold_ms = 20000,
				.kept_until_ms = 100000};
}

static void each_store(void (*test)(struct store *s))
{
	char *dir = new_folder();
	CLEANUP(free_text) char *path = path_join(dir, "ledger.db");
	struct store *s = store_memory();
	struct err err = {0};

	test(s);
	store_close(s);
	assert_int_equal(store_open(&s, path, &err), 0);
	test(s);
	store_close(s);
	assert_int_equal(remove_folder(dir), 0);
}

/* One change to what a run wants, or to the pod on offer. */
static void which_run_takes_it(void **state)
{
	static const struct {
		const char *name, *key, *value;
		bool fits;
	} wants[] = {
		{"the same", "pool", "\"abc 0 0 0 0\"", true},
		{"another environment", "pool", "\"abd 0 0 0 0\"", false},
		{"another account", "accounts", "[{\"provider\":\"local\",\"account\":\"b\"}]",
		 false},
		{"another provider", "accounts", "[{\"provider\":\"modal\",\"account\":\"a\"}]",
		 false},
		{"this GPU", "gpus", "[\"RTX 3090\",\"RTX 4090\"]", true},
		{"another GPU", "gpus", "[\"L40S\"]", false},
		{"a lower price", "price", "3500000", false},
		{"a price that it has", "price", "3600000", true},
		{"more time than it has", "ms", "69000", false},
		{"all of its time", "ms", "68000", true},
		/* $3.60 an hour: until the lease would end, or its hard end */
		{"a cap that its work exceeds", "cost", "59000", false},
		{"a cap for the work and the lease", "cost", "65000", true},
		{"a cap that the lease exceeds", "cost", "64000", false},
		{"a deadline after the lease", "until", "97000", true},
		{"a deadline before the lease is over", "until", "96999", false},
	};
	struct pod_row pod = offered();

	(void)state;
	pod.hard_end_s = 100;
	pod.kept_until_ms = 40000;
	COPY_TEXT(pod.account, "a");
	COPY_TEXT(pod.gpu_offered, "RTX 4090");
	for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
		json_t *want = json_loads(
			"{\"pool\":\"abc 0 0 0 0\",\"accounts\":[{\"provider\":\"local\","
			"\"account\":\"a\"}],\"gpus\":[],\"spot\":false,\"price\":0,"
			"\"ms\":60000,\"lease_ms\":5000,\"cost\":1000000}",
			0, NULL);
		json_object_set_new(want, wants[i].key,
				    json_loads(wants[i].value, JSON_DECODE_ANY, NULL));
		if (pooled_fits(want, &pod, 32000) != wants[i].fits)
			fail_msg("%s", wants[i].name);
		pod.spot = true;
		if (pooled_fits(want, &pod, 32000))
			fail_msg("%s: spot", wants[i].name);
		pod.spot = false;
		json_decref(want);
	}
	assert_false(pooled_fits(NULL, &pod, 32000));
	/* a pod that may be kept for longer than the work takes bills until then where both clients
	 * die */
	json_t *want = json_pack("{s:s,s:[{s:s,s:s}],s:i,s:i,s:i}", "pool", "abc 0 0 0 0",
				 "accounts", "provider", "local", "account", "a", "ms", 10000,
				 "lease_ms", 5000, "cost", 15000);
	assert_true(pooled_fits(want, &pod, 32000));
	pod.kept_until_ms = 60000;
	assert_false(pooled_fits(want, &pod, 32000));
	json_decref(want);
}

static void handed_on(struct store *s)
{
	struct pod_row pod = offered(), row, part;
	struct run_row keeper = {.id = "k", .type = KEEP_RUN, .status = RUN_RUNNING}, run;
	struct err err = {0};
	int64_t taken;

	assert_int_equal(store_put_pod(s, &pod, &err), 0);
	struct pod_row stale = pod;
	assert_int_equal(pooled_take(s, "k", &keeper, true, 31400, &pod, &err), 0);
	assert_int_equal(store_run(s, "k", &run, &err), 0);
	assert_string_equal(pod.run, "k");
	assert_string_equal(pod.handed_from, "a");
	assert_int_equal(pod.create_ms, 31400);
	assert_int_equal(pod.kept_ms, 31400);
	assert_int_equal(pod.compute_ms, 0);
	assert_int_equal(pod.cold_ms, 20000);
	assert_int_equal(store_pod(s, "0123456789abcdef-00", &part, &err), 0);
	assert_string_equal(part.run, "a");
	assert_string_equal(part.handed_to, "k");
	assert_true(pod_row_over(&part));
	assert_int_equal(part.gone_ms, 31400);
	assert_int_equal(part.billed_ms, 31000); /* 30.4 s, rounded up */
	assert_int_equal(part.cost_microusd, 31000);
	assert_int_equal(part.compute_ms, 500);
	/* by its id the living row is meant */
	assert_int_equal(store_pod(s, "p1", &row, &err), 0);
	assert_string_equal(row.run, "k");
	/* who was too late gets nothing, and who offered it writes nothing */
	assert_int_equal(pooled_take(s, "b", NULL, false, 31500, &stale, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	stale.state = POD_ROW_RELEASING;
	assert_int_equal(pooled_put_row(s, &stale, &taken, &err), 0);
	assert_int_equal(taken, 31400);
	assert_int_equal(store_pod(s, "p1", &row, &err), 0);
	assert_int_equal(row.state, POD_ROW_LIVE);
	/* the next one; the first still finds out when its own time ended */
	assert_int_equal(pooled_take(s, "b", NULL, false, 40000, &pod, &err), 0);
	assert_int_equal(pod.holds, 2);
	assert_int_equal(pod.kept_until_ms, 0);
	assert_string_equal(pod.pool, "");
	assert_int_equal(pooled_taken_ms(s, "0123456789abcdef", "a"), 31400);
	assert_int_equal(pooled_taken_ms(s, "0123456789abcdef", "k"), 40000);
	assert_int_equal(pooled_taken_ms(s, "0123456789abcdef", "b"), 0);
}

static void taken_back(struct store *s)
{
	struct pod_row pod = offered(), back = offered();
	struct err err = {0};
	int64_t taken;

	assert_int_equal(store_put_pod(s, &pod, &err), 0);
	back.pool[0] = '\0';
	back.state = POD_ROW_RELEASING;
	assert_int_equal(pooled_put_row(s, &back, &taken, &err), 0);
	assert_int_equal(taken, 0);
	assert_int_equal(pooled_take(s, "b", NULL, false, 31400, &pod, &err), -1);
	assert_string_equal(pod.run, "a");
}

static void over_is_over(struct store *s)
{
	struct pod_row pod = offered();
	struct err err = {0};

	assert_int_equal(store_put_pod(s, &pod, &err), 0);
	assert_int_equal(pooled_take(s, "b", NULL, false, 100000, &pod, &err), -1);
	pod.holds = POOLED_HOLDS_MOST;
	assert_int_equal(store_put_pod(s, &pod, &err), 0);
	assert_int_equal(pooled_take(s, "b", NULL, false, 31400, &pod, &err), -1);
}

static void it_is_handed_on(void **state)
{
	(void)state;
	each_store(handed_on);
}

static void it_is_taken_back(void **state)
{
	(void)state;
	each_store(taken_back);
}

static void its_time_ends(void **state)
{
	(void)state;
	each_store(over_is_over);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_pod_serves),
		cmocka_unit_test(which_run_takes_it),
		cmocka_unit_test(it_is_handed_on),
		cmocka_unit_test(it_is_taken_back),
		cmocka_unit_test(its_time_ends),
		cmocka_unit_test(who_gets_a_pod_of_bursts_own),
		cmocka_unit_test(which_set_up_fits_a_pod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
