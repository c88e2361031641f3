/* test_spread.c - how far estimates may be off: quantiles of sums against draws, and what samples
 * of earlier runs say about the next one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "plan/choose.h"
#include "plan/cost.h"
#include "plan/spread.h"
#include "plan_bed.h"

enum { DRAWS = 100000 };

static double normal(void)
{
	double a = random_between(1e-12, 1), b = random_between(0, 1);

	return sqrt(-2 * log(a)) * cos(2 * M_PI * b);
}

/* What spread_of() says that the figure is. */
static double draw(double p50, double p90)
{
	if (p90 <= p50)
		return p50;
	double sigma = log(p90 / p50) / SPREAD_Z90;
	return MIN(p50 * exp(sigma * normal()), SPREAD_GIVE_UP * p90);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void one_part_keeps_its_quantiles(void **state)
{
	(void)state;
	struct spread s = spread_of(60, 180), exact = spread_of(7, 7), none = {0};

	assert_near(spread_quantile(&s, SPREAD_Z90) / 180, 1, .03);
	assert_near(spread_quantile(&exact, SPREAD_Z90), 7, 0);
	assert_near(spread_quantile(&none, SPREAD_Z90), 0, 0);
	assert_near(spread_p10(60, 180), 20, 1e-9); /* as far below as above, as a factor */
	assert_near(spread_p10(7, 7), 7, 0);
	s = spread_of_factor(.5);
	assert_near(spread_quantile(&s, SPREAD_Z90) / exp(.5 * SPREAD_Z90), 1, .03);
	s = spread_scale(&s, 100);
	assert_near(spread_quantile(&s, SPREAD_Z90) / (100 * exp(.5 * SPREAD_Z90)), 1, .03);
}

static void a_product_keeps_its_quantiles(void **state)
{
	(void)state;
	static double products[DRAWS];
	struct spread seconds = spread_of(60, 180), price = spread_of(1, 1.3),
		      fixed = spread_of(1, 0), both = spread_times(&seconds, &price),
		      same = spread_times(&seconds, &fixed);

	seed = 5;
	for (int n = 0; n < DRAWS; n++)
		products[n] = draw(60, 180) * draw(1, 1.3);
	qsort(products, DRAWS, sizeof(*products), by_size);
	assert_near(spread_quantile(&both, SPREAD_Z90) / products[DRAWS * 9 / 10], 1, .03);
	assert_near(spread_quantile(&both, 0) / products[DRAWS / 2], 1, .07);
	assert_near(spread_quantile(&same, SPREAD_Z90), spread_quantile(&seconds, SPREAD_Z90),
		    1e-6);
}

/* A price that was seen higher counts in what a plan promises, and not in what it expects. */
static void a_price_that_moves_widens_the_cost(void **state)
{
	(void)state;
	struct plan_machine m = {.price_h = 3600,
				 .speed = {.once_s = 100},
				 .speed_sigma = .15,
				 .workers = 1,
				 .batch_max = 1,
				 .per_run_usd = 7};
	double length = 1;
	struct plan_work w;
	struct plan fixed, moves, fell;

	plan_work_init(&w, &length, 1, 1, 0);
	plan_choose(&fixed, &w, &m, 1, &(struct plan_wish){0});
	m.price_p90_h = 4500; /* a quarter more */
	plan_choose(&moves, &w, &m, 1, &(struct plan_wish){0});
	m.price_p90_h = 3000; /* it has never been as high as now */
	plan_choose(&fell, &w, &m, 1, &(struct plan_wish){0});
	assert_near(fixed.cost_usd, 107, 1e-6);
	assert_near(moves.cost_usd, 107, 1e-6);
	assert_near(moves.makespan_p90_s, fixed.makespan_p90_s, 1e-6);
	/* both factors at once: the root of the squares of their logarithms */
	double speed = SPREAD_Z90 * .15, price = log(1.25);
	assert_near(fixed.cost_p90_usd, 7 + 100 * exp(speed), .5);
	assert_near(moves.cost_p90_usd, 7 + 100 * exp(hypot(speed, price)), 1);
	assert_near(fell.cost_p90_usd, fixed.cost_p90_usd, 1e-6);
}

/* A deadline is promised by the 90%; a cap makes no plan wider that will probably keep it. */
static void a_cap_is_no_deadline(void **state)
{
	(void)state;
	struct plan_machine m = {.price_h = 1,
				 .speed = {.each_s = 1},
				 .speed_sigma = .5,
				 .workers = 1,
				 .batch_max = 1};
	double lengths[100];
	struct plan_work w;
	struct plan p;

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		lengths[i] = 1;
	m.cold.phase[COLD_BOOT] = (struct cold_time){10, 10, 9};
	plan_work_init(&w, lengths, ARRAY_LEN(lengths), 1, 0);
	const struct {
		struct plan_wish wish;
		int pods;
	} cases[] = {{{0}, 1}, /* 110 s, 200 s at 90 % */
		     {{.cap_s = 120}, 1},
		     {{.cap_s = 100}, 2},
		     {{.within_s = 120}, 2}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(plan_choose(&p, &w, &m, 1, &cases[i].wish), PLAN_FOUND);
		if (p.pods != cases[i].pods)
			fail_msg("case %zu: %d pods, not %d", i, p.pods, cases[i].pods);
	}
	assert_int_equal(plan_choose(&p, &w, &m, 1, &(struct plan_wish){.cap_s = 5}),
			 PLAN_TOO_SLOW);
}

/* The 90th percentile of a plan is that of so many draws of its parts. */
static void the_sum_has_its_own_quantile(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct cold_time phase[5];
		double work_s, sigma;
	} cases[] = {
		{"nothing measured, RunPod",
		 {{10, 60, 0}, {60, 180, 0}, {2, 5, 0}, {3, 10, 0}, {25, 75, 0}},
		 300,
		 .5},
		{"nothing measured, Modal",
		 {{5, 60, 0}, {5, 15, 0}, {2, 5, 0}, {3, 10, 0}, {25, 75, 0}},
		 200,
		 .5},
		{"a set-up of unknown length",
		 {{10, 60, 0}, {60, 180, 0}, {2, 5, 0}, {120, 600, 0}, {25, 75, 0}},
		 300,
		 .5},
		{"all measured",
		 {{10, 14, 9}, {60, 80, 9}, {2, 3, 9}, {3, 4, 9}, {25, 30, 9}},
		 300,
		 .15},
		{"short work", {{10, 14, 9}, {60, 100, 9}, {2, 3, 9}, {3, 4, 9}}, 20, .3},
		{"an exact speed", {{10, 14, 9}, {60, 100, 9}, {2, 3, 9}}, 100, 0},
	};
	static double sums[DRAWS];

	seed = 17;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan_machine m = {.price_h = 3600, /* a dollar a second */
					 .speed = {.once_s = cases[i].work_s},
					 .speed_sigma = cases[i].sigma,
					 .workers = 1,
					 .batch_max = 1};
		double length = 1;
		struct plan_work w;
		struct plan p;
		for (int k = 0; k < 5; k++)
			m.cold.phase[k] = cases[i].phase[k];
		plan_work_init(&w, &length, 1, 1, 0);
		plan_choose(&p, &w, &m, 1, &(struct plan_wish){0});
		for (int n = 0; n < DRAWS; n++) {
			sums[n] = cases[i].work_s * exp(cases[i].sigma * normal());
			for (int k = 0; k < 5; k++)
				sums[n] += draw(cases[i].phase[k].p50_s, cases[i].phase[k].p90_s);
		}
		qsort(sums, DRAWS, sizeof(*sums), by_size);
		if (fabs(p.makespan_p90_s / sums[DRAWS * 9 / 10] - 1) > .03)
			fail_msg("%s: %.1f s, drawn %.1f s", cases[i].name, p.makespan_p90_s,
				 sums[DRAWS * 9 / 10]);
		if (fabs(p.makespan_p50_s / sums[DRAWS / 2] - 1) > .06)
			fail_msg("%s: a median of %.1f s, drawn %.1f s", cases[i].name,
				 p.makespan_p50_s, sums[DRAWS / 2]);
		if (cases[i].sigma == 0)
			assert_near(cold_p90_s(&m.cold) + cases[i].work_s, p.makespan_p90_s, .01);
		assert_near(p.cost_p90_usd / p.makespan_p90_s, 1, .001);
	}
}

static void starts_ahead_of_a_time(void **state)
{
	(void)state;
	/* boots take 40 s, one in ten 90 s; so one in ten takes less than 40 x 40 / 90 */
	const struct cold cold = {.phase = {[COLD_BOOT] = {40, 90, 20}}};
	const double p90_s = cold_p90_s(&cold), p10_s = 40 * 40 / p90_s;
	struct cold_ahead by_itself = cold_ahead(&cold, -1), given = cold_ahead(&cold, 300),
			  late = cold_ahead(&cold, 5);

	assert_near(by_itself.ahead_s, 120, 1e-9);
	assert_near(by_itself.waits_s, 40, 1e-9);
	assert_near(by_itself.early_s, 120 - p10_s, 1e-9);
	assert_near(given.ahead_s, 300, 1e-9);
	assert_near(given.early_s, 300 - p10_s, 1e-9);
	assert_near(late.early_s, 0, 1e-9);
	assert_near(p90_s, 90, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_ahead_of_a_time),
		cmocka_unit_test(one_part_keeps_its_quantiles),
		cmocka_unit_test(a_product_keeps_its_quantiles),
		cmocka_unit_test(a_price_that_moves_widens_the_cost),
		cmocka_unit_test(a_cap_is_no_deadline),
		cmocka_unit_test(the_sum_has_its_own_quantile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
