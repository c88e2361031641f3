/* test_core_durable.c - files on a volume: a pod is released before they are fetched. */
#include "core_bench.h"

/* A pod with one segment, rendered, whose file is on its way; its volume can be read without it, or
 * not. */
static void all_but_home(struct bench *b, bool apart, bool free)
{
	struct volume v = {.id = "v1", .apart = apart};
	struct offer o = offer(0, 1000000);

	set_up(b, 1);
	b->conf.max_batch = 1;
	b->conf.command = b->conf.want_volume = true;
	b->conf.providers[0].pods_are_free = free;
	start(b);
	tell(b, (struct event){.type = EV_VOLUME, .volume = &v});
	tell(b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	bring_up(b, 0);
	began(b, 0, 0);
	rendered(b, 0, 0);
	done(b, 0, 0);
}

static void test_sync_before_the_files_are_home(void **state)
{
	static const struct {
		const char *name;
		bool apart, free;
		int asked;
	} cases[] = {
		{"its volume can be read without it", true, false, 1},
		{"it cannot", false, false, 0},
		{"pods that cost nothing", true, true, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		all_but_home(&b, cases[i].apart, cases[i].free);
		check_field(cases[i].name, "syncs", did(&b, ACT_SYNC, 0), cases[i].asked);
		check_phase(&b, cases[i].name, 0, POD_WORKING);
		tear_down(&b);
	}
}

static void test_durable_pods_go_first(void **state)
{
	struct bench b;

	(void)state;
	all_but_home(&b, true, false);
	int turn = first(&b, ACT_SYNC)->number;
	tell(&b, (struct event){.type = EV_SYNCED, .number = turn, .ok = false});
	check_phase(&b, "not now", 0, POD_WORKING);
	wait_ms(&b, 1900);
	check_field("not now", "syncs", did(&b, ACT_SYNC, 0), 0);
	wait_ms(&b, 200);
	check_field("later", "syncs", did(&b, ACT_SYNC, 0), 1);
	tell(&b, (struct event){.type = EV_SYNCED, .number = turn, .ok = true});
	check_phase(&b, "an answer to the first question", 0, POD_WORKING);
	tell(&b, (struct event){.type = EV_SYNCED, .number = turn + 1, .ok = true});
	check_phase(&b, "durable", 0, POD_RELEASING);
	check_field("durable", "releases", did(&b, ACT_RELEASE, 0), 1);
	check_field("durable", "fetches from its volume", did(&b, ACT_FETCH, 0), 1);
	assert_true(pod(&b, 0)->presence.durable && pod_files_on_volume(pod(&b, 0)));
	tear_down(&b);
}

static void test_a_transfer_that_breaks(void **state)
{
	static const int pauses[] = {500, 1000, 2000};
	struct bench b;

	(void)state;
	all_but_home(&b, false, true);
	/* with its event; this is of the batch's end */
	check_field("rendered", "fetches", did(&b, ACT_FETCH, 0), 0);
	tell_err(&b, EV_FETCH_FAILED, 0, ERR_NETWORK);
	check_field("broke once", "fetches", did(&b, ACT_FETCH, 0), 1);
	for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
		tell_err(&b, EV_FETCH_FAILED, 0, ERR_NETWORK);
		check_field("broke again", "fetches at once", did(&b, ACT_FETCH, 0), 0);
		wait_ms(&b, pauses[i] - 100);
		check_field("broke again", "fetches before its pause is over",
			    did(&b, ACT_FETCH, 0), 0);
		wait_ms(&b, 200);
		check_field("broke again", "fetches", did(&b, ACT_FETCH, 0), 1);
	}
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	wait_ms(&b, 500);
	check_field("no connection", "fetches", did(&b, ACT_FETCH, 0), 0);
	tear_down(&b);

	all_but_home(&b, false, true);
	for (int i = 0; i < 4; i++) {
		tell_err(&b, EV_FETCH_FAILED, 0, ERR_NETWORK);
		wait_ms(&b, 5 * SECOND);
	}
	assert_int_equal(core_seg_state(b.core, 0), SEG_RENDERED);
	/* there is something about this file: it is rendered again */
	tell_err(&b, EV_FETCH_FAILED, 0, ERR_NETWORK);
	assert_int_not_equal(core_seg_state(b.core, 0), SEG_RENDERED);
	tear_down(&b);

	all_but_home(&b, false, true);
	tell_err(&b, EV_FETCH_FAILED, 0, ERR_NETWORK);
	tell_err(&b, EV_FETCH_FAILED, 0, ERR_NETWORK);
	tell_err(&b, EV_LOST, 0, ERR_NETWORK); /* in the pause */
	wait_ms(&b, SECOND);
	check_field("the connection went in the pause", "fetches", did(&b, ACT_FETCH, 0), 0);
	tear_down(&b);
}

static void test_files_of_durable_pods_are_waited_for(void **state)
{
	static const enum err_kind kinds[] = {ERR_NOT_FOUND, ERR_NETWORK, ERR_CREDENTIALS,
					      ERR_RATE_LIMITED};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct bench b;
		int asked = 0;
		all_but_home(&b, true, false);
		tell(&b, (struct event){.type = EV_SYNCED,
					.number = first(&b, ACT_SYNC)->number,
					.ok = true});
		tell(&b, (struct event){.type = EV_RELEASED});
		for (int64_t until = b.now + 9 * MINUTE; b.now < until;) {
			tell_err(&b, EV_FETCH_FAILED, 0, kinds[i]);
			check_field("delayed", "creates", did(&b, ACT_RENT, -1), 0);
			wait_ms(&b, 15 * SECOND);
			asked += did(&b, ACT_FETCH, 0);
		}
		assert_in_range(asked, 30, 40);
		assert_int_equal(core_seg_state(b.core, 0), SEG_RENDERED);
		b.now += MINUTE + SECOND;
		tell_err(&b, EV_FETCH_FAILED, 0, kinds[i]);
		/* `burst fetch` may bring it yet */
		assert_int_equal(core_seg_state(b.core, 0), SEG_FAILED);
		end_well(&b);
		tear_down(&b);
	}
}

static void test_slept_over_files_of_a_durable_pod(void **state)
{
	(void)state;
	for (int slept = 0; slept < 2; slept++) {
		struct bench b;
		all_but_home(&b, true, false);
		tell(&b, (struct event){.type = EV_SYNCED,
					.number = first(&b, ACT_SYNC)->number,
					.ok = true});
		tell(&b, (struct event){.type = EV_RELEASED});
		b.now += HOUR;
		if (slept)
			tell(&b, (struct event){.type = EV_SLEPT});
		tell_err(&b, EV_FETCH_FAILED, 0, ERR_NETWORK); /* there is none yet */
		check_field(slept ? "slept" : "an hour in vain", "state", core_seg_state(b.core, 0),
			    slept ? SEG_RENDERED : SEG_FAILED);
		if (slept) {
			wait_ms(&b, SECOND);
			check_field("slept", "fetches", did(&b, ACT_FETCH, 0), 1);
		}
		tear_down(&b);
	}
}

static void test_durable_pods_of_an_earlier_life(void **state)
{
	struct bench b;
	struct core_pod p = {.phase = POD_GONE,
			     .rental.id = "p0",
			     .rental.attempt = "a0",
			     .presence.durable = true,
			     .rental.volume = {.id = "v1", .apart = true}};

	(void)state;
	set_up(&b, 2);
	b.core = core_new(&b.conf, b.segments, b.count);
	core_adopt(b.core, &p);
	tell(&b, (struct event){.type = EV_START});
	check_field("at the start", "salvages", did(&b, ACT_SALVAGE, 0), 1);
	check_field("before its log is read", "questions for offers", did(&b, ACT_OFFERS, -1), 0);
	/* it is asked again, and nothing is rented meanwhile */
	tell_err(&b, EV_SALVAGED, 0, ERR_NETWORK);
	check_field("not to be had now", "questions for offers", did(&b, ACT_OFFERS, -1), 0);
	wait_ms(&b, SECOND);
	check_field("not to be had now", "salvages", did(&b, ACT_SALVAGE, 0), 1);
	rendered(&b, 0, 1);
	check_field("read", "fetches", did(&b, ACT_FETCH, 0), 1);
	tell(&b, (struct event){.type = EV_SALVAGED});
	check_field("read to its end", "questions for offers", did(&b, ACT_OFFERS, -1), 1);
	assert_int_equal(core_seg_state(b.core, 0), SEG_TODO);
	assert_int_equal(core_seg_state(b.core, 1), SEG_RENDERED);
	tear_down(&b);
}

/* A handed-over pod is past its hard end. If its volume can be read without it, what it finished is
 * fetched from there. */
static void test_files_of_a_pod_whose_time_was_over(void **state)
{
	static const struct {
		const char *name;
		bool apart, was_reached;
		int64_t hard_end_s;
		bool salvaged;
	} cases[] = {
		{"its volume can be read without it", true, true, -3600, true},
		{"it cannot", false, true, -3600, false},
		{"nobody ever reached it", true, false, -3600, false},
		{"it has time left", true, true, 3600, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 2);
		b.now += 24 * HOUR;
		struct core_pod p = {.phase = POD_BOOTING,
				     .rental.id = "p0",
				     .rental.attempt = "a0",
				     .presence.lease = LEASE_AGENT,
				     .rental.volume = {.id = "v1", .apart = cases[i].apart},
				     .rental.create_at = b.now - 2 * HOUR,
				     .rental.rented_at = b.now - 2 * HOUR,
				     .rental.hard_end_ms = b.now + cases[i].hard_end_s * SECOND};
		p.presence.connected_at = cases[i].was_reached ? p.rental.create_at + MINUTE : 0;
		b.core = core_new(&b.conf, b.segments, b.count);
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		wait_ms(&b, 0);
		check_field(name, "released", did(&b, ACT_RELEASE, 0), cases[i].hard_end_s < 0);
		check_field(name, "salvages", did(&b, ACT_SALVAGE, 0), cases[i].salvaged);
		if (cases[i].salvaged) {
			rendered(&b, 0, 1);
			check_field(name, "fetches", did(&b, ACT_FETCH, 0), 1);
			tell(&b, (struct event){.type = EV_SALVAGED});
			assert_int_equal(core_seg_state(b.core, 0), SEG_TODO);
			assert_int_equal(core_seg_state(b.core, 1), SEG_RENDERED);
		}
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sync_before_the_files_are_home),
		cmocka_unit_test(test_durable_pods_go_first),
		cmocka_unit_test(test_a_transfer_that_breaks),
		cmocka_unit_test(test_files_of_durable_pods_are_waited_for),
		cmocka_unit_test(test_slept_over_files_of_a_durable_pod),
		cmocka_unit_test(test_durable_pods_of_an_earlier_life),
		cmocka_unit_test(test_files_of_a_pod_whose_time_was_over),
	};

	return cmocka_run_group_tests_name("core durable", tests, NULL, NULL);
}
