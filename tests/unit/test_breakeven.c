/* test_breakeven.c - renting beside APIs and spot pods: what a user writes, what a run shows, and
 * what the ledger's newest runs show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/demand.h"
#include "runs/estimate.h"
#include "base/mem.h"
#include "store_bed.h"

static void check_near(const char *name, double got, double want)
{
	if (got < want - 1e-9 * (1 + want) || got > want + 1e-9 * (1 + want))
		fail_msg("%s: got %.12g, expected %.12g", name, got, want);
}

static void apis_are_read_as_typed(void **state)
{
	static const struct {
		const char *text, *name;
		double usd; /* 0: refused */
	} cases[] = {
		{"openai-tts-1=12", "openai-tts-1", 12},
		{"mine=0.5", "mine", 0.5},
		{"=3", "", 0},
		{"mine=", "", 0},
		{"mine=3x", "", 0},
		{"mine=0", "", 0},
		{"mine=-1", "", 0},
		{"mine=nan", "", 0},
		{"mine=1e9", "", 0},
		{"openai-tts-1", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct breakeven_api api;
		bool read = breakeven_read_api(cases[i].text, &api);
		if (read != (cases[i].usd > 0))
			fail_msg("%s: %s", cases[i].text, read ? "accepted" : "refused");
		if (!read)
			continue;
		assert_string_equal(api.name, cases[i].name);
		assert_string_equal(api.seen, "as given");
		check_near(cases[i].text, api.usd, cases[i].usd);
	}
}

static void list_prices_rise_and_are_found_by_name(void **state)
{
	size_t count;
	const struct breakeven_api *apis = breakeven_apis(&count);

	(void)state;
	assert_true(count > 1);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(breakeven_find_api(apis[i].name), &apis[i]);
		if (i && apis[i].usd < apis[i - 1].usd)
			fail_msg("%s is cheaper than the one before", apis[i].name);
	}
	assert_null(breakeven_find_api("openai"));
}

static void owning_and_saving_are_read_as_typed(void **state)
{
	static const struct {
		const char *text;
		double capex, opex; /* capex 0: refused */
	} own[] = {
		{"18750+2000/y", 18750, 2000},
		{"18750+0/y", 18750, 0},
		{"18750", 0, 0},
		{"18750+2000", 0, 0},
		{"0+2000/y", 0, 0},
		{"1+-2/y", 0, 0},
		{"1+2/year", 0, 0},
	};
	static const struct {
		const char *text;
		double share; /* 0: refused */
	} saving[] = {{"40%", 0.4}, {"40", 0.4}, {"0.4", 0.4}, {"1%", 0.01}, {"1", 1},
		      {"100", 1},   {"0", 0},    {"150", 0},   {"101%", 0},  {"-1", 0},
		      {"40%%", 0},  {"nan", 0},  {"x", 0},     {"", 0},      {"%", 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		double capex = 0, opex = 0;
		bool read = breakeven_read_own(own[i].text, &capex, &opex);
		if (read != (own[i].capex > 0))
			fail_msg("%s: %s", own[i].text, read ? "accepted" : "refused");
		check_near(own[i].text, capex, own[i].capex);
		check_near(own[i].text, opex, own[i].opex);
	}
	for (size_t i = 0; i < ARRAY_LEN(saving); i++) {
		double share = 0;
		bool read = breakeven_read_share(saving[i].text, &share);
		if (read != (saving[i].share > 0))
			fail_msg("%s: %s", saving[i].text, read ? "accepted" : "refused");
		check_near(saving[i].text, share, saving[i].share);
	}
}

/* An hour billed for $1, of which half an hour rendered 900,000 characters. */
static void a_run_shows_its_rate(void **state)
{
	struct breakeven_rate rate;

	(void)state;
	assert_true(breakeven_rate(900000, 1800000, 3600000, 1000000, &rate));
	check_near("price", rate.price_h, 1);
	check_near("characters an hour", rate.chars_per_hour, 1800000);
	check_near("duty", rate.duty, 0.5);
	/* the pods of a wide run may compute for longer than was billed after a clock step */
	assert_true(breakeven_rate(1, 2000, 1000, 1, &rate));
	check_near("duty is a share", rate.duty, 1);
	assert_false(breakeven_rate(0, 1000, 1000, 1, &rate));
	assert_false(breakeven_rate(1, 0, 1000, 1, &rate));
	assert_false(breakeven_rate(1, 1000, 0, 1, &rate));
	assert_false(breakeven_rate(1, 1000, 1000, 0, &rate));
}

/* The share that a spot pod is worth is where its saving is 0. */
static void spot_saves_nothing_at_its_worth(void **state)
{
	const struct breakeven_spot often = {3600, 120, 3600, 0}, seldom = {3600, 120, 86400, 0};
	double worth = breakeven_spot_worth(&often);

	(void)state;
	assert_true(worth > 0 && worth < 1);
	assert_true(breakeven_spot_worth(&seldom) < worth);
	check_near("saving at its worth", 1 + breakeven_spot_saving(&often, worth), 1);
	assert_true(breakeven_spot_saving(&often, worth - 0.01) < 0);
	assert_true(breakeven_spot_saving(&seldom, 0.5) > breakeven_spot_saving(&often, 0.5));
	assert_true(breakeven_spot_saving(&seldom, 0.5) < 0.5);
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
	struct breakeven_rate rate;
	char run[24] = "";

	assert_false(measured_rate(s, &rate, run));
	add_run(s, "old", "tts", 1000, 1800000, 2000000, 1000);
	add_run(s, "paid", "tts", 2000, 1800000, 1000000, 900000);
	add_run(s, "free", "tts", 3000, 1800000, 0, 5);
	add_run(s, "command", "command", 4000, 1800000, 1000000, 5);
	add_run(s, "cached", "tts", 5000, 0, 1000000, 0);
	assert_true(measured_rate(s, &rate, run));
	assert_string_equal(run, "paid");
	check_near("characters an hour", rate.chars_per_hour, 1800000);
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
		cmocka_unit_test(apis_are_read_as_typed),
		cmocka_unit_test(list_prices_rise_and_are_found_by_name),
		cmocka_unit_test(owning_and_saving_are_read_as_typed),
		cmocka_unit_test(a_run_shows_its_rate),
		cmocka_unit_test(spot_saves_nothing_at_its_worth),
		BOTH(the_rate_is_of_the_newest_paid_speech),
		BOTH(a_cold_start_is_of_a_pod_that_the_run_rented),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
