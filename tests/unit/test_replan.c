/* test_replan.c - what a run changes when its pods are slower or faster, or prices other, than
 * planned: by the pure rule, and by the core. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "plan/replan.h"

static const char *const verbs[] = {
	"keep", "add", "give back", "replace", "replace after", "stop: deadline", "stop: budget"};

static void factors_and_shares(void **state)
{
	(void)state;
	static const struct {
		double measured, planned;
		bool off;
	} speeds[] = {{2.1, 1, true}, {1.9, 1, false},    {1, 1, false}, {.51, 1, false},
		      {.49, 1, true}, {1 / 3.0, 1, true}, {0, 1, false}, {5, 0, false}},
	  prices[] = {{1.12, 1, true},  {1.09, 1, false}, {.7, 1, true}, {.91, 1, false},
		      {1.10, 1, false}, {.01, 0, true},   {0, 0, false}};

	for (size_t i = 0; i < ARRAY_LEN(speeds); i++)
		if (replan_speed_is_off(speeds[i].measured, speeds[i].planned) != speeds[i].off)
			fail_msg("speed row %zu", i);
	for (size_t i = 0; i < ARRAY_LEN(prices); i++)
		if (replan_price_is_off(prices[i].measured, prices[i].planned) != prices[i].off)
			fail_msg("price row %zu", i);
}

/* Pods at $3.6 an hour, a tenth of a cent a second, that render 1 a second, and come up in 30 s
 * (p90: 50 s). */
#define POD(cold)                                                                                  \
	{                                                                                          \
		3.6, 1, cold, 1, 1e6, 0                                                            \
	}
#define OFFER                                                                                      \
	{                                                                                          \
		3.6, 1, 30, 50, 1                                                                  \
	}
#define BETTER(price)                                                                              \
	{                                                                                          \
		price, 2, 30, 50, .5                                                               \
	}
#define NO_BUDGET .room_usd = INFINITY

static const struct {
	const char *name;
	struct replan_case of;
	int pod_count, offer_count;
	struct replan_pod pods[4];
	struct replan_offer offers[2];
	enum replan_verb verb;
	int offer, changed;
	bool guessed; /* no batch was measured in this run */
} rows[] = {
	{"nothing is better than one pod that works, for the least cost",
	 {.work = 1000, .pods_most = 8, .width_open = true, NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_KEEP},
	{"the deadline takes two more",
	 {.work = 1000,
	  .pods_most = 8,
	  .width_open = true,
	  .wish.within_s = 370,
	  .within_is_must = true,
	  NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_ADD,
	 0,
	 2},
	{"new pods may be slow, so it takes three",
	 {.work = 1000,
	  .pods_most = 8,
	  .width_open = true,
	  .wish.within_s = 370,
	  .within_is_must = true,
	  NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {{3.6, 1, 30, 50, 1, .15}},
	 REPLAN_ADD,
	 0,
	 3},
	{"a cap is kept by what is expected",
	 {.work = 1000, .pods_most = 8, .width_open = true, .wish.cap_s = 370, NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {{3.6, 1, 30, 50, 1, .15}},
	 REPLAN_ADD,
	 0,
	 2},
	{"there is time",
	 {.work = 300,
	  .pods_most = 8,
	  .width_open = true,
	  .wish.within_s = 370,
	  .within_is_must = true,
	  NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_KEEP},
	{"the width is the user's",
	 {.work = 1000, .wish.within_s = 990, NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_KEEP},
	{"so the deadline is missed",
	 {.work = 1000, .wish.within_s = 370, .within_is_must = true, NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_STOP_LATE},
	{"nothing is stopped for a guess",
	 {.work = 1000, .wish.within_s = 370, .within_is_must = true, NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_KEEP,
	 .guessed = true},
	{"a little late is better than not at all",
	 {.work = 1000, .wish.within_s = 950, .late_ok_s = 60, .within_is_must = true, NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_KEEP},
	{"a cap on duration is no reason to stop before it",
	 {.work = 1000, .wish.within_s = 100, NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_KEEP},
	{"three times as fast: the pod that comes up is not needed",
	 {.work = 60, .pods_most = 8, .width_open = true, NO_BUDGET},
	 2,
	 1,
	 {POD(0), POD(30)},
	 {OFFER},
	 REPLAN_RELEASE,
	 0,
	 1},
	{"... unless the deadline needs it",
	 {.work = 60, .pods_most = 8, .width_open = true, .wish.within_s = 50, NO_BUDGET},
	 2,
	 1,
	 {POD(0), POD(30)},
	 {OFFER},
	 REPLAN_KEEP},
	{"the furthest two of three",
	 {.work = 60, .pods_most = 8, .width_open = true, .wish.within_s = 56, NO_BUDGET},
	 4,
	 1,
	 {POD(0), POD(10), POD(40), POD(50)},
	 {OFFER},
	 REPLAN_RELEASE,
	 0,
	 2},
	{"pods that all come up are not all given back",
	 {.work = 1, .pods_most = 8, .width_open = true, NO_BUDGET},
	 2,
	 1,
	 {POD(10), POD(30)},
	 {OFFER},
	 REPLAN_RELEASE,
	 0,
	 1},
	{"time has a price",
	 {.work = 1000,
	  .pods_most = 3,
	  .wish = {.goal = PLAN_BALANCED, .value_of_time_h = 360},
	  NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_ADD,
	 0,
	 2},
	{"all haste",
	 {.work = 1000, .pods_most = 4, .wish.goal = PLAN_TIME, NO_BUDGET},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_ADD,
	 0,
	 3},
	{"haste costs no more than the budget",
	 {.work = 1000,
	  .pods_most = 8,
	  .width_open = true,
	  .wish = {.goal = PLAN_TIME, .budget_usd = 1.1},
	  .room_usd = .9},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_ADD,
	 0,
	 3},
	{"nor than what no pod holds of it",
	 {.work = 1000,
	  .pods_most = 8,
	  .width_open = true,
	  .wish = {.goal = PLAN_TIME, .budget_usd = 1.1},
	  .room_usd = .1},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_KEEP},
	/* twice as fast at 1.4 times the price */
	{"another GPU for the rest",
	 {.work = 1000, .pods_most = 8, .width_open = true, .gpus_open = true, NO_BUDGET},
	 1,
	 2,
	 {POD(0)},
	 {OFFER, BETTER(5.04)},
	 REPLAN_REPLACE,
	 1,
	 1},
	{"not where it saves less than a fifth",
	 {.work = 1000, .pods_most = 8, .width_open = true, .gpus_open = true, NO_BUDGET},
	 1,
	 2,
	 {POD(0)},
	 {OFFER, BETTER(5.9)},
	 REPLAN_KEEP},
	{"not for so little work",
	 {.work = 100, .pods_most = 8, .width_open = true, .gpus_open = true, NO_BUDGET},
	 1,
	 2,
	 {POD(0)},
	 {OFFER, BETTER(5.04)},
	 REPLAN_KEEP},
	{"not where GPUs and pods are the user's",
	 {.work = 1000, NO_BUDGET},
	 1,
	 2,
	 {POD(0)},
	 {OFFER, BETTER(5.04)},
	 REPLAN_KEEP},
	{"first one, then the other, where one pod is all",
	 {.work = 1000, .gpus_open = true, NO_BUDGET},
	 1,
	 2,
	 {POD(0)},
	 {OFFER, BETTER(5.04)},
	 REPLAN_REPLACE_AFTER,
	 1,
	 1},
	{"or all money is held",
	 {.work = 1000,
	  .pods_most = 8,
	  .width_open = true,
	  .gpus_open = true,
	  .wish.budget_usd = 2},
	 1,
	 2,
	 {POD(0)},
	 {OFFER, BETTER(5.04)},
	 REPLAN_REPLACE_AFTER,
	 1,
	 1},
	{"the deadline takes another GPU",
	 {.work = 1000, .gpus_open = true, .wish.within_s = 600, .within_is_must = true, NO_BUDGET},
	 1,
	 2,
	 {POD(0)},
	 {OFFER, BETTER(9)},
	 REPLAN_REPLACE_AFTER,
	 1,
	 1},
	{"its price fell by a third",
	 {.work = 1000, .pods_most = 8, .width_open = true, .gpus_open = true, NO_BUDGET},
	 1,
	 2,
	 {POD(0)},
	 {OFFER, {2.4, 1, 30, 50, 1}},
	 REPLAN_REPLACE,
	 1,
	 1},
	{"the budget pays for a part",
	 {.work = 1000, .pods_most = 8, .width_open = true, .wish.budget_usd = .5, .room_usd = .1},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_KEEP},
	{"the budget does not pay for one more",
	 {.work = 1000, .pods_most = 8, .width_open = true, .wish.budget_usd = .0005},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_STOP_BUDGET},
	{"a guess of that stops nothing either",
	 {.work = 1000, .pods_most = 8, .width_open = true, .wish.budget_usd = .0005},
	 1,
	 1,
	 {POD(0)},
	 {OFFER},
	 REPLAN_KEEP,
	 .guessed = true},
	{"there is money, and no pod lives long enough",
	 {.work = 1000, .pods_most = 8, .width_open = true, .wish.budget_usd = .5},
	 1,
	 1,
	 {{3.6, .01, 0, 100, 50, 0}},
	 {OFFER},
	 REPLAN_STOP_BUDGET},
};

static void each_case_has_its_change(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct replan_case of = rows[i].of;
		struct replan_choice got;

		of.is_measured = !rows[i].guessed;
		of.pods = rows[i].pods;
		of.pod_count = (size_t)rows[i].pod_count;
		of.offers = rows[i].offers;
		of.offer_count = (size_t)rows[i].offer_count;
		replan_choose(&got, &of);
		bool counts = rows[i].verb >= REPLAN_ADD && rows[i].verb <= REPLAN_REPLACE_AFTER;
		if (got.verb != rows[i].verb || (counts && got.pods != rows[i].changed) ||
		    (counts && rows[i].verb != REPLAN_RELEASE && got.offer != rows[i].offer))
			fail_msg("%s: got %s %d of offer %d (%.0f s, $%.3f; as it is: %.0f s, "
				 "$%.3f), expected %s %d",
				 rows[i].name, verbs[got.verb], got.pods, got.offer, got.makespan_s,
				 got.cost_usd, got.keep_makespan_s, got.keep_cost_usd,
				 verbs[rows[i].verb], rows[i].changed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factors_and_shares),
		cmocka_unit_test(each_case_has_its_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
