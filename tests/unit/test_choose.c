/* test_choose.c - the card and the number of pods that the planner chooses, against worked
 * cases: one row per case. UC: the U-curve. WT: width by deadline. BG: by budget. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/gpus.h"
#include "formulas.h"
#include "plan/choose.h"
#include "plan/cost.h"
#include "rows.h"
#include "plan_bed.h"

/* Modal's list prices of September 2026, an hour. */
static const struct {
	const char *gpu;
	double price_s;
	double bandwidth; /* 0: the catalog's */
} modal[] = {{"T4", .000164, 0},
	     {"L4", .000222, 0},
	     {"A10", .000306, 0},
	     {"L40S", .000542, 0},
	     {"A100 40GB", .000583, 0},
	     {"A100 80GB SXM", .000694, 0},
	     {"RTX PRO 6000", .000842, 1792},
	     {"H100 SXM", .001097, 0},
	     {"H200 SXM", .001261, 0},
	     {"B200", .001736, 0}};
enum { CARDS = ARRAY_LEN(modal) };

/* Each item moves 600 GB of memory, plus a host floor that no card shortens; cold start 10 s,
 * batch 1. */
static void modal_machines(struct plan_machine machines[CARDS], double floor_s)
{
	for (int i = 0; i < CARDS; i++) {
		double bandwidth = modal[i].bandwidth > 0 ? modal[i].bandwidth
							  : gpu_find(modal[i].gpu)->bandwidth_gb_s;
		machines[i] = (struct plan_machine){
			.id = i,
			.price_h = modal[i].price_s * 3600,
			.cold.phase[COLD_BOOT] = {10, 10, 3},
			.speed = {.once_s = floor_s, .each_s = 600 / bandwidth},
			.workers = 1,
			.batch_max = 1,
		};
	}
}

static struct plan_work even_work(size_t count, int batch_max)
{
	struct plan_work w;
	double *lengths = xcalloc(count, sizeof(*lengths));

	for (size_t i = 0; i < count; i++)
		lengths[i] = 1;
	plan_work_init(&w, lengths, count, batch_max, 0);
	free(lengths);
	return w;
}

static const char *cheapest_card(size_t items, double floor_s)
{
	struct plan_machine machines[CARDS];
	struct plan_work w = even_work(items, 1);
	const struct plan_wish wish = {.goal = PLAN_COST, .pods = 1};
	struct plan best;

	modal_machines(machines, floor_s);
	assert_int_equal(plan_choose(&best, &w, machines, CARDS, &wish), PLAN_FOUND);
	return modal[best.machine].gpu;
}

static void the_u_curve(void **state)
{
	(void)state;
	static const struct {
		size_t items;
		double usd_million[CARDS]; /* $/item x 1e6, in the order of `modal` */
	} table[] = {
		{1, {1948, 2664, 3366, 5796, 6055, 7144, 8702, 11166, 12768, 17490}},
		{10, {472, 666, 612, 918, 808, 898, 1124, 1293, 1419, 1866}},
		{50, {340, 488, 367, 485, 342, 343, 450, 416, 410, 477}},
		{100, {324, 466, 337, 431, 283, 274, 366, 306, 284, 304}},
		{1000, {309, 446, 309, 382, 231, 211, 290, 207, 170, 148}},
	};
	static const struct {
		size_t from, to;
		const char *gpu;
	} bottoms[] = {{1, 50, "T4"},
		       {51, 53, "A100 40GB"},
		       {54, 121, "A100 80GB SXM"},
		       {122, 173, "H200 SXM"},
		       {174, 1000, "B200"}};
	struct plan_machine machines[CARDS];
	const struct plan_wish wish = {.goal = PLAN_COST, .pods = 1};
	struct row rows[ARRAY_LEN(table) * CARDS + 2 * ARRAY_LEN(bottoms) + 1];
	size_t n = 0;

	modal_machines(machines, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct plan_work w = even_work(table[i].items, 1);
		for (int card = 0; card < CARDS; card++) {
			struct plan p;
			plan_given(&p, &w, machines, card, 1, 1, &wish);
			rows[n++] = (struct row){"UC-1",
						 modal[card].gpu,
						 p.cost_usd / (double)table[i].items * 1e6,
						 table[i].usd_million[card],
						 RELATIVE,
						 0.01};
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(bottoms); i++) {
		rows[n++] = (struct row){"UC-1",
					 "bottom from",
					 is_card(cheapest_card(bottoms[i].from, 0), bottoms[i].gpu),
					 1,
					 ABSOLUTE,
					 0};
		rows[n++] = (struct row){"UC-1",
					 "bottom up to",
					 is_card(cheapest_card(bottoms[i].to, 0), bottoms[i].gpu),
					 1,
					 ABSOLUTE,
					 0};
	}
	rows[n++] = (struct row){"P-35",
				 "one item, dearest against cheapest (source: 10x)",
				 table[0].usd_million[CARDS - 1] / table[0].usd_million[0],
				 9.0,
				 ABSOLUTE,
				 0.05};
	check_rows("UC-1", rows, n);
}

static void a_host_floor_makes_the_cheapest_card_win(void **state)
{
	(void)state;
	static const struct {
		int card;
		double usd_million; /* of 1,000 items */
	} table[] = {{0, 350}, {4, 377}, {2, 386}, {8, 485}, {9, 582}};
	struct plan_machine machines[CARDS];
	struct plan_work w = even_work(1000, 1);
	struct row rows[ARRAY_LEN(table) + 8];
	size_t n = 0;

	modal_machines(machines, 0.25);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct plan p;
		plan_given(&p, &w, machines, table[i].card, 1, 1, &(struct plan_wish){.pods = 1});
		rows[n++] = (struct row){"UC-2",
					 modal[table[i].card].gpu,
					 p.cost_usd / 1000 * 1e6,
					 table[i].usd_million,
					 RELATIVE,
					 0.01};
	}
	for (size_t items = 1; items <= 1000; items = items * 3 + 1)
		rows[n++] = (struct row){"UC-2",
					 "the T4 is the bottom",
					 is_card(cheapest_card(items, 0.25), "T4"),
					 1,
					 ABSOLUTE,
					 0};
	rows[n++] = (struct row){"UC-2", "at 1,000 items", is_card(cheapest_card(1000, 0.25), "T4"),
				 1,      ABSOLUTE,         0};
	check_rows("UC-2", rows, n);
}

static void pods_for_a_deadline(void **state)
{
	(void)state;
	static const struct {
		double deadline_min, cold_min;
		int pods; /* 0: none meets it */
		double usd;
	} cases[] = {
		{5, 1.5, 6, .3335},  {10, 1.5, 3, .2818}, {16, 1.5, 2, .2645}, {20, 1.5, 2, .2645},
		{30, 1.5, 1, .2473}, {40, 1.5, 1, .2473}, {5, 15, 0, 0},       {10, 15, 0, 0},
		{16, 15, 20, 3.68},  {20, 15, 4, .92},    {30, 15, 2, .575},   {40, 15, 1, .4025},
	};

	struct row rows[ARRAY_LEN(cases) * 3];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		/* 20 minutes in seconds, so that any width divides it well */
		struct plan_work w = even_work(1200, 1);
		struct plan_machine m = {
			.price_h = 0.69, .workers = 1, .batch_max = 1, .speed.each_s = 1};
		const struct plan_wish wish = {.goal = PLAN_COST,
					       .within_s = MINUTES(cases[i].deadline_min)};
		struct plan p;
		m.cold.phase[COLD_BOOT] = (struct cold_time){MINUTES(cases[i].cold_min),
							     MINUTES(cases[i].cold_min), 3};
		enum plan_verdict verdict = plan_choose(&p, &w, &m, 1, &wish);
		bool found = verdict == PLAN_FOUND;
		rows[n++] = (struct row){"WT-1",
					 "pods by the formula",
					 cost_pods_for_deadline(wish.within_s,
								MINUTES(cases[i].cold_min),
								MINUTES(20)),
					 cases[i].pods,
					 ABSOLUTE,
					 0};
		rows[n++] = (struct row){
			"WT-1", "pods that are chosen", found ? p.pods : 0, cases[i].pods, ABSOLUTE,
			0};
		rows[n++] = (struct row){"WT-1",       "what they cost", found ? p.cost_usd : 0,
					 cases[i].usd, ABSOLUTE,         0.0005};
	}
	check_rows("WT-1", rows, n);
}

/* The same with the first segments checked: all pods work at once, and the check is a batch of one
 * of them. 1,200 s of work, in items that no two pods share: 40 pods have 30 items of 1 s each, 43
 * have at most 7 of 4 s (40 would have 8). A pod with 15 items of 4 s ends after 960 s. What bad
 * first items cost: each pod's cold start and one item. */
static void pods_for_a_deadline_with_a_check(void **state)
{
	(void)state;
	static const struct {
		double item_s, cold_s, deadline_s;
		int pods;
	} cases[] = {
		{4, 900, 930, 43}, {1, 900, 930, 40}, {4, 900, 960, 20},
		{4, 90, 300, 6},   {1, 90, 300, 6},   {1, 90, 600, 3},
		{4, 900, 1200, 4}, {2, 900, 925, 50}, {4, 900, 903, 0},
	};
	static double lengths[1200];
	struct row rows[ARRAY_LEN(cases) * 3];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t items = (size_t)(1200 / cases[i].item_s);
		struct plan_work w;
		struct plan_machine m = {
			.price_h = 0.69,
			.workers = 1,
			.batch_max = 1,
			.speed.each_s = 1,
			.cold.phase[COLD_BOOT] = {cases[i].cold_s, cases[i].cold_s, 3}};
		const struct plan_wish wish = {
			.goal = PLAN_COST, .within_s = cases[i].deadline_s, .canary = 3};
		struct plan p;
		for (size_t k = 0; k < items; k++)
			lengths[k] = cases[i].item_s;
		plan_work_init(&w, lengths, items, 1, 0);
		bool found = plan_choose(&p, &w, &m, 1, &wish) == PLAN_FOUND;
		/* the fewest pods whose largest share ends in time */
		int fewest = 0;
		for (int pods = 1; pods <= (int)items && !fewest; pods++)
			if (cases[i].cold_s + ceil((double)items / pods) * cases[i].item_s <=
			    cases[i].deadline_s)
				fewest = pods;
		double usd = cost_usd(.69, cases[i].pods * cases[i].cold_s + 1200);
		double risk = cost_usd(.69, cases[i].pods * (cases[i].cold_s + cases[i].item_s));
		rows[n++] = (struct row){
			"WT-1", "the fewest pods, counted", fewest, cases[i].pods, ABSOLUTE, 0};
		rows[n++] = (struct row){
			"WT-1", "pods with a check", found ? p.pods : 0, cases[i].pods, ABSOLUTE,
			0};
		rows[n++] = (struct row){"WT-1",
					 "cost and risk",
					 found ? p.cost_usd + p.at_risk_usd : 0,
					 found ? usd + risk : 0,
					 ABSOLUTE,
					 1e-6};
	}
	check_rows("WT-1 with a check", rows, n);
}

static void twenty_lines(void **state)
{
	(void)state;
	static const struct {
		int pods, batch;
		double billed_s, makespan_s;
	} cases[] = {{20, 1, 240, 12},
		     {4, 1, 80, 20},
		     {2, 1, 60, 30},
		     {1, 1, 50, 50},
		     {1, 20, 12.83, 12.83}};
	struct plan_work w = even_work(20, 20);
	struct plan_machine m = {
		.price_h = 1, .workers = 1, .batch_max = 20, .cold.phase[COLD_BOOT] = {10, 10, 3}};
	const struct plan_wish wish = {0};
	struct row rows[ARRAY_LEN(cases) * 2];
	size_t n = 0;

	m.speed = (struct speed){.once_s = 2 / 1.0222356, .each_s = 2 - 2 / 1.0222356};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan p;
		plan_given(&p, &w, &m, 0, cases[i].pods, cases[i].batch, &wish);
		rows[n++] = (struct row){"WT-2",   "billed", p.billed_s, cases[i].billed_s,
					 ABSOLUTE, 0.01};
		rows[n++] = (struct row){
			"WT-2", "makespan", p.makespan_p50_s, cases[i].makespan_s, ABSOLUTE, 0.01};
	}
	check_rows("WT-2", rows, n);
}

static void pods_for_a_budget(void **state)
{
	(void)state;
	struct plan_work w = even_work(1200, 1);
	struct plan_machine m = {.price_h = 0.69,
				 .workers = 1,
				 .batch_max = 1,
				 .speed.each_s = 1,
				 .cold.phase[COLD_BOOT] = {90, 90, 3}};
	const struct plan_wish wish = {.goal = PLAN_TIME, .budget_usd = 0.30};
	struct plan p;

	assert_int_equal(plan_choose(&p, &w, &m, 1, &wish), PLAN_FOUND);
	const struct row rows[] = {
		{"BG-1", "pods that are chosen", p.pods, 4, ABSOLUTE, 0},
		{"BG-1", "pods by the formula", cost_pods_for_budget(0.30, 0.69, 90, 1200), 4,
		 ABSOLUTE, 0},
		{"BG-1", "makespan", p.makespan_p50_s, MINUTES(6.5), ABSOLUTE, 0.1},
		{"BG-1", "cost", p.cost_usd, 0.2990, ABSOLUTE, 0.0005},
	};
	check_rows("BG-1", rows, ARRAY_LEN(rows));
}

/* Of full batches' throughput, where it is known what these gain. */
static void seats_of_a_plan(void **state)
{
	static const struct {
		const char *name;
		int pods;
		bool gain_unknown;
		double seats;
	} cases[] = {
		{"a full batch", 1, false, 1},
		{"half a batch: (10 + 8) / (2 (10 + 4))", 2, false, 18 / 28.},
		{"full, and unknown what it gains", 1, true, 1},
		{"half, and unknown what a full one gains", 2, true, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan_machine m = {.price_h = 1,
					 .speed = {.once_s = 10, .each_s = 1},
					 .workers = 1,
					 .batch_max = 8,
					 .gain_unknown = cases[i].gain_unknown};
		struct plan_wish wish = {.goal = PLAN_TIME, .pods = cases[i].pods};
		struct plan_work work = even_work(8, 8);
		struct plan p;
		assert_int_equal(plan_choose(&p, &work, &m, 1, &wish), PLAN_FOUND);
		if (fabs(p.seats - cases[i].seats) > 1e-6)
			fail_msg("%s: %g", cases[i].name, p.seats);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seats_of_a_plan),
		cmocka_unit_test(the_u_curve),
		cmocka_unit_test(a_host_floor_makes_the_cheapest_card_win),
		cmocka_unit_test(pods_for_a_deadline),
		cmocka_unit_test(pods_for_a_deadline_with_a_check),
		cmocka_unit_test(twenty_lines),
		cmocka_unit_test(pods_for_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, print_count);
}
