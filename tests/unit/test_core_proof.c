/* test_core_proof.c - when a released pod counts as gone. */
#include "core_bench.h"
#include <signal.h>

/* A pod that was seen, then released at 0 s; when was it looked for, was it there, and what
 * follows. */
static const struct {
	const char *name;
	int64_t gap_ms;
	struct {
		int64_t at_ms;
		bool there;
	} looks[4];
	int count;
	enum pod_phase phase;
} confirmations[] = {
	{"one look is not enough", 5000, {{1000}}, 1, POD_CONFIRMING},
	{"two looks too close", 5000, {{1000}, {5999}}, 2, POD_CONFIRMING},
	{"two looks 5 s apart", 5000, {{1000}, {6000}}, 2, POD_GONE},
	{"a look asked for before the release", 5000, {{-1000}, {4500}}, 2, POD_CONFIRMING},
	{"seen in between: from the start",
	 5000,
	 {{1000}, {4000, true}, {7000}},
	 3,
	 POD_CONFIRMING},
	{"seen in between, then two clean ones",
	 5000,
	 {{1000}, {4000, true}, {7000}, {12000}},
	 4,
	 POD_GONE},
	{"one look where the list is the truth", 0, {{1000}}, 1, POD_GONE},
	{"still there after 20 s: asked again", 5000, {{21000, true}}, 1, POD_RELEASING},
};

static void release_seen_pod(struct bench *b, int64_t gap_ms)
{
	set_up(b, 1);
	b->conf.providers[0].list_gap_ms = gap_ms;
	start_simply(b);
	bring_up(b, 0);
	render_batch(b, 0, 0, SECOND, true);
	check_phase(b, "done", 0, POD_RELEASING);
	tell(b, (struct event){.type = EV_RELEASED, .pod = 0});
	check_phase(b, "accepted", 0, POD_CONFIRMING);
}

static void test_two_looks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(confirmations); i++) {
		struct bench b;
		release_seen_pod(&b, confirmations[i].gap_ms);
		int64_t released_at = b.now;
		for (int k = 0; k < confirmations[i].count; k++) {
			int64_t asked = released_at + confirmations[i].looks[k].at_ms;
			struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
			b.now = MAX(b.now, asked);
			tell(&b, (struct event){.type = EV_LISTED,
						.views = &v,
						.count = confirmations[i].looks[k].there,
						.requested_at = asked});
		}
		check_phase(&b, confirmations[i].name, 0, confirmations[i].phase);
		check_field(confirmations[i].name, "ended", has_ended(&b),
			    confirmations[i].phase == POD_GONE);
		tear_down(&b);
	}
}

/* A pod that its vendor shows after it accepted the release: until when it counts as billed, what
 * is reserved for it until its hard end meanwhile, and how often that is said. */
static const struct {
	const char *name;
	enum pod_state state;
	struct {
		int64_t at_ms;
		bool there;
	} looks[5];
	int count;
	int64_t more_s; /* billed after the accepted release */
	int notes;
} outliving[] = {
	{"gone at once", POD_STATE_RUNNING, {{100}, {5100}}, 2, 0, 0},
	{"a list that lags", POD_STATE_RUNNING, {{100, true}, {2000}, {7000}}, 3, 2, 0},
	{"it ran for 9 s",
	 POD_STATE_RUNNING,
	 {{1000, true}, {4000, true}, {8000, true}, {9000}, {14000}},
	 5,
	 9,
	 1},
	{"a list misses it once",
	 POD_STATE_RUNNING,
	 {{1000, true}, {3000}, {6000, true}, {7000}, {12000}},
	 5,
	 7,
	 1},
	{"a state that is not known: it may run",
	 POD_STATE_UNKNOWN,
	 {{1000, true}, {3000}, {8000}},
	 3,
	 3,
	 0},
	{"it is listed, but stopped", POD_STATE_STOPPED, {{6000, true}, {7000}, {12000}}, 3, 0, 0},
};

static int said(const struct bench *b)
{
	int notes = 0;

	for (size_t i = 0; i < b->out.count; i++)
		if (b->out.list[i].type == ACT_NOTE)
			notes += strstr(b->out.list[i].text, "released at ") != NULL;
	return notes;
}

static void test_outlives_its_release(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(outliving); i++) {
		const char *name = outliving[i].name;
		struct bench b;
		release_seen_pod(&b, 5000);
		int64_t released_at = b.now;
		int64_t counted = core_billed_ms(pod(&b, 0), b.now);
		int notes = 0;
		for (int k = 0; k < outliving[i].count; k++) {
			struct pod_view v = view_of(&b, 0, outliving[i].state);
			b.now = released_at + outliving[i].looks[k].at_ms;
			tell(&b, (struct event){.type = EV_LISTED,
						.views = &v,
						.count = outliving[i].looks[k].there,
						.requested_at = b.now});
			notes += said(&b);
			bool runs = outliving[i].looks[k].there &&
				    outliving[i].state != POD_STATE_STOPPED;
			check_field(name, "may bill", pod_outlives_release(pod(&b, 0)), runs);
			if (runs) {
				check_field(name, "until now",
					    core_billed_ms(pod(&b, 0), b.now + HOUR) >= HOUR, 1);
				check_field(name, "reserved until its hard end",
					    budget_committed(b.core) > budget_spent(b.core) + 1000,
					    1);
			}
		}
		check_phase(&b, name, 0, POD_GONE);
		check_field(name, "billed longer", core_billed_ms(pod(&b, 0), b.now) - counted,
			    outliving[i].more_s * SECOND);
		check_field(name, "spent", budget_spent(b.core), core_cost(pod(&b, 0), b.now));
		check_field(name, "messages", notes, outliving[i].notes);
		tear_down(&b);
	}
}

/* The vendor's own figure stands beside our count; the larger one is spent. */
static void test_vendor_says(void **state)
{
	static const int64_t figures[] = {0, 1, 1000000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
		struct bench b;
		release_seen_pod(&b, 0);
		core_set_vendor_cost(b.core, 0, 7777777); /* it is not gone yet: no bill */
		list_nothing(&b);
		check_phase(&b, "gone", 0, POD_GONE);
		int64_t counted = core_counted(pod(&b, 0), b.now);
		core_set_vendor_cost(b.core, 0, figures[i]);
		check_field("counted", "micro-dollars", core_counted(pod(&b, 0), b.now), counted);
		check_field("cost", "micro-dollars", core_cost(pod(&b, 0), b.now),
			    MAX(counted, figures[i]));
		check_field("spent", "micro-dollars", budget_spent(b.core),
			    MAX(counted, figures[i]));
		check_field("sum", "micro-dollars", summary(&b).cost_microusd,
			    MAX(counted, figures[i]));
		check_field("sum", "counted", summary(&b).counted_microusd, counted);
		check_field("sum", "by the vendor", summary(&b).vendor_microusd, figures[i]);
		tear_down(&b);
	}
}

/* The vendor itself says of a released pod that it is over. How or when is a fact; that it does not
 * know the pod, or calls it gone and no more, is not. */
static const struct {
	const char *name;
	enum pod_end end;
	int64_t ended_at_s;
	enum pod_phase phase;
} reported[] = {
	{"gone, and no more", POD_END_UNKNOWN, 0, POD_CONFIRMING},
	{"terminated", POD_END_OUTSIDE, 0, POD_GONE},
	{"its script ended", POD_END_SCRIPT, 0, POD_GONE},
	{"ended at a time", POD_END_UNKNOWN, 1795651200, POD_GONE},
};

static void test_end_that_is_reported(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(reported); i++) {
		struct bench b;
		release_seen_pod(&b, 5000);
		int64_t released_at = b.now;
		struct pod_view v = view_of(&b, 0, POD_STATE_GONE);
		v.end = reported[i].end;
		v.ended_at_s = reported[i].ended_at_s;
		b.now += 300;
		tell(&b, (struct event){.type = EV_LISTED,
					.views = &v,
					.count = 1,
					.requested_at = released_at + 100});
		check_phase(&b, reported[i].name, 0, reported[i].phase);
		check_field(reported[i].name, "ended", has_ended(&b),
			    reported[i].phase == POD_GONE);
		tear_down(&b);
	}
}

/* A pod that its vendor never listed, released as soon as its create was answered: absence alone
 * proves nothing yet. */
static const struct {
	const char *name;
	int64_t gap_ms;
	struct {
		int64_t at_s; /* after the answer to the create */
		bool there;
	} looks[4];
	int count;
	enum pod_phase phase;
} surfacings[] = {
	{"two clean looks within a minute", 5000, {{2}, {59}}, 2, POD_CONFIRMING},
	{"... and one when it would have surfaced", 5000, {{2}, {59}, {60}}, 3, POD_GONE},
	{"two looks, both after a minute", 5000, {{61}, {66}}, 2, POD_GONE},
	{"one look after a minute", 5000, {{61}}, 1, POD_CONFIRMING},
	{"it surfaced: two looks will do", 5000, {{2}, {7, true}, {12}, {17}}, 4, POD_GONE},
	{"where the list is the truth", 0, {{2}}, 1, POD_GONE},
};

static void test_never_listed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(surfacings); i++) {
		const char *name = surfacings[i].name;
		struct bench b;
		set_up(&b, 4);
		b.conf.providers[0].list_gap_ms = surfacings[i].gap_ms;
		start_simply(&b);
		tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
		rented(&b, 0);
		int64_t rented_at = b.now;
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
		for (int k = 0; k < surfacings[i].count; k++) {
			wait_ms(&b, rented_at + surfacings[i].looks[k].at_s * SECOND - b.now);
			list_in(&b, POD_STATE_RUNNING, surfacings[i].looks[k].there ? 0 : -1, -1);
		}
		check_phase(&b, name, 0, surfacings[i].phase);
		check_field(name, "ended", has_ended(&b), surfacings[i].phase == POD_GONE);
		tear_down(&b);
	}
}

/* It is looked for during that minute, with pauses, and released again if it surfaces. */
static void test_looks_for_the_never_listed(void **state)
{
	struct bench b;
	int looks = 0;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
	rented(&b, 0);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
	while (!has_ended(&b) && looks < 1000) {
		b.now += 100;
		list_nothing(&b);
		looks++;
		if (!did(&b, ACT_LIST, -1) && !has_ended(&b))
			wait_ms(&b, core_wake_at(b.core) - b.now);
	}
	check_field("a minute", "looks", looks >= 10 && looks <= 20, 1);
	tear_down(&b);
}

/* A provider may deny a pod too new to be indexed: the release is sent once more before the pod
 * counts as gone. */
static void test_released_before_it_was_known(void **state)
{
	struct bench b;
	int releases = 0;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
	rented(&b, 0);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
	for (int k = 0; k < 40 && !has_ended(&b); k++) {
		b.now += 4 * SECOND;
		list_nothing(&b);
		if (!did(&b, ACT_RELEASE, 0))
			continue;
		releases++;
		check_phase(&b, "asked once more", 0, POD_RELEASING);
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
	}
	check_phase(&b, "in the end", 0, POD_GONE);
	check_field("before it counts as gone", "releases", releases, 1);
	tear_down(&b);
}

/* A pod whose release was answered with "no such pod", once: seconds from then to each list, and
 * whether that shows it. Nothing was ended, so it takes the gap of an ambiguous create, another
 * release, and two lists after that. */
static const struct {
	const char *name;
	int64_t gap_ms;
	struct {
		int64_t at_s;
		bool there;
	} looks[8];
	int count, releases;
	enum pod_phase phase;
} denials[] = {
	{"two lists 5 s apart prove nothing", 5000, {{1}, {7}}, 2, 0, POD_CONFIRMING},
	{"nor do all of a minute",
	 5000,
	 {{1}, {11}, {21}, {31}, {41}, {51}, {60}},
	 7,
	 0,
	 POD_CONFIRMING},
	{"after a minute it is released again", 5000, {{1}, {31}, {61}}, 3, 1, POD_CONFIRMING},
	{"one list after that is not enough", 5000, {{1}, {31}, {61}, {62}}, 4, 1, POD_CONFIRMING},
	{"two lists after that", 5000, {{1}, {31}, {61}, {62}, {67}}, 5, 1, POD_GONE},
	{"it is there again after 20 s", 5000, {{1}, {11}, {21, true}}, 3, 1, POD_CONFIRMING},
	{"then the minute begins anew",
	 5000,
	 {{1}, {11}, {21, true}, {22}, {61}, {67}, {81}},
	 7,
	 1,
	 POD_CONFIRMING},
	{"where the list is the truth", 0, {{1}}, 1, 0, POD_GONE},
};

static void test_denied_when_it_is_released(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(denials); i++) {
		const char *name = denials[i].name;
		struct bench b;
		int releases = 0;
		set_up(&b, 1);
		b.conf.providers[0].list_gap_ms = denials[i].gap_ms;
		start_simply(&b);
		bring_up(&b, 0);
		list_running(&b, 0);
		render_batch(&b, 0, 0, SECOND, true);
		check_phase(&b, name, 0, POD_RELEASING);
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
		int64_t denied_at = b.now;
		for (int k = 0; k < denials[i].count; k++) {
			wait_ms(&b, denied_at + denials[i].looks[k].at_s * SECOND - b.now);
			list_in(&b, POD_STATE_RUNNING, denials[i].looks[k].there ? 0 : -1, -1);
			if (!did(&b, ACT_RELEASE, 0))
				continue;
			releases++;
			tell(&b, (struct event){
					 .type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
		}
		check_phase(&b, name, 0, denials[i].phase);
		check_field(name, "releases", releases, denials[i].releases);
		check_field(name, "ended", has_ended(&b), denials[i].phase == POD_GONE);
		tear_down(&b);
	}
}

/* One that the list had shown, is denied twice, and then seen: it bills until its provider says
 * that it ended it. */
static void test_released_and_not_known_though_it_was_listed(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	bring_up(&b, 0);
	render_batch(&b, 0, 0, SECOND, true);
	check_phase(&b, "all is home", 0, POD_RELEASING);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
	b.now += SECOND;
	list_nothing(&b);
	b.now += 61 * SECOND;
	list_nothing(&b);
	check_phase(&b, "asked once more", 0, POD_RELEASING);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
	b.now += SECOND;
	list_running(&b, 0);
	check_phase(&b, "there it is", 0, POD_RELEASING);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ENDED});
	for (int k = 0; k < 3; k++) {
		b.now += 6 * SECOND;
		list_nothing(&b);
	}
	check_phase(&b, "in the end", 0, POD_GONE);
	tear_down(&b);
}

/* A rate-limited listing with a long Retry-After does not keep a run from looking for its pods. */
static void test_list_that_wants_to_be_left_alone(void **state)
{
	static const enum err_kind kinds[] = {ERR_TRANSIENT, ERR_RATE_LIMITED};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct bench b;
		set_up(&b, 4);
		start_simply(&b);
		rented(&b, 0);
		err_set(&err, kinds[i], "HTTP 503");
		err.retry_after_ms = 24 * HOUR;
		tell(&b, (struct event){.type = EV_LISTED, .err = &err});
		wait_ms(&b, 20 * SECOND);
		check_field("asked for a little patience", "lists", did(&b, ACT_LIST, -1), 0);
		wait_ms(&b, 41 * SECOND);
		check_field("... and for a day", "lists", did(&b, ACT_LIST, -1), 1);
		list_running(&b, 0);
		check_phase(&b, "seen", 0, POD_CONNECTING);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_looks),
		cmocka_unit_test(test_outlives_its_release),
		cmocka_unit_test(test_vendor_says),
		cmocka_unit_test(test_end_that_is_reported),
		cmocka_unit_test(test_never_listed),
		cmocka_unit_test(test_looks_for_the_never_listed),
		cmocka_unit_test(test_released_before_it_was_known),
		cmocka_unit_test(test_denied_when_it_is_released),
		cmocka_unit_test(test_released_and_not_known_though_it_was_listed),
		cmocka_unit_test(test_list_that_wants_to_be_left_alone),
	};

	return cmocka_run_group_tests_name("core proof", tests, NULL, NULL);
}
