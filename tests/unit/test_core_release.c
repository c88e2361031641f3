/* test_core_release.c - releases: which pod, when, and what follows where one is refused. */
#include "core_bench.h"

static void test_release_of_the_idle_one(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 2);
	b.conf.pods = 2;
	b.conf.max_batch = 1;
	b.conf.command = true;
	start_simply(&b);
	bring_up(&b, 0);
	bring_up(&b, 1);
	began(&b, 0, 0);
	began(&b, 1, 1);
	rendered(&b, 0, 0);
	done(&b, 0, 0);
	check_phase(&b, "its file is not home", 0, POD_WORKING);
	safe(&b, 0, 0, true);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
	check_phase(&b, "nothing is left for it", 0, POD_RELEASING);
	check_phase(&b, "the other works on", 1, POD_WORKING);
	assert_int_equal(did(&b, ACT_RELEASE, 1), 0);
	tear_down(&b);
}

static void test_release_of_one_out_of_reach(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 2);
	b.conf.pods = 2;
	b.conf.max_batch = 1;
	b.conf.command = true;
	start_simply(&b);
	bring_up(&b, 0);
	bring_up(&b, 1);
	began(&b, 0, 0);
	rendered(&b, 0, 0);
	done(&b, 0, 0);
	tell(&b, (struct event){.type = EV_FETCHED, .segment = 0, .ok = true, .check_ok = true});
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	check_phase(&b, "its file is not safe yet", 0, POD_CONNECTING);
	tell(&b, (struct event){.type = EV_LOCAL, .segment = 0});
	check_phase(&b, "nothing is left for it", 0, POD_RELEASING);
	check_phase(&b, "the other works on", 1, POD_WORKING);
	tear_down(&b);
}

/* A pod that was at work is released, and its provider answers so: is its agent told to end it, and
 * over which connection? */
static const struct {
	const char *name;
	enum err_kind kind;
	int64_t retry_ms;
	int times, told;
} release_refusals[] = {
	{"the key was revoked", ERR_CREDENTIALS, 0, 1, 1},
	{"... and is refused each time", ERR_CREDENTIALS, 0, 3, 3},
	{"the key has no right to", ERR_REFUSED, 0, 1, 1},
	{"out of order once", ERR_TRANSIENT, 0, 1, 0},
	{"out of order twice", ERR_TRANSIENT, 0, 2, 1},
	{"out of order, for a minute", ERR_TRANSIENT, 60000, 1, 1},
	{"no answer twice", ERR_NETWORK, 0, 2, 1},
	{"its limit lets it through soon", ERR_RATE_LIMITED, 2000, 2, 0},
	{"its limit says so again and again", ERR_RATE_LIMITED, 2000, 4, 1},
	{"its limit is used up for an hour", ERR_RATE_LIMITED, 3600000, 1, 1},
};

static void answer_release(struct bench *b, enum err_kind kind, int64_t retry_ms)
{
	struct err err = {.kind = kind, .retry_after_ms = retry_ms, .msg = "no"};

	tell(b, (struct event){.type = EV_RELEASED, .pod = 0, .err = &err});
}

static void test_its_agent_ends_what_its_provider_does_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(release_refusals); i++) {
		struct bench b;
		int told = 0;
		set_up(&b, 1);
		start_simply(&b);
		bring_up(&b, 0);
		render_batch(&b, 0, 0, SECOND, true);
		check_phase(&b, release_refusals[i].name, 0, POD_RELEASING);
		for (int k = 0; k < release_refusals[i].times; k++) {
			answer_release(&b, release_refusals[i].kind, release_refusals[i].retry_ms);
			told += did(&b, ACT_FINISH, 0);
			wait_ms(&b, 60 * SECOND); /* it is asked again meanwhile */
		}
		check_field(release_refusals[i].name, "told", told, release_refusals[i].told);
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
		check_field(release_refusals[i].name, "closed once it is accepted",
			    did(&b, ACT_CLOSE, 0), 1);
		tear_down(&b);
	}
}

/* Its provider ends it never and lists it no more: it has ended itself, and billed until the first
 * list without it. */
static void test_gone_though_its_release_is_refused(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	bring_up(&b, 0);
	list_running(&b, 0);
	render_batch(&b, 0, 0, SECOND, true);
	answer_release(&b, ERR_REFUSED, 0);
	assert_int_equal(did(&b, ACT_FINISH, 0), 1);
	int64_t told_at = b.now;
	list_running(&b, 0);
	for (int s = 10; s <= 60; s += 10) {
		wait_ms(&b, told_at + s * SECOND - b.now);
		list_nothing(&b);
		check_phase(&b, "not for long enough", 0, POD_RELEASING);
		answer_release(&b, ERR_REFUSED, 0);
	}
	wait_ms(&b, 10 * SECOND);
	list_nothing(&b);
	check_phase(&b, "a minute of lists without it", 0, POD_GONE);
	assert_int_equal(core_billed_ms(pod(&b, 0), b.now) / 1000,
			 (told_at + 10 * SECOND - pod(&b, 0)->rental.create_at + 999) / 1000);
	check_field("then", "ended", has_ended(&b), 1);
	tear_down(&b);
}

static void test_release_is_repeated_and_reported(void **state)
{
	struct bench b;
	int asked = 1;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	bring_up(&b, 0);
	render_batch(&b, 0, 0, SECOND, true);
	int64_t began_at = b.now;
	for (bool open = true; !has_ended(&b);) {
		assert_true(b.now - began_at < 2 * CONFIRM_LIMIT_MS);
		if (open)
			tell_err(&b, EV_RELEASED, 0, ERR_TRANSIENT);
		wait_ms(&b, core_wake_at(b.core) - b.now);
		open = did(&b, ACT_RELEASE, 0);
		asked += open;
		if (did(&b, ACT_LIST, -1))
			list_running(&b, 0);
	}
	assert_true(asked > 15); /* at least every 15 s, for five minutes */
	assert_true(b.now - began_at >= CONFIRM_LIMIT_MS);
	assert_int_equal(summary(&b).status, RUN_UNRELEASED);
	assert_int_equal(exit_status(&b), 9);
	assert_int_equal(summary(&b).local, 1);
	tear_down(&b);
}

/* The vendor's word on when to come again does not keep a pod for half an hour. */
static void test_release_that_limits_keep_back(void **state)
{
	struct err err = {0};
	struct bench b;
	int asked = 1;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	bring_up(&b, 0);
	render_batch(&b, 0, 0, SECOND, true);
	err_set(&err, ERR_RATE_LIMITED, "no room");
	err.retry_after_ms = 30 * MINUTE;
	for (int k = 0; k < 4; k++) {
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .err = &err});
		wait_ms(&b, MINUTE);
		asked += did(&b, ACT_RELEASE, 0);
		if (did(&b, ACT_LIST, -1))
			list_running(&b, 0);
	}
	check_field("limits", "releases", asked, 5);
	check_field("limits", "ended", has_ended(&b), false);
	tear_down(&b);
}

/* The lid was closed for an hour: it looks before it judges. */
static void test_slept_over_a_release(void **state)
{
	struct bench b;

	(void)state;
	for (int answered = 0; answered < 2; answered++) {
		set_up(&b, 1);
		start_simply(&b);
		bring_up(&b, 0);
		render_batch(&b, 0, 0, SECOND, true);
		check_phase(&b, "asleep", 0, POD_RELEASING);
		if (answered)
			tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
		else
			tell_err(&b, EV_RELEASED, 0, ERR_TRANSIENT);
		if (did(&b, ACT_LIST, -1))
			list_nothing(&b);
		b.now += HOUR;
		tell(&b, (struct event){.type = EV_SLEPT});
		int looks = did(&b, ACT_LIST, -1);
		wait_ms(&b, 0);
		check_field("awake", "ended", has_ended(&b), false);
		check_field("awake", "looks", looks + did(&b, ACT_LIST, -1), 1);
		check_field("awake", "releases", did(&b, ACT_RELEASE, 0), !answered);
		if (!answered)
			tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
		for (int k = 0; k < 3 && !has_ended(&b); k++) {
			list_nothing(&b);
			b.now += 6 * SECOND;
		}
		check_field("seen", "exit", exit_status(&b), 0);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_release_of_the_idle_one),
		cmocka_unit_test(test_release_of_one_out_of_reach),
		cmocka_unit_test(test_its_agent_ends_what_its_provider_does_not),
		cmocka_unit_test(test_gone_though_its_release_is_refused),
		cmocka_unit_test(test_release_is_repeated_and_reported),
		cmocka_unit_test(test_release_that_limits_keep_back),
		cmocka_unit_test(test_slept_over_a_release),
	};

	return cmocka_run_group_tests_name("core release", tests, NULL, NULL);
}
