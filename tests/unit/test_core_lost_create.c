/* test_core_lost_create.c - a create whose reply was lost: its pod is looked for, adopted, or given
 * up. */
#include "core_bench.h"

#include "base/clock.h"
#include <signal.h>

static void start_ambiguous(struct bench *b)
{
	set_up(b, 4);
	b->conf.wait_ms = HOUR;
	start_simply(b);
	b->now += 2 * SECOND;
	tell_err(b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
}

static void test_ambiguous_is_adopted(void **state)
{
	struct bench b;

	(void)state;
	start_ambiguous(&b);
	assert_int_equal(did(&b, ACT_LIST, -1), 1);
	struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
	struct pod_view other = v; /* bears another attempt's name: not ours to adopt */
	COPY_TEXT(other.id, "px");
	COPY_TEXT(other.marker.run, "r2");
	struct pod_view both[] = {other, v};
	b.now += SECOND;
	tell(&b,
	     (struct event){.type = EV_LISTED, .views = both, .count = 2, .requested_at = b.now});
	check_phase(&b, "found by its name", 0, POD_CONNECTING);
	assert_string_equal(pod(&b, 0)->rental.id, "p0");
	assert_int_equal(core_pod_count(b.core), 1);
	check_saved_first(&b, "adopted", ACT_CONNECT, 0);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	tear_down(&b);
}

/* Its client died before it heard of it, and it ended itself: vendors that list such pods have it
 * for ever. */
static void test_ambiguous_is_found_when_it_is_over(void **state)
{
	struct bench b;

	(void)state;
	start_ambiguous(&b);
	struct pod_view v = view_of(&b, 0, POD_STATE_GONE);
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b.now});
	check_phase(&b, "found by its name, and gone", 0, POD_GONE);
	assert_string_equal(pod(&b, 0)->rental.id, "p0");
	assert_int_equal(core_pod_count(b.core), 2); /* another one does its work */
	/* the list that shows it is newer than its create, so it shows all that this made */
	assert_true(b.core->vendors[0].listed_at > b.core->vendors[0].made_at);
	tear_down(&b);
}

/* The answer to its create was held up for longer than its offer's pods take to boot. */
static void test_ambiguous_is_adopted_late(void **state)
{
	struct offer o = offer(0, 1000000);
	struct offer_past past = {.boot_ms = 15 * SECOND};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start(&b);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .past = &past, .count = 1});
	check_field("limit", "s", pod(&b, 0)->presence.boot_limit_ms / 1000, 60);
	b.now += 2 * MINUTE;
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	list_in(&b, POD_STATE_RUNNING, 0, -1);
	check_phase(&b, "it has been there all the time", 0, POD_CONNECTING);
	wait_ms(&b, 59 * SECOND);
	check_phase(&b, "it may be reached", 0, POD_CONNECTING);
	wait_ms(&b, 2 * SECOND);
	check_phase(&b, "but not for ever", 0, POD_RELEASING);
	tear_down(&b);
}

static const struct {
	const char *name;
	int64_t looks_s[4]; /* when a listing without it was asked for, after the reply was lost */
	enum pod_phase phase;
} lost_creates[] = {
	{"one look is no proof", {60}, POD_AMBIGUOUS},
	{"two looks 59 s apart are none", {1, 60}, POD_AMBIGUOUS},
	{"two looks 60 s apart are none: the first may have come too early",
	 {1, 61},
	 POD_AMBIGUOUS},
	{"nor with one soon after", {1, 61, 65}, POD_AMBIGUOUS},
	{"two of them 60 s after the first are", {1, 61, 66}, POD_NEVER},
	{"looks between do not matter", {1, 40, 61, 66}, POD_NEVER},
	{"what was asked before the loss does not count", {-1, 59}, POD_AMBIGUOUS},
};

static void test_ambiguous_is_given_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lost_creates); i++) {
		const char *name = lost_creates[i].name;
		struct bench b;
		start_ambiguous(&b);
		int64_t lost_at = b.now;
		for (int k = 0; k < 4 && lost_creates[i].looks_s[k]; k++) {
			check_phase(&b, name, 0, POD_AMBIGUOUS);
			check_field(name, "creates meanwhile", did(&b, ACT_RENT, -1), 0);
			int64_t asked = lost_at + lost_creates[i].looks_s[k] * SECOND;
			b.now = MAX(b.now, asked);
			tell(&b, (struct event){.type = EV_LISTED, .requested_at = asked});
		}
		check_phase(&b, name, 0, lost_creates[i].phase);
		/* it may have lived unseen all the time: the cap counts it until now, at $1 an hour
		 */
		bool over = lost_creates[i].phase == POD_NEVER;
		int64_t most = money_for(1000000, over ? b.now - pod(&b, 0)->rental.create_at
						       : 24 * HOUR + SELF_END_MS);
		check_field(name, "counted",
			    b.core->spent_microusd + (over ? 0 : budget_committed(b.core)), most);
		/* only then may something else be rented, under a name of its own */
		b.now += 3 * SECOND;
		struct offer o = offer(0, 1000000);
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_field(name, "creates", did(&b, ACT_RENT, -1),
			    lost_creates[i].phase == POD_NEVER);
		tear_down(&b);
	}
}

static void test_ambiguous_is_looked_for_often_at_first(void **state)
{
	struct bench b;
	int early = 0, looks = 0;

	(void)state;
	start_ambiguous(&b);
	int64_t lost_at = b.now;
	while (pod(&b, 0)->phase == POD_AMBIGUOUS && looks < 1000) {
		b.now += 100;
		list_nothing(&b);
		looks++;
		early += b.now - lost_at < 5 * SECOND;
		if (!did(&b, ACT_LIST, -1))
			wait_ms(&b, core_wake_at(b.core) - b.now);
	}
	check_field("in the first 5 s", "looks", early >= 4 && early <= 6, 1);
	check_field("in all", "looks", looks >= 8 && looks <= 24, 1);
	tear_down(&b);
}

static void test_surfaces_after_all(void **state)
{
	struct bench b;

	(void)state;
	start_ambiguous(&b);
	list_nothing(&b);
	b.now += MINUTE;
	list_nothing(&b);
	b.now += 5 * SECOND;
	list_nothing(&b);
	check_phase(&b, "given up", 0, POD_NEVER);
	b.now += SECOND;
	list_running(&b, 0);
	check_phase(&b, "it was there all the same", 0, POD_RELEASING);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
	tear_down(&b);
}

static void test_second_pod_of_one_create(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	rented(&b, 0);
	struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
	COPY_TEXT(v.id, "twin");
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b.now});
	check_phase(&b, "a pod too many", 1, POD_RELEASING);
	assert_int_equal(did(&b, ACT_RELEASE, 1), 1);
	check_saved_first(&b, "its id", ACT_RELEASE, 1);
	assert_string_not_equal(pod(&b, 0)->rental.attempt, pod(&b, 1)->rental.attempt);
	check_phase(&b, "the one we know", 0, POD_BOOTING);
	tear_down(&b);
}

static void work_and_be_gone(struct bench *b)
{
	connected(b, 0);
	tell(b, (struct event){.type = EV_SHARED_READY, .pod = 0});
	tell(b, (struct event){.type = EV_WORKERS, .pod = 0, .number = 1});
	for (uint32_t batch = 0; pod(b, 0)->phase == POD_WORKING; batch++)
		render_batch(b, 0, batch, SECOND, true);
	tell(b, (struct event){.type = EV_RELEASED, .pod = 0});
	for (int k = 0; k < 3; k++) {
		b->now += 6 * SECOND;
		list_nothing(b);
	}
	check_phase(b, "gone", 0, POD_GONE);
}

/* A create whose answer was lost may have made two: one is found, does the work and is gone. When
 * the answer was lost. */
static int64_t lose_sight_of_a_twin(struct bench *b)
{
	start_ambiguous(b);
	int64_t lost_at = b->now;
	list_running(b, 0);
	work_and_be_gone(b);
	return lost_at;
}

static void check_for_a_twin(struct bench *b, int64_t lost_at)
{
	check_field("another may surface", "ended", has_ended(b), false);
	wait_ms(b, lost_at + SURFACE_LIMIT_MS - 1 - b->now);
	int looks = did(b, ACT_LIST, -1);
	wait_ms(b, 1);
	check_field("a minute after the loss", "looks", looks + did(b, ACT_LIST, -1), 1);
	list_nothing(b);
	check_field("none did", "ended", has_ended(b), true);
	check_field("none did", "exit", exit_status(b), 0);
}

/* A lost create made two pods; the second one surfaces late. */
static void test_late_twin_of_a_lost_create(void **state)
{
	struct bench b;

	(void)state;
	int64_t lost_at = lose_sight_of_a_twin(&b);
	check_for_a_twin(&b, lost_at);
	tear_down(&b);
}

/* The same, where the first pod was listed before the create's reply was lost. */
static void test_late_twin_of_one_that_was_listed(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	b.now += 2 * SECOND;
	list_running(&b, 0);
	check_phase(&b, "listed", 0, POD_RENTING);
	b.now += SECOND;
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	int64_t lost_at = b.now;
	work_and_be_gone(&b);
	check_for_a_twin(&b, lost_at);
	tear_down(&b);
}

/* Late twins are noticed also while no pod needs a look and nothing can be rented. */
static void test_late_twin_while_nothing_is_offered(void **state)
{
	struct bench b;
	bool seen = false;

	(void)state;
	start_ambiguous(&b);
	int64_t surfaces_at = b.now + 40 * SECOND;
	list_in(&b, POD_STATE_STOPPED, 0, -1);
	struct pod_view twin = view_of(&b, 0, POD_STATE_RUNNING);
	COPY_TEXT(twin.id, "twin");
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
	tell_err(&b, EV_RENT_FAILED, 1, ERR_NO_CAPACITY);
	tell(&b, (struct event){.type = EV_OFFERS});
	for (int turn = 0; turn < 200 && !seen; turn++) {
		seen = b.now >= surfaces_at;
		tell(&b, (struct event){.type = EV_LISTED,
					.views = &twin,
					.count = seen,
					.requested_at = b.now});
		while (!seen && b.now < surfaces_at + MINUTE && !did(&b, ACT_LIST, -1)) {
			int64_t wake_at = core_wake_at(b.core);
			wait_ms(&b, MAX(wake_at - b.now, 1));
			if (did(&b, ACT_OFFERS, -1))
				tell(&b, (struct event){.type = EV_OFFERS});
		}
	}
	assert_int_equal(core_pod_count(b.core), 3);
	check_phase(&b, "the twin", 2, POD_RELEASING);
	assert_in_range(b.now, surfaces_at, surfaces_at + TWIN_LIST_MS);
	check_phase(&b, "the one that was found first", 0, POD_GONE);
	tear_down(&b);
}

/* If no listing succeeds in that minute, a second pod may exist: exit 9. */
static void test_lost_sight_of_a_lost_create(void **state)
{
	struct bench b;

	(void)state;
	lose_sight_of_a_twin(&b);
	for (int k = 0; k < 20 && !has_ended(&b); k++) {
		tell_err(&b, EV_LISTED, 0, ERR_NETWORK);
		if (!has_ended(&b))
			wait_ms(&b, core_wake_at(b.core) - b.now);
	}
	check_field("no list", "ended", has_ended(&b), true);
	check_field("no list", "exit", exit_status(&b), 9);
	tear_down(&b);
}

/* If rate limits delay the last listing for long, the run ends without it. */
static void test_last_look_that_limits_keep_back(void **state)
{
	struct err err = {0};
	struct bench b;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	rented(&b, 0);
	err_set(&err, ERR_RATE_LIMITED, "no room");
	err.retry_after_ms = 12 * HOUR;
	tell(&b, (struct event){.type = EV_LISTED, .err = &err});
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
	wait_ms(&b, LIST_AFTER_MOST_MS + HIDDEN_POD_LIST_MS);
	check_field("limits", "ended", has_ended(&b), true);
	check_field("limits", "exit", exit_status(&b), 9);
	tear_down(&b);
}

/* A list that never comes, as when the caller waits for room: a run that is told to end does. */
static void test_ambiguous_and_a_signal(void **state)
{
	struct bench b;

	(void)state;
	start_ambiguous(&b);
	wait_ms(&b, 10 * SECOND);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
	wait_ms(&b, 4 * MINUTE);
	check_field("looked for", "ended", has_ended(&b), false);
	wait_ms(&b, 2 * MINUTE);
	check_field("given up", "ended", has_ended(&b), true);
	check_field("given up", "exit", exit_status(&b), 9);
	tear_down(&b);
}

/* Its vendor cannot be asked any more: the work goes to the next one, and what it may cost stays
 * counted. */
static void test_ambiguous_out_of_sight(void **state)
{
	struct offer o = offer(0, 1000000), other = offer(1, 2000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.provider_count = 2;
	b.conf.max_cost_microusd = 0;
	start_with(&b, &o, 1);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	int64_t lost_at = b.now;
	while (b.core->vendors[1].offers_query == QUERY_UNSENT) {
		tell_err(&b, EV_LISTED, 0, ERR_TRANSIENT);
		wait_ms(&b, core_wake_at(b.core) - b.now);
		assert_true(b.now < lost_at + UNOBSERVABLE_MS + 30 * SECOND &&
			    !did(&b, ACT_RENT, -1));
	}
	assert_true(b.now >= lost_at + UNOBSERVABLE_MS);
	int64_t held = budget_committed(b.core);
	tell(&b, (struct event){.type = EV_OFFERS, .provider = 1, .offers = &other, .count = 1});
	check_field("elsewhere", "creates", did(&b, ACT_RENT, -1), 1);
	check_field("elsewhere", "provider", pod(&b, 1)->rental.provider, 1);
	check_phase(&b, "the lost one", 0, POD_AMBIGUOUS);
	assert_true(held > 0 && budget_committed(b.core) > held);
	tear_down(&b);
}

/* If the cap leaves no room beside the possible cost of an ambiguous create, the run ends once
 * `wait` is over. */
static void test_ambiguous_holds_the_cap(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.wait_ms = HOUR;
	b.conf.max_cost_microusd = 2000000;
	start_simply(&b);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	for (int k = 0; k < 59 && !core_is_stopping(b.core); k++) {
		tell_err(&b, EV_LISTED, 0, ERR_TRANSIENT);
		wait_ms(&b, MINUTE);
	}
	check_field("an hour", "stopping", core_is_stopping(b.core), false);
	tell_err(&b, EV_LISTED, 0, ERR_TRANSIENT);
	wait_ms(&b, 2 * MINUTE);
	check_field("an hour", "stopping", core_is_stopping(b.core), true);
	tear_down(&b);
}

/* An attempt of an earlier client whose key was another one: that this one sees nothing proves
 * nothing, and it is no use to wait. */
static void test_lost_create_of_another_key(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct core_pod was = {.phase = POD_AMBIGUOUS,
				       .rental.attempt = "a1",
				       .rental.key = KEY_OTHER,
				       .rental.price_microusd_h = 1000000};
		struct bench b;
		set_up(&b, 0);
		b.conf.reap = true;
		b.core = core_new(&b.conf, b.segments, b.count);
		was.rental.create_at = b.now - MINUTE;
		was.rental.hard_end_ms = b.now + HOUR - 2 * late * HOUR;
		was.rental.hard_end_s = (WALL_MS + was.rental.hard_end_ms) / 1000;
		core_adopt(b.core, &was);
		tell(&b, (struct event){.type = EV_START});
		for (int k = 0; k < 30 && !has_ended(&b); k++) {
			b.now += 5 * SECOND;
			list_nothing(&b);
		}
		check_field("an attempt elsewhere", "ended", has_ended(&b), true);
		check_field("an attempt elsewhere", "exit", exit_status(&b), late ? 0 : 9);
		tear_down(&b);
	}
}

static void test_slept_over_the_last_look(void **state)
{
	struct bench b;

	(void)state;
	int64_t lost_at = lose_sight_of_a_twin(&b);
	int looks = 0;
	while (b.now < lost_at + SURFACE_LIMIT_MS) {
		wait_ms(&b, core_wake_at(b.core) - b.now);
		looks = did(&b, ACT_LIST, -1);
		if (looks && b.now < lost_at + SURFACE_LIMIT_MS)
			list_nothing(&b);
	}
	check_field("a minute after the loss", "looks", looks, 1);
	int64_t requested_at = b.now;
	b.now += HOUR;
	tell(&b, (struct event){.type = EV_SLEPT});
	wait_ms(&b, 0);
	check_field("awake", "ended", has_ended(&b), false);
	tell(&b, (struct event){.type = EV_LISTED, .requested_at = requested_at});
	check_field("read", "ended", has_ended(&b), true);
	check_field("read", "exit", exit_status(&b), 0);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ambiguous_is_adopted),
		cmocka_unit_test(test_ambiguous_is_found_when_it_is_over),
		cmocka_unit_test(test_ambiguous_is_adopted_late),
		cmocka_unit_test(test_ambiguous_is_given_up),
		cmocka_unit_test(test_ambiguous_is_looked_for_often_at_first),
		cmocka_unit_test(test_surfaces_after_all),
		cmocka_unit_test(test_second_pod_of_one_create),
		cmocka_unit_test(test_late_twin_of_a_lost_create),
		cmocka_unit_test(test_late_twin_of_one_that_was_listed),
		cmocka_unit_test(test_late_twin_while_nothing_is_offered),
		cmocka_unit_test(test_lost_sight_of_a_lost_create),
		cmocka_unit_test(test_last_look_that_limits_keep_back),
		cmocka_unit_test(test_ambiguous_and_a_signal),
		cmocka_unit_test(test_ambiguous_out_of_sight),
		cmocka_unit_test(test_ambiguous_holds_the_cap),
		cmocka_unit_test(test_lost_create_of_another_key),
		cmocka_unit_test(test_slept_over_the_last_look),
	};

	return cmocka_run_group_tests_name("core lost create", tests, NULL, NULL);
}
