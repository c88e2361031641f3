/* test_widths.c - the choice among up to a thousand pods finds what computing each width by itself
 * finds. */
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
#include "plan_bed.h"

enum { MACHINES = 3, SEGMENTS_MOST = 1500, WIDEST = 300, GAMES = 400 };

/* What the goal keeps small, with the little of the other quantity that settles ties. */
static double worth(const struct plan *p, const struct plan_wish *wish)
{
	switch (wish->goal) {
	case PLAN_COST: return p->cost_usd + 1e-9 * p->makespan_p50_s;
	case PLAN_TIME: return p->makespan_p50_s + 1e-3 * p->cost_usd;
	case PLAN_BALANCED: return p->cost_usd + wish->value_of_time_h * p->makespan_p50_s / 3600;
	}
	return 0;
}

/* Computes each number of pods of each machine by itself, and keeps the best. */
static bool best_one_by_one(struct plan *out, const struct plan_work *w,
			    const struct plan_machine *machines, const struct plan_wish *wish)
{
	bool any = false;

	for (int i = 0; i < MACHINES; i++)
		for (int pods = 1; pods <= MIN(WIDEST, (int)w->count); pods++) {
			struct plan_wish one = *wish;
			struct plan p;
			one.pods = pods;
			if ((machines[i].pods_max && pods > machines[i].pods_max) ||
			    plan_choose(&p, w, &machines[i], 1, &one) != PLAN_FOUND ||
			    (any && worth(&p, wish) >= worth(out, wish)))
				continue;
			*out = p;
			any = true;
		}
	return any;
}

static bool often(double share)
{
	return random_between(0, 1) < share;
}

static void random_machine(struct plan_machine *m)
{
	*m = (struct plan_machine){
		.price_h = random_between(.1, 5),
		.quantum_s = often(.5) ? 1 : 0,
		.per_run_usd = often(.3) ? random_between(0, .01) : 0,
		.interrupted_every_s = often(.3) ? random_between(600, 40000) : 0,
		.cold.phase[COLD_BOOT] = {random_between(.5, 100), 0, 3},
		.cold.phase[COLD_SETUP] = {often(.5) ? random_between(0, 60) : 0, 0, 3},
		.speed = {often(.5) ? random_between(0, 1) : 0,
			  often(.7) ? random_between(0, .05) : 0, random_between(.0001, .02)},
		.workers = (int)random_between(1, 4),
		.batch_max = often(.3) ? 1 : (int)random_between(1, 80),
		.pods_max = often(.2) ? (int)random_between(1, 200) : 0,
		.creates_a_minute = often(.3) ? (int)random_between(1, 60) : 0,
		.tail_s = random_between(0, 2),
		.release_s = random_between(-1, 1),
	};
	for (int i = 0; i < COLD_PHASES; i++)
		m->cold.phase[i].p90_s = m->cold.phase[i].p50_s * random_between(1, 2);
}

static void random_wish(struct plan_wish *wish)
{
	*wish = (struct plan_wish){
		.goal = (enum plan_goal)random_between(0, 2.999),
		.value_of_time_h = exp(random_between(-2, 7)),
		.within_s = often(.6) ? exp(random_between(3, 8)) : 0,
		.budget_usd = often(.6) ? exp(random_between(-5, 4)) : 0,
		.failing_share = often(.2) ? random_between(0, .3) : 0,
		.canary = often(.7) ? 3 : 0,
		.pods_most = WIDEST,
	};
	wish->staged = wish->goal == PLAN_COST && often(.5);
}

static void no_width_is_missed(void **state)
{
	(void)state;
	int found = 0;

	for (uint64_t game = 1; game <= GAMES; game++) {
		struct plan_machine machines[MACHINES];
		static double lengths[SEGMENTS_MOST];
		struct plan_wish wish;
		struct plan_work w;
		struct plan p, best;
		seed = game;
		size_t count = (size_t)exp(random_between(0, log(SEGMENTS_MOST)));
		double longest = often(.2) ? 3000 : 200;
		for (size_t i = 0; i < count; i++)
			lengths[i] = often(.02) ? longest : random_between(5, 200);
		for (int i = 0; i < MACHINES; i++)
			random_machine(&machines[i]);
		random_wish(&wish);
		plan_work_init(&w, lengths, count, 80, 0);
		bool any = best_one_by_one(&best, &w, machines, &wish);
		bool chosen = plan_choose(&p, &w, machines, MACHINES, &wish) == PLAN_FOUND;
		if (any != chosen)
			fail_msg("game %d: found %d, one by one %d", (int)game, chosen, any);
		if (any && worth(&p, &wish) > worth(&best, &wish) * (1 + 1e-9))
			fail_msg("game %d, goal %d: %d pods: %.9f; one by one %d pods: %.9f",
				 (int)game, wish.goal, p.pods, worth(&p, &wish), best.pods,
				 worth(&best, &wish));
		found += any;
	}
	assert_true(found > GAMES / 3);
}

/* 1,200 items of 1 s at $0.69 an hour. A budget B pays for N pods where (90 N + 1200) x .69/3600 <=
 * B. $3.00: 160 pods, and 150 of them already need only 8 items each. $9.00: 508 pods, 400 with 3
 * items each. */
static void a_budget_alone_ends_the_width(void **state)
{
	(void)state;
	static const struct {
		double budget_usd, usd, makespan_s;
		int pods;
	} cases[] = {{3.00, (90 * 150 + 1200) * .69 / 3600, 98, 150},
		     {9.00, (90 * 400 + 1200) * .69 / 3600, 93, 400}};
	static double lengths[1200];
	struct plan_work w;
	struct plan_machine m = {.price_h = .69,
				 .workers = 1,
				 .batch_max = 1,
				 .speed.each_s = 1,
				 .cold.phase[COLD_BOOT] = {90, 90, 3}};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		lengths[i] = 1;
	plan_work_init(&w, lengths, ARRAY_LEN(lengths), 1, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan_wish wish = {.goal = PLAN_TIME, .budget_usd = cases[i].budget_usd};
		struct plan p;
		assert_int_equal(plan_choose(&p, &w, &m, 1, &wish), PLAN_FOUND);
		assert_int_equal(p.pods, cases[i].pods);
		assert_near(p.cost_usd, cases[i].usd, 1e-9);
		assert_near(p.makespan_p50_s, cases[i].makespan_s, 1e-9);
		wish.pods_most = 64;
		assert_int_equal(plan_choose(&p, &w, &m, 1, &wish), PLAN_FOUND);
		assert_int_equal(p.pods, 64);
		m.pods_max = 7;
		assert_int_equal(plan_widest(&w, &m, &wish), 7);
		m.pods_max = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_width_is_missed),
		cmocka_unit_test(a_budget_alone_ends_the_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
