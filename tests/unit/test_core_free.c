/* test_core_free.c - a provider whose queue is free and whose names work once: what the wait counts
 * toward, what ends it, and creates that are sent again. */
#include "core_bench.h"

#include <signal.h>

#define PRICE 3600000 /* $3.60 an hour: 1000 micro-dollars a second */

static void set_up_free(struct bench *b)
{
	set_up(b, 4);
	b->conf.wait_ms = 10 * MINUTE;
	b->conf.providers[0].waits_free = b->conf.providers[0].create_once = true;
}

static void start_free(struct bench *b)
{
	struct offer o = offer(0, PRICE);

	start_with(b, &o, 1);
}

/* A list shows the pod in this state; started_ago_ms below 0: it has not started. */
static void listed(struct bench *b, enum pod_state state, int64_t started_ago_ms)
{
	struct pod_view v = view_of(b, 0, state);

	v.started_at_s = started_ago_ms < 0 ? 0 : (WALL_MS + b->now - started_ago_ms) / 1000;
	tell(b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b->now});
}

static void queue_for(struct bench *b, int64_t ms)
{
	for (int64_t until = b->now + ms; b->now < until;) {
		wait_ms(b, MIN(20 * SECOND, until - b->now));
		listed(b, POD_STATE_QUEUED, -1);
	}
}

static void test_waiting_is_free(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	b.conf.max_cost_microusd = 100 * 1000; /* 100 s */
	b.conf.max_duration_ms = 2 * MINUTE;
	start_free(&b);
	check_field("its run time", "s", pod(&b, 0)->rental.run_ms / 1000, 90); /* less its end */
	check_field("its hard end", "s after the create",
		    (pod(&b, 0)->rental.hard_end_ms - pod(&b, 0)->rental.create_at) / 1000,
		    600 + 90);
	rented_as(&b, 0, view_of(&b, 0, POD_STATE_QUEUED));
	queue_for(&b, 5 * MINUTE); /* longer than either cap */
	check_phase(&b, "in the queue", 0, POD_BOOTING);
	check_field("in the queue", "billed", summary(&b).billed_ms, 0);
	check_field("in the queue", "spent", budget_spent(b.core), 0);
	check_field("what it may cost", "microusd", budget_committed(b.core), 100 * 1000);
	listed(&b, POD_STATE_RUNNING, 3 * SECOND);
	check_saved_first(&b, "its start", ACT_CONNECT, 0);
	check_field("started", "billed", summary(&b).billed_ms, 3 * SECOND);
	check_field("its hard end", "s from now",
		    (pod(&b, 0)->rental.hard_end_ms - b.now + 500) / 1000, 87);
	check_field("the pod's own end", "s from now",
		    pod(&b, 0)->rental.hard_end_s - (WALL_MS + b.now) / 1000, 87);
	assert_in_range(budget_committed(b.core), 99 * 1000, 100 * 1000);
	wait_ms(&b, 85 * SECOND);
	check_phase(&b, "at its end", 0, POD_RELEASING);
	assert_true(b.core->capped);
	tear_down(&b);
}

/* caps.max_duration counts again once a pod has started. */
static void test_duration_counts_from_the_start(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	b.conf.max_duration_ms = 3 * MINUTE;
	start_free(&b);
	rented_as(&b, 0, view_of(&b, 0, POD_STATE_QUEUED));
	queue_for(&b, 8 * MINUTE);
	check_field("while it waits", "s left", (budget_ends_at(b.core) - b.now) / 1000, 180);
	listed(&b, POD_STATE_RUNNING, 0);
	wait_ms(&b, 100 * SECOND);
	check_field("after its start", "s left", (budget_ends_at(b.core) - b.now) / 1000, 80);
	tear_down(&b);
}

static void test_nothing_starts_within_wait(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	start_free(&b);
	rented_as(&b, 0, view_of(&b, 0, POD_STATE_QUEUED));
	queue_for(&b, 10 * MINUTE - SECOND);
	check_phase(&b, "within wait", 0, POD_BOOTING);
	wait_ms(&b, 2 * SECOND);
	check_phase(&b, "after it", 0, POD_RELEASING);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
	struct pod_view v = view_of(&b, 0, POD_STATE_GONE);
	v.ended_at_s = (WALL_MS + b.now) / 1000;
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b.now});
	check_phase(&b, "its end is reported", 0, POD_GONE);
	check_field("it never started", "billed", summary(&b).billed_ms, 0);
	check_field("nor may it have", "cost", core_may_have_cost(pod(&b, 0)), 0);
	wait_ms(&b, MINUTE);
	assert_int_equal(exit_status(&b), 4);
	tear_down(&b);
}

/* Its provider forgets it: it may have started after the last view of it. Its run does not show
 * that, max_cost counts it. */
static void test_unseen_start_counts_toward_the_cap(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	start_free(&b);
	rented_as(&b, 0, view_of(&b, 0, POD_STATE_QUEUED));
	queue_for(&b, MINUTE);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
	b.now += 4 * SECOND;
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
	for (int look = 0; look < 9 && pod(&b, 0)->phase != POD_GONE; look++) {
		b.now += 10 * SECOND;
		list_nothing(&b);
	}
	check_phase(&b, "in the end", 0, POD_GONE);
	check_field("shown", "billed", summary(&b).billed_ms, 0);
	check_field("may have cost", "microusd", core_may_have_cost(pod(&b, 0)), 4 * 1000);
	check_field("toward the cap", "microusd", budget_spent(b.core), 4 * 1000);
	tear_down(&b);
}

/* The time to boot counts from the start. */
static void test_boot_limit_counts_from_the_start(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	start_free(&b);
	rented_as(&b, 0, view_of(&b, 0, POD_STATE_QUEUED));
	queue_for(&b, 8 * MINUTE);
	listed(&b, POD_STATE_CREATING, 0);
	for (int i = 0; i < 14; i++) {
		wait_ms(&b, 20 * SECOND);
		listed(&b, POD_STATE_CREATING, (i + 1) * 20 * SECOND);
	}
	check_phase(&b, "within boot_limit", 0, POD_BOOTING);
	wait_ms(&b, 22 * SECOND);
	check_phase(&b, "after it", 0, POD_RELEASING);
	tear_down(&b);
}

static void test_lost_create_is_sent_again(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	start_free(&b);
	char name[ATTEMPT_MAX];
	COPY_TEXT(name, pod(&b, 0)->rental.attempt);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	check_phase(&b, "lost once", 0, POD_RENTING);
	check_field("at once", "creates", did(&b, ACT_RENT, -1), 0);
	wait_ms(&b, SECOND);
	check_field("after a second", "creates", did(&b, ACT_RENT, 0), 1);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_NETWORK);
	wait_ms(&b, 2 * SECOND);
	check_field("then two", "creates", did(&b, ACT_RENT, 0), 1);
	assert_string_equal(pod(&b, 0)->rental.attempt, name);
	rented_as(&b, 0, view_of(&b, 0, POD_STATE_QUEUED));
	check_phase(&b, "answered", 0, POD_BOOTING);
	assert_int_equal(core_pod_count(b.core), 1);
	tear_down(&b);
}

/* A name works once, so a lost create has no second pod that lists could show late. */
static void test_no_twin_of_a_name_that_works_once(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	start_free(&b);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	check_field("lost", "awaits a twin", listing_awaits_twin(&b.core->vendors[0]), false);
	wait_ms(&b, SECOND);
	rented_as(&b, 0, view_of(&b, 0, POD_STATE_QUEUED));
	check_field("answered", "awaits a twin", listing_awaits_twin(&b.core->vendors[0]), false);
	tear_down(&b);
}

static void test_create_that_stays_lost_is_looked_for(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	start_free(&b);
	for (int i = 0; i < 6; i++) {
		check_phase(&b, "sent again", 0, POD_RENTING);
		tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
		if (i < 5)
			wait_ms(&b, (SECOND << i));
	}
	check_phase(&b, "lost six times", 0, POD_AMBIGUOUS);
	tear_down(&b);
}

/* A refusal says nothing about the first create. */
static void test_refusal_after_a_lost_create_proves_nothing(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	start_free(&b);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	wait_ms(&b, SECOND);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_NO_CAPACITY);
	check_phase(&b, "refused then", 0, POD_AMBIGUOUS);
	tear_down(&b);
}

static void test_lost_create_is_not_sent_again_while_stopping(void **state)
{
	struct bench b;

	(void)state;
	set_up_free(&b);
	start_free(&b);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
	check_phase(&b, "stopping", 0, POD_AMBIGUOUS);
	wait_ms(&b, 30 * SECOND);
	check_field("stopping", "creates", did(&b, ACT_RENT, -1), 0);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting_is_free),
		cmocka_unit_test(test_duration_counts_from_the_start),
		cmocka_unit_test(test_nothing_starts_within_wait),
		cmocka_unit_test(test_unseen_start_counts_toward_the_cap),
		cmocka_unit_test(test_boot_limit_counts_from_the_start),
		cmocka_unit_test(test_lost_create_is_sent_again),
		cmocka_unit_test(test_no_twin_of_a_name_that_works_once),
		cmocka_unit_test(test_create_that_stays_lost_is_looked_for),
		cmocka_unit_test(test_refusal_after_a_lost_create_proves_nothing),
		cmocka_unit_test(test_lost_create_is_not_sent_again_while_stopping),
	};

	return cmocka_run_group_tests_name("core free queues", tests, NULL, NULL);
}
