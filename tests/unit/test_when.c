/* test_when.c - when queued requests start a render: each rule by a row, then random queues against
 * what must always hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "plan/when.h"

#define S     1000
#define M     (60 * S)
#define H     (60 * M)
#define T0    (INT64_C(1000) * H) /* when the first request comes */
#define NEVER INT64_MAX

#define WORK(segments, makespan, price)                                                            \
	{                                                                                          \
		segments, makespan, price, -1, -1                                                  \
	}
#define UNKNOWN WORK(-1, -1, -1)

static const struct {
	const char *name;
	struct when_request requests[3];
	struct when_work work;
	int64_t now_ms; /* after T0 */
	bool start;
	enum when_why why;
	int64_t until_ms; /* after T0, of one that waits */
} rows[] = {
	{"no request", {{0}}, UNKNOWN, 0, false, WHEN_EMPTY, NEVER},
	{"quiet is awaited", {{T0, 20 * S, 30 * M}}, UNKNOWN, 5 * S, false, WHEN_QUIET, 20 * S},
	{"quiet is over", {{T0, 20 * S, 30 * M}}, UNKNOWN, 20 * S, true, WHEN_READY},
	{"quiet counts from the newest",
	 {{T0, 20 * S, 30 * M}, {T0 + 15 * S, 20 * S, 30 * M}},
	 UNKNOWN,
	 25 * S,
	 false,
	 WHEN_QUIET,
	 35 * S},
	{"the newest may be in no other order",
	 {{T0 + 15 * S, 20 * S, 30 * M}, {T0, 20 * S, 30 * M}},
	 UNKNOWN,
	 25 * S,
	 false,
	 WHEN_QUIET,
	 35 * S},
	{"the newest says how quiet",
	 {{T0, 20 * S, 30 * M}, {T0 + S, 1, 30 * M}},
	 UNKNOWN,
	 S + 1,
	 true,
	 WHEN_READY},
	{"the job's deadline is near: as --by",
	 {{T0, 0, 0, 3 * H, 0, 0, true}},
	 {5, M, -1, S, H, 0, 0, T0 + 10 * M},
	 9 * M,
	 true,
	 WHEN_BY},
	{"the job's deadline bounds the wait",
	 {{T0, 0, 0, 0, 0, 0, true}},
	 {5, 10 * M, -1, S, H, 0, 0, T0 + 12 * M + 30 * S},
	 S,
	 false,
	 WHEN_WORK,
	 30 * S},
	{"max-wait ends a quiet that never comes",
	 {{T0, 20 * S, M}, {T0 + 59 * S, 20 * S, M}},
	 UNKNOWN,
	 M,
	 true,
	 WHEN_WAITED},
	{"so does half an hour",
	 {{T0, 20 * S, 0}, {T0 + 30 * M - S, 20 * S, 0}},
	 UNKNOWN,
	 30 * M,
	 true,
	 WHEN_READY},
	{"a request from the future is one of now",
	 {{T0 + H, 20 * S, 30 * M}},
	 UNKNOWN,
	 0,
	 false,
	 WHEN_QUIET,
	 20 * S},
	{"the price is too high",
	 {{T0, 0, 0, 0, 400000}},
	 WORK(5, M, 690000),
	 S,
	 false,
	 WHEN_PRICE,
	 S + WHEN_LOOK_AGAIN_MS},
	{"the same price is not below it",
	 {{T0, 0, 0, 0, 400000}},
	 WORK(5, M, 400000),
	 S,
	 false,
	 WHEN_PRICE,
	 S + WHEN_LOOK_AGAIN_MS},
	{"the price is fine", {{T0, 0, 0, 0, 400000}}, WORK(5, M, 399999), S, true, WHEN_READY},
	{"the price is not known",
	 {{T0, 0, 0, 0, 400000}},
	 UNKNOWN,
	 S,
	 false,
	 WHEN_NO_PRICE,
	 S + WHEN_LOOK_AGAIN_MS},
	{"what is rendered costs nothing",
	 {{T0, 0, 0, 0, 400000, 20}},
	 WORK(0, 0, -1),
	 S,
	 true,
	 WHEN_READY},
	{"max-wait ends the wait for a price",
	 {{T0, 0, 8 * H, 0, 400000}},
	 WORK(5, M, 690000),
	 8 * H,
	 true,
	 WHEN_WAITED},
	{"and is what it waits for at most",
	 {{T0, 0, 8 * H, 0, 400000}},
	 WORK(5, M, 690000),
	 8 * H - S,
	 false,
	 WHEN_PRICE,
	 8 * H},
	{"too few segments",
	 {{T0, 0, 30 * M, 0, 0, 20}},
	 WORK(19, M, 690000),
	 S,
	 false,
	 WHEN_SEGMENTS,
	 S + WHEN_LOOK_AGAIN_MS},
	{"enough segments", {{T0, 0, 30 * M, 0, 0, 20}}, WORK(20, M, 690000), S, true, WHEN_READY},
	{"unknown segments",
	 {{T0, 0, 30 * M, 0, 0, 20}},
	 UNKNOWN,
	 S,
	 false,
	 WHEN_SEGMENTS,
	 S + WHEN_LOOK_AGAIN_MS},
	{"one segment is no wait", {{T0, 0, 30 * M, 0, 0, 1}}, UNKNOWN, S, true, WHEN_READY},
	/* a plan of 10 minutes, kept with a tenth and a minute to spare: 12 minutes */
	{"the deadline is far",
	 {{T0, 0, 0, T0 + H, 400000}},
	 WORK(5, 10 * M, 690000),
	 48 * M - 1,
	 false,
	 WHEN_PRICE,
	 48 * M},
	{"the deadline is near",
	 {{T0, 0, 0, T0 + H, 400000}},
	 WORK(5, 10 * M, 690000),
	 48 * M,
	 true,
	 WHEN_BY},
	{"the deadline was missed",
	 {{T0, 20 * S, 0, T0 - H, 400000}},
	 WORK(5, 10 * M, 690000),
	 0,
	 true,
	 WHEN_BY},
	{"a deadline alone is no wait",
	 {{T0, 0, 30 * M, T0 + 9 * H}},
	 UNKNOWN,
	 S,
	 true,
	 WHEN_READY},
	{"the first that may start takes the others along",
	 {{T0, 0, 0, 0, 400000}, {T0, 0, 30 * M}},
	 WORK(5, M, 690000),
	 S,
	 true,
	 WHEN_READY},
	/* a cold start of 90 s wants 210 s of work */
	{"too little work for a cold start",
	 {{T0, 0, H, .fills_pod = true}},
	 {5, M, 690000, 210 * S - 1, 90 * S},
	 S,
	 false,
	 WHEN_WORK,
	 S + WHEN_LOOK_AGAIN_MS},
	{"enough work",
	 {{T0, 0, H, .fills_pod = true}},
	 {5, M, 690000, 210 * S, 90 * S},
	 S,
	 true,
	 WHEN_READY},
	{"work that the planner does not know is no wait",
	 {{T0, 0, H, .fills_pod = true}},
	 UNKNOWN,
	 S,
	 true,
	 WHEN_READY},
	{"max-wait ends the wait for work",
	 {{T0, 0, H, .fills_pod = true}},
	 {5, M, 690000, S, 90 * S},
	 H,
	 true,
	 WHEN_WAITED},
	{"so does a deadline",
	 {{T0, 0, 0, T0 + H, .fills_pod = true}},
	 {5, 10 * M, 690000, S, 90 * S},
	 48 * M,
	 true,
	 WHEN_BY},
	{"and it is what it waits for at most",
	 {{T0, 0, 0, T0 + H, .fills_pod = true}},
	 {5, 10 * M, 690000, S, 90 * S},
	 48 * M - S,
	 false,
	 WHEN_WORK,
	 48 * M},
	{"another job's pods will be free",
	 {{T0, 0, 0, T0 + 2 * H, .fills_pod = true}},
	 {5, 10 * M, 690000, 210 * S, 90 * S, .pod_until_ms = T0 + 30 * S},
	 S,
	 false,
	 WHEN_POD,
	 30 * S},
	{"they should be free by now",
	 {{T0, 0, 0, T0 + 2 * H, .fills_pod = true}},
	 {5, 10 * M, 690000, 210 * S, 90 * S, .pod_until_ms = T0 + 30 * S},
	 30 * S,
	 true,
	 WHEN_READY},
	{"a deadline ends the wait for them",
	 {{T0, 0, 0, T0 + H, .fills_pod = true}},
	 {5, 10 * M, 690000, 210 * S, 90 * S, .pod_until_ms = T0 + 50 * M},
	 48 * M,
	 true,
	 WHEN_BY},
	{"a request that starts at once waits for no pods",
	 {{T0, 0, 30 * M}},
	 {5, 10 * M, 690000, 210 * S, 90 * S, .pod_until_ms = T0 + H},
	 S,
	 true,
	 WHEN_READY},
	{"the group's latest start comes before its own",
	 {{T0, 0, 0, T0 + 2 * H, .fills_pod = true}},
	 {5, 10 * M, 690000, S, 90 * S, .group_by_ms = T0 + 20 * M},
	 20 * M - S,
	 false,
	 WHEN_WORK,
	 20 * M},
	{"and starts it",
	 {{T0, 0, 0, T0 + 2 * H, .fills_pod = true}},
	 {5, 10 * M, 690000, S, 90 * S, .group_by_ms = T0 + 20 * M},
	 20 * M,
	 true,
	 WHEN_BY},
	{"no cold start, no wait",
	 {{T0, 0, H, .fills_pod = true}},
	 {5, M, 690000, 1, 0},
	 S,
	 true,
	 WHEN_READY},
	{"a failed start is tried later",
	 {{T0, 0, 30 * M, .not_before_ms = T0 + 2 * H}},
	 UNKNOWN,
	 H,
	 false,
	 WHEN_RETRY,
	 2 * H},
	{"and then at once",
	 {{T0, 0, 30 * M, .not_before_ms = T0 + 2 * H}},
	 UNKNOWN,
	 2 * H,
	 true,
	 WHEN_WAITED},
	{"the first of two tries",
	 {{T0, .not_before_ms = T0 + 2 * H}, {T0, .not_before_ms = T0 + H}},
	 UNKNOWN,
	 0,
	 false,
	 WHEN_RETRY,
	 H},
	{"a new request tries before",
	 {{T0, 0, 30 * M, .not_before_ms = T0 + 2 * H}, {T0 + M, S, 30 * M}},
	 UNKNOWN,
	 M,
	 false,
	 WHEN_QUIET,
	 M + S},
	{"its quiet is its own",
	 {{T0, 0, 30 * M, .not_before_ms = T0 + 2 * H}, {T0 + M, S, 30 * M}},
	 UNKNOWN,
	 M + S,
	 true,
	 WHEN_READY},
};

static void each_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t count = 0;
		while (count < 3 && rows[i].requests[count].created_ms)
			count++;
		struct when_answer a =
			when_start(rows[i].requests, count, &rows[i].work, T0 + rows[i].now_ms);
		int64_t until = a.until_ms == NEVER ? NEVER : a.until_ms - T0;
		if (a.start != rows[i].start || a.why != rows[i].why ||
		    (!a.start && until != rows[i].until_ms))
			fail_msg("%s: %s: %s, until %lld s", rows[i].name,
				 a.start ? "starts" : "waits", when_name(a.why),
				 (long long)until / S);
	}
}

static void what_needs_the_planner(void **state)
{
	(void)state;
	assert_false(when_needs_work(&(struct when_request){.by_ms = 5, .min_segments = 1}, 1));
	assert_true(when_needs_work(&(struct when_request){.below_microusd_h = 1}, 1));
	assert_true(when_needs_work(&(struct when_request){.min_segments = 2}, 1));
	assert_true(when_needs_work(&(struct when_request){.fills_pod = true}, 1));
}

static void seventy_percent(void **state)
{
	(void)state;
	assert_in_range(when_least_work_ms(10 * S), 23300, 23400);
	assert_int_equal(when_least_work_ms(90 * S), 210 * S);
	assert_int_equal(when_least_work_ms(15 * M), 35 * M);
	assert_int_equal(when_least_work_ms(-1), 0);
}

/* ---- random queues ---- */

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static struct when_request random_request(uint32_t *seed)
{
	struct when_request r = {.created_ms = T0 - next_random(seed) % (2 * H),
				 .quiet_ms = next_random(seed) % (2 * M)};

	if (next_random(seed) % 2)
		r.max_wait_ms = 1 + next_random(seed) % H;
	if (next_random(seed) % 4 == 0)
		r.by_ms = T0 - H + next_random(seed) % (4 * H);
	if (next_random(seed) % 4 == 0)
		r.below_microusd_h = 1 + next_random(seed) % 900000;
	if (next_random(seed) % 4 == 0)
		r.min_segments = next_random(seed) % 50;
	r.fills_pod = next_random(seed) % 4 == 0;
	if (next_random(seed) % 4 == 0)
		r.not_before_ms = T0 - H + next_random(seed) % (2 * H);
	return r;
}

/* Whoever asks again at until_ms, and not before, misses nothing: the answer does not change in
 * between, and it is never now. */
static void check_until(const struct when_request *r, size_t count, const struct when_work *work,
			int64_t now_ms, uint32_t *seed)
{
	struct when_answer a = when_start(r, count, work, now_ms);

	if (a.start)
		return;
	assert_true(a.until_ms > now_ms);
	int64_t span = a.until_ms == NEVER ? 100 * H : a.until_ms - now_ms;
	for (int i = 0; i < 5; i++) {
		int64_t between = now_ms + (int64_t)next_random(seed) % span;
		if (when_start(r, count, work, between).start)
			fail_msg("%zu requests: waits until %lld, and would start at %lld", count,
				 (long long)a.until_ms, (long long)between);
	}
}

/* However it waits, one that has a limit starts at it, if its last start did not fail. */
static void check_limits(const struct when_request *r, size_t count, const struct when_work *work)
{
	for (size_t i = 0; i < count; i++) {
		if (!r[i].max_wait_ms)
			continue;
		int64_t limit = MAX(r[i].created_ms + r[i].max_wait_ms, r[i].not_before_ms);
		assert_true(when_start(r, count, work, limit).start);
	}
}

static void random_queues(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 20000; n++) {
		uint32_t seed = n;
		struct when_request list[4];
		size_t count = 1 + next_random(&seed) % 4;
		struct when_work work = {(int64_t)next_random(&seed) % 60 - 1,
					 (int64_t)next_random(&seed) % (20 * M) - 1,
					 (int64_t)next_random(&seed) % 1000000 - 1,
					 (int64_t)next_random(&seed) % (10 * M) - 1,
					 (int64_t)next_random(&seed) % (5 * M) - 1};
		if (next_random(&seed) % 2)
			work.pod_until_ms = T0 + next_random(&seed) % (2 * H);
		if (next_random(&seed) % 3 == 0)
			work.group_by_ms = T0 + next_random(&seed) % (2 * H);
		for (size_t i = 0; i < count; i++)
			list[i] = random_request(&seed);
		check_until(list, count, &work, T0 + next_random(&seed) % H, &seed);
		check_limits(list, count, &work);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule),
		cmocka_unit_test(what_needs_the_planner),
		cmocka_unit_test(seventy_percent),
		cmocka_unit_test(random_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
