/* test_billed.c - what a pod cost: the rule, and that the core, the ledger's row and a pod that was
 * handed on all count by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/core.h"
#include "engine/pooled.h"
#include "store/pod_cost.h"

#define T0    INT64_C(1795262400000) /* 2026-11-21T12:00:00Z */
#define PRICE INT64_C(3600000)       /* $3.60 an hour: 1000 micro-dollars a second */

static void check(const char *name, const char *what, int64_t is, int64_t wanted)
{
	if (is != wanted)
		fail_msg("%s: %s is %lld, not %lld", name, what, (long long)is, (long long)wanted);
}

static const struct {
	const char *name;
	int64_t lived_ms, billed_ms;
} spans[] = {
	{"nothing", 0, 0},         {"a clock that was set back", -5000, 0},
	{"a moment", 1, 1000},     {"a second", 1000, 1000},
	{"just over", 1001, 2000}, {"a minute less a moment", 59999, 60000},
};

static struct pod_row row_of(const char *state, int64_t released_ms)
{
	struct pod_row row = {
		.create_ms = T0, .released_ms = released_ms, .price_microusd_h = PRICE};

	COPY_TEXT(row.attempt, "0123456789abcdef");
	COPY_TEXT(row.run, "r1");
	COPY_TEXT(row.id, "p1");
	row.state = (enum pod_row_state)state_read(&pod_row_state_words, state);
	return row;
}

static void a_second_begun_is_billed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(spans); i++) {
		int64_t until = T0 + spans[i].lived_ms;
		check(spans[i].name, "time", billed_ms(T0, until), spans[i].billed_ms);
		check(spans[i].name, "cost", billed_microusd(PRICE, T0, until), spans[i].billed_ms);
	}
	check("before the create call", "time", billed_ms(0, T0), 0);
	check("across the boot of this machine", "time", billed_ms(-1500, 1), 2000);
}

/* The same pod as the core has it and as the ledger has it, while it lives and after. */
static void core_and_ledger_agree(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(spans); i++) {
		int64_t until = T0 + spans[i].lived_ms;
		struct core_pod alive = {.phase = POD_WORKING,
					 .rental.create_at = T0,
					 .rental.price_microusd_h = PRICE},
				lost = {.phase = POD_NEVER,
					.rental.create_at = T0,
					.rental.released_at = until,
					.rental.price_microusd_h = PRICE};
		struct pod_row row = row_of("live", 0), ended = row_of("gone", until),
			       failed = row_of("failed", until);

		check(spans[i].name, "a living pod's time", pod_row_billed_ms(&row, until),
		      core_billed_ms(&alive, until));
		check(spans[i].name, "a living pod's cost", pod_row_cost(&row, until),
		      core_cost(&alive, until));
		pod_row_bill(&ended, until);
		check(spans[i].name, "a released pod's time", pod_row_billed_ms(&ended, T0 * 2),
		      spans[i].billed_ms);
		check(spans[i].name, "a released pod's cost", pod_row_cost(&ended, T0 * 2),
		      core_cost(&alive, until));
		check(spans[i].name, "a lost create's cost", pod_row_may_have_cost(&failed),
		      core_may_have_cost(&lost));
		check(spans[i].name, "a lost create's possible cost",
		      pod_row_may_have_cost(&failed), spans[i].billed_ms);
		check(spans[i].name, "what it did cost", pod_row_cost(&failed, until), 0);
	}
}

/* A clock that was set back since makes nothing cheaper. */
static void what_was_recorded_stands(void **state)
{
	struct pod_row row = row_of("live", 0);

	(void)state;
	row.billed_ms = 90000;
	row.cost_microusd = 95000;
	check("now", "time", pod_row_billed_ms(&row, T0 + 60000), 90000);
	check("now", "cost", pod_row_cost(&row, T0 + 60000), 95000);
	pod_row_bill(&row, T0 + 60000);
	check("at its end", "time", row.billed_ms, 90000);
	check("at its end", "cost", row.cost_microusd, 95000);
	pod_row_bill(&row, T0 + 120001);
	check("later", "time", row.billed_ms, 121000);
	check("later", "cost", row.cost_microusd, 121000);
}

/* A pod that was handed on keeps what its run had recorded, also where the clock was set back
 * before it was taken. */
static void a_share_is_counted_alike(void **state)
{
	struct store *store = store_memory();
	struct pod_row row = row_of("live", 0), share;
	char name[20];

	(void)state;
	row.reach = REACH_SSH;
	COPY_TEXT(row.host, "127.0.0.1");
	COPY_TEXT(row.pool, "x 0 1 1 1");
	row.kept_until_ms = T0 + 600000;
	row.billed_ms = 45000;
	row.cost_microusd = 45000;
	assert_int_equal(store_put_pod(store, &row, NULL), 0);
	assert_int_equal(pooled_take(store, "r2", NULL, false, T0 + 30001, &row, NULL), 0);
	pooled_part_name(row.attempt, 0, name);
	assert_int_equal(store_pod(store, name, &share, NULL), 0);
	assert_string_equal(share.run, "r1");
	check("the first run's share", "time", share.billed_ms, 45000);
	check("the first run's share", "cost", share.cost_microusd, 45000);
	check("the second's", "begin", row.create_ms, share.gone_ms);
	check("the second's", "time", pod_row_billed_ms(&row, T0 + 31002), 2000);
	store_close(store);
}

/* Our count and the vendor's figure: the larger one is the cost, neither replaces the other. */
static void the_larger_figure_counts(void **state)
{
	static const struct {
		const char *name;
		int64_t vendor_ms, vendor_usd, cost, spread_ms;
	} cases[] = {
		{"no figure", 0, 0, 10000, 10000},
		{"seconds alone, fewer", 8000, 0, 10000, 10000},
		{"seconds alone, more", 18400, 0, 18400, 18400},
		{"dollars, fewer", 8000, 9999, 10000, 10000},
		{"dollars, more", 9000, 18000, 18000, 10000},
		{"dollars without seconds", 0, 18000, 18000, 10000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod_row row = row_of("gone", T0 + 10000);
		pod_row_bill(&row, T0 + 10000);
		row.billed_vendor_ms = cases[i].vendor_ms;
		row.cost_vendor_microusd = cases[i].vendor_usd;
		check(cases[i].name, "cost", pod_row_cost(&row, T0 * 2), cases[i].cost);
		check(cases[i].name, "counted", pod_row_counted(&row, T0 * 2), 10000);
		check(cases[i].name, "time", pod_row_billed_ms(&row, T0 * 2), 10000);
		check(cases[i].name, "spread", pod_row_spread_ms(&row, T0 * 2), cases[i].spread_ms);
		row.state = POD_ROW_FAILED;
		check(cases[i].name, "one that never was", pod_row_cost(&row, T0 * 2), 0);
	}
}

/* A row whose client ended while its vendor showed the pod after the accepted release. */
static void one_that_outlives_its_release_counts_until_now(void **state)
{
	static const struct {
		const char *name, *state;
		int64_t released_s, outlived_s, billed_s;
		bool outlives;
	} cases[] = {
		{"released, not seen since", "releasing", 10, 0, 10, false},
		{"seen before the release", "releasing", 10, 9, 10, false},
		{"seen after it", "releasing", 10, 12, 60, true},
		{"seen at that moment", "releasing", 10, 10, 60, true},
		{"a later list omitted it", "releasing", 14, 12, 14, false},
		{"gone", "gone", 14, 12, 14, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t released = T0 + cases[i].released_s * 1000;
		struct pod_row row = row_of(cases[i].state, released);
		pod_row_bill(&row, released);
		row.outlived_ms = cases[i].outlived_s ? T0 + cases[i].outlived_s * 1000 : 0;
		row.gone_ms = row.state == POD_ROW_GONE ? T0 + 20000 : 0;
		check(cases[i].name, "outlives", pod_row_outlives(&row), cases[i].outlives);
		check(cases[i].name, "time", pod_row_billed_ms(&row, T0 + 60000),
		      cases[i].billed_s * 1000);
		check(cases[i].name, "cost", pod_row_cost(&row, T0 + 60000),
		      cases[i].billed_s * 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_second_begun_is_billed),
		cmocka_unit_test(core_and_ledger_agree),
		cmocka_unit_test(what_was_recorded_stands),
		cmocka_unit_test(the_larger_figure_counts),
		cmocka_unit_test(one_that_outlives_its_release_counts_until_now),
		cmocka_unit_test(a_share_is_counted_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
