/* test_core_end.c - how a run ends: signals, exit statuses, a job without work. */
#include "core_bench.h"
#include <signal.h>

/* A pod with one segment rendered but not home, and a batch in hand. */
static void start_busy(struct bench *b)
{
	set_up(b, 8);
	b->conf.max_batch = 1;
	start_simply(b);
	bring_up(b, 0);
	began(b, 0, 0);
	rendered(b, 0, core_batch_at(b->core, 0)->segments[0]);
	done(b, 0, 0);
}

static void test_signals(void **state)
{
	struct bench b;
	struct event sigint = {.type = EV_SIGNAL, .number = SIGINT};

	(void)state;
	start_busy(&b);
	uint32_t segment = core_batch_at(b.core, 0)->segments[0];
	tell(&b, sigint);
	check_field("first", "revokes", did(&b, ACT_REVOKE, 0), 1);
	check_field("first", "releases", did(&b, ACT_RELEASE, 0),
		    0); /* a file is still on its way */
	safe(&b, 0, segment, true);
	check_field("first, all is home", "releases", did(&b, ACT_RELEASE, 0), 1);
	end_well(&b);
	check_field("first", "exit", exit_status(&b), 130);
	tear_down(&b);

	start_busy(&b);
	tell(&b, sigint);
	wait_ms(&b, FETCH_GRACE_MS - 1);
	check_field("first", "releases within 30 s", did(&b, ACT_RELEASE, 0), 0);
	wait_ms(&b, 1);
	check_field("first", "releases after 30 s", did(&b, ACT_RELEASE, 0), 1);
	tear_down(&b);

	start_busy(&b);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
	tell(&b, sigint);
	check_field("second", "releases", did(&b, ACT_RELEASE, 0), 1);
	check_field("second", "ended", has_ended(&b), false); /* it is confirmed all the same */
	end_well(&b);
	check_field("second", "exit", exit_status(&b), 143);
	tear_down(&b);

	start_busy(&b);
	tell(&b, sigint);
	tell(&b, sigint);
	tell(&b, sigint);
	check_field("third", "ended", has_ended(&b), true);
	check_field("third", "exit", exit_status(&b), 9);
	tear_down(&b);
}

static void test_signal_while_renting(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
	check_field("the create is under way", "ended", has_ended(&b), false);
	rented(&b, 0);
	check_field("it came", "releases", did(&b, ACT_RELEASE, 0), 1);
	check_field("it came", "connects", did(&b, ACT_CONNECT, 0), 0);
	tear_down(&b);
}

static const enum err_kind by_gravity[] = {ERR_CAP, ERR_CREDENTIALS, ERR_NETWORK, ERR_NO_CAPACITY,
					   ERR_JOB};

static const int statuses[] = {5, 3, 6, 4, 1};

static void test_exit_precedence(void **state)
{
	struct bench b;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(by_gravity); i++)
		for (size_t k = 0; k < ARRAY_LEN(by_gravity); k++) {
			set_up(&b, 4);
			start(&b);
			tell_err(&b, EV_FAULT, 0, by_gravity[i]);
			check_field(err_kind_name(by_gravity[i]), "exit", exit_status(&b),
				    statuses[i]);
			tear_down(&b);

			set_up(&b, 4);
			start_simply(&b);
			tell_err(&b, EV_FAULT, 0, by_gravity[i]);
			tell_err(&b, EV_FAULT, 0, by_gravity[k]);
			check_field(err_kind_name(by_gravity[i]), err_kind_name(by_gravity[k]),
				    exit_status(&b), statuses[MIN(i, k)]);
			tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
			check_field(err_kind_name(by_gravity[i]), "and a signal", exit_status(&b),
				    143);
			tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
			tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
			check_field(err_kind_name(by_gravity[i]), "and a pod left", exit_status(&b),
				    9);
			tear_down(&b);
		}
}

static void test_no_work_no_pod(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 3);
	for (int i = 0; i < 3; i++)
		b.segments[i].done = true;
	start(&b);
	assert_true(has_ended(&b));
	assert_int_equal(did(&b, ACT_OFFERS, -1) + did(&b, ACT_VOLUME, -1), 0);
	assert_int_equal(exit_status(&b), 0);
	assert_int_equal(summary(&b).cached, 3);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_signal_while_renting),
		cmocka_unit_test(test_exit_precedence),
		cmocka_unit_test(test_no_work_no_pod),
	};

	return cmocka_run_group_tests_name("core end", tests, NULL, NULL);
}
