/* test_bill.c - our count of a pod beside its vendor's bill: what is said of each difference, and
 * what is too much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "runs/bill.h"
#include "base/clock.h"
#include "store/pod_cost.h"

#define NOON  1795262400000 /* 2026-11-21T12:00:00Z */
#define S     INT64_C(1000)
#define MIN_  (60 * S)
#define HOUR  (60 * MIN_)
#define PRICE 720000 /* 0.72 an hour: 200 micro-dollars a second */

/* Created at 12:10, its container started 40 s later, released after 10 minutes, gone 5 s after
 * that. */
static struct pod_row pod_of(int64_t billed_s, bool reported, int64_t asked_ms)
{
	struct pod_row pod = {
		.price_microusd_h = PRICE,
		.price_list_microusd_h = PRICE,
		.create_ms = NOON + 10 * MIN_,
		.rented_ms = NOON + 10 * MIN_ + S,
		.running_ms = NOON + 10 * MIN_ + 42 * S,
		.vendor_started_ms = NOON + 10 * MIN_ + 40 * S,
		.release_ms = NOON + 20 * MIN_ - S,
		.released_ms = NOON + 20 * MIN_,
		.gone_ms = NOON + 20 * MIN_ + 5 * S,
		.billed_ms = 600 * S,
		.cost_microusd = 120000,
		.billed_vendor_ms = billed_s * S,
		.cost_vendor_microusd = billed_s * 200,
		.vendor_reported = reported,
		.vendor_asked_ms = asked_ms,
	};
	pod.state = POD_ROW_GONE;
	COPY_TEXT(pod.id, "p1");
	return pod;
}

static struct bill_hour hour_at(int64_t start_ms, int64_t cost)
{
	return (struct bill_hour){start_ms / 1000, start_ms / 1000 + 3600, cost};
}

static void each_difference_is_told(void **state)
{
	enum { SOON = 25, LATER = 90, NEXT_DAY = 26 * 60 };
	static const struct {
		const char *name;
		int64_t billed_s;
		bool reported;
		int asked_min; /* after noon */
		enum bill_state state;
		const char *why;
	} cases[] = {
		{"to the second", 600, false, NEXT_DAY, BILL_AGREES, "agrees"},
		{"a second is nothing", 601, true, NEXT_DAY, BILL_AGREES, "agrees"},
		{"the hour goes on", 600, false, SOON, BILL_AGREES,
		 "agrees; ask again after 13:15 UTC"},
		{"a vendor that tells no hours", 600, true, SOON, BILL_AGREES, "agrees"},
		{"from the container's start", 560, false, NEXT_DAY, BILL_DIFFERS,
		 "the vendor bills 40s less than burst counted"},
		{"... and the hour goes on", 560, false, SOON, BILL_DIFFERS,
		 "the vendor bills 40s less than burst counted; ask again after 13:15 UTC"},
		{"a part of it, early", 300, false, SOON, BILL_DIFFERS,
		 "the vendor bills 5m00s less than burst counted; ask again after 13:15 UTC"},
		{"a part of it, late", 300, false, LATER, BILL_DIFFERS,
		 "the vendor bills 5m00s less than burst counted; ask again after 14:30 UTC"},
		{"a part of it, for good", 300, false, NEXT_DAY, BILL_DIFFERS,
		 "the vendor bills 5m00s less than burst counted"},
		{"up to the minute", 660, true, NEXT_DAY, BILL_DIFFERS,
		 "the vendor bills 1m00s more than burst counted"},
		{"more than a minute too much", 680, true, NEXT_DAY, BILL_EXCESS,
		 "billed for 11m20s at $0.7200 per hour, but from create to gone the pod lived "
		 "10m05s"},
		{"twice as much", 1200, false, SOON, BILL_EXCESS,
		 "billed for 20m00s at $0.7200 per hour, but from create to gone the pod lived "
		 "10m05s"},
		{"no record yet", 0, false, SOON, BILL_NOT_YET,
		 "no record yet; ask again after 13:15 UTC"},
		{"still none", 0, false, LATER, BILL_NOT_YET,
		 "no record yet; ask again after 14:30 UTC"},
		{"none for a day", 0, false, NEXT_DAY, BILL_NOT_YET,
		 "no record: check the vendor's console"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod_row pod = pod_of(cases[i].billed_s, cases[i].reported,
					    NOON + cases[i].asked_min * MIN_);
		struct bill_hour hour = hour_at(NOON, pod.cost_vendor_microusd);
		struct bill_verdict v;
		bool hourly = !cases[i].reported && cases[i].billed_s;
		bill_judge(&pod,
			   &(struct op_bill){.hours = hourly ? &hour : NULL, .hour_count = hourly},
			   &v);
		if (v.state != cases[i].state || strcmp(v.why, cases[i].why))
			fail_msg("%s: %s \"%s\", want %s \"%s\"", cases[i].name,
				 bill_state_name(v.state), v.why, bill_state_name(cases[i].state),
				 cases[i].why);
		assert_int_equal(v.final, cases[i].billed_s && cases[i].asked_min == NEXT_DAY);
		assert_int_equal(v.ask_again_ms % MIN_, 0);
		if (!v.ask_again_ms != !strstr(v.why, "ask again"))
			fail_msg("%s: ask again at %lld", cases[i].name, (long long)v.ask_again_ms);
	}
}

/* Which moment within our create and release calls the vendor takes, it does not tell. */
static void calls_take_their_time(void **state)
{
	struct pod_row pod = pod_of(590, true, NOON + 30 * HOUR);
	struct bill_verdict v;

	(void)state;
	pod.vendor_started_ms = pod.running_ms = 0;
	bill_judge(&pod, NULL, &v);
	assert_string_equal(v.why, "the vendor bills 10s less than burst counted");
	pod.rented_ms = pod.create_ms + 2 * S;
	pod.release_ms = pod.released_ms - S;
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_AGREES);
	pod.rented_ms = pod.create_ms + 120 * S; /* it was found when the reply was lost */
	pod.billed_vendor_ms = 500 * S;
	pod.cost_vendor_microusd = 100000;
	bill_judge(&pod, NULL, &v);
	assert_string_equal(v.why, "the vendor bills 1m40s less than burst counted");
}

static void it_may_bill_until_the_pod_is_gone(void **state)
{
	struct pod_row pod = pod_of(900, false, NOON + 30 * HOUR);
	struct bill_verdict v;

	(void)state;
	pod.gone_ms = pod.released_ms + 300 * S; /* it took its time */
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_DIFFERS);
	assert_string_equal(v.why, "the vendor bills 5m00s more than burst counted");
}

static void a_disk_is_billed_beside(void **state)
{
	struct pod_row pod = pod_of(600, false, NOON + 30 * HOUR);
	struct bill_verdict v;

	(void)state;
	pod.cost_beside_microusd = 900;
	pod.cost_vendor_microusd += 900;
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_AGREES);
	pod.vendor_reported = true;
	pod.cost_vendor_microusd += 79100;
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_EXCESS);
	pod.cost_beside_microusd = 80000;
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_AGREES);
	pod.price_microusd_h = 0; /* without a price nothing is too dear */
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_AGREES);
}

static void seconds_alone_are_a_record(void **state)
{
	struct pod_row pod = pod_of(600, true, NOON + 30 * HOUR);
	struct bill_verdict v;

	(void)state;
	pod.cost_vendor_microusd = 0;
	assert_true(bill_is_known(&pod) && !bill_has_dollars(&pod));
	bill_judge(&pod, &(struct op_bill){.note = "the price of its GPU is unknown"}, &v);
	assert_int_equal(v.state, BILL_AGREES);
	assert_string_equal(v.why, "the price of its GPU is unknown");
	/* its own seconds are its last word, whenever they are asked for */
	pod.billed_vendor_ms = 300 * S;
	pod.vendor_asked_ms = NOON + 25 * MIN_;
	bill_judge(&pod, NULL, &v);
	assert_string_equal(v.why, "the vendor bills 5m00s less than burst counted");
	pod.billed_vendor_ms = 0; /* no machine was found for it */
	assert_true(bill_is_known(&pod) && bill_has_dollars(&pod));
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_DIFFERS);
	assert_string_equal(v.why, "the vendor bills 10m00s less than burst counted");
}

/* Dollars are all that some vendors tell; at a low price an hour's rounding is many seconds. */
static void rounded_dollars_are_no_difference(void **state)
{
	struct pod_row pod = pod_of(600, false, NOON + 30 * HOUR);
	struct bill_verdict v;

	(void)state;
	pod.price_microusd_h = 10000;
	pod.cost_vendor_microusd = 1767;
	/* the 0.0001 dollars that such an hour can be off by */
	pod.billed_vendor_ms = 600 * S + 36 * S;
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_AGREES);
	pod.vendor_reported = true;
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_DIFFERS);
}

static void what_is_billed_after_the_end_is_told(void **state)
{
	struct pod_row pod = pod_of(600, false, NOON + 30 * HOUR);
	struct bill_hour hours[] = {hour_at(NOON, 120000), hour_at(NOON + HOUR, 0),
				    hour_at(NOON + 2 * HOUR, 400)};
	struct bill_verdict v;

	(void)state;
	bill_judge(&pod, &(struct op_bill){.hours = hours, .hour_count = 2}, &v);
	assert_int_equal(v.state, BILL_AGREES); /* an hour of nothing is nothing */
	bill_judge(&pod, &(struct op_bill){.hours = hours, .hour_count = 3}, &v);
	assert_int_equal(v.state, BILL_EXCESS);
	assert_string_equal(v.why, "$0.000400 is billed for the hour from 2026-11-21 14:00 UTC, "
				   "but the pod was confirmed gone at 2026-11-21 12:20 UTC");
	pod.gone_ms = NOON + 2 * HOUR - S; /* clocks are not that exact */
	bill_judge(&pod, &(struct op_bill){.hours = hours, .hour_count = 3}, &v);
	assert_int_equal(v.state, BILL_AGREES);
}

static void a_dearer_second_is_told(void **state)
{
	struct pod_row pod = pod_of(600, true, NOON + 30 * HOUR);
	struct bill_verdict v;

	(void)state;
	pod.cost_vendor_microusd = 150000;
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_EXCESS);
	assert_string_equal(v.why, "$0.0300 more than its seconds cost at $0.7200 per hour");
	pod.cost_vendor_microusd = 121000;
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_AGREES);
}

static void dollars_without_a_price(void **state)
{
	struct pod_row pod = pod_of(0, false, NOON + 30 * HOUR);
	struct bill_verdict v;

	(void)state;
	pod.price_microusd_h = 0;
	pod.cost_vendor_microusd = 5000;
	bill_judge(&pod, NULL, &v);
	assert_int_equal(v.state, BILL_DIFFERS);
	assert_string_equal(v.why, "its price is unknown, so the cost implies no seconds");
}

/* Found by fuzzing the ledger: the dollars of such a pod overflowed. */
static void numbers_that_nobody_wrote_overflow_nothing(void **state)
{
	static const int64_t odd[] = {STORE_NUMBER_MOST, -STORE_NUMBER_MOST, 0, 1};
	struct bill_verdict v;

	(void)state;
	for (int i = 0; i < 4 * 4 * 4 * 4 * 2; i++) {
		struct pod_row pod = pod_of(600, i >= 256, NOON + 26 * HOUR);
		pod.price_microusd_h = odd[i % 4];
		pod.billed_vendor_ms = odd[i / 4 % 4];
		pod.cost_vendor_microusd = odd[i / 16 % 4];
		pod.billed_ms = odd[i / 64 % 4];
		bill_judge(&pod, NULL, &v);
		assert_true(v.why[0]);
	}
}

/* ---- a pod that several runs held ---- */

/* The pod of pod_of(), held by three runs: for 4:00.2, 1:00 and 4:59.8. */
static void shares_of(struct pod_row shares[3])
{
	static const int64_t until_ms[] = {240200, 300200, 600000};
	struct pod_row pod = pod_of(0, false, 0);
	int64_t from_ms = 0;

	for (int i = 0; i < 3; i++) {
		struct pod_row *s = &shares[i];
		*s = pod;
		s->holds = i;
		snprintf(s->run, sizeof(s->run), "r%d", i);
		s->create_ms = pod.create_ms + from_ms;
		if (i)
			s->rented_ms = s->running_ms = s->create_ms;
		if (i < 2)
			s->release_ms = s->released_ms = s->gone_ms = pod.create_ms + until_ms[i];
		s->billed_ms = s->cost_microusd = 0;
		pod_row_bill(s, pod.create_ms + until_ms[i]);
		from_ms = until_ms[i];
	}
}

static void the_whole_is_what_its_vendor_bills(void **state)
{
	struct pod_row shares[3], alone = pod_of(600, true, NOON);
	struct bill_verdict verdict;

	(void)state;
	shares_of(shares);
	struct pod_row whole = bill_whole(shares, 3);
	assert_int_equal(whole.create_ms, NOON + 10 * MIN_);
	assert_int_equal(whole.rented_ms, NOON + 10 * MIN_ + S);
	assert_int_equal(whole.gone_ms, NOON + 20 * MIN_ + 5 * S);
	assert_int_equal(whole.billed_ms, 600 * S); /* its shares are 601 s, each rounded up */
	assert_int_equal(whole.cost_microusd, 120000);
	whole.billed_vendor_ms = 600 * S;
	whole.cost_vendor_microusd = 120000;
	whole.vendor_asked_ms = NOON + 26 * HOUR;
	bill_judge(&whole, NULL, &verdict);
	assert_string_equal(verdict.why, "agrees");
	assert_true(verdict.final);
	whole = bill_whole(&alone, 1);
	assert_memory_equal(&whole, &alone, sizeof(whole));
}

static void a_bill_is_split_by_time(void **state)
{
	static const struct {
		const char *name;
		int64_t billed_ms, cost;
		int64_t ms[3], usd[3];
	} cases[] = {
		{"as counted", 601000, 120200, {241000, 60000, 300000}, {48200, 12000, 60000}},
		{"nothing yet", 0, 0, {0, 0, 0}, {0, 0, 0}},
		{"a rest that no share divides", 7, 5, {2, 1, 4}, {2, 0, 3}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod_row shares[3];
		shares_of(shares);
		struct pod_row whole = bill_whole(shares, 3);
		whole.billed_vendor_ms = cases[i].billed_ms;
		whole.cost_vendor_microusd = cases[i].cost;
		whole.vendor_reported = true;
		whole.vendor_asked_ms = NOON + HOUR;
		bill_split(&whole, shares, 3);
		for (int k = 0; k < 3; k++)
			if (shares[k].billed_vendor_ms != cases[i].ms[k] ||
			    shares[k].cost_vendor_microusd != cases[i].usd[k] ||
			    !shares[k].vendor_reported || shares[k].vendor_asked_ms != NOON + HOUR)
				fail_msg("%s: share %d is %lld ms and %lld", cases[i].name, k,
					 (long long)shares[k].billed_vendor_ms,
					 (long long)shares[k].cost_vendor_microusd);
		struct pod_row again = bill_whole(shares, 3);
		assert_int_equal(again.billed_vendor_ms, cases[i].billed_ms);
		assert_int_equal(again.cost_vendor_microusd, cases[i].cost);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_difference_is_told),
		cmocka_unit_test(the_whole_is_what_its_vendor_bills),
		cmocka_unit_test(a_bill_is_split_by_time),
		cmocka_unit_test(calls_take_their_time),
		cmocka_unit_test(it_may_bill_until_the_pod_is_gone),
		cmocka_unit_test(a_disk_is_billed_beside),
		cmocka_unit_test(seconds_alone_are_a_record),
		cmocka_unit_test(rounded_dollars_are_no_difference),
		cmocka_unit_test(what_is_billed_after_the_end_is_told),
		cmocka_unit_test(a_dearer_second_is_told),
		cmocka_unit_test(dollars_without_a_price),
		cmocka_unit_test(numbers_that_nobody_wrote_overflow_nothing),
	};

	return cmocka_run_group_tests_name("bill", tests, NULL, NULL);
}
