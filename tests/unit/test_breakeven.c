/* test_breakeven.c - what the newest runs of a ledger say of speed, price and cold starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runs/measured.h"
#include "base/mem.h"
#include "store_bed.h"

static void check_near(const char *name, double got, double want)
{
	if (got < want - 1e-9 * (1 + want) || got > want + 1e-9 * (1 + want))
		fail_msg("%s: got %.12g, expected %.12g", name, got, want);
}

/* ---- the newest runs of a ledger ---- */

static void add_run(struct store *s, const char *id, const char *type, int64_t started_ms,
		    int64_t compute_ms, int64_t cost_microusd, double characters)
{
	struct run_row run = run_named(id, "/p/burst.cfg", "done", started_ms);
	struct batch_row batch = {.segments = 1, .sum = characters, .took_ms = compute_ms};
	struct err err = {0};

	COPY_TEXT(run.type, type);
	run.compute_ms = compute_ms;
	run.billed_ms = 3600000;
	run.cost_microusd = cost_microusd;
	ok(store_put_run(s, &run, &err), &err);
	snprintf(batch.attempt, sizeof(batch.attempt), "%s-a", id);
	COPY_TEXT(batch.id, "1");
	COPY_TEXT(batch.run, id);
	ok(store_put_batch(s, &batch, &err), &err);
}

static void add_pod(struct store *s, const char *attempt, const char *run, int64_t ready_ms,
		    const char *handed_from)
{
	struct pod_row pod = {.create_ms = 1000, .ready_ms = ready_ms, .state = POD_ROW_GONE};
	struct err err = {0};

	COPY_TEXT(pod.attempt, attempt);
	COPY_TEXT(pod.run, run);
	COPY_TEXT(pod.provider, "local");
	COPY_TEXT(pod.handed_from, handed_from);
	ok(store_put_pod(s, &pod, &err), &err);
}

static void the_rate_is_of_the_newest_paid_speech(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct measured_rate rate;

	assert_false(measured_rate(s, &rate));
	add_run(s, "old", "tts", 1000, 1800000, 2000000, 1000);
	add_run(s, "paid", "tts", 2000, 1800000, 1000000, 900000);
	add_run(s, "free", "tts", 3000, 1800000, 0, 5);
	add_run(s, "command", "command", 4000, 1800000, 1000000, 5);
	add_run(s, "cached", "tts", 5000, 0, 1000000, 0);
	assert_true(measured_rate(s, &rate));
	assert_string_equal(rate.run, "paid");
	check_near("characters an hour", rate.chars_per_hour, 1800000);
	check_near("price", rate.price_h, 1);
	check_near("duty", rate.duty, 0.5);
}

static void a_cold_start_is_of_a_pod_that_the_run_rented(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct measured_work work;

	assert_false(measured_work(s, &work));
	add_run(s, "old", "tts", 1000, 5000, 0, 5);
	add_run(s, "new", "command", 2000, 60000, 0, 5);
	add_run(s, "cached", "tts", 3000, 0, 0, 0);
	add_pod(s, "a1", "new", 31000, "");
	add_pod(s, "a2", "new", 500000, "old");
	assert_true(measured_work(s, &work));
	assert_string_equal(work.run, "new");
	check_near("work", work.work_s, 60);
	check_near("cold start", work.cold_s, 30);
	assert_int_equal(work.pod_count, 2);
	free(work.pods);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(the_rate_is_of_the_newest_paid_speech),
		BOTH(a_cold_start_is_of_a_pod_that_the_run_rented),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
