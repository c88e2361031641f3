/* test_core_adoption.c - pods of an earlier client of the run: taken over, their caps, what they
 * had cost. */
#include "core_bench.h"

#include "base/clock.h"

static const struct event alive_again = {
	.type = EV_CONNECTED, .switch_ok = true, .workers_alive = true, .number = 1};

static void find_living(struct bench *b, int pods)
{
	b->core = core_new(&b->conf, b->segments, b->count);
	for (int i = 0; i < pods; i++)
		adopt_living(b, i, 0);
	tell(b, (struct event){.type = EV_START});
	list_in(b, POD_STATE_RUNNING, 0, pods > 1 ? 1 : -1);
}

static void take_over(struct bench *b, int pods)
{
	find_living(b, pods);
	for (int i = 0; i < pods; i++) {
		struct event ev = alive_again;
		ev.pod = i;
		tell(b, ev);
	}
}

/* What two pods have in hand, and have done, is known before either is given work: the first to
 * answer would do it again. */
static void test_taken_over_one_after_the_other(void **state)
{
	static const struct {
		const char *name;
		bool worked, answers;
		int64_t waits_s;
	} cases[] = {
		{"both answer", true, true, 0},
		{"the other one is not reached", true, false, 20},
		{"the other one had never worked", false, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct event ev = alive_again;
		struct bench b;
		set_up(&b, 8);
		b.conf.pods = 2;
		b.conf.max_batch = 1;
		b.core = core_new(&b.conf, b.segments, b.count);
		adopt_living(&b, 0, b.now - MINUTE / 2);
		adopt_living(&b, 1, cases[i].worked ? b.now - MINUTE / 2 : 0);
		tell(&b, (struct event){.type = EV_START});
		wait_ms(&b, 5 * SECOND);
		list_in(&b, POD_STATE_RUNNING, 0, 1);
		int64_t listed_at = b.now;
		rendered(&b, 0, 0);
		tell(&b, ev);
		check_phase(&b, cases[i].name, 0, POD_WORKING);
		int sent = did(&b, ACT_SEND, -1);
		if (cases[i].answers) {
			check_field(cases[i].name, "sent too early", sent, 0);
			b.now += SECOND;
			rendered(&b, 1, 1);
			tell(&b, (struct event){
					 .type = EV_RUNNING, .pod = 1, .segment = 2, .t = b.now});
			ev.pod = 1;
			tell(&b, ev);
			check_field(cases[i].name, "sent to the first", did(&b, ACT_SEND, 0), 2);
			check_field(cases[i].name, "sent to the second", did(&b, ACT_SEND, 1), 1);
			check_field(cases[i].name, "is done", core_seg_state(b.core, 1),
				    SEG_RENDERED);
			check_field(cases[i].name, "is in hand", core_seg_state(b.core, 2),
				    SEG_HELD);
		} else {
			while (!sent && b.now < listed_at + MINUTE) {
				wait_ms(&b, SECOND);
				sent = did(&b, ACT_SEND, 0);
			}
			check_field(cases[i].name, "sent after s", (b.now - listed_at) / 1000,
				    cases[i].waits_s);
		}
		tear_down(&b);
	}
}

/* Whoever goes on with a run may have lowered its caps: they hold for the pods that he finds, too.
 */
static void test_lower_caps_hold_for_pods_taken_over(void **state)
{
	static const struct {
		const char *name;
		int pods;
		int64_t max_cost, max_duration_ms;
		int64_t ends_s, margin_s; /* from now */
	} cases[] = {
		{"caps.max_cost: six minutes, one of them over", 1, 100000, 0,
		 300 - SELF_END_MS / 1000, 20},
		{"... for two pods", 2, 100000, 0, 120 - SELF_END_MS / 1000, 17},
		{"caps.max_cost is used up", 1, 10000, 0, 0, 0},
		{"caps.max_duration", 1, 0, 10 * MINUTE, 600, 20},
		{"room for all of it", 2, 9000000, 5 * HOUR, 4 * 3600, 20},
	};
	struct offer o = offer(0, 1000000);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 40);
		b.conf.pods = cases[i].pods;
		b.conf.max_cost_microusd = cases[i].max_cost;
		b.conf.max_duration_ms = cases[i].max_duration_ms;
		int64_t began_at = b.now;
		take_over(&b, cases[i].pods);
		while (!pod_is_retired(pod(&b, 0))) {
			assert_true(b.now - began_at < 5 * HOUR);
			wait_ms(&b, MAX(core_wake_at(b.core) - b.now, 0));
			if (did(&b, ACT_LIST, -1))
				list_in(&b, POD_STATE_RUNNING, 0, cases[i].pods > 1 ? 1 : -1);
		}
		int64_t went_s = (b.now - began_at) / 1000;
		if (llabs(went_s - (cases[i].ends_s - cases[i].margin_s)) > 2)
			fail_msg("%s: goes after %lld s", name, (long long)went_s);
		for (int k = 0; k < cases[i].pods; k++) {
			check_phase(&b, name, k, POD_RELEASING);
			check_field(name, "its own end",
				    pod(&b, k)->rental.hard_end_ms + pod(&b, k)->rental.cut_ms,
				    began_at + 4 * HOUR);
		}
		if (cases[i].ends_s && cases[i].max_cost)
			check_field(name, "within the cap",
				    summary(&b).cost_microusd <= cases[i].max_cost, 1);
		if (cases[i].ends_s < HOUR / 1000) {
			tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
			end_well(&b);
			check_field(name, "exit", exit_status(&b), 5);
		}
		tear_down(&b);
	}
}

/* What a pod of an earlier life had cost was noted by a clock that may have been set back since.
 * Its vendor's tells how old it is. */
static void test_older_than_our_clock_says(void **state)
{
	static const struct {
		const char *name;
		/* by its vendor's clock than by ours, which is so far ahead of it */
		int64_t older_s, ahead_ms;
		int64_t took_ms; /* its list */
		bool untold;     /* nobody knows its clock */
		int64_t billed_s;
		bool goes;
	} cases[] = {
		{"it does not say", -1, 0, 0, false, 60, false},
		{"our clock is right", 0, 0, 0, false, 60, false},
		{"... and so is its", 1, 0, 0, false, 60, false},
		{"... and its answer is slow", 0, -10000, 12000, false, 72, false},
		{"ours was set back by two minutes", 0, -120000, 0, false, 178, false},
		{"... and its answer is slow", 0, -120000, 12000, false, 178, false},
		{"... and it is older than the cap lets it be", 0, -360000, 0, false, 418, true},
		{"ours was set forward", 0, 120000, 0, false, 60, false},
		{"its clock is not known", 120, 0, 0, true, 60, false},
		{"it was made before any pod of this run", 48 * 3600, 0, 0, false, 60, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 40);
		b.conf.pods = 1;
		b.conf.max_cost_microusd = 100000; /* six minutes */
		take_over(&b, 1);
		struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
		/* so that by ours, put right, it is as old as its row says, or older */
		int64_t made_ms =
				WALL_MS + pod(&b, 0)->rental.create_at - cases[i].older_s * SECOND,
			requested_at = b.now;
		v.created_at_s = cases[i].older_s < 0 ? 0 : made_ms / 1000;
		b.now += cases[i].took_ms;
		tell(&b, (struct event){.type = EV_LISTED,
					.views = &v,
					.count = 1,
					.requested_at = requested_at,
					.ahead_ms = cases[i].ahead_ms,
					.clock_known = !cases[i].untold});
		check_field(cases[i].name, "billed s", core_billed_ms(pod(&b, 0), b.now) / 1000,
			    cases[i].billed_s);
		check_field(cases[i].name, "saved", did(&b, ACT_SAVE, 0) > 0,
			    pod(&b, 0)->rental.create_at < requested_at - MINUTE);
		if (cases[i].goes) {
			wait_ms(&b, 1);
			assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
		} else {
			check_field(
				cases[i].name, "within the cap",
				money_for(1000000, pod(&b, 0)->rental.hard_end_ms + SELF_END_MS -
							   pod(&b, 0)->rental.create_at) <= 100000,
				1);
		}
		tear_down(&b);
	}
}

/* A day away is not billed: one that has ended itself meanwhile takes nothing from another that
 * works. */
static void test_one_that_ended_itself_shortens_no_other(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 40);
	b.now += 24 * HOUR;
	b.conf.pods = 2;
	b.conf.max_cost_microusd = 10000000;
	b.core = core_new(&b.conf, b.segments, b.count);
	/* began 8 hours ago: for 4 hours at $1.20, for 10 at $0.50, which is 9.80 */
	for (int i = 0; i < 2; i++) {
		int64_t began = b.now - 8 * HOUR, end = began + (i ? 10 : 4) * HOUR;
		struct core_pod p = {.phase = POD_BOOTING,
				     .presence.lease = LEASE_AGENT,
				     .rental.price_microusd_h = i ? 500000 : 1200000,
				     .rental.create_at = began,
				     .rental.rented_at = began,
				     .presence.running_at = began,
				     .presence.connected_at = began + MINUTE,
				     .rental.listing = LISTING_SHOWS,
				     .rental.hard_end_ms = end,
				     .rental.hard_end_s = (WALL_MS + end) / 1000};
		snprintf(p.rental.id, sizeof(p.rental.id), "p%d", i);
		snprintf(p.rental.attempt, sizeof(p.rental.attempt), "a%d", i);
		COPY_TEXT(p.rental.offer.provider, "alpha");
		p.rental.offer.price_microusd_h = p.rental.price_microusd_h;
		core_adopt(b.core, &p);
	}
	int64_t end = pod(&b, 1)->rental.hard_end_ms;
	tell(&b, (struct event){.type = EV_START});
	wait_ms(&b, SECOND);
	check_phase(&b, "at work", 1, POD_BOOTING);
	check_field("at work", "its hard end", pod(&b, 1)->rental.hard_end_ms, end);
	assert_int_equal(did(&b, ACT_RELEASE, 1), 0);
	tear_down(&b);
}

static void adopt_of_four_hours(struct bench *b, int64_t end) /* at $1.20, to end itself then */
{
	struct core_pod p = {.phase = POD_BOOTING,
			     .rental.id = "p0",
			     .rental.attempt = "a0",
			     .rental.price_microusd_h = 1200000,
			     .rental.create_at = b->now - 4 * HOUR,
			     .rental.rented_at = b->now - 4 * HOUR,
			     .rental.hard_end_ms = end,
			     .rental.hard_end_s = (WALL_MS + end) / 1000};

	b->conf.max_cost_microusd = 10000000;
	b->conf.wait_ms = 10 * HOUR;
	b->core = core_new(&b->conf, b->segments, b->count);
	core_adopt(b->core, &p);
	tell(b, (struct event){.type = EV_START});
}

/* An outage: nobody can end it, not it itself either, and what it costs meanwhile is nobody else's.
 */
static void test_what_cannot_be_ended_is_paid_for(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.now += 24 * HOUR;
	adopt_of_four_hours(&b, b.now + MINUTE);
	list_running(&b, 0);
	for (int64_t until = b.now + 3 * HOUR; b.now < until;) {
		if (pod(&b, 0)->phase == POD_RELEASING)
			tell_err(&b, EV_RELEASED, 0, ERR_TRANSIENT);
		wait_ms(&b, 10 * SECOND);
	}
	check_phase(&b, "after hours", 0, POD_RELEASING);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	int64_t left = (10 - 7 * 1.2) * 3600;
	assert_in_range((pod(&b, 1)->rental.hard_end_ms - b.now) / 1000, left - 60,
			left); /* at $1 */
	tear_down(&b);
}

/* Its container may never have run, and so not ended it: nothing is rented on the guess that it
 * has. */
static void test_nothing_is_rented_unseen(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.now += 24 * HOUR;
	adopt_of_four_hours(&b, b.now - 3 * HOUR);
	tell_err(&b, EV_LISTED, 0, ERR_TRANSIENT);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	wait_ms(&b, 10 * SECOND);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	list_running(&b, 0); /* it is there: 4.80 are spent, and are growing */
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	assert_in_range((pod(&b, 1)->rental.hard_end_ms - b.now) / 1000, 5 * 3600, 52 * 360);
	tear_down(&b);
}

/* A pod that costs more than the lowered price is released, but its finished files are fetched
 * first. */
static void test_lower_price_for_a_pod_taken_over(void **state)
{
	(void)state;
	for (int dear = 0; dear < 2; dear++) {
		struct bench b;
		set_up(&b, 40);
		b.conf.max_price_microusd_h = 1000000 - dear;
		take_over(&b, 1);
		check_phase(&b, "taken over", 0, dear ? POD_RELEASING : POD_WORKING);
		check_field("taken over", "sent", did(&b, ACT_SEND, 0) > 0, !dear);
		tear_down(&b);
	}
	struct bench b;
	set_up(&b, 40);
	b.conf.max_price_microusd_h = 900000;
	find_living(&b, 1);
	rendered(&b, 0, 3); /* as its log says */
	tell(&b, alive_again);
	check_field("with a file", "fetches", did(&b, ACT_FETCH, 0), 1);
	check_field("with a file", "releases", did(&b, ACT_RELEASE, 0), 0);
	safe(&b, 0, 3, true);
	check_field("it is home", "releases", did(&b, ACT_RELEASE, 0), 1);
	tear_down(&b);
}

/* A pod of an earlier life ended itself, and somebody looks 86 s after its create. Its provider has
 * a record of how long it ran. */
static void test_booked_until_its_providers_end(void **state)
{
	static const struct {
		const char *name;
		bool listed; /* once in this life */
		enum release_word word;
		/* began_s: after its create; 0: its provider does not say when */
		int64_t began_s, ran_s;
		int64_t billed_s;
	} cases[] = {
		{"ended after 20 s", false, RELEASE_TAKEN, 5, 15, 21},
		{"... by its provider, which knew of none", false, RELEASE_ABSENT, 5, 15, 21},
		{"it never ran", false, RELEASE_TAKEN, 5, 0, 6},
		{"it is not said when it began", false, RELEASE_TAKEN, 0, 15, -1},
		{"a record beyond our look", false, RELEASE_TAKEN, 5, 600, -1},
		{"it was there when we looked", true, RELEASE_TAKEN, 5, 15, -1},
		{"its release ended it", false, RELEASE_ENDED, 5, 15, -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 4);
		b.conf.reap = true;
		int64_t create_at = b.now - 86 * SECOND, hard_end = create_at + HOUR;
		struct core_pod p = {.phase = POD_BOOTING,
				     .rental.id = "p0",
				     .rental.attempt = "a0",
				     .rental.price_microusd_h = 690000,
				     .rental.create_at = create_at,
				     .rental.rented_at = create_at,
				     .rental.hard_end_ms = hard_end,
				     .rental.hard_end_s = (WALL_MS + hard_end) / 1000,
				     .presence.lease = LEASE_AGENT};
		p.rental.vendor_started_s =
			cases[i].began_s ? (WALL_MS + create_at) / 1000 + cases[i].began_s : 0;
		b.core = core_new(&b.conf, b.segments, b.count);
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		if (cases[i].listed)
			list_in(&b, POD_STATE_RUNNING, 0, -1);
		for (int k = 0; k < 60 && pod(&b, 0)->phase != POD_GONE; k++) {
			if (pod(&b, 0)->phase == POD_RELEASING)
				tell(&b,
				     (struct event){.type = EV_RELEASED, .number = cases[i].word});
			wait_ms(&b, 5 * SECOND);
			list_nothing(&b);
		}
		check_phase(&b, name, 0, POD_GONE);
		int64_t before_ms = core_billed_ms(pod(&b, 0), b.now);
		bool sooner = core_correct_end(b.core, 0, cases[i].ran_s * SECOND);
		check_field(name, "sooner", sooner, cases[i].billed_s > 0);
		check_field(name, "billed s", core_billed_ms(pod(&b, 0), b.now) / 1000,
			    sooner ? cases[i].billed_s : before_ms / 1000);
		tear_down(&b);
	}
}

/* Power was cut twelve hours ago, with a pod that was to end itself an hour after its create; the
 * boot clock began anew since. */
static void test_found_gone_the_next_day(void **state)
{
	static const struct {
		const char *name;
		int64_t hard_end_s;    /* from its create */
		enum pod_state listed; /* UNKNOWN: not */
		enum release_word word;
		int64_t billed_s;
	} cases[] = {
		{"its vendor knows of none", 3600, POD_STATE_UNKNOWN, RELEASE_ABSENT,
		 3600 + SELF_END_MS / 1000},
		{"... and does not say so, but lists none", 3600, POD_STATE_UNKNOWN, RELEASE_TAKEN,
		 3600 + SELF_END_MS / 1000},
		{"its vendor calls it gone, and not since when", 3600, POD_STATE_GONE,
		 RELEASE_TAKEN, 3600 + SELF_END_MS / 1000},
		{"it was there until now", 3600, POD_STATE_UNKNOWN, RELEASE_ENDED, 12 * 3600 + 1},
		{"it was listed", 3600, POD_STATE_RUNNING, RELEASE_TAKEN, 12 * 3600},
		{"it was to end itself a minute ago, by a clock that may be off", 12 * 3600 - 60,
		 POD_STATE_UNKNOWN, RELEASE_ABSENT, 12 * 3600 + 1},
	};
	struct offer o = offer(0, 690000);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 4);
		b.conf.max_cost_microusd = 5000000;
		int64_t create_at = b.now - 12 * HOUR,
			hard_end = create_at + cases[i].hard_end_s * SECOND;
		struct core_pod p = {.phase = POD_BOOTING,
				     .rental.id = "p0",
				     .rental.attempt = "a0",
				     .rental.price_microusd_h = 690000,
				     .rental.create_at = create_at,
				     .rental.rented_at = create_at,
				     .rental.hard_end_ms = hard_end,
				     .rental.hard_end_s = (WALL_MS + hard_end) / 1000};
		b.core = core_new(&b.conf, b.segments, b.count);
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		if (cases[i].listed != POD_STATE_UNKNOWN)
			list_in(&b, cases[i].listed, 0, -1);
		wait_ms(&b, SECOND);
		for (int k = 0; k < 40 && pod(&b, 0)->phase != POD_GONE; k++) {
			if (pod(&b, 0)->phase == POD_RELEASING)
				tell(&b,
				     (struct event){.type = EV_RELEASED, .number = cases[i].word});
			wait_ms(&b, 5 * SECOND);
			list_nothing(&b);
		}
		check_phase(&b, name, 0, POD_GONE);
		check_field(name, "billed s", core_billed_ms(pod(&b, 0), b.now) / 1000,
			    cases[i].billed_s);
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_field(name, "goes on", did(&b, ACT_RENT, -1), cases[i].billed_s < 4 * 3600);
		tear_down(&b);
	}
}

/* It ended before this machine started: its end is before the boot clock's begin, where 0 would
 * mean "not yet" and the pod would be billed for ever. */
static void test_ended_before_the_boot_clock_began(void **state)
{
	(void)state;
	for (int recorded = 0; recorded < 2; recorded++) {
		struct bench b;
		set_up(&b, 4);
		b.now = 5 * SECOND;
		b.core = core_new(&b.conf, b.segments, b.count);
		adopt_living(&b, 0, 0);
		struct core_pod *p = &b.core->pods[0];
		p->rental.create_at = p->rental.rented_at = b.now - 10 * MINUTE;
		p->rental.vendor_started_s = (WALL_MS + p->rental.create_at) / 1000;
		tell(&b, (struct event){.type = EV_START});
		struct pod_view v = view_of(&b, 0, POD_STATE_GONE);
		v.ended_at_s = recorded ? 0 : (WALL_MS + p->rental.create_at) / 1000 + 60;
		tell(&b, (struct event){.type = EV_LISTED,
					.views = &v,
					.count = 1,
					.requested_at = b.now,
					.clock_known = true});
		check_phase(&b, "it is listed as gone", 0, POD_GONE);
		if (recorded)
			assert_true(core_correct_end(b.core, 0, 60 * SECOND));
		for (int k = 0; k < 2; k++, b.now += HOUR)
			check_field(recorded ? "by its record" : "by the list", "billed s",
				    core_billed_ms(pod(&b, 0), b.now) / 1000, 61);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken_over_one_after_the_other),
		cmocka_unit_test(test_lower_caps_hold_for_pods_taken_over),
		cmocka_unit_test(test_older_than_our_clock_says),
		cmocka_unit_test(test_one_that_ended_itself_shortens_no_other),
		cmocka_unit_test(test_what_cannot_be_ended_is_paid_for),
		cmocka_unit_test(test_nothing_is_rented_unseen),
		cmocka_unit_test(test_lower_price_for_a_pod_taken_over),
		cmocka_unit_test(test_booked_until_its_providers_end),
		cmocka_unit_test(test_found_gone_the_next_day),
		cmocka_unit_test(test_ended_before_the_boot_clock_began),
	};

	return cmocka_run_group_tests_name("core adoption", tests, NULL, NULL);
}
