/* test_learn.c - what the ledger teaches: keys, sums over runs, estimates from the nearest GPU, cold starts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/learn.h"

static void assert_near(double got, double expected, double tolerance)
{
	if (fabs(got - expected) > tolerance)
		fail_msg("got %.6g, expected %.6g", got, expected);
}

static const struct speed truth = {.once_s = .3, .longest_s = .008, .each_s = .0004};

/* A run of batches of several sizes on this GPU, `factor` times as slow as the truth. */
static void add_run(struct store *s, const struct learn_what *what, double factor, int64_t wall_ms)
{
	struct batch_row rows[12] = {0};
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct batch_row *r = &rows[i];
		learn_key(what, r->speed);
		r->segments = 1 << (i % 6);
		r->longest = 80 + 10 * (double)(i % 5);
		r->sum = r->longest * r->segments * .9;
		r->took_ms = (int64_t)(1000 * factor * speed_batch_s(&truth, r->longest, r->sum));
	}
	assert_int_equal(learn_fold(s, rows, ARRAY_LEN(rows), true, wall_ms, &err), 0);
}

static void keys_are_whole(void **state)
{
	(void)state;
	char a[LEARN_KEY], b[LEARN_KEY];

	learn_key(&(struct learn_what){"chatterbox", "ab12.w1", "NVIDIA GeForce RTX 4090", "runpod", "0.1.7"}, a);
	assert_string_equal(a, "chatterbox|ab12.w1|RTX_4090|runpod|0.1.7");
	learn_key(&(struct learn_what){"e|vil\n", NULL, "none", "local", NULL}, b);
	assert_string_equal(b, "e_vil_||none|local|");
	char wide[300];
	memset(wide, 'x', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = '\0';
	learn_key(&(struct learn_what){wide, wide, wide, wide, wide}, b);
	assert_true(strlen(b) < LEARN_KEY);
	int bars = 0;
	for (const char *p = b; *p; p++)
		bars += *p == '|';
	assert_int_equal(bars, 4);
}

static void the_nearest_measurement_is_taken(void **state)
{
	(void)state;
	struct store *s = store_memory();
	const struct speed prior = {.each_s = .07};
	struct learn_what l4 = {"eng", "o", "L4", "modal", "1"}, h200 = {"eng", "o", "H200", "modal", NULL};
	struct speed got;
	char from[LEARN_FROM];

	assert_int_equal(learn_speed(s, &l4, &prior, &got, from), PLAN_PRIOR);
	assert_near(got.each_s, .07, 0);
	assert_string_equal(from, "");
	add_run(s, &l4, 1, 1);
	assert_int_equal(learn_speed(s, &l4, &prior, &got, from), PLAN_MEASURED);
	assert_near(got.longest_s, truth.longest_s, truth.longest_s * .02);
	assert_near(got.each_s, truth.each_s, truth.each_s * .02);
	assert_non_null(strstr(from, "L4 at modal"));
	/* another GPU, by bandwidth (16 times) and peak */
	assert_int_equal(learn_speed(s, &h200, &prior, &got, from), PLAN_CARRIED);
	assert_near(got.longest_s, truth.longest_s / 16, truth.longest_s * .01);
	assert_near(got.once_s, truth.once_s, truth.once_s * .05);
	/* the same GPU of another provider goes before another GPU of this one */
	struct learn_what elsewhere = {"eng", "o", "H200", "runpod", "1"};
	add_run(s, &elsewhere, .1, 2);
	assert_int_equal(learn_speed(s, &h200, &prior, &got, from), PLAN_MEASURED);
	assert_near(got.longest_s, truth.longest_s * .1, truth.longest_s * .01);
	/* other options are another speed */
	struct learn_what other = {"eng", "p", "L4", "modal", "1"};
	assert_int_equal(learn_speed(s, &other, &prior, &got, from), PLAN_PRIOR);
	store_close(s);
}

static void newer_runs_count_more(void **state)
{
	(void)state;
	struct store *s = store_memory();
	const struct learn_what what = {"eng", "o", "L4", "modal", "1"};
	const struct speed prior = {0};
	struct speed got;

	for (int run = 0; run < 10; run++)
		add_run(s, &what, 2, run);
	for (int run = 0; run < 30; run++)
		add_run(s, &what, 1, 10 + run);
	assert_int_equal(learn_speed(s, &what, &prior, &got, NULL), PLAN_MEASURED);
	assert_near(got.longest_s, truth.longest_s, truth.longest_s * .1);
	store_close(s);
}

static void few_batches_are_no_measurement(void **state)
{
	(void)state;
	struct store *s = store_memory();
	struct batch_row row = {.longest = 10, .sum = 10, .took_ms = 1000};
	const struct learn_what what = {"eng", "o", "L4", "modal", "1"};
	const struct speed prior = {.each_s = 1};
	struct speed got;
	struct err err = {0};

	learn_key(&what, row.speed);
	for (int i = 0; i < SPEED_MEASURED_MIN; i++) {
		assert_int_equal(learn_speed(s, &what, &prior, &got, NULL), PLAN_PRIOR);
		assert_int_equal(learn_fold(s, &row, 1, i == 0, 1, &err), 0);
	}
	assert_int_equal(learn_speed(s, &what, &prior, &got, NULL), PLAN_MEASURED);
	assert_near(got.each_s, .1, 1e-6);
	store_close(s);
}

static struct pod_row pod_that_took(const char *gpu, int64_t queue_ms, int64_t boot_ms)
{
	struct pod_row row = {.create_ms = 1000};

	COPY_TEXT(row.gpu, gpu);
	row.running_ms = row.create_ms + queue_ms;
	row.reached_ms = row.running_ms + boot_ms;
	row.connected_ms = row.reached_ms + 500;
	row.synced_ms = row.connected_ms + 1000;
	row.ready_ms = row.connected_ms + 800; /* workers were started while code was on its way */
	return row;
}

static void cold_starts_by_gpu(void **state)
{
	(void)state;
	const struct pod_row rows[] = {pod_that_took("RTX 4090", 2000, 30000), pod_that_took("NVIDIA GeForce RTX 4090", 4000, 50000),
				       pod_that_took("RTX 4090", 3000, 40000), pod_that_took("H100 SXM", 1000, 90000)};
	struct cold c = {.phase = {[COLD_SETUP] = {7, 9, 0}}};

	learn_cold(rows, ARRAY_LEN(rows), "RTX 4090", &c);
	assert_near(c.phase[COLD_QUEUE].p50_s, 3, 1e-9);
	assert_near(c.phase[COLD_BOOT].p50_s, 40, 1e-9);
	assert_int_equal(c.phase[COLD_BOOT].samples, 3);
	assert_near(c.phase[COLD_LOAD].p50_s, 0, 1e-9); /* within sync */
	assert_near(c.phase[COLD_SETUP].p50_s, 7, 0);
	/* fewer than three: of any GPU */
	c = (struct cold){0};
	learn_cold(rows, ARRAY_LEN(rows), "H100 SXM", &c);
	assert_int_equal(c.phase[COLD_BOOT].samples, 4);
	assert_near(c.phase[COLD_BOOT].p50_s, 45, 1e-9);
}

static void interruptions_are_counted(void **state)
{
	(void)state;
	struct pod_row rows[] = {
		{.spot = true, .billed_ms = 3600000, .preempted = true}, {.spot = true, .billed_ms = 7200000}, {.spot = true, .billed_ms = 3600000, .preempted = true},
		{.spot = false, .billed_ms = 36000000},
	};
	int taken;
	double lived_s;

	/* four hours and the guess of eight, over two pods that were taken and the guess */
	assert_near(learn_interrupted_s(rows, 4, true, 8 * 3600, &taken, &lived_s), 4 * 3600, 1e-6);
	assert_int_equal(taken, 2);
	assert_near(lived_s, 4 * 3600, 1e-6);
	assert_near(learn_interrupted_s(rows, 0, true, 8 * 3600, &taken, &lived_s), 8 * 3600, 1e-6);
	assert_near(learn_interrupted_s(rows, 4, false, 0, &taken, &lived_s), 0, 0); /* on demand, and none was taken */
	rows[3].preempted = true;
	assert_near(learn_interrupted_s(rows, 4, false, 0, &taken, &lived_s), 10 * 3600, 1e-6);
}

/* An engine that only the host limits is as fast on any card. */
static void hosts_decide_where_cards_do_not(void **state)
{
	(void)state;
	struct store *s = store_memory();
	const struct learn_what had = {.engine = "e", .options = "o", .gpu = "none", .provider = "local"};
	struct learn_what what = {.engine = "e", .options = "o", .gpu = "H100", .provider = "runpod", .host_share = 1};
	const struct speed prior = {.each_s = 1};
	struct speed got;

	add_run(s, &had, 1, 1000);
	assert_int_equal(learn_speed(s, &what, &prior, &got, NULL), PLAN_CARRIED);
	assert_near(speed_batch_s(&got, 100, 800) / speed_batch_s(&truth, 100, 800), 1, .02);
	what.host_share = 0;
	assert_int_equal(learn_speed(s, &what, &prior, &got, NULL), PLAN_PRIOR); /* no card to compare with */
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_whole),
		cmocka_unit_test(the_nearest_measurement_is_taken),
		cmocka_unit_test(newer_runs_count_more),
		cmocka_unit_test(few_batches_are_no_measurement),
		cmocka_unit_test(cold_starts_by_gpu),
		cmocka_unit_test(interruptions_are_counted),
		cmocka_unit_test(hosts_decide_where_cards_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
