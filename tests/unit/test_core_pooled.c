/* test_core_pooled.c - pods that other runs may take. */
#include "core_bench.h"

static void work_with_offer(struct bench *b, int64_t keep_ms)
{
	set_up(b, 4);
	b->conf.pooled = true;
	b->conf.keep_warm_ms = keep_ms;
	start_simply(b);
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
	assert_int_equal(pod(&b, 0)->gone_at, b.now - SECOND);
	/* it is listed on, as what it is to another run: that is no pod of ours */
	list_running(&b, 0);
	check_phase(&b, "listed on", 0, POD_GONE);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	end_well(&b);
	struct core_summary sum;
	core_summary(b.core, b.now, &sum);
	assert_string_equal(sum.status, "done");
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
	tell(&b, (struct event){.type = EV_UNASKED, .pod = 0});
	check_phase(&b, "released", 0, POD_RELEASING);
	end_well(&b);
	tear_down(&b);
}

static void test_a_signal_offers_nothing(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.pooled = true;
	b.conf.keep_warm_ms = MINUTE;
	start_simply(&b);
	bring_up(&b, 0);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 2});
	render_batch(&b, 0, 0, 2 * SECOND, true);
	assert_int_equal(did(&b, ACT_OFFER, 0), 0);
	end_well(&b);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offered_pod_is_taken),
		cmocka_unit_test(test_offered_pod_that_nobody_takes),
		cmocka_unit_test(test_unasked_pod_goes_at_once),
		cmocka_unit_test(test_a_signal_offers_nothing),
	};

	return cmocka_run_group_tests_name("core pooled", tests, NULL, NULL);
}
