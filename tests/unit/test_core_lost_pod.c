/* test_core_lost_pod.c - a pod is lost: its work goes to others, and its host may be avoided. */
#include "core_bench.h"

/* Of its four segments one is safe, one arrived, one only rendered, one in hand. */
static void test_lost_pods_work(void **state)
{
	static const struct {
		const char *name;
		enum pod_state seen;
		bool release;
	} cases[] = {
		{"stopped: released all the same", POD_STATE_STOPPED, true},
		{"gone by the vendor's word", POD_STATE_GONE, false},
		{"failed", POD_STATE_FAILED, true},
	};
	static const enum core_seg_state want[4] = {SEG_LOCAL, SEG_RENDERED, SEG_TODO, SEG_TODO};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.command = true; /* one segment at a time, in order */
		b.conf.max_batch = 1;
		start_simply(&b);
		bring_up(&b, 0);
		for (uint32_t s = 0; s < 4; s++) {
			began(&b, 0, s);
			b.now += SECOND;
			if (s == 3)
				break;
			rendered(&b, 0, s);
			if (s == 0)
				safe(&b, 0, s, true);
			else if (s == 1)
				tell(&b, (struct event){.type = EV_FETCHED,
							.segment = s,
							.ok = true,
							.check_ok = true});
			done(&b, 0, s);
		}
		tell_err(&b, EV_LOST, 0, ERR_NETWORK);
		list_in(&b, cases[i].seen, 0, -1);
		for (uint32_t s = 0; s < 4; s++)
			check_field(cases[i].name, "segment's state", core_seg_state(b.core, s),
				    want[s]);
		check_field(cases[i].name, "released", did(&b, ACT_RELEASE, 0), cases[i].release);
		tell(&b, (struct event){.type = EV_LOCAL, .segment = 1});
		check_field(cases[i].name, "its file was home", core_seg_state(b.core, 1),
			    SEG_LOCAL);
		tear_down(&b);
	}
}

/* A command that saved what it had done loses only the time since then; one that advances does not
 * count as the end of its pods. */
static void test_checkpoint_of_a_lost_pod(void **state)
{
	static const struct {
		const char *name;
		int64_t saved_t;
		int64_t wasted_ms;
	} cases[] = {
		{"nothing was saved", 0, 60 * SECOND},
		{"saved after 20 s", 20 * SECOND, 40 * SECOND},
		{"saved after 60 s", 60 * SECOND, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 1);
		b.conf.command = true;
		b.conf.max_batch = 1;
		start_simply(&b);
		bring_up(&b, 0);
		tell(&b, (struct event){.type = EV_BATCH_STARTED, .t = 100 * SECOND});
		if (cases[i].saved_t)
			tell(&b, (struct event){.type = EV_CHECKPOINT,
						.ok = true,
						.t = 100 * SECOND + cases[i].saved_t});
		b.now += 60 * SECOND;
		tell(&b, (struct event){.type = EV_BATCH_STARTED, /* of an earlier client */
					.batch = UINT32_MAX,
					.t = 160 * SECOND});
		tell_err(&b, EV_LOST, 0, ERR_NETWORK);
		list_in(&b, POD_STATE_GONE, 0, -1);
		check_field(cases[i].name, "segment's state", core_seg_state(b.core, 0), SEG_TODO);
		check_field(cases[i].name, "wasted", core_pod_at(b.core, 0)->workload.wasted_ms,
			    cases[i].wasted_ms);
		tear_down(&b);
	}
}

/* Workers side by side lose the same seconds; a batch that is cut off counts as a whole, and what
 * it had rendered is lost with it. */
static void test_no_more_is_wasted_than_computed(void **state)
{
	static const struct {
		const char *name;
		int workers, batches;
		bool rendered;
	} cases[] = {
		{"one batch, cut off", 1, 1, false},
		{"two side by side, cut off", 2, 2, false},
		{"two, one of which had rendered a segment", 2, 2, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 8);
		b.conf.workers = cases[i].workers;
		start_simply(&b);
		bring_up(&b, 0);
		for (int k = 0; k < cases[i].batches; k++)
			began(&b, 0, (uint32_t)k);
		b.now += 10 * SECOND;
		if (cases[i].rendered)
			rendered(&b, 0, core_batch_at(b.core, 0)->segments[0]);
		tell_err(&b, EV_LOST, 0, ERR_NETWORK);
		list_in(&b, POD_STATE_GONE, 0, -1);
		check_field(cases[i].name, "computed", core_compute_ms(pod(&b, 0)), 10 * SECOND);
		check_field(cases[i].name, "wasted", pod(&b, 0)->workload.wasted_ms, 10 * SECOND);
		tear_down(&b);
	}
}

/* Its pod ended by itself, and its log on the volume has the result. */
static void test_a_result_on_the_volume_is_not_wasted(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1);
	b.conf.want_volume = true;
	start_simply(&b);
	tell(&b, (struct event){.type = EV_VOLUME,
				.volume = &(struct volume){.id = "vol", .apart = true}});
	bring_up(&b, 0);
	began(&b, 0, 0);
	b.now += MINUTE;
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	list_in(&b, POD_STATE_GONE, 0, -1);
	check_field("gone", "its log is read", did(&b, ACT_SALVAGE, 0), 1);
	rendered(&b, 0, 0);
	tell(&b, (struct event){.type = EV_SALVAGED});
	check_field("read", "wasted", pod(&b, 0)->workload.wasted_ms, 0);
	tear_down(&b);
}

/* The ledger's seconds stand until the log, which is read from its begin, shows more. */
static void test_seconds_of_a_pod_taken_over(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.core = core_new(&b.conf, b.segments, b.count);
	adopt_living(&b, 0, 0);
	b.core->pods[0].workload.compute_ms = 20 * SECOND;
	b.core->pods[0].workload.wasted_ms = 9 * SECOND;
	tell(&b, (struct event){.type = EV_START});
	list_running(&b, 0);
	tell(&b, (struct event){.type = EV_BATCH_STARTED, .batch = UINT32_MAX, .t = SECOND});
	check_field("a batch of the log", "computed", core_compute_ms(pod(&b, 0)), 20 * SECOND);
	tell(&b, (struct event){.type = EV_BATCH_DONE, .batch = UINT32_MAX, .t = 31 * SECOND});
	check_field("all of the log", "computed", core_compute_ms(pod(&b, 0)), 30 * SECOND);
	check_field("all of the log", "wasted", pod(&b, 0)->workload.wasted_ms, 9 * SECOND);
	tear_down(&b);
}

/* A segment that two pods rendered is in the ledger's wasted seconds and in the log. */
static void test_waste_of_a_pod_taken_over(void **state)
{
	static const struct {
		const char *name;
		int64_t noted_ms, wasted_ms;
	} cases[] = {
		{"the ledger has it", 5 * SECOND, 5 * SECOND},
		{"the ledger has half of it", 2 * SECOND, 5 * SECOND},
		{"the ledger has more", 9 * SECOND, 9 * SECOND},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 4);
		b.core = core_new(&b.conf, b.segments, b.count);
		for (int p = 0; p < 2; p++)
			adopt_living(&b, p, 0);
		b.core->pods[1].workload.compute_ms = 20 * SECOND;
		b.core->pods[1].workload.wasted_ms = cases[i].noted_ms;
		b.core->pods[1].workload.counted_waste_ms = cases[i].noted_ms;
		tell(&b, (struct event){.type = EV_START});
		list_in(&b, POD_STATE_RUNNING, 0, 1);
		rendered(&b, 0, 0);
		tell(&b,
		     (struct event){
			     .type = EV_BATCH_STARTED, .pod = 1, .batch = UINT32_MAX, .t = SECOND});
		tell(&b, (struct event){.type = EV_RENDERED,
					.pod = 1,
					.segment = 0,
					.t = 6 * SECOND,
					.elapsed_ms = 5 * SECOND});
		check_field(cases[i].name, "wasted", pod(&b, 1)->workload.wasted_ms,
			    cases[i].wasted_ms);
		tear_down(&b);
	}
}

static void test_lost_connection_is_not_a_lost_pod(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 8);
	start_simply(&b);
	bring_up(&b, 0);
	began(&b, 0, 0);
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	check_phase(&b, "lost", 0, POD_CONNECTING);
	assert_int_equal(did(&b, ACT_CONNECT, 0), 1);
	assert_int_equal(core_seg_state(b.core, core_batch_at(b.core, 0)->segments[0]), SEG_HELD);
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_CONNECTED,
				.pod = 0,
				.switch_ok = true,
				.workers_alive = true,
				.t = b.now});
	check_phase(&b, "back", 0, POD_WORKING);
	assert_int_equal(did(&b, ACT_SEND, 0), 1); /* the batch that had not begun is said again */
	assert_int_equal(first(&b, ACT_SEND)->batch, 1);
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	wait_ms(&b, UNREACHABLE_LIMIT_MS - 1);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	wait_ms(&b, 1);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	tear_down(&b);
}

/* A pod of an earlier life of this run that renders segment 0 (of four) when it is taken over. */
static void take_over_busy_pod(struct bench *b)
{
	set_up(b, 4);
	b->conf.max_batch = 1;
	b->core = core_new(&b->conf, b->segments, b->count);
	struct core_pod p = {.phase = POD_BOOTING,
			     .rental.id = "p0",
			     .rental.attempt = "a0",
			     .rental.price_microusd_h = 1000000,
			     .rental.create_at = b->now - MINUTE,
			     .rental.rented_at = b->now - MINUTE,
			     .presence.connected_at = b->now - MINUTE,
			     .rental.hard_end_ms = b->now + HOUR};
	core_adopt(b->core, &p);
	tell(b, (struct event){.type = EV_START});
	list_running(b, 0);
	tell(b, (struct event){.type = EV_RUNNING, .segment = 0, .t = b->now});
	tell(b,
	     (struct event){
		     .type = EV_CONNECTED, .switch_ok = true, .workers_alive = true, .t = b->now});
	check_phase(b, "taken over", 0, POD_WORKING);
}

/* Taken over while lists fail: it may wait for a machine still, so no host is blamed (seed
 * 1125899907086616). One that was seen is. */
static void test_unseen_pods_blame_no_host(void **state)
{
	(void)state;
	for (int seen = 0; seen < 2; seen++) {
		struct bench b;
		set_up(&b, 4);
		b.core = core_new(&b.conf, b.segments, b.count);
		struct core_pod p = {.phase = POD_BOOTING,
				     .rental.id = "p0",
				     .rental.attempt = "a0",
				     .rental.price_microusd_h = 1000000,
				     .rental.create_at = b.now - MINUTE,
				     .rental.rented_at = b.now - MINUTE,
				     .rental.hard_end_ms = b.now + HOUR};
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		if (seen)
			list_in(&b, POD_STATE_CREATING, 0, -1);
		for (int i = 0; i < 40 && pod(&b, 0)->phase == POD_BOOTING; i++) {
			tell(&b, (struct event){.type = EV_LISTED,
						.err = &(struct err){.kind = ERR_TRANSIENT,
								     .msg = "no list for you"}});
			wait_ms(&b, 15 * SECOND);
		}
		check_phase(&b, "given up", 0, POD_RELEASING);
		check_field(seen ? "seen" : "unseen", "blamed", did(&b, ACT_BAD_HOST, 0), seen);
		tear_down(&b);
	}
}

static void test_taken_over_in_the_middle(void **state)
{
	struct bench b;

	(void)state;
	take_over_busy_pod(&b);
	assert_int_equal(core_seg_state(b.core, 0), SEG_HELD);
	assert_int_equal(did(&b, ACT_REVOKE, 0), 1);
	assert_int_equal(did(&b, ACT_SEND, 0), 1); /* one is in hand, one waits behind it */
	assert_int_equal(core_batch_at(b.core, first(&b, ACT_SEND)->batch)->segments[0], 1);
	b.now += SECOND;
	rendered(&b, 0, 0);
	assert_int_equal(did(&b, ACT_FETCH, 0), 1);
	assert_int_equal(did(&b, ACT_SEND, 0), 1);
	done(&b, 0, UINT32_MAX); /* the agent calls it by another client's name */
	safe(&b, 0, 0, true);
	for (int k = 0; k < 3; k++) /* 0 stands for what was in hand */
		render_batch(&b, 0, (uint32_t)k + 1, SECOND, true);
	check_phase(&b, "done", 0, POD_RELEASING);
	assert_int_equal(pod(&b, 0)->workload.wasted_ms, 0);
	end_well(&b);
	assert_int_equal(exit_status(&b), 0);
	tear_down(&b);
}

/* Ctrl-C: the agent calls the halted command by another client's name. */
static void test_taken_over_and_halted(void **state)
{
	struct bench b;

	(void)state;
	take_over_busy_pod(&b);
	tell(&b, (struct event){.type = EV_REVOKED, .batch = UINT32_MAX, .segment = UINT32_MAX});
	tell(&b, (struct event){.type = EV_REVOKED, .batch = UINT32_MAX, .segment = 1});
	check_field("others were revoked", "held", core_seg_state(b.core, 0), SEG_HELD);
	assert_int_not_equal(pod(&b, 0)->workload.inherited, 0);
	tell(&b, (struct event){.type = EV_REVOKED, .batch = UINT32_MAX, .segment = 0, .t = b.now});
	check_field("its own", "inherited", pod(&b, 0)->workload.inherited, 0);
	tear_down(&b);
}

static void test_taken_over_and_lost(void **state)
{
	struct bench b;

	(void)state;
	take_over_busy_pod(&b);
	list_in(&b, POD_STATE_GONE, 0, -1);
	assert_int_equal(core_seg_state(b.core, 0), SEG_TODO);
	assert_int_equal(pod(&b, 0)->workload.batches, 0);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_pods_work),
		cmocka_unit_test(test_checkpoint_of_a_lost_pod),
		cmocka_unit_test(test_no_more_is_wasted_than_computed),
		cmocka_unit_test(test_a_result_on_the_volume_is_not_wasted),
		cmocka_unit_test(test_seconds_of_a_pod_taken_over),
		cmocka_unit_test(test_waste_of_a_pod_taken_over),
		cmocka_unit_test(test_lost_connection_is_not_a_lost_pod),
		cmocka_unit_test(test_unseen_pods_blame_no_host),
		cmocka_unit_test(test_taken_over_in_the_middle),
		cmocka_unit_test(test_taken_over_and_halted),
		cmocka_unit_test(test_taken_over_and_lost),
	};

	return cmocka_run_group_tests_name("core lost pod", tests, NULL, NULL);
}
