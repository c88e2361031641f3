/* test_core_boot.c - pods that come up, or not: boot limits, logs, listings that omit them,
 * switches that do not work. */
#include "core_bench.h"

/* Found by fuzzing a vendor's list: without its address a pod that was lost could not be tried
 * again. */
static void test_address_that_a_list_leaves_out(void **state)
{
	struct bench b;
	struct pod_view v;

	(void)state;
	set_up(&b, 2);
	start_simply(&b);
	bring_up(&b, 0);
	check_field("brought up", "port", pod(&b, 0)->rental.view.port, 22);
	v = view_of(&b, 0, POD_STATE_RUNNING);
	v.port = 0;
	v.reach = REACH_NONE;
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b.now});
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	check_field("lost", "connects", did(&b, ACT_CONNECT, 0), 1);
	check_field("lost", "port", pod(&b, 0)->rental.view.port, 22);
	v.port = 2022;
	v.reach = REACH_SSH;
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b.now});
	check_field("listed with another", "port", pod(&b, 0)->rental.view.port, 2022);
	tear_down(&b);
}

/* A run with one offer whose pods took boot_ms so far. */
static void start_knowing(struct bench *b, int64_t boot_ms)
{
	struct offer o = offer(0, 1000000);
	struct offer_past past = {.boot_ms = boot_ms};

	start(b);
	tell(b, (struct event){.type = EV_OFFERS, .offers = &o, .past = &past, .count = 1});
	rented(b, 0);
}

static void log_says(struct bench *b, int i, int lines)
{
	tell(b, (struct event){.type = EV_LOG, .pod = i, .number = lines});
}

static void test_boot_limit_of_the_median(void **state)
{
	static const struct {
		const char *name;
		int64_t boot_ms, most_ms, gives_up_ms;
	} cases[] = {
		{"nothing is known", 0, 5 * MINUTE, 5 * MINUTE},
		{"three times the median", 40 * SECOND, 5 * MINUTE, 2 * MINUTE},
		{"a minute at least", 2 * SECOND, 5 * MINUTE, MINUTE},
		{"never more than the config's", 4 * MINUTE, 5 * MINUTE, 5 * MINUTE},
		{"the config's, below the least", 2 * SECOND, 20 * SECOND, 20 * SECOND},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.boot_limit_ms = cases[i].most_ms;
		start_knowing(&b, cases[i].boot_ms);
		int64_t began = pod(&b, 0)->rental.create_at;
		wait_ms(&b, cases[i].gives_up_ms - 1);
		check_phase(&b, cases[i].name, 0, POD_BOOTING);
		/* and at half time */
		int early = cases[i].gives_up_ms / 2 > LOG_EARLY_MS + LOG_WAIT_MS;
		check_field(cases[i].name, "log read", did(&b, ACT_LOG, 0),
			    early + (cases[i].gives_up_ms >= LOG_WORTH_MS));
		/* nobody has such a log: that gives nobody more time */
		tell_err(&b, EV_LOG, 0, ERR_NOT_FOUND);
		wait_ms(&b, 1);
		check_phase(&b, cases[i].name, 0, POD_RELEASING);
		check_field(cases[i].name, "after ms", b.now - began, cases[i].gives_up_ms);
		check_field(cases[i].name, "written down", did(&b, ACT_BAD_HOST, 0), 1);
		tear_down(&b);
	}
}

/* A median that is of no use, as with a new and larger image, does not give up one pod after the
 * other. */
static void test_each_stuck_pod_gives_the_next_more_time(void **state)
{
	static const int64_t limits_s[] = {60, 120, 240};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.retry_until_up = true;
	start_knowing(&b, 15 * SECOND);
	for (int i = 0; i < (int)ARRAY_LEN(limits_s); i++) {
		struct offer o = offer(0, 1000000);
		struct offer_past past = {.boot_ms = 15 * SECOND};
		check_field("limit", "s", pod(&b, i)->presence.boot_limit_ms / 1000, limits_s[i]);
		wait_ms(&b, limits_s[i] * SECOND);
		check_phase(&b, "given up", i, POD_RELEASING);
		tell(&b, (struct event){.type = EV_RELEASED, .pod = i});
		b.now += BAD_HOST_REST_MS;
		tell(&b,
		     (struct event){.type = EV_OFFERS, .offers = &o, .past = &past, .count = 1});
		if (i == 2) /* one that comes up, and is lost */
			bring_up(&b, 3);
		else
			rented(&b, i + 1);
	}
	list_in(&b, POD_STATE_GONE, 3, -1);
	check_field("after one that came up", "s", pod(&b, 4)->presence.boot_limit_ms / 1000, 60);
	tear_down(&b);
}

/* At its deadline: what the provider's log says decides, once for each deadline. */
static void test_log_that_moves_gives_time(void **state)
{
	static const struct {
		const char *name;
		int lines[4]; /* of the answers at each deadline; -1: given up before that */
		int64_t lasts_s;
	} cases[] = {
		{"it stands still", {0, -1}, 2 * 60},
		{"it moves once", {3, 0, -1}, 4 * 60},
		{"it moves twice", {3, 1, 0, -1}, 6 * 60},
		{"it moves for ever", {3, 1, 1, 1}, 8 * 60},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 4);
		b.conf.boot_limit_ms = 4 * MINUTE; /* hence never more than eight minutes */
		start_knowing(&b, 40 * SECOND);
		int64_t began = pod(&b, 0)->rental.create_at;
		wait_ms(&b, MINUTE);
		check_field(name, "read at half time", did(&b, ACT_LOG, 0), 1);
		log_says(&b, 0, 5);
		wait_ms(&b, MINUTE - 1);
		for (int k = 0; k < 4 && cases[i].lines[k] >= 0; k++) {
			check_field(name, "not read in between", did(&b, ACT_LOG, 0), 0);
			check_phase(&b, name, 0, POD_BOOTING);
			wait_ms(&b, 1);
			if (pod(&b, 0)->phase == POD_RELEASING)
				break;
			check_field(name, "read at the deadline", did(&b, ACT_LOG, 0), 1);
			log_says(&b, 0, cases[i].lines[k]);
			if (cases[i].lines[k])
				wait_ms(&b, 2 * MINUTE - 1);
		}
		check_phase(&b, name, 0, POD_RELEASING);
		check_field(name, "lasted s", (b.now - began) / 1000, cases[i].lasts_s);
		tear_down(&b);
	}
}

static void test_log_that_never_comes(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_knowing(&b, 40 * SECOND);
	wait_ms(&b, MINUTE);
	log_says(&b, 0, 5);
	wait_ms(&b, MINUTE + LOG_WAIT_MS - 1);
	check_phase(&b, "it is waited for", 0, POD_BOOTING);
	wait_ms(&b, 1);
	check_phase(&b, "not longer", 0, POD_RELEASING);
	log_says(&b, 0, 5); /* late */
	check_phase(&b, "late", 0, POD_RELEASING);
	tear_down(&b);
}

static void test_up_while_the_log_is_read(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_knowing(&b, 40 * SECOND);
	wait_ms(&b, MINUTE);
	log_says(&b, 0, 5);
	wait_ms(&b, MINUTE);
	assert_int_equal(did(&b, ACT_LOG, 0), 1);
	list_running(&b, 0);
	connected(&b, 0);
	log_says(&b, 0, 0);
	check_phase(&b, "it answered in time", 0, POD_PREPARING);
	wait_ms(&b, 5 * MINUTE);
	check_phase(&b, "and is kept", 0, POD_PREPARING);
	tell(&b, (struct event){.type = EV_SHARED_READY, .pod = 0});
	tell(&b, (struct event){.type = EV_WORKERS, .pod = 0, .number = 1});
	assert_int_equal(did(&b, ACT_GOOD_HOST, 0), 1);
	assert_int_equal(did(&b, ACT_BAD_HOST, -1), 0);
	tear_down(&b);
}

/* Its address is known and its sshd does not answer yet: every quarter of a second counts, for half
 * a minute. */
static void test_connects_again_soon(void **state)
{
	struct bench b;
	int64_t longest = 0, most_later = 0;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	rented(&b, 0);
	list_running(&b, 0);
	int64_t began_at = b.now;
	while (b.now - began_at < MINUTE) {
		int64_t requested_at = b.now;
		assert_int_equal(did(&b, ACT_CONNECT, 0), 1);
		tell_err(&b, EV_CONNECT_FAILED, 0, ERR_NETWORK);
		while (!did(&b, ACT_CONNECT, 0)) {
			wait_ms(&b, core_wake_at(b.core) - b.now);
			if (did(&b, ACT_LIST, -1))
				list_running(&b, 0);
		}
		if (requested_at - began_at < 25 * SECOND)
			longest = MAX(longest, b.now - requested_at);
		most_later = MAX(most_later, b.now - requested_at);
	}
	assert_in_range(longest, 200, 250);
	assert_in_range(most_later, 1000, CONNECT_RETRY_MAX_MS);
	tear_down(&b);
}

/* While a pod boots, a listing may omit it: that is no reason to release it. */
static void test_late_in_the_list(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	rented(&b, 0);
	for (int k = 0; k < 5; k++) {
		b.now += 11 * SECOND;
		list_nothing(&b);
		check_phase(&b, "not listed yet", 0, POD_BOOTING);
	}
	b.now += SECOND;
	list_running(&b, 0);
	check_phase(&b, "there it is", 0, POD_CONNECTING);
	for (int k = 0; k < 2; k++) {
		b.now += 5 * SECOND;
		list_nothing(&b);
	}
	check_phase(&b, "listed, then not: gone", 0, POD_RELEASING);
	tear_down(&b);
}

static void test_slept_over_a_boot(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	rented(&b, 0);
	list_in(&b, POD_STATE_CREATING, 0, -1);
	b.now += b.conf.boot_limit_ms + MINUTE;
	tell(&b, (struct event){.type = EV_SLEPT});
	check_field("awake", "looks", did(&b, ACT_LIST, -1), 1);
	wait_ms(&b, 10 * SECOND);
	check_phase(&b, "awake", 0, POD_BOOTING);
	list_running(&b, 0);
	check_phase(&b, "it had come up", 0, POD_CONNECTING);
	tear_down(&b);
}

/* The answers may be here, and are read after it is known that it slept. */
static void test_slept_over_the_first_offers(void **state)
{
	static const int64_t waits_ms[] = {10 * MINUTE, 10 * SECOND};
	struct offer o = offer(0, 1000000);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(waits_ms); i++) {
		struct bench b;
		int64_t left_ms = MIN(waits_ms[i], (int64_t)QUERY_OVERDUE_MS);
		set_up(&b, 4);
		b.conf.wait_ms = waits_ms[i];
		start(&b);
		b.now += 8 * HOUR;
		tell(&b, (struct event){.type = EV_SLEPT});
		wait_ms(&b, left_ms - 1);
		check_field("awake", "stopping", core_is_stopping(b.core), false);
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_field("read", "creates", did(&b, ACT_RENT, -1), 1);
		tear_down(&b);

		set_up(&b, 4);
		b.conf.wait_ms = waits_ms[i];
		start(&b);
		b.now += 8 * HOUR;
		tell(&b, (struct event){.type = EV_SLEPT});
		wait_ms(&b, QUERY_OVERDUE_MS + SECOND);
		check_field("nothing came", "exit", exit_status(&b), 6);
		tear_down(&b);
	}
}

/* Whatever its length, the client gives a pod up before the pod ends itself. */
static void test_first_lease_outlasts_the_boot_limit(void **state)
{
	static const struct {
		const char *name;
		int64_t boot_limit_s, lease_s;
	} cases[] = {{"shortest", 5, 8},
		     {"short", 30, 33},
		     {"a minute", 60, 66},
		     {"usual", 600, 630},
		     {"longest", 7200, 7230}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;

		set_up(&b, 4);
		b.conf.boot_limit_ms = cases[i].boot_limit_s * SECOND;
		start_simply(&b);
		int64_t created = b.now;
		check_field(cases[i].name, "first lease", pod(&b, 0)->rental.first_lease_end_s,
			    (WALL_MS + created) / 1000 + cases[i].lease_s);
		rented(&b, 0);
		b.now += 10;
		list_running(&b, 0);
		wait_ms(&b, created + cases[i].boot_limit_s * SECOND - b.now);
		check_field(cases[i].name, "releases", did(&b, ACT_RELEASE, 0) > 0, true);
		tear_down(&b);
	}
}

static void test_unproven_pods_get_no_work(void **state)
{
	static const struct {
		const char *name;
		bool switch_ok, unproven_ok, works;
	} cases[] = {
		{"its switch works", true, false, true},
		{"it does not", false, false, false},
		{"it does not, and the config lets it", false, true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.unproven_ok = cases[i].unproven_ok;
		start_simply(&b);
		rented(&b, 0);
		b.now += 10;
		list_running(&b, 0);
		tell(&b, (struct event){.type = EV_CONNECTED,
					.pod = 0,
					.switch_ok = cases[i].switch_ok,
					.t = b.now});
		check_field(cases[i].name, "prepared", did(&b, ACT_PREPARE, 0), cases[i].works);
		check_field(cases[i].name, "released", did(&b, ACT_RELEASE, 0), !cases[i].works);
		tear_down(&b);
	}
}

static void inspected(struct bench *b, enum pod_state state, enum pod_end end)
{
	struct pod_view view = {.state = state,
				.end = end,
				.reach = state == POD_STATE_RUNNING ? REACH_SSH : REACH_NONE,
				.port = state == POD_STATE_RUNNING ? 22 : 0};

	COPY_TEXT(view.id, pod(b, 0)->rental.id);
	COPY_TEXT(view.host, "127.0.0.1");
	COPY_TEXT(view.user, "root");
	COPY_TEXT(view.marker.attempt, pod(b, 0)->rental.attempt);
	COPY_TEXT(view.marker.run, b->conf.run);
	tell(b, (struct event){.type = EV_INSPECTED,
			       .pod = 0,
			       .views = &view,
			       .count = 1,
			       .requested_at = b->now});
}

/* Lists that omit a pod for good prove nothing of it: its provider is asked for it by its id, while
 * it comes up and at its end. */
static void test_a_pod_that_lists_omit(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_with(&b, &o, 1);
	rented(&b, 0);
	tell(&b, (struct event){.type = EV_LISTED, .requested_at = b.now + 1});
	check_field("too new", "asked for", did(&b, ACT_INSPECT, 0), 0);
	for (int i = 0; i < 30; i++) {
		wait_ms(&b, 6000);
		tell(&b, (struct event){.type = EV_LISTED, .requested_at = b.now});
		check_field("omitted", "asked for", did(&b, ACT_INSPECT, 0), 1);
		inspected(&b, POD_STATE_CREATING, POD_END_UNKNOWN);
		check_phase(&b, "three minutes long", 0, POD_BOOTING);
	}
	inspected(&b, POD_STATE_RUNNING, POD_END_UNKNOWN);
	check_field("it runs", "connects", did(&b, ACT_CONNECT, 0), 1);
	tell_err(&b, EV_CONNECT_FAILED, 0, ERR_UNTRUSTED);
	check_field("let go", "releases", did(&b, ACT_RELEASE, 0), 1);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ENDED});
	for (int i = 0; i < 4; i++) {
		wait_ms(&b, 6000);
		tell(&b, (struct event){.type = EV_LISTED, .requested_at = b.now});
	}
	check_field("clean lists", "asked for", did(&b, ACT_INSPECT, 0), 1);
	check_phase(&b, "they are no proof", 0, POD_CONFIRMING);
	inspected(&b, POD_STATE_RUNNING, POD_END_UNKNOWN);
	check_field("it is there", "releases", did(&b, ACT_RELEASE, 0), 1);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ENDED});
	for (int i = 0; i < 4; i++) {
		wait_ms(&b, 6000);
		tell(&b, (struct event){.type = EV_LISTED, .requested_at = b.now});
	}
	inspected(&b, POD_STATE_GONE, POD_END_UNKNOWN);
	check_phase(&b, "its provider denies it", 0, POD_GONE);
	tear_down(&b);
}

/* Lists may forget a pod that has ended. Where its provider still reports the end, that is one; a
 * mere denial is none. */
static void test_an_end_that_an_inspection_reports(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_with(&b, &o, 1);
	rented(&b, 0);
	wait_ms(&b, 6000);
	tell(&b, (struct event){.type = EV_LISTED, .requested_at = b.now});
	check_field("omitted", "asked for", did(&b, ACT_INSPECT, 0), 1);
	inspected(&b, POD_STATE_GONE, POD_END_UNKNOWN);
	check_phase(&b, "denied", 0, POD_BOOTING);
	inspected(&b, POD_STATE_GONE, POD_END_MEMORY);
	check_phase(&b, "ended", 0, POD_GONE);
	tear_down(&b);
}

/* Rights of an account's pods are the same for each of them: two tell enough, and none is needed
 * where an earlier run was told. */
static void test_accounts_whose_pods_cannot_end_themselves(void **state)
{
	struct offer o[] = {offer(0, 1000000), offer(0, 1100000), offer(0, 1200000)};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_with(&b, o, 3);
	for (int i = 0; i < 2; i++) {
		check_field("without a switch", "pods", core_pod_count(b.core), i + 1);
		rented(&b, i);
		b.now += 10;
		list_running(&b, i);
		tell(&b, (struct event){.type = EV_CONNECTED, .pod = i, .t = b.now});
	}
	check_field("without a switch", "pods", core_pod_count(b.core), 2);
	check_field("without a switch", "stopping", core_is_stopping(b.core), true);
	assert_non_null(strstr(summary(&b).err.msg, "pod.allow_unproven_switch"));
	tear_down(&b);

	for (int allowed = 0; allowed < 2; allowed++) {
		set_up(&b, 4);
		COPY_TEXT(b.conf.providers[0].no_switch, "http 403 curl");
		b.conf.unproven_ok = allowed;
		start(&b);
		check_field("known", "offers are asked for", did(&b, ACT_OFFERS, -1), allowed);
		check_field("known", "ended", has_ended(&b), !allowed);
		if (!allowed)
			assert_non_null(strstr(summary(&b).err.msg, "http 403 curl"));
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address_that_a_list_leaves_out),
		cmocka_unit_test(test_boot_limit_of_the_median),
		cmocka_unit_test(test_each_stuck_pod_gives_the_next_more_time),
		cmocka_unit_test(test_log_that_moves_gives_time),
		cmocka_unit_test(test_log_that_never_comes),
		cmocka_unit_test(test_up_while_the_log_is_read),
		cmocka_unit_test(test_connects_again_soon),
		cmocka_unit_test(test_late_in_the_list),
		cmocka_unit_test(test_slept_over_a_boot),
		cmocka_unit_test(test_slept_over_the_first_offers),
		cmocka_unit_test(test_first_lease_outlasts_the_boot_limit),
		cmocka_unit_test(test_unproven_pods_get_no_work),
		cmocka_unit_test(test_a_pod_that_lists_omit),
		cmocka_unit_test(test_an_end_that_an_inspection_reports),
		cmocka_unit_test(test_accounts_whose_pods_cannot_end_themselves),
	};

	return cmocka_run_group_tests_name("core boot", tests, NULL, NULL);
}
