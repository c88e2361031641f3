/* test_hold.c - for how long a pod without work is held, by how often runs came, and the gaps that
 * the ledger remembers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/ledger.h"
#include "plan/cost.h"

#define POOL "0123456789abcdef0123456789abcdef 0 4 16 40"

static void which_hold_pays(void **state)
{
	static const struct {
		const char *name;
		int64_t cold_ms, gaps_ms[HOLD_GAPS_MOST];
		size_t count;
		int64_t want_ms;
	} cases[] = {
		{"nothing is known: ski rental", 20000, {0}, 0, 20000},
		{"too little is known",
		 20000,
		 {99000, 99000, 99000, 99000, 99000, 99000, 99000},
		 7,
		 20000},
		{"runs come at once",
		 20000,
		 {4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000},
		 8,
		 5000},
		{"runs come long after",
		 20000,
		 {99000, 99000, 99000, 99000, 99000, 99000, 99000, 99000},
		 8,
		 0},
		{"most come soon, a few late",
		 20000,
		 {4000, 8000, 4000, 8000, 4000, 8000, 90000, 90000},
		 8,
		 10000},
		{"a few come soon, most late",
		 20000,
		 {4000, 90000, 90000, 90000, 90000, 90000, 90000, 90000},
		 8,
		 0},
		{"never longer than the cold start",
		 20000,
		 {19000, 19000, 19000, 19000, 19000, 19000, 19000, 19000},
		 8,
		 20000},
		{"just longer than the cold start",
		 20000,
		 {21000, 21000, 21000, 21000, 21000, 21000, 21000, 21000},
		 8,
		 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t got = hold_ms(cases[i].gaps_ms, cases[i].count, cases[i].cold_ms);
		if (got != cases[i].want_ms)
			fail_msg("%s: %lld ms, not %lld", cases[i].name, (long long)got,
				 (long long)cases[i].want_ms);
	}
}

/* Runs that come every minute: after eight of them nothing is held for a cold start of 20 s. Then
 * they come every 5 s, and the old gaps are forgotten. */
static void gaps_are_learnt(void **state)
{
	struct store *s = store_memory();
	int64_t now = 1000;

	(void)state;
	gaps_note_start(s, POOL, now); /* no pod was free */
	for (int i = 0; i < 8; i++) {
		assert_int_equal(gaps_keep_ms(s, POOL, 20000), 20000);
		gaps_note_free(s, POOL, now);
		gaps_note_free(s, POOL, now + 30000); /* the first that is free counts */
		gaps_note_start(s, POOL, now + 60000);
		gaps_note_start(s, POOL, now + 61000); /* that pod is not free any more */
		now += 100000;
	}
	assert_int_equal(gaps_keep_ms(s, POOL, 20000), 0);
	assert_int_equal(gaps_keep_ms(s, POOL, 100000), 75000);
	for (int i = 0; i < HOLD_GAPS_MOST; i++) {
		gaps_note_free(s, POOL, now);
		gaps_note_start(s, POOL, now + 5000);
		now += 10000;
	}
	assert_int_equal(gaps_keep_ms(s, POOL, 20000), 6250);
	/* another environment has its own */
	assert_int_equal(gaps_keep_ms(s, "f" POOL, 20000), 20000);
	/* what makes no sense is nothing */
	assert_int_equal(store_put_fact(s, "gaps:0123456789abcdef0123456789abcdef", "x y z", NULL),
			 0);
	assert_int_equal(gaps_keep_ms(s, POOL, 20000), 20000);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_hold_pays),
		cmocka_unit_test(gaps_are_learnt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
