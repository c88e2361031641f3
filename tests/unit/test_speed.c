/* test_speed.c - the planner's fits from measured batches, other GPUs, memory, cold starts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/gpus.h"
#include "base/mem.h"
#include "plan/choose.h"
#include "plan/cost.h"
#include "plan/speed.h"
#include "formulas.h"
#include "plan_bed.h"

/* ---- speed ---- */

static const int sweep[] = {1, 2, 4, 8};

/* Chatterbox Turbo on a P106-100, one length */
static const double sweep_s[] = {.976, 1.15, 1.75, 2.76};

static void a_published_sweep_is_fitted(void **state)
{
	(void)state;
	struct speed_sums sums = {0};
	struct speed s;

	for (size_t i = 0; i < ARRAY_LEN(sweep); i++)
		speed_add(&sums, 0, sweep[i], sweep_s[i]); /* no length is known: all is o + c b */
	assert_true(speed_fit(&s, &sums, NULL));
	assert_near(s.once_s, .6845, .0005);
	assert_near(s.each_s, .2599, .0005);
	assert_near(speed_gain(&s, 1, 8), 2.73, .01);
}

static void three_parts_are_told_apart(void **state)
{
	(void)state;
	const struct speed truth = {.once_s = .4, .longest_s = .006, .each_s = .0007};
	struct speed_sums sums = {0};
	struct speed s;

	seed = 1;
	for (int i = 0; i < 60; i++) {
		int b = 1 << (i % 7);
		double longest = random_between(60, 240), sum = longest * b * random_between(.7, 1);
		speed_add(&sums, longest, sum,
			  speed_batch_s(&truth, longest, sum) * random_between(.97, 1.03));
	}
	assert_true(speed_fit(&s, &sums, NULL));
	for (int b = 1; b <= 128; b *= 4)
		assert_near(speed_batch_s(&s, 150, 150.0 * b) /
				    speed_batch_s(&truth, 150, 150.0 * b),
			    1, .05);
}

static void batches_of_one_size_keep_a_known_shape(void **state)
{
	(void)state;
	const struct speed like = {.once_s = 0, .longest_s = .01, .each_s = .0002};
	struct speed_sums sums = {0};
	struct speed s;

	for (int i = 0; i < 5; i++) { /* all alike, twice as slow as `like` */
		double longest = 100, sum = 800;
		speed_add(&sums, longest, sum, 2 * speed_batch_s(&like, longest, sum));
	}
	assert_true(speed_fit(&s, &sums, &like));
	assert_near(s.longest_s, .02, 1e-9);
	assert_near(s.each_s, .0004, 1e-9);
	assert_true(speed_fit(&s, &sums, NULL)); /* nothing known: no gain is promised */
	assert_near(speed_gain(&s, 100, 64), 1, 1e-9);
}

static void one_by_one_promises_no_gain(void **state)
{
	(void)state;
	const struct speed truth = {.once_s = .5, .each_s = .06};
	struct speed_sums sums = {0};
	struct speed s;

	for (int length = 40; length <= 200; length += 20)
		speed_add(&sums, length, length, speed_batch_s(&truth, length, length));
	assert_true(speed_fit(&s, &sums, NULL));
	assert_near(s.once_s, .5, 1e-6);
	assert_near(s.each_s, .06, 1e-6);
	assert_near(s.longest_s, 0, 1e-9);
}

/* Batches of one size, each with its share of the time: five times as many take five times as long.
 */
static void shares_promise_no_gain(void **state)
{
	(void)state;
	const struct speed like = {.once_s = 1, .longest_s = .01, .each_s = .001};
	struct speed_sums sums = {0};
	struct speed s;

	for (int i = 0; i < 20; i++)
		speed_add_share(&sums, 1000 + 10 * (i % 3), 2 + .01 * (i % 5));
	assert_true(speed_fit(&s, &sums, &like));
	assert_near(speed_batch_s(&s, 200, 5000), 10, .1);
	assert_near(s.longest_s, 0, 1e-9);
	assert_near(sums.batches, 20, 0);
}

static void no_part_is_negative(void **state)
{
	(void)state;
	struct speed_sums sums = {0};
	struct speed s;

	speed_add(&sums, 100, 100, 1); /* a warm-up made the small batches slow */
	speed_add(&sums, 100, 400, .9);
	speed_add(&sums, 110, 880, .8);
	speed_add(&sums, 120, 240, 1);
	assert_true(speed_fit(&s, &sums, NULL));
	assert_true(s.once_s >= 0 && s.longest_s >= 0 && s.each_s >= 0);
	assert_false(speed_fit(&s, &(struct speed_sums){0}, NULL));
}

static void old_runs_fade(void **state)
{
	(void)state;
	const struct speed slow = {.once_s = 2, .each_s = .02}, fast = {.once_s = 1, .each_s = .01};
	struct speed_sums sums = {0};
	struct speed s;

	for (int run = 0; run < 40; run++) {
		const struct speed *truth = run < 10 ? &slow : &fast;
		speed_decay(&sums, SPEED_DECAY);
		for (int b = 1; b <= 16; b *= 2)
			speed_add(&sums, 0, 100.0 * b, speed_batch_s(truth, 0, 100.0 * b));
	}
	assert_true(speed_fit(&s, &sums, NULL));
	assert_near(s.each_s, fast.each_s, .001);
	assert_near(sums.batches, 200, 0);
}

static void another_gpu_by_its_bandwidth_and_peak(void **state)
{
	(void)state;
	const struct speed on_l4 = {.once_s = .5, .longest_s = .016, .each_s = .004};
	const struct gpu *l4 = gpu_find("L4"), *h200 = gpu_find("H200"), *t4 = gpu_find("T4");
	struct speed s = speed_carry(&on_l4, l4, h200, 0);

	assert_near(s.once_s, .5, 0);
	assert_near(s.longest_s, .001, 1e-9); /* 16 times the bandwidth */
	assert_near(s.each_s, .004 * 121 / 989, 1e-9);
	s = speed_carry(&on_l4, l4, h200, .5); /* half of it is the host's */
	assert_near(s.longest_s, .008, 1e-9);
	/* all of it is the host's: no card is faster, or slower */
	s = speed_carry(&on_l4, l4, h200, 1);
	assert_near(s.longest_s, .016, 0);
	assert_near(s.each_s, .004, 0);
	assert_near(speed_carry(&on_l4, l4, h200, .5).each_s, .002, 1e-9);
	s = speed_carry(&on_l4, l4, t4, .5);
	assert_near(s.longest_s, .016 * 300 / 320, 1e-9);
}

static void runs_tell_how_far_a_speed_may_be_off(void **state)
{
	(void)state;
	const struct speed fit = {.once_s = 1, .each_s = .01};
	struct speed_sums runs[12] = {0};

	for (int i = 0; i < 12; i++) { /* a third slower and faster, in turn; or all alike */
		double expected_s = speed_batch_s(&fit, 0, 900);
		for (int b = 0; b < 4; b++)
			speed_add(&runs[i], 0, 900, expected_s * (i % 2 ? 4.0 / 3 : .75));
	}
	/* one run: .15, twice for the next one, t(5): .15 * sqrt(2) * 1.476 / 1.2816 */
	assert_near(speed_learn_sigma(&fit, runs, 1), .2443, .0005);
	assert_near(speed_learn_sigma(&fit, runs, 0), .2443, .0005);
	/* 12 times log(4/3) squared, .9931, and .1125: over 16, 13/12 of it, and t(16) = 1.337 */
	assert_near(speed_learn_sigma(&fit, runs, 12), .2736 * 1.337 / 1.2816, .0005);
	/* two that are alike do not make it exact */
	runs[1] = runs[0];
	assert_near(speed_learn_sigma(&fit, runs, 2), .15 * sqrt(5 / 6.0 * 1.5) * 1.440 / 1.2816,
		    .0005);
}

/* ---- memory ---- */

static void memory_of_a_sweep(void **state)
{
	(void)state;
	/* fitted to peaks of 4.50, 4.62, 4.84 and 5.29 GiB at batches of 1, 2, 4 and 8 */
	const struct vram_need need = {.base_gib = 4.391, .each_gib = .1124};

	assert_int_equal(vram_batch_max(&need, 6), 1);    /* 6 x .93 - 1 = 4.58 */
	assert_int_equal(vram_batch_max(&need, 24), 150); /* 21.32 */
	assert_int_equal(vram_batch_max(&need, 4), 0);
}

/* ---- cold starts ---- */

static void cold_starts_are_learned(void **state)
{
	(void)state;
	const struct cold_time prior = {30, 60, 0};
	double none[1], two[] = {20, 10}, ten[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 100};
	struct cold c = {.phase = {[COLD_QUEUE] = {5, 5, 3},
				   [COLD_BOOT] = {30, 60, 3},
				   [COLD_LOAD] = {10, 50, 3}}};

	assert_near(cold_learn(none, 0, prior).p50_s, 30, 0);
	assert_near(cold_learn(two, 2, prior).p50_s, 15, 0);
	/* log(20/10)/2 twice, squared, is .2402; two fifths of the prior's .5409, squared, count
	 * five times: .2341. Together over 6 degrees of freedom: .0790; the next of two samples:
	 * 1.5 times. t(6) = 1.440: 15 * exp(1.440 * sqrt(.1186)) */
	assert_near(cold_learn(two, 2, prior).p90_s, 24.63, .05);
	assert_int_equal(cold_learn(two, 2, prior).samples, 2);
	/* .2341 over 5, twice, t(5) = 1.476: 20 * exp(1.476 * sqrt(.0936)) */
	assert_near(cold_learn(two + 1, 1, prior).p90_s, 31.42, .05);
	assert_near(cold_learn(ten, 10, prior).p50_s, 6.5, 1e-9);
	/* the next one exceeds nine of these ten once in 5.5: nearly the slowest is to be expected
	 */
	assert_near(cold_learn(ten, 10, prior).p90_s, 91, 1e-9);
	assert_near(cold_p50_s(&c), 45, 0);
	assert_near(cold_billed_p50_s(&c), 45, 0);
	c.queue_is_free = true;
	assert_near(cold_billed_p50_s(&c), 40, 0);
	assert_int_equal(cold_source(&c), PLAN_MEASURED);
	assert_string_equal(cold_phase_name(COLD_WARM_UP), "warm-up");
	c.phase[COLD_SYNC] = (struct cold_time){1, 2, 0};
	assert_int_equal(cold_source(&c), PLAN_PRIOR);
}

/* By tables of chi-square: the limits of the mean time are 2 T / chi2(.95; 2 k + 2) and
 * 2 T / chi2(.05; 2 k). */
static void limits_of_a_mean_time(void **state)
{
	(void)state;
	static const struct {
		int events;
		double high_chi2, low_chi2; /* chi2(.95; 2 k + 2), chi2(.05; 2 k) */
	} cases[] = {
		{0, 5.991465, 0},         {1, 9.487729, 0.102587},    {2, 12.591587, 0.710723},
		{5, 21.026070, 3.940299}, {20, 58.124038, 26.509303}, {50, 126.574117, 77.929465},
	};
	const double lived_s = 1000;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct between_limits got = cost_between_limits(cases[i].events, lived_s, .05);
		assert_near(got.low_s / (2 * lived_s / cases[i].high_chi2), 1, 1e-4);
		if (cases[i].events)
			assert_near(got.high_s / (2 * lived_s / cases[i].low_chi2), 1, 1e-4);
		else
			assert_true(isinf(got.high_s));
	}
	struct between_limits many = cost_between_limits(2000, 2000, .05);
	assert_near(many.low_s, .964, .002); /* 1 - 1.645 / sqrt(2000), and 1 + it */
	assert_near(many.high_s, 1.037, .002);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_published_sweep_is_fitted),
		cmocka_unit_test(three_parts_are_told_apart),
		cmocka_unit_test(batches_of_one_size_keep_a_known_shape),
		cmocka_unit_test(one_by_one_promises_no_gain),
		cmocka_unit_test(shares_promise_no_gain),
		cmocka_unit_test(no_part_is_negative),
		cmocka_unit_test(old_runs_fade),
		cmocka_unit_test(another_gpu_by_its_bandwidth_and_peak),
		cmocka_unit_test(runs_tell_how_far_a_speed_may_be_off),
		cmocka_unit_test(memory_of_a_sweep),
		cmocka_unit_test(cold_starts_are_learned),
		cmocka_unit_test(limits_of_a_mean_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
