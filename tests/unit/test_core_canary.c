/* test_core_canary.c - the first batch of a run is checked before more pods are rented. */
#include "core_bench.h"

static void test_canary_before_width(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 200);
	b.conf.canary = true;
	b.conf.pods = 3;
	start_with(&b, &o, 1);
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	bring_up(&b, 0);
	assert_int_equal(did(&b, ACT_SEND, -1), 1);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	assert_int_equal(core_batch_at(b.core, 0)->count, CORE_CANARY);
	began(&b, 0, 0);
	b.now += SECOND;
	uint32_t segment = core_batch_at(b.core, 0)->segments[0];
	rendered(&b, 0, segment);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	safe(&b, 0, segment, true);
	assert_true(did(&b, ACT_SEND, 0) > 0); /* the way is open */
	/* how long the rest will take is not known yet */
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	tear_down(&b);
}

/* A segment whose file is missing took its worker's time: it does not make the others look slow, so
 * that a second pod is rented. */
static void test_a_failed_segment_is_measured(void **state)
{
	double rates[2], paces[2];

	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		struct bench b;
		set_up(&b, 100);
		b.conf.canary = true;
		start_simply(&b);
		bring_up(&b, 0);
		const struct core_batch k = *core_batch_at(b.core, 0);
		began(&b, 0, 0);
		for (int i = 0; i < CORE_CANARY; i++) {
			b.now += SECOND;
			if (i == 1 && fails) {
				struct err err;
				err_set(&err, ERR_NOT_FOUND, "no such file");
				tell(&b, (struct event){.type = EV_SEGMENT_FAILED,
							.pod = 0,
							.segment = k.segments[i],
							.err = &err});
			} else {
				rendered(&b, 0, k.segments[i]);
			}
		}
		rates[fails] = pace_rate(b.core);
		paces[fails] = pace_at_best(b.core);
		tear_down(&b);
	}
	assert_true(rates[0] > 0 && rates[1] == rates[0]);
	assert_true(paces[0] > 0 && paces[1] == paces[0]);
}

/* A deadline takes all of them: they come up and work side by side, and the first one up has the
 * canary. Its result stops all of them if it is bad. */
static void test_all_at_once_for_a_deadline(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	for (int bad = 0; bad <= CORE_CANARY; bad += CORE_CANARY) {
		set_up(&b, 200);
		b.conf.canary = true;
		b.conf.pods = 3;
		b.conf.at_once = true;
		start_with(&b, &o, 1);
		check_field("at once", "pods rented", core_pod_count(b.core), 3);
		bring_up(&b, 1);
		assert_int_equal(core_batch_at(b.core, 0)->count, CORE_CANARY);
		bring_up(&b, 0);
		assert_true(did(&b, ACT_SEND, 0) > 0); /* it bills, so it works */
		began(&b, 1, 0);
		b.now += SECOND;
		for (int i = 0; i < CORE_CANARY; i++) {
			uint32_t segment = core_batch_at(b.core, 0)->segments[i];
			rendered(&b, 1, segment);
			safe(&b, 1, segment, i >= bad);
		}
		check_field("at once", "stopped", core_is_stopping(b.core), bad > 0);
		if (bad) {
			end_well(&b);
			check_field("at once", "exit", exit_status(&b), 1);
		}
		tear_down(&b);
	}
}

static const struct {
	const char *name;
	int bad; /* of three first segments, how many come out bad */
	int64_t took_s;
	double est_s; /* each of the three */
	bool stops;
	enum batching batching;
	struct batch_speed speed; /* as measured by earlier runs; segments weigh 10 */
} canaries[] = {
	{"all good", 0, 2, 1, false},
	{"two of three bad", 2, 2, 1, false},
	{"all bad", 3, 2, 1, true},
	{"slow, yet below 20 times the estimate", 0, 119, 2, false},
	{"20 times slower than estimated", 0, 120, 2, true},
	{"slower than that, yet below a minute", 0, 59, 0.1, false},
	{"a minute", 0, 60, 0.1, true},
	{"three of a padded engine take about as long as 32", 0, 70, 1, false, BATCHING_PADDED},
	{"20 times as long as 32", 0, 640, 1, true, BATCHING_PADDED},
	{"three take 9.6 s as measured, 180 ms by the job's estimate",
	 0,
	 80,
	 0.06,
	 false,
	 BATCHING_PADDED,
	 {3000, 600, 20}},
	{"nearly 20 times that", 0, 191, 0.06, false, BATCHING_PADDED, {3000, 600, 20}},
	{"20 times that", 0, 192, 0.06, true, BATCHING_PADDED, {3000, 600, 20}},
	{"slower than the job's estimate, and as measured",
	 0,
	 600,
	 1,
	 false,
	 BATCHING_NONE,
	 {100, 0, 1000}},
	{"three alone in a worker of 32 places, each measured by its share",
	 0,
	 70,
	 0.06,
	 false,
	 BATCHING_CONTINUOUS,
	 {0, 0, 100}},
	{"20 times as long as all 32 take", 0, 640, 0.06, true, BATCHING_CONTINUOUS, {0, 0, 100}},
};

static void test_canary_judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(canaries); i++) {
		const char *name = canaries[i].name;
		struct bench b;
		set_up(&b, 60);
		b.conf.canary = true;
		b.conf.pods = 2;
		b.conf.max_batch = 32;
		b.hello = (struct event){.max_batch = 32,
					 .batching = canaries[i].batching,
					 .speed = canaries[i].speed};
		for (size_t s = 0; s < b.count; s++) {
			b.segments[s].est_s = canaries[i].est_s;
			b.segments[s].weight = 10;
		}
		start_simply(&b);
		bring_up(&b, 0);
		struct core_batch k = *core_batch_at(b.core, 0);
		began(&b, 0, 0);
		b.now += canaries[i].took_s * SECOND;
		for (size_t s = 0; s < k.count; s++) {
			rendered(&b, 0, k.segments[s]);
			safe(&b, 0, k.segments[s], (int)s >= canaries[i].bad);
		}
		done(&b, 0, 0);
		check_field(name, "stopped", core_is_stopping(b.core), canaries[i].stops);
		if (canaries[i].stops) {
			end_well(&b);
			check_field(name, "exit", exit_status(&b), 1);
		}
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_canary_before_width),
		cmocka_unit_test(test_a_failed_segment_is_measured),
		cmocka_unit_test(test_all_at_once_for_a_deadline),
		cmocka_unit_test(test_canary_judged),
	};

	return cmocka_run_group_tests_name("core canary", tests, NULL, NULL);
}
