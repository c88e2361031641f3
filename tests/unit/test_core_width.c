/* test_core_width.c - how many pods a run rents while it measures its batches. */
#include "core_bench.h"

/* Its segments are announced one by one, the first after the worker's start. */
static void render_bit_by_bit(struct bench *b, int i, uint32_t batch, int64_t start_ms,
			      int64_t each_ms)
{
	struct core_batch k = *core_batch_at(b->core, batch);

	began(b, i, batch);
	b->now += start_ms;
	for (size_t s = 0; s < k.count; s++) {
		b->now += each_ms;
		rendered(b, i, k.segments[s]);
		safe(b, i, k.segments[s], true);
	}
	done(b, i, batch);
}

/* 200 segments, of which three are the canary; then batches of 4. A pod comes up in 15 s. */
static void test_width_by_later_batches(void **state)
{
	static const struct {
		const char *name;
		int64_t start_ms, each_ms;
		/* the results of a batch are announced at its end */
		bool at_once;
		/* further pods rented then, of the two that are allowed */
		int after_canary, after_next;
	} cases[] = {
		{"next to nothing to do", 0, 15, false, 0, 0},
		{"not enough for a second one", 0, 220, false, 0, 0},
		{"the worker's start does not count", 5000, 150, false, 0, 0},
		{"however long it was", 60000, 150, false, 0, 0},
		{"enough for one more", 0, 250, false, 1, 1},
		{"enough for two more", 0, 400, false, 2, 2},
		{"known by the next batch only", 0, 400, true, 0, 2},
		{"and not enough by that", 12000, 150, true, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 200);
		b.conf.canary = true;
		b.conf.pods = 3;
		start_simply(&b);
		bring_up(&b, 0);
		for (uint32_t k = 0; k < 2; k++) {
			int64_t start_ms = k ? 0 : cases[i].start_ms;
			if (cases[i].at_once)
				render_batch(&b, 0, k, start_ms + (k ? 4 : 3) * cases[i].each_ms,
					     true);
			else
				render_bit_by_bit(&b, 0, k, start_ms, cases[i].each_ms);
			check_field(cases[i].name,
				    k ? "pods after the next batch" : "pods after the canary",
				    core_pod_count(b.core),
				    1 + (k ? cases[i].after_next : cases[i].after_canary));
		}
		tear_down(&b);
	}
}

/* Seed 1126014068008172 of the simulator: nothing was known of how long it had taken, so another
 * one seemed to come up at once. */
static void test_start_of_a_pod_whose_connection_was_lost_meanwhile(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 40);
	start_simply(&b);
	rented(&b, 0);
	b.now += 15 * SECOND;
	list_running(&b, 0);
	connected(&b, 0);
	tell(&b, (struct event){.type = EV_SHARED_READY, .pod = 0});
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_CONNECTED,
				.pod = 0,
				.switch_ok = true,
				.workers_alive = true,
				.t = b.now});
	check_phase(&b, "connected again", 0, POD_WORKING);
	assert_int_equal(budget_cold_ms(b.core), 16 * SECOND);
	tear_down(&b);
}

/* What the run's earlier life wrote down of it tells this one how long a further pod takes (seed
 * 1126171735140936). */
static void test_start_of_a_pod_that_is_taken_over(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 40);
	b.core = core_new(&b.conf, b.segments, b.count);
	struct core_pod p = {.phase = POD_BOOTING,
			     .rental.id = "p0",
			     .rental.attempt = "a0",
			     .rental.create_at = b.now - 100 * SECOND,
			     .rental.rented_at = b.now - 99 * SECOND,
			     .presence.connected_at = b.now - 80 * SECOND,
			     .presence.synced_at = b.now - 60 * SECOND,
			     .presence.ready_at = b.now - 50 * SECOND,
			     .rental.hard_end_ms = b.now + HOUR,
			     .rental.hard_end_s = (WALL_MS + b.now + HOUR) / 1000};
	core_adopt(b.core, &p);
	tell(&b, (struct event){.type = EV_START});
	assert_int_equal(budget_cold_ms(b.core), COLD_GUESS_MS);
	list_running(&b, 0);
	tell(&b, (struct event){.type = EV_CONNECTED,
				.pod = 0,
				.switch_ok = true,
				.workers_alive = true,
				.t = b.now});
	check_phase(&b, "taken over", 0, POD_WORKING);
	assert_int_equal(budget_cold_ms(b.core), 50 * SECOND);
	tear_down(&b);
}

/* The others are quicker than it seemed: what was rented may not be worth its start any more while
 * it comes up, in 15 s. */
static void test_pods_that_come_too_late_are_released(void **state)
{
	static const struct {
		const char *name;
		int64_t after_s; /* since it was rented */
		/* over by then, each in a fortieth of the time that the first one took */
		int batches;
		bool stays;
	} cases[] = {
		{"much is left", 2, 2, true},
		{"12 s from being up, and 11 s are left", 2, 10, false},
		{"4 s from being up, and 11 s are left", 11, 10, true},
		{"next to nothing is left", 11, 44, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 200);
		b.conf.canary = true;
		b.conf.pods = 2;
		start_simply(&b);
		bring_up(&b, 0);
		render_batch(&b, 0, 0, 3000, true);
		render_batch(&b, 0, 1, 4000, true);
		check_field(cases[i].name, "pods", core_pod_count(b.core), 2);
		rented(&b, 1);
		b.now += cases[i].after_s * SECOND;
		for (int k = 0; k < cases[i].batches; k++)
			render_batch(&b, 0, (uint32_t)k + 2, 100, true);
		check_phase(&b, cases[i].name, 1, cases[i].stays ? POD_BOOTING : POD_RELEASING);
		/* none is rented in its place */
		check_field(cases[i].name, "pods", core_pod_count(b.core), 2);
		tear_down(&b);
	}
}

static void test_what_a_further_pod_brings(void **state)
{
	enum { C = 30000, EVER = 100 * C };
	static const struct {
		const char *name;
		double work_ms;
		struct stint others[3], one;
		size_t count;
		int64_t least_ms;
		bool pays;
	} cases[] = {
		{"alone, all is for it", C, {{0}}, {C, EVER}, 0, C, true},
		{"beside one, which works while it comes up and then on",
		 3 * C,
		 {{0, EVER}},
		 {C, EVER},
		 1,
		 C,
		 true},
		{"a little less to do", 3 * C - 1, {{0, EVER}}, {C, EVER}, 1, C, false},
		{"beside two", 5 * C, {{0, EVER}, {0, EVER}}, {C, EVER}, 2, C, true},
		{"beside two, a little less",
		 5 * C - 1,
		 {{0, EVER}, {0, EVER}},
		 {C, EVER},
		 2,
		 C,
		 false},
		{"beside one and one that comes up as late",
		 4 * C,
		 {{0, EVER}, {C, EVER}},
		 {C, EVER},
		 2,
		 C,
		 true},
		{"beside one that comes up, a little less",
		 4 * C - 1,
		 {{0, EVER}, {C, EVER}},
		 {C, EVER},
		 2,
		 C,
		 false},
		{"others that come later take nothing from it",
		 C,
		 {{3 * C, EVER}},
		 {C, EVER},
		 1,
		 C,
		 true},
		{"the other one's time is over soon", 2 * C, {{0, C}}, {C, EVER}, 1, C, true},
		{"the other one takes no more work", C, {{0, -C}}, {C, EVER}, 1, C, true},
		{"its own time is too short", 10 * C, {{0, EVER}}, {C, 2 * C - 1}, 1, C, false},
		{"its own time is just enough", 10 * C, {{0, EVER}}, {C, 2 * C}, 1, C, true},
		{"half up, and enough for a quarter of the rest",
		 C,
		 {{0, EVER}},
		 {C / 2, EVER},
		 1,
		 C / 8,
		 true},
		{"half up, and nothing left by then",
		 C / 2,
		 {{0, EVER}},
		 {C / 2, EVER},
		 1,
		 C / 8,
		 false},
		{"nothing to do", 0, {{0, EVER}}, {C, EVER}, 1, C, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_field(cases[i].name, "pays",
			    width_pays(cases[i].work_ms, cases[i].others, cases[i].count,
				       cases[i].one, cases[i].least_ms),
			    cases[i].pays);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_width_by_later_batches),
		cmocka_unit_test(test_start_of_a_pod_whose_connection_was_lost_meanwhile),
		cmocka_unit_test(test_start_of_a_pod_that_is_taken_over),
		cmocka_unit_test(test_pods_that_come_too_late_are_released),
		cmocka_unit_test(test_what_a_further_pod_brings),
	};

	return cmocka_run_group_tests_name("core width", tests, NULL, NULL);
}
