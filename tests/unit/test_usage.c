/* test_usage.c - when the pods of a ledger ran and work came, and which pod a job had last. */
#include <math.h>
#include <time.h>

#include "base/mem.h"
#include "runs/usage.h"
#include "store_bed.h"

#define HOUR INT64_C(3600000)
#define DAY  (24 * HOUR)
#define NOW  (INT64_C(20000) * DAY) /* Friday 2024-10-04 00:00 UTC */

static void add_pod(struct store *s, const char *attempt, const char *run, int64_t from_ms,
		    int64_t billed_ms, int64_t price_microusd_h)
{
	struct pod_row pod = {.create_ms = from_ms,
			      .connected_ms = from_ms + 1000,
			      .billed_ms = billed_ms,
			      .price_microusd_h = price_microusd_h,
			      .state = POD_ROW_GONE};
	struct err err = {0};

	COPY_TEXT(pod.attempt, attempt);
	COPY_TEXT(pod.run, run);
	COPY_TEXT(pod.provider, "runpod");
	if (billed_ms) {
		pod.released_ms = pod.gone_ms = from_ms + billed_ms;
	} else {
		pod.state = POD_ROW_LIVE;
	}
	ok(store_put_pod(s, &pod, &err), &err);
}

static void check_hours(const char *what, double got, double want)
{
	if (fabs(got - want) > 1e-9)
		fail_msg("%s: %g hours, expected %g", what, got, want);
}

static void hours_in_use(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct forecast paid, all;
	struct err err = {0};

	setenv("TZ", "IST-5:30", 1);
	tzset();
	put_run(s, "r1", "/p/burst.cfg", "done", NOW - 20 * DAY);
	add_pod(s, "a1", "r1", NOW - 10 * DAY, HOUR, 500000);
	add_pod(s, "a2", "r1", NOW - 10 * DAY + HOUR / 2, HOUR, 500000);
	add_pod(s, "free", "r1", NOW - 5 * DAY, 3 * HOUR, 0);
	add_pod(s, "before", "r1", NOW - 40 * DAY, HOUR, 500000);
	add_pod(s, "runs", "r1", NOW - 2 * HOUR, 0, 500000);
	ok(usage_forecast(&paid, s, NOW - 30 * DAY, NOW, true, &err), &err);
	ok(usage_forecast(&all, s, NOW - 30 * DAY, NOW, false, &err), &err);
	check_hours("since the first run, days", paid.days, 20);
	check_hours("in use", paid.used_h, 1.5 + 2);
	check_hours("of pods", paid.pod_h, 2 + 2);
	check_hours("with the free one", all.used_h, 1.5 + 2 + 3);
	/* the one that runs began at 03:30 local time, on a Friday */
	check_hours("Friday from 03:00", paid.hour[4 * 24 + 3].used * 3, 0.5);
	check_hours("Friday from 04:00", paid.hour[4 * 24 + 4].used * 3, 1);
	check_hours("Friday from 06:00", paid.hour[4 * 24 + 6].used, 0);
	unsetenv("TZ");
	tzset();
}

static void the_last_pod_of_a_job(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct pod_row pod;

	assert_false(usage_last_pod(&pod, s, "/p/burst.cfg"));
	put_run(s, "r1", "/p/burst.cfg", "done", NOW - 3 * DAY);
	put_run(s, "r2", "/p/burst.cfg", "done", NOW - 2 * DAY); /* rendered from the cache */
	put_run(s, "r3", "/other/burst.cfg", "done", NOW - DAY);
	add_pod(s, "a1", "r1", NOW - 3 * DAY, HOUR, 500000);
	add_pod(s, "a2", "r1", NOW - 3 * DAY, HOUR, 500000);
	add_pod(s, "a3", "r3", NOW - DAY, HOUR, 500000);
	assert_true(usage_last_pod(&pod, s, "/p/burst.cfg"));
	assert_string_equal(pod.attempt, "a2");
}

/* A run that rendered two segments and computed for a minute. */
static void put_worked(struct store *s, const char *id, const char *config, const char *part_of,
		       int64_t started_ms)
{
	struct run_row run;
	struct err err = {0};

	put_run(s, id, config, "done", started_ms);
	ok(store_run(s, id, &run, &err), &err);
	COPY_TEXT(run.job, "quiz");
	run.status = RUN_DONE;
	run.rendered = 2;
	run.compute_ms = 60000;
	COPY_TEXT(run.part_of, part_of);
	COPY_TEXT(run.stage, part_of[0] ? "cut" : "");
	ok(store_put_run(s, &run, &err), &err);
}

static void requests_of_a_job(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct usage_demand d;
	struct err err = {0};
	char id[24];

	for (int i = 1; i <= 21; i++) {
		snprintf(id, sizeof(id), "r%d", i);
		put_worked(s, id, "/p/burst.cfg", "", NOW - i * DAY);
	}
	put_worked(s, "s1", "/p/burst.cfg", "r1", NOW - DAY);
	put_worked(s, "other", "/q/burst.cfg", "", NOW - 2 * DAY);
	put_run(s, "cached", "/p/burst.cfg", "done", NOW - 3 * DAY);
	ok(usage_demand(&d, s, "/p/burst.cfg", NULL, false, NOW, &err), &err);
	assert_true(d.enough);
	assert_string_equal(d.job, "quiz");
	assert_int_equal(d.of.arrivals, 21);
	check_hours("work of a run", d.of.service_s.mean, 60 * 22 / 21.0);
	ok(usage_demand(&d, s, NULL, "quiz", true, NOW, &err), &err);
	assert_int_equal(d.of.arrivals, 22);
	check_hours("segments a week", d.of.per_week.mean, 44 / 3.0);
	ok(usage_demand(&d, s, NULL, "nothing", true, NOW, &err), &err);
	assert_false(d.enough);
	assert_string_equal(d.job, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(hours_in_use),
		BOTH(the_last_pod_of_a_job),
		BOTH(requests_of_a_job),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
