/* test_core_outlook.c - what a run expects: times of segments, what is left, when it ends. */
#include "core_bench.h"

/* What is told of the time to go counts what pods hold as well. */
static void test_what_is_left(void **state)
{
	struct offer o = offer(0, 1000000);
	struct core_summary before, after;
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_with(&b, &o, 1);
	core_summary(b.core, b.now, &before);
	bring_up(&b, 0);
	assert_true(did(&b, ACT_SEND, 0) > 0);
	core_summary(b.core, b.now, &after);
	assert_true(before.weight_left > 0);
	assert_true(after.weight_left == before.weight_left);
	tear_down(&b);
}

static struct core_outlook outlook(const struct bench *b)
{
	struct core_outlook o;

	core_outlook(b->core, b->now, &o);
	return o;
}

/* A pod that boots is expected after a minute where nothing is known of it; then the segments take
 * their estimates; then the pod is released, and seen to be gone. */
static void test_outlook_of_one_pod(void **state)
{
	struct offer o = offer(0, 3600000); /* $0.001 a second */
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start(&b);
	check_field("no offer yet", "render", outlook(&b).render_ms, -1);
	check_field("no offer yet", "total", outlook(&b).total_microusd, -1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_field("renting", "render", outlook(&b).render_ms, 64000);
	check_field("renting", "gone", outlook(&b).gone_ms, 64000 + 5000 + 1500);
	check_field("renting", "total", outlook(&b).total_microusd, 65500);
	rented(&b, 0);
	b.now += 50000;
	check_field("overdue soon", "render", outlook(&b).render_ms, 15000 + 4000);
	check_field("overdue soon", "total", outlook(&b).total_microusd, 50000 + 20500);
	list_running(&b, 0);
	connected(&b, 0);
	tell(&b, (struct event){.type = EV_SHARED_READY, .pod = 0});
	tell(&b, (struct event){.type = EV_WORKERS, .pod = 0, .number = 1});
	check_phase(&b, "at work", 0, POD_WORKING);
	check_field("at work", "render", outlook(&b).render_ms, 4000);
	check_field("at work", "stopping", outlook(&b).stopping, false);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 2});
	check_field("stopped", "stops", outlook(&b).stops, 1);
	check_field("stopped", "stopping", outlook(&b).stopping, true);
	check_field("stopped", "render", outlook(&b).render_ms, 0);
	tear_down(&b);
}

/* The second pod helps from when it is up. */
static void test_outlook_counts_pods_that_boot(void **state)
{
	struct offer o[2] = {offer(0, 3600000), offer(0, 3600000)};
	struct bench b;

	(void)state;
	set_up(&b, 8);
	b.conf.pods = 2;
	b.conf.at_once = true;
	for (size_t i = 0; i < 8; i++)
		b.segments[i].est_s = 30;
	start_with(&b, o, 2);
	check_field("two", "pods", core_pod_count(b.core), 2);
	check_field("both boot", "render", outlook(&b).render_ms, 60000 + 120000);
	b.now += 20000;
	bring_up(&b, 0);
	int64_t cold_ms = pod(&b, 0)->presence.ready_at - pod(&b, 0)->rental.create_at;
	int64_t left_ms = MAX(cold_ms - (b.now - pod(&b, 1)->rental.create_at), cold_ms / 4);
	check_field("one works", "render", outlook(&b).render_ms, left_ms + (240000 - left_ms) / 2);
	tear_down(&b);
}

/* By which a silent worker counts as hanging. */
static void test_expected_times(void **state)
{
	static const struct {
		const char *name;
		enum batching batching;
		struct batch_speed speed;
		/* of three segments and of 29, each of weight 10 and estimated as 2 s */
		int64_t canary_ms, second_ms;
	} cases[] = {
		{"one after the other", BATCHING_NONE, {0}, 6000, 0},
		{"all at once: three take as long as 29, the most",
		 BATCHING_PADDED,
		 {0},
		 58000,
		 58000},
		{"as measured", BATCHING_PADDED, {1000, 100, 10}, 2300, 4900},
		{"three alone where 29 have room", BATCHING_CONTINUOUS, {0}, 58000, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 32);
		b.conf.canary = true;
		b.conf.max_batch = 29;
		b.hello = (struct event){
			.max_batch = 29, .batching = cases[i].batching, .speed = cases[i].speed};
		for (size_t s = 0; s < b.count; s++) {
			b.segments[s].est_s = 2;
			b.segments[s].weight = 10;
		}
		start_simply(&b);
		bring_up(&b, 0);
		check_field(cases[i].name, "canary", (long long)core_batch_expected_ms(b.core, 0),
			    cases[i].canary_ms);
		if (cases[i].second_ms) {
			render_batch(&b, 0, 0, 1000, true);
			check_field(cases[i].name, "second batch",
				    (long long)core_batch_expected_ms(b.core, 1),
				    cases[i].second_ms);
		}
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_left),
		cmocka_unit_test(test_outlook_of_one_pod),
		cmocka_unit_test(test_outlook_counts_pods_that_boot),
		cmocka_unit_test(test_expected_times),
	};

	return cmocka_run_group_tests_name("core outlook", tests, NULL, NULL);
}
