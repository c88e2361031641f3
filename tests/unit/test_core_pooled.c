/* test_core_pooled.c - pods that other runs may take. */
#include "core_bench.h"
#include <signal.h>

/* A run with one offer at $1 an hour, which no other run offers a pod. */
static void start_pooled(struct bench *b)
{
	struct offer o = offer(0, 1000000);

	b->conf.pooled = true;
	start(b);
	assert_int_equal(did(b, ACT_SEEK, -1), 1);
	assert_int_equal(did(b, ACT_OFFERS, -1), 0);
	tell(b, (struct event){.type = EV_SOUGHT});
	tell(b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
}

static void work_with_offer(struct bench *b, int64_t keep_ms)
{
	set_up(b, 4);
	b->conf.keep_warm_ms = keep_ms;
	start_pooled(b);
	bring_up(b, 0);
	render_batch(b, 0, 0, 2 * SECOND, true);
}

static void test_offered_pod_is_taken(void **state)
{
	struct bench b;

	(void)state;
	work_with_offer(&b, MINUTE);
	assert_int_equal(did(&b, ACT_OFFER, 0), 1);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	check_phase(&b, "on offer", 0, POD_WORKING);
	b.now += 3 * SECOND;
	tell(&b, (struct event){.type = EV_TAKEN, .pod = 0, .t = b.now - SECOND});
	check_phase(&b, "taken", 0, POD_GONE);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	assert_int_equal(pod(&b, 0)->rental.gone_at, b.now - SECOND);
	/* it is listed on, as what it is to another run: that is no pod of ours */
	list_running(&b, 0);
	check_phase(&b, "listed on", 0, POD_GONE);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	end_well(&b);
	struct core_summary sum;
	core_summary(b.core, b.now, &sum);
	assert_int_equal(sum.status, RUN_DONE);
	tear_down(&b);
}

static void test_offered_pod_that_nobody_takes(void **state)
{
	struct bench b;

	(void)state;
	work_with_offer(&b, MINUTE);
	assert_int_equal(did(&b, ACT_OFFER, 0), 1);
	wait_ms(&b, 20 * SECOND);
	check_phase(&b, "released", 0, POD_RELEASING);
	/* taken at that very moment: the ledger decides */
	tell(&b, (struct event){.type = EV_TAKEN, .pod = 0, .t = b.now});
	check_phase(&b, "taken after all", 0, POD_GONE);
	end_well(&b);
	tear_down(&b);
}

static void test_unasked_pod_goes_at_once(void **state)
{
	struct bench b;

	(void)state;
	work_with_offer(&b, 0);
	assert_int_equal(did(&b, ACT_OFFER, 0), 1);
	tell(&b, (struct event){.type = EV_NOT_WANTED, .pod = 0});
	check_phase(&b, "released", 0, POD_RELEASING);
	end_well(&b);
	tear_down(&b);
}

/* Two pods with a segment each; the first one is done before the other. */
static void work_with_two(struct bench *b, bool detached)
{
	struct offer o = offer(0, 1000000);

	set_up(b, 2);
	b->conf.pods = 2;
	b->conf.at_once = b->conf.command = b->conf.pooled = true;
	b->conf.detached = detached;
	b->conf.keep_warm_ms = MINUTE;
	start(b);
	tell(b, (struct event){.type = EV_SOUGHT});
	tell(b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	assert_int_equal(did(b, ACT_RENT, -1), 2);
	bring_up(b, 0);
	bring_up(b, 1);
	render_batch(b, 0, 0, 2 * SECOND, true);
}

/* It is not kept for later runs: this one may still need a pod. */
static void test_idle_pod_of_a_run_that_works_goes_to_one_that_waits(void **state)
{
	struct bench b;

	(void)state;
	work_with_two(&b, false);
	assert_int_equal(did(&b, ACT_OFFER, 0), 1);
	assert_int_equal(first(&b, ACT_OFFER)->number, 0);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_TAKEN, .pod = 0, .t = b.now});
	check_phase(&b, "taken", 0, POD_GONE);
	check_phase(&b, "the other one", 1, POD_WORKING);
	render_batch(&b, 1, 1, 2 * SECOND, true);
	assert_int_equal(first(&b, ACT_OFFER)->number, MINUTE);
	tell(&b, (struct event){.type = EV_NOT_WANTED, .pod = 1});
	end_well(&b);
	tear_down(&b);
}

static void test_idle_pod_that_no_run_waits_for_is_released(void **state)
{
	struct bench b;

	(void)state;
	work_with_two(&b, false);
	tell(&b, (struct event){.type = EV_NOT_WANTED, .pod = 0});
	check_phase(&b, "released", 0, POD_RELEASING);
	check_phase(&b, "the other one", 1, POD_WORKING);
	tear_down(&b);
}

/* Another run may have it before its agent gets the work. */
static void test_pod_on_offer_gets_no_lost_work(void **state)
{
	struct bench b;

	(void)state;
	work_with_two(&b, false);
	tell_err(&b, EV_WORKERS_FAILED, 1, ERR_TRANSIENT);
	check_phase(&b, "lost", 1, POD_RELEASING);
	assert_int_equal(did(&b, ACT_SEND, 0), 0);
	wait_ms(&b, 20 * SECOND);
	assert_int_equal(did(&b, ACT_SEND, 0), 0);
	check_phase(&b, "not taken", 0, POD_RELEASING);
	tear_down(&b);
}

/* Its client may exit while the other pod works, and could not release this one. */
static void test_detached_run_offers_nothing_while_it_works(void **state)
{
	struct bench b;

	(void)state;
	work_with_two(&b, true);
	assert_int_equal(did(&b, ACT_OFFER, 0), 0);
	check_phase(&b, "released", 0, POD_RELEASING);
	tear_down(&b);
}

static void test_a_signal_offers_nothing(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.keep_warm_ms = MINUTE;
	start_pooled(&b);
	bring_up(&b, 0);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 2});
	render_batch(&b, 0, 0, 2 * SECOND, true);
	assert_int_equal(did(&b, ACT_OFFER, 0), 0);
	end_well(&b);
	tear_down(&b);
}

/* `run -d`: a pod on offer may be another run's by the time that its agent is told to keep itself
 * alive, and would then end itself under that run. */
static void test_an_offered_pod_is_not_left_alone(void **state)
{
	struct volume v = {.id = "v1", .apart = true};
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 1); /* the canary is all: the pod has no work when it is found good */
	b.conf.detached = b.conf.want_volume = b.conf.canary = b.conf.pooled = true;
	b.conf.keep_warm_ms = MINUTE;
	start(&b);
	tell(&b, (struct event){.type = EV_SOUGHT});
	tell(&b, (struct event){.type = EV_VOLUME, .volume = &v});
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	bring_up(&b, 0);
	began(&b, 0, 0);
	b.now += 2 * SECOND;
	rendered(&b, 0, 0);
	done(&b, 0, 0);
	safe(&b, 0, 0, true);
	assert_int_equal(did(&b, ACT_OFFER, 0), 1);
	assert_int_equal(did(&b, ACT_HANDOVER, 0), 0);
	wait_ms(&b, SECOND);
	assert_int_equal(did(&b, ACT_HANDOVER, 0), 0);
	tear_down(&b);
}

/* What keeps a run that waits from looking for pods ends with an event: until then it does not tick
 * all the time. */
static void test_no_ticks_where_it_cannot_look(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.pooled = b.conf.want_volume = b.conf.make_volume = true;
	start(&b);
	tell(&b, (struct event){.type = EV_SOUGHT});
	tell_err(&b, EV_VOLUME, 0, ERR_NOT_FOUND);
	tell(&b, (struct event){.type = EV_OFFERS, .count = 0});
	assert_true(core_waits(b.core));
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	tell(&b, (struct event){.type = EV_SOUGHT});
	assert_int_equal(did(&b, ACT_VOLUME, -1), 1);
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_TICK});
	assert_true(core_wake_at(b.core) > b.now);
	tear_down(&b);
}

/* As the engine does it at ACT_SEEK: the pod is the core's before the core hears of it. */
static void hand_over_pod(struct bench *b)
{
	adopt_living(b, core_pod_count(b->core), 0);
	tell(b, (struct event){.type = EV_ADOPTED, .pod = core_pod_count(b->core) - 1});
	assert_int_equal(did(b, ACT_OFFERS, -1) + did(b, ACT_RENT, -1), 0);
	tell(b, (struct event){.type = EV_SOUGHT});
}

static void test_offered_pods_go_before_renting(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.pooled = true;
	start(&b);
	assert_int_equal(first(&b, ACT_SEEK)->number, 1);
	hand_over_pod(&b);
	assert_int_equal(did(&b, ACT_OFFERS, -1) + did(&b, ACT_RENT, -1), 0);
	assert_false(core_waits(b.core));
	list_running(&b, 0);
	check_phase(&b, "listed", 0, POD_CONNECTING);
	tear_down(&b);
}

/* Every create is refused: the run looks for a pod of another run several times a second, and rents
 * none once it has one. */
static void test_a_pod_for_a_run_that_waits(void **state)
{
	struct bench b;
	int seeks = 0;

	(void)state;
	set_up(&b, 4);
	start_pooled(&b);
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	assert_false(core_waits(b.core));
	tell_err(&b, EV_RENT_FAILED, 0, ERR_NO_CAPACITY);
	for (int i = 0; i < 40; i++) {
		assert_true(core_waits(b.core));
		wait_ms(&b, 100);
		if (!did(&b, ACT_SEEK, -1))
			continue;
		seeks++;
		tell(&b, (struct event){.type = EV_SOUGHT});
	}
	assert_in_range(seeks, 8, 20);
	while (!did(&b, ACT_SEEK, -1))
		wait_ms(&b, 50);
	hand_over_pod(&b);
	assert_false(core_waits(b.core));
	wait_ms(&b, 10 * SECOND);
	assert_int_equal(did(&b, ACT_RENT, -1) + did(&b, ACT_SEEK, -1), 0);
	list_running(&b, 1);
	check_phase(&b, "listed", 1, POD_CONNECTING);
	tear_down(&b);
}

/* A signal between the two: the pod is released like any other, and looked for at the end. */
static void test_handed_to_a_run_that_stops(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.pooled = true;
	start(&b);
	adopt_living(&b, 0, 0);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 2});
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
	tell(&b, (struct event){.type = EV_ADOPTED, .pod = 0});
	tell(&b, (struct event){.type = EV_SOUGHT});
	check_phase(&b, "released", 0, POD_RELEASING);
	assert_int_equal(did(&b, ACT_SEEK, -1) + did(&b, ACT_RENT, -1), 0);
	end_well(&b);
	tear_down(&b);
}

/* Its own hard end is hours away, and the cap of the run that takes it over is spent sooner: also
 * if the client dies just before it would release the pod, which then lives until its lease is
 * over. */
static void test_handed_within_the_cap(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.pooled = true;
	b.conf.max_cost_microusd = 100000; /* $0.10 at $1 an hour: 6 minutes */
	b.conf.lease_ms = 2 * MINUTE;
	start(&b);
	hand_over_pod(&b);
	/* less the minute that it has cost, and a lease */
	assert_in_range(pod(&b, 0)->rental.hard_end_ms - b.now, 150 * SECOND, 180 * SECOND);
	wait_ms(&b, 7 * MINUTE);
	check_phase(&b, "its share is spent", 0, POD_RELEASING);
	tear_down(&b);
}

/* Another run takes its only pod over before any list has been read: the create may have made a
 * second one. */
static void be_rid_of_it_before_a_list(struct bench *b)
{
	set_up(b, 1);
	b->conf.keep_warm_ms = MINUTE;
	start_pooled(b);
	rented_as(b, 0, view_of(b, 0, POD_STATE_RUNNING));
	assert_int_equal(did(b, ACT_LIST, -1), 1);
	b->now += SECOND;
	connected(b, 0);
	tell(b, (struct event){.type = EV_SHARED_READY, .pod = 0});
	tell(b, (struct event){.type = EV_WORKERS, .pod = 0, .number = 1, .max_batch = 1});
	render_batch(b, 0, 0, 2 * SECOND, true);
	tell(b, (struct event){.type = EV_TAKEN, .pod = 0, .t = b->now});
	check_phase(b, "taken", 0, POD_GONE);
	check_field("not listed yet", "ended", has_ended(b), false);
}

/* The account allows few calls a minute: the list comes late, and shows the second pod. */
static void test_second_pod_in_a_late_list(void **state)
{
	struct bench b;

	(void)state;
	be_rid_of_it_before_a_list(&b);
	wait_ms(&b, 2 * MINUTE);
	check_field("2 min later", "ended", has_ended(&b), false);
	struct pod_view second = view_of(&b, 0, POD_STATE_RUNNING);
	COPY_TEXT(second.id, "second");
	tell(&b, (struct event){
			 .type = EV_LISTED, .views = &second, .count = 1, .requested_at = b.now});
	check_phase(&b, "the second pod", 1, POD_RELEASING);
	check_field("the second pod", "ended", has_ended(&b), false);
	end_well(&b);
	check_phase(&b, "the second pod", 1, POD_GONE);
	check_field("all gone", "exit", exit_status(&b), 0);
	tear_down(&b);
}

static void test_no_list_since_the_create(void **state)
{
	static const struct {
		const char *name;
		int signals;
		bool refused;
		int64_t within_ms;
		int exit_status;
	} cases[] = {
		{"it never comes", 0, false, HIDDEN_POD_LIST_MS, 9},
		{"it never comes, after a signal", 1, false, HIDDEN_POD_LIST_MS, 9},
		{"it never comes, after two signals", 2, false, FINAL_LIST_MS, 9},
		{"it never comes, after three signals", 3, false, 0, 9},
		{"it is refused: no list ever shows more", 0, true, 0, 0},
	};
	struct bench b;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		be_rid_of_it_before_a_list(&b);
		for (int k = 0; k < cases[i].signals; k++)
			tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
		if (cases[i].refused)
			tell(&b, (struct event){.type = EV_LISTED,
						.partial = true,
						.requested_at = b.now});
		if (cases[i].within_ms)
			wait_ms(&b, cases[i].within_ms);
		check_field(cases[i].name, "ended", has_ended(&b), true);
		check_field(cases[i].name, "exit", exit_status(&b), cases[i].exit_status);
		check_field(cases[i].name, "notes", did(&b, ACT_NOTE, -1),
			    cases[i].exit_status ? 1 + (cases[i].signals == 3) : 0);
		tear_down(&b);
	}
}

/* A client that died left pods in doubt: the next one of its run must see a list. */
static void test_no_list_after_a_client_in_doubt(void **state)
{
	struct bench b;

	(void)state;
	for (int lately = 0; lately < 2; lately++) {
		set_up(&b, 0);
		b.conf.reap = true;
		b.conf.providers[0].used_before = true;
		b.conf.providers[0].used_lately = lately;
		start(&b);
		for (int k = 0; k < 20 && !has_ended(&b); k++) {
			tell_err(&b, EV_LISTED, 0, ERR_NETWORK);
			if (!has_ended(&b))
				wait_ms(&b, core_wake_at(b.core) - b.now);
		}
		check_field("no list", "ended", has_ended(&b), true);
		check_field("no list", "exit", exit_status(&b), lately ? 9 : 0);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offered_pod_is_taken),
		cmocka_unit_test(test_offered_pod_that_nobody_takes),
		cmocka_unit_test(test_unasked_pod_goes_at_once),
		cmocka_unit_test(test_idle_pod_of_a_run_that_works_goes_to_one_that_waits),
		cmocka_unit_test(test_idle_pod_that_no_run_waits_for_is_released),
		cmocka_unit_test(test_pod_on_offer_gets_no_lost_work),
		cmocka_unit_test(test_detached_run_offers_nothing_while_it_works),
		cmocka_unit_test(test_a_signal_offers_nothing),
		cmocka_unit_test(test_offered_pods_go_before_renting),
		cmocka_unit_test(test_a_pod_for_a_run_that_waits),
		cmocka_unit_test(test_handed_to_a_run_that_stops),
		cmocka_unit_test(test_handed_within_the_cap),
		cmocka_unit_test(test_an_offered_pod_is_not_left_alone),
		cmocka_unit_test(test_no_ticks_where_it_cannot_look),
		cmocka_unit_test(test_second_pod_in_a_late_list),
		cmocka_unit_test(test_no_list_since_the_create),
		cmocka_unit_test(test_no_list_after_a_client_in_doubt),
	};

	return cmocka_run_group_tests_name("core pooled", tests, NULL, NULL);
}
