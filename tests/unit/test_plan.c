/* test_plan.c - the planner's choice against brute force. */
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

/* ---- the choice against brute force ---- */

enum { MACHINES = 6, SEGMENTS_MOST = 400, WIDTHS = 16 };

static int longest_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* Plays a plan out: sorted batches of at most b go to the worker that is free first. Returns its
 * cost. */
static double play(const double *lengths, size_t count, const struct plan_machine *m, int pods,
		   int b, double *makespan_s)
{
	int workers = pods * m->workers;
	double free_at[WIDTHS * 4] = {0}, cold_s = cold_p50_s(&m->cold), billed_s = 0;

	for (size_t first = 0; first < count; first += (size_t)b) {
		double sum = 0;
		int next = 0;
		for (size_t i = first; i < count && i < first + (size_t)b; i++)
			sum += lengths[i];
		for (int i = 1; i < workers; i++)
			if (free_at[i] < free_at[next])
				next = i;
		free_at[next] += speed_batch_s(&m->speed, lengths[first], sum);
	}
	*makespan_s = 0;
	for (int pod = 0; pod < pods; pod++) {
		double until = 0;
		for (int i = 0; i < m->workers; i++)
			until = MAX(until, free_at[pod * m->workers + i]);
		billed_s += cost_quantum_s(cold_s + until + m->tail_s, m->quantum_s);
		*makespan_s = MAX(*makespan_s, cold_s + until + m->tail_s);
	}
	return cost_usd(m->price_h, billed_s) + m->per_run_usd;
}

static void random_machine(struct plan_machine *m)
{
	*m = (struct plan_machine){
		.price_h = random_between(.2, 4),
		.quantum_s = random_between(0, 1) < .5 ? 0 : 1,
		.cold.phase[COLD_BOOT] = {random_between(5, 200), 0, 3},
		.speed = {random_between(0, 1), random_between(0, .02), random_between(.0001, .01)},
		.workers = 1,
		.batch_max = (int)random_between(1, 100),
		.tail_s = random_between(0, 3),
	};
	m->cold.phase[COLD_BOOT].p90_s = m->cold.phase[COLD_BOOT].p50_s;
}

static void make_game(double *lengths, size_t count, struct plan_machine machines[MACHINES],
		      struct plan_work *w)
{
	for (size_t i = 0; i < count; i++)
		lengths[i] = random_between(30, 200);
	for (int i = 0; i < MACHINES; i++)
		random_machine(&machines[i]);
	plan_work_init(w, lengths, count, 100, 0);
}

/* The best that any batch size and width gives, by playing all of them. */
static double brute_force(const double *lengths, size_t count, const struct plan_machine *machines,
			  double within_s)
{
	double best = INFINITY;

	for (int i = 0; i < MACHINES; i++)
		for (int pods = 1; pods <= WIDTHS; pods++)
			for (int b = 1; b <= machines[i].batch_max; b++) {
				double makespan_s, usd = play(lengths, count, &machines[i], pods, b,
							      &makespan_s);
				if (makespan_s <= within_s)
					best = MIN(best, usd);
			}
	return best;
}

static void the_choice_is_within_one_percent(void **state)
{
	(void)state;
	double sum_over = 0;
	int games = 0;

	for (uint64_t game = 1; game <= 60; game++) {
		struct plan_machine machines[MACHINES];
		double lengths[SEGMENTS_MOST], makespan_s;
		const struct plan_wish wish = {.goal = PLAN_COST, .pods_most = WIDTHS};
		struct plan_work w;
		struct plan p;
		seed = game;
		size_t count = (size_t)random_between(20, SEGMENTS_MOST);
		make_game(lengths, count, machines, &w);
		assert_int_equal(plan_choose(&p, &w, machines, MACHINES, &wish), PLAN_FOUND);
		qsort(lengths, count, sizeof(*lengths), longest_first);
		double usd =
			play(lengths, count, &machines[p.machine], p.pods, p.batch, &makespan_s);
		double best = brute_force(lengths, count, machines, INFINITY);
		/* what it says is what it gets, up to a billed second */
		assert_near(p.cost_usd / usd, 1, .05);
		/* a billed second may go either way */
		if (usd > best * 1.01 + cost_usd(machines[p.machine].price_h, p.pods))
			fail_msg("game %d: %.5f, brute force %.5f", (int)game, usd, best);
		sum_over += usd / best - 1;
		games++;
	}
	print_message("%d games: %.2f %% above brute force on average\n", games,
		      100 * sum_over / games);
}

static void deadlines_are_kept_when_played(void **state)
{
	(void)state;
	for (uint64_t game = 1; game <= 60; game++) {
		struct plan_machine machines[MACHINES];
		double lengths[SEGMENTS_MOST], makespan_s;
		struct plan_wish wish = {.goal = PLAN_TIME, .pods_most = WIDTHS};
		struct plan_work w;
		struct plan fastest, p;
		seed = 1000 + game;
		size_t count = (size_t)random_between(20, SEGMENTS_MOST);
		make_game(lengths, count, machines, &w);
		assert_int_equal(plan_choose(&fastest, &w, machines, MACHINES, &wish), PLAN_FOUND);
		wish.goal = PLAN_COST;
		wish.within_s = fastest.makespan_p90_s * 1.3;
		assert_int_equal(plan_choose(&p, &w, machines, MACHINES, &wish), PLAN_FOUND);
		assert_true(p.cost_usd <= fastest.cost_usd);
		qsort(lengths, count, sizeof(*lengths), longest_first);
		play(lengths, count, &machines[p.machine], p.pods, p.batch, &makespan_s);
		if (makespan_s > wish.within_s * 1.05)
			fail_msg("game %d: %.1f s, the deadline is %.1f s", (int)game, makespan_s,
				 wish.within_s);
		wish.within_s = 1;
		assert_int_equal(plan_choose(&p, &w, machines, MACHINES, &wish), PLAN_TOO_SLOW);
		assert_near(p.makespan_p50_s, fastest.makespan_p50_s, 1e-6);
	}
}

/* 100 segments of 1 s (3 s on the slow card) on pods that come up in 20 s: what is given beside all
 * that there is. */
static void a_clearly_better_plan_is_found(void **state)
{
	enum { SLOW, FAST, EQUAL, CARDS };
	static const struct {
		const char *name;
		int card, pods; /* given */
		enum plan_goal goal;
		double within_s, budget_usd;
		int better_pods; /* on the fast card, or its equal; 0: none */
	} cases[] = {
		{"four pods cost three cold starts more", FAST, 4, PLAN_COST, 0, 0, 1},
		{"the best one needs no word", FAST, 1, PLAN_COST, 0, 0, 0},
		{"nor does one of the same price and speed", EQUAL, 1, PLAN_COST, 0, 0, 0},
		{"a card of a third of the cost", SLOW, 1, PLAN_COST, 0, 0, 1},
		{"fewer pods would miss the deadline", FAST, 4, PLAN_COST, 50, 0, 0},
		{"no budget for another pod", FAST, 1, PLAN_TIME, 0, .035, 0},
		{"a budget for two", FAST, 1, PLAN_TIME, 0, .04, 2},
	};
	double lengths[100];
	struct plan_work w;
	struct plan_machine m[CARDS];
	struct plan given, other = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		lengths[i] = 100;
	plan_work_init(&w, lengths, ARRAY_LEN(lengths), 1, 0);
	for (int i = 0; i < CARDS; i++) {
		m[i] = (struct plan_machine){.price_h = 1,
					     .speed = {.each_s = i == SLOW ? .03 : .01},
					     .workers = 1,
					     .batch_max = 1};
		m[i].cold.phase[COLD_BOOT] = (struct cold_time){20, 20, 3};
	}
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan_wish wish = {.goal = cases[i].goal,
					 .within_s = cases[i].within_s,
					 .budget_usd = cases[i].budget_usd,
					 .pods = cases[i].pods};
		plan_given(&given, &w, m, cases[i].card, cases[i].pods, 1, &wish);
		bool found = plan_better(&other, &given, &w, m, CARDS, &wish);
		if (found != (cases[i].better_pods > 0) ||
		    (found && (other.machine == SLOW || other.pods != cases[i].better_pods)))
			fail_msg("%s: %s, %d pods of card %d: %.1f s, $%.4f; given: %.1f s, $%.4f",
				 cases[i].name, found ? "found" : "none", other.pods, other.machine,
				 other.makespan_p50_s, other.cost_usd, given.makespan_p50_s,
				 given.cost_usd);
	}
	/* an hour that is worth a lot pays for pods */
	struct plan_wish balanced = {.goal = PLAN_BALANCED, .value_of_time_h = 100, .pods = 1};
	plan_given(&given, &w, m, FAST, 1, 1, &balanced);
	assert_true(plan_better(&other, &given, &w, m, CARDS, &balanced) && other.pods > 1);
	/* for every goal: a fifth faster at no more cost */
	struct plan_wish cheap = {.goal = PLAN_COST, .pods = 1};
	m[SLOW].price_h = .5;
	m[FAST].price_h = m[EQUAL].price_h = 1.3;
	plan_given(&given, &w, m, SLOW, 1, 1, &cheap);
	assert_true(plan_better(&other, &given, &w, m, CARDS, &cheap));
	assert_true(other.machine != SLOW && other.cost_usd <= given.cost_usd &&
		    other.makespan_p50_s <= .8 * given.makespan_p50_s);
	m[FAST].price_h = m[EQUAL].price_h = 1.4; /* now it costs more */
	assert_false(plan_better(&other, &given, &w, m, CARDS, &cheap));
	/* cents and seconds that nobody misses */
	m[FAST].price_h = m[EQUAL].price_h = .001;
	plan_given(&given, &w, m, FAST, 4, 1, &cheap);
	assert_false(plan_better(&other, &given, &w, &m[FAST], 1, &cheap));
}

/* 100 segments of one length, 1 s each; 20 s until a pod works, of which the first one's setup
 * takes 8. */
static void the_canary_setup_and_width_are_counted(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int pods, canary, batch_max;
		bool staged;
		double makespan_s, billed_s, at_risk_s, once_s;
	} cases[] = {
		{"one pod", 1, 0, 1, false, 120, 121, 0},
		/* 3 segments in one batch cost what they cost in any: 1 s each */
		{"one pod with a canary", 1, 3, 8, false, 120, 121, 0},
		{"four at once wait for the first one's setup", 4, 0, 1, false, 45, 184, 0},
		/* the canary is one of their batches, and a bad one stops four pods after 20 + 1 +
		 * 1 s */
		{"four at once, a segment in each batch", 4, 3, 1, false, 45, 184, 4 * 22},
		{"four at once, two segments in each batch", 4, 3, 2, false, 20 + 13 * 100 / 52.,
		 184, 4 * 23},
		/* at 8 s for each batch: 97 segments in 16 batches beside it, 20 + 11 + 4 x (8 +
		 * 97/16) s */
		{"four at once, batches larger than the canary", 4, 3, 8, false, 20 + 11 + 56.25,
		 80 + 11 + 225 + 4, 4 * 32, .once_s = 8},
		/* 97 s of work at 12 s for each further pod: all four pay. 20 + 3 + 97/4 + 12 * 3/4
		 */
		{"four in stages", 4, 3, 3, true, 20 + 3 + 9 * 97 / 36. + 9,
		 20 + 3 + 24.25 + 9 + 3 * (12 + 24.25 + 9 - 12) + 4, 0},
		/* where a batch has one segment, the canary has one, too: 99 s are left, 25 rounds
		 */
		{"four in stages without batches", 4, 3, 1, true, 20 + 1 + 25 + 9,
		 20 + 1 + 99 + 3 * 12 + 4, 0},
		/* a pod more than 99/12 - 1 = 7 of them would find too little to do */
		{"sixty-four in stages are seven", 64, 3, 1, true, 20 + 1 + 15 + 12 * 6 / 7.,
		 20 + 1 + 6 * 12 + 99 + 7, 0},
	};
	double lengths[100];
	struct plan_work w;
	struct plan_machine m = {
		.price_h = 3600, .speed = {.each_s = .01}, .workers = 1, .release_s = 1};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		lengths[i] = 100;
	m.cold.phase[COLD_BOOT] = (struct cold_time){12, 12, 3};
	m.cold.phase[COLD_SETUP] = (struct cold_time){8, 8, 3};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct plan_wish wish = {.canary = cases[i].canary,
					       .staged = cases[i].staged};
		struct plan p;
		plan_work_init(&w, lengths, ARRAY_LEN(lengths), cases[i].batch_max, 0);
		m.batch_max = cases[i].batch_max;
		m.speed.once_s = cases[i].once_s;
		plan_given(&p, &w, &m, 0, cases[i].pods, cases[i].batch_max, &wish);
		if (fabs(p.makespan_p50_s - cases[i].makespan_s) > .01 ||
		    fabs(p.billed_s - cases[i].billed_s) > .01 ||
		    fabs(p.at_risk_usd - cases[i].at_risk_s) > .01)
			fail_msg("%s: %.2f s, billed %.2f s, at risk %.2f s; expected %.2f s, %.2f "
				 "s and %.2f s",
				 cases[i].name, p.makespan_p50_s, p.billed_s, p.at_risk_usd,
				 cases[i].makespan_s, cases[i].billed_s, cases[i].at_risk_s);
		assert_near(p.cost_usd, p.billed_s, 1e-6);
	}
}

static void verdicts_name_what_is_missing(void **state)
{
	(void)state;
	double lengths[100];
	struct plan_work w;
	struct plan p;
	struct plan_machine m[] = {
		{.price_h = 1,
		 .workers = 1,
		 .batch_max = 1,
		 .speed.each_s = 1,
		 .cold.phase[COLD_BOOT] = {60, 60, 3}},
		{.price_h = 1, .workers = 1, .batch_max = 0, .speed.each_s = .01},
	};
	struct plan_wish wish = {.goal = PLAN_COST};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		lengths[i] = 1;
	plan_work_init(&w, lengths, ARRAY_LEN(lengths), 1, 0);
	assert_int_equal(plan_choose(&p, &w, &m[1], 1, &wish), PLAN_NOTHING_FITS);
	assert_int_equal(plan_choose(&p, &w, m, 2, &wish), PLAN_FOUND);
	assert_int_equal(p.machine, 0);
	wish.budget_usd = 0.01; /* 36 s */
	assert_int_equal(plan_choose(&p, &w, m, 2, &wish), PLAN_TOO_EXPENSIVE);
	assert_near(p.cost_usd, 160.0 / 3600, 1e-9);
	wish.within_s = 70;
	wish.budget_usd = 160.0 / 3600;
	assert_int_equal(plan_choose(&p, &w, m, 2, &wish), PLAN_NEITHER);
	assert_int_equal(p.pods, 10);
}

static void time_has_a_price(void **state)
{
	(void)state;
	double lengths[1200];
	struct plan_work w;
	struct plan p;
	struct plan_machine m = {.price_h = .69,
				 .workers = 1,
				 .batch_max = 1,
				 .speed.each_s = 1,
				 .cold.phase[COLD_BOOT] = {90, 90, 3}};
	struct plan_wish wish = {.goal = PLAN_BALANCED};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		lengths[i] = 1;
	plan_work_init(&w, lengths, ARRAY_LEN(lengths), 1, 0);
	for (double value_h = 1; value_h < 100; value_h *= 3) {
		wish.value_of_time_h = value_h;
		assert_int_equal(plan_choose(&p, &w, &m, 1, &wish), PLAN_FOUND);
		double expected = cost_pods_for_value(value_h, .69, 90, 1200);
		assert_near(p.pods, expected, 1 + expected * .1); /* whole rounds of segments */
	}
}

static void the_front_has_no_loser(void **state)
{
	(void)state;
	for (uint64_t game = 1; game <= 20; game++) {
		struct plan_machine machines[MACHINES];
		double lengths[200];
		const struct plan_wish wish = {.pods_most = WIDTHS};
		struct plan_work w;
		struct plan front[PLAN_FRONT_MAX], cheapest;
		seed = 5000 + game;
		make_game(lengths, ARRAY_LEN(lengths), machines, &w);
		size_t n = plan_front(front, PLAN_FRONT_MAX, &w, machines, MACHINES, &wish);
		assert_true(n > 0);
		plan_choose(&cheapest, &w, machines, MACHINES, &wish);
		assert_near(front[0].cost_usd, cheapest.cost_usd, 1e-9);
		for (size_t i = 1; i < n; i++)
			assert_true(front[i].cost_usd >= front[i - 1].cost_usd &&
				    front[i].makespan_p50_s < front[i - 1].makespan_p50_s);
	}
}

/* No two workers share a segment: however many pods there are, the longest one takes its time after
 * a cold start. */
static void the_longest_segment_bounds_the_time(void **state)
{
	(void)state;
	static const struct {
		size_t small;
		double each, longest;
		double a, c;    /* seconds per unit of the longest, and of all */
		double least_s; /* that the longest takes by itself */
	} cases[] = {{8, 30, 480, 0, .05, 24},
		     {8, 30, 480, .02, .01, 14.4},
		     {11, 20, 900, 0, .02, 18},
		     {300, 10, 6000, .001, .01, 66},
		     {40, 80, 80, 0, .05, 4}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (int pods = 1; pods <= 16; pods *= 2)
			for (int batch = 1; batch <= 8; batch *= 2) {
				double lengths[301], cold_s = 10;
				struct plan_machine m = {
					.price_h = 1,
					.speed = {0, cases[i].a, cases[i].c},
					.workers = 1,
					.batch_max = batch,
					.cold.phase[COLD_BOOT] = {cold_s, cold_s, 3}};
				struct plan_work w;
				struct plan p;
				for (size_t k = 0; k < cases[i].small; k++)
					lengths[k] = cases[i].each;
				lengths[cases[i].small] = cases[i].longest;
				plan_work_init(&w, lengths, cases[i].small + 1, batch, 0);
				plan_given(&p, &w, &m, 0, pods, batch, &(struct plan_wish){0});
				if (p.makespan_p50_s < cold_s + cases[i].least_s - 1e-9)
					fail_msg("case %zu, %d pods, batches of %d: %.2f s, no "
						 "schedule takes less than %.2f s",
						 i, pods, batch, p.makespan_p50_s,
						 cold_s + cases[i].least_s);
			}
}

static void each_pod_more_costs_a_cold_start(void **state)
{
	(void)state;
	double lengths[64];
	struct plan_work w;
	struct plan widths[8];
	struct plan_machine m = {.price_h = 3.6,
				 .workers = 1,
				 .batch_max = 1,
				 .speed.each_s = 1,
				 .cold.phase[COLD_BOOT] = {100, 100, 3}};
	const struct plan_wish wish = {.pods_most = 8};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		lengths[i] = 1;
	plan_work_init(&w, lengths, ARRAY_LEN(lengths), 1, 0);
	assert_int_equal(plan_widths(widths, 8, &w, &m, 0, &wish), 4); /* 1, 2, 4, 8 */
	for (int i = 0; i < 4; i++) {
		assert_near(widths[i].cost_usd, .001 * (64 + 100 * (1 << i)), 1e-9);
		assert_near(widths[i].used, 64.0 / (64 + 100 * (1 << i)), 1e-9);
	}
	assert_int_equal(plan_bottleneck(&widths[0], &w, &m), PLAN_BY_COLD_START);
	m.cold.phase[COLD_BOOT] = (struct cold_time){1, 1, 3};
	assert_int_equal(plan_bottleneck(&widths[0], &w, &m), PLAN_BY_COMPUTE);
	m.speed.once_s = 2;
	assert_int_equal(plan_bottleneck(&widths[0], &w, &m), PLAN_BY_HOST);
	m.speed.longest_s = 3;
	assert_int_equal(plan_bottleneck(&widths[0], &w, &m), PLAN_BY_BANDWIDTH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_choice_is_within_one_percent),
		cmocka_unit_test(deadlines_are_kept_when_played),
		cmocka_unit_test(the_canary_setup_and_width_are_counted),
		cmocka_unit_test(a_clearly_better_plan_is_found),
		cmocka_unit_test(verdicts_name_what_is_missing),
		cmocka_unit_test(time_has_a_price),
		cmocka_unit_test(the_front_has_no_loser),
		cmocka_unit_test(the_longest_segment_bounds_the_time),
		cmocka_unit_test(each_pod_more_costs_a_cold_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
