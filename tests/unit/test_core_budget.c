/* test_core_budget.c - money and time: hard ends, shares of a cap, leases, caps that end a run. */
#include "core_bench.h"

static void test_committed(void **state)
{
	/* a pod at $3.60 an hour costs 1000 micro-dollars a second; its hard end is 100 s from now
	 * (and ending itself may take it 5 s), it was asked for 10 s ago */
	static const struct {
		const char *name;
		enum pod_phase phase;
		bool released; /* accepted */
		int64_t want;
	} cases[] = {
		{"being rented: all that it may come to", POD_RENTING, false, 120000},
		{"ambiguous: as if it lived", POD_AMBIGUOUS, false, 120000},
		{"working", POD_WORKING, false, 120000},
		{"the release is not accepted yet", POD_RELEASING, false, 120000},
		{"accepted, not confirmed: until now", POD_CONFIRMING, true, 10000},
		{"gone: in the sum already", POD_GONE, true, 0},
		{"never existed", POD_NEVER, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct core_pod p = {.phase = cases[i].phase,
				     .rental.price_microusd_h = 3600000,
				     .rental.create_at = 40000,
				     .rental.hard_end_ms = 150000,
				     .rental.released_at = cases[i].released ? 49000 : 0};
		struct core c = {.pods = &p, .pod_count = 1, .now = 50000, .spent_microusd = 7};
		check_field(cases[i].name, "micro-dollars", budget_committed(&c),
			    7 + cases[i].want);
	}
}

static void test_hard_end(void **state)
{
	static const struct {
		const char *name;
		int64_t price, max_cost, spent, deadline_s;
		int more;
		int64_t want_s; /* from now; -1: no room */
		int64_t cold_s; /* what the newest pod took to come up; 0: none did */
		bool hurries;   /* the run may rent more pods later */
	} cases[] = {
		{"no cap: a day", 3600000, 0, 0, 0, 1, 24 * 3600},
		{"caps.max_duration", 3600000, 0, 0, 600, 1, 600},
		{"caps.max_cost, less 10 s to end itself", 3600000, 100000, 0, 0, 1, 90},
		{"what is left of it", 3600000, 100000, 40000, 0, 1, 50},
		{"shared with pods to come", 3600000, 100000, 0, 0, 2, 40, 6},
		{"not where half of it would go into coming up", 3600000, 100000, 0, 0, 2, 90, 7},
		{"nor where nothing is known of that", 3600000, 100000, 0, 0, 2, 90},
		{"the earlier of both", 3600000, 100000, 0, 30, 1, 30},
		{"a pod for nothing", 0, 100000, 0, 0, 1, 24 * 3600},
		{"spent", 3600000, 100000, 100000, 0, 1, -1},
		{"not worth its boot", 3600000, 19999, 0, 0, 1, -1},
		{"just worth it", 3600000, 20000, 0, 0, 1, 10},
		{"the end is near", 3600000, 0, 0, 9, 1, -1},
		{"it would come up in time for nothing", 3600000, 0, 0, 60, 1, -1, 48},
		{"it would come up in time for a little", 3600000, 0, 0, 60, 1, 60, 47},
		{"a half is kept for more pods", 3600000, 100000, 0, 0, 1, 40, 0, true},
		{"just worth the half", 3600000, 40000, 0, 0, 1, 10, 0, true},
		{"not where a half pays for none", 3600000, 39999, 0, 0, 1, 29, 0, true},
		{"not worth the whole", 3600000, 19999, 0, 0, 1, -1, 0, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct core c = {.now = 5000,
				 .spent_microusd = cases[i].spent,
				 .ends_at = cases[i].deadline_s ? 5000 + cases[i].deadline_s * 1000
								: 0,
				 .cold_ms = cases[i].cold_s * 1000};
		c.conf.max_cost_microusd = cases[i].max_cost;
		c.conf.pods = 1;
		if (cases[i].hurries) {
			c.replan.count = 1;
			c.conf.plan.goal = PLAN_TIME;
			c.conf.plan.pods_most = 2;
		}
		int64_t end = budget_hard_end(&c, cases[i].price, cases[i].more);
		check_field(cases[i].name, "hard end", end < 0 ? -1 : (end - 5000) / 1000,
			    cases[i].want_s);
	}
}

static void test_shares_of_a_cap(void **state)
{
	static const struct {
		const char *name;
		int64_t left_s; /* of one pod's time */
		int most;
		int64_t cold_s;
		int want;
	} cases[] = {
		{"plenty", 3600, 4, 33, 4},
		{"$0.06 at $0.69 an hour, boots unknown", 313, 3, 60, 1},
		{"enough for two", 500, 3, 33, 2},
		{"five boots and the time for releasing, each", 3 * (5 * 33 + 10 + 40), 3, 33, 3},
		{"a little less", 3 * (5 * 33 + 10 + 39), 3, 33, 2},
		{"one alone", 10, 1, 33, 1},
		{"nothing", 0, 3, 33, 1},
		{"no pods to come", 1000, 0, 33, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_field(cases[i].name, "shares",
			    budget_shares(cases[i].left_s * SECOND, cases[i].most,
					  cases[i].cold_s * SECOND),
			    cases[i].want);
}

static void test_margin(void **state)
{
	(void)state;
	check_field("a minute", "margin", budget_margin(MINUTE), 6000);
	check_field("an hour", "margin", budget_margin(HOUR), 20000);
}

static void test_hard_end_of_a_pod(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.max_duration_ms = 100 * SECOND;
	start_simply(&b);
	int64_t hard_end = b.now + 100 * SECOND;
	assert_int_equal(pod(&b, 0)->rental.hard_end_ms, hard_end);
	assert_int_equal(pod(&b, 0)->rental.hard_end_s, (WALL_MS + hard_end) / 1000);
	/* no lease beyond it */
	assert_int_equal(pod(&b, 0)->rental.first_lease_end_s, pod(&b, 0)->rental.hard_end_s);
	bring_up(&b, 0);
	wait_ms(&b, hard_end - 20 * SECOND - b.now - 1);
	assert_int_equal(did(&b, ACT_REVOKE, 0), 0);
	wait_ms(&b, 1);
	assert_int_equal(did(&b, ACT_REVOKE, 0), 1); /* two margins before: nothing new is begun */
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	wait_ms(&b, 10 * SECOND);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1); /* one margin before: released */
	tear_down(&b);
}

/* The cap leaves no room for another batch. Although there is work and an idle pod, the finished
 * files are fetched, the pod is released, and no other is rented. */
static void test_nothing_is_begun_beside_the_cap(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 40);
	b.conf.max_duration_ms = 100 * SECOND;
	start_simply(&b);
	int64_t hard_end = b.now + 100 * SECOND;
	bring_up(&b, 0);
	check_field("early", "batches", did(&b, ACT_SEND, 0) > 0, true);
	began(&b, 0, 0);
	uint32_t segment = core_batch_at(b.core, 0)->segments[0];
	rendered(&b, 0, segment);
	wait_ms(&b, hard_end - 20 * SECOND - b.now);
	check_field("near the cap", "batches", did(&b, ACT_SEND, 0), 0);
	done(&b, 0, 0);
	check_field("it has done what it had", "batches", did(&b, ACT_SEND, 0), 0);
	check_field("a file is on its way", "releases", did(&b, ACT_RELEASE, 0), 0);
	safe(&b, 0, segment, true);
	wait_ms(&b, hard_end - 10 * SECOND - b.now);
	check_field("it is home", "batches", did(&b, ACT_SEND, 0), 0);
	check_field("it is home", "releases", did(&b, ACT_RELEASE, 0), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_field("beside the cap", "creates", did(&b, ACT_RENT, -1), 0);
	end_well(&b);
	check_field("in the end", "exit", exit_status(&b), 5);
	tear_down(&b);
}

static void test_lease(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 8);
	start_simply(&b);
	/* no lease behind boot_limit */
	assert_int_equal(pod(&b, 0)->rental.first_lease_end_s,
			 (WALL_MS + b.now + 5 * MINUTE + 30 * SECOND) / 1000);
	rented(&b, 0);
	b.now += 10;
	list_running(&b, 0);
	wait_ms(&b, MINUTE);
	check_field("not connected", "renewals", did(&b, ACT_RENEW, 0), 0);
	connected(&b, 0);
	wait_ms(&b, 0);
	check_field("at once", "renewals", did(&b, ACT_RENEW, 0), 1);
	wait_ms(&b, 10 * MINUTE - 1);
	check_field("every third of a lease", "renewals", did(&b, ACT_RENEW, 0), 2);
	wait_ms(&b, 1);
	check_field("... to the ms", "renewals", did(&b, ACT_RENEW, 0), 1);
	b.now += MINUTE;
	tell(&b, (struct event){.type = EV_SLEPT});
	wait_ms(&b, 0);
	check_field("the machine slept", "renewals", did(&b, ACT_RENEW, 0), 1);
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	wait_ms(&b, MINUTE);
	check_field("no connection", "renewals", did(&b, ACT_RENEW, 0), 0);
	tear_down(&b);
}

static void test_caps_end_the_run(void **state)
{
	static const struct {
		const char *name;
		int64_t max_duration_ms, max_cost;
		bool work_done;
		int status;
	} cases[] = {
		{"caps.max_duration", 2 * MINUTE, 0, false, 5},
		{"caps.max_cost", 0, 40000, false, 5}, /* $1/h: 144 s */
		{"all was safe in time", 2 * MINUTE, 0, true, 0},
		{"no cap", 0, 0, true, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 1);
		b.conf.max_duration_ms = cases[i].max_duration_ms;
		b.conf.max_cost_microusd = cases[i].max_cost;
		start_simply(&b);
		bring_up(&b, 0);
		if (cases[i].work_done)
			render_batch(&b, 0, 0, SECOND, true);
		else
			began(&b, 0, 0);
		for (int k = 0; k < 30 && !pod_is_retired(pod(&b, 0)); k++)
			wait_ms(&b, 10 * SECOND);
		end_well(&b);
		check_field(cases[i].name, "exit", exit_status(&b), cases[i].status);
		check_field(cases[i].name, "below the cap",
			    !cases[i].max_cost || summary(&b).cost_microusd <= cases[i].max_cost,
			    1);
		check_field(cases[i].name, "pods", core_pod_count(b.core), 1);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_committed),
		cmocka_unit_test(test_hard_end),
		cmocka_unit_test(test_shares_of_a_cap),
		cmocka_unit_test(test_margin),
		cmocka_unit_test(test_hard_end_of_a_pod),
		cmocka_unit_test(test_nothing_is_begun_beside_the_cap),
		cmocka_unit_test(test_lease),
		cmocka_unit_test(test_caps_end_the_run),
	};

	return cmocka_run_group_tests_name("core budget", tests, NULL, NULL);
}
