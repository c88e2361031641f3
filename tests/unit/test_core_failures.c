/* test_core_failures.c - what fails: segments, workers, containers, images; and how a pod's end is
 * judged. */
#include "core_bench.h"

/* What is said of a segment that does not come out. Splitting a batch that kills its worker is the
 * agent's (test_agent): here comes only its last word. */
static const struct {
	const char *name;
	enum err_kind kind;
	int times;
	enum core_seg_state state;
} failures[] = {
	{"poison: failed at once, not moved to another pod", ERR_JOB, 1, SEG_FAILED},
	{"a file that is not as announced: again", ERR_UNTRUSTED, 2, SEG_TODO},
	{"... three times", ERR_UNTRUSTED, 3, SEG_FAILED},
	{"a file that is not there: again", ERR_NOT_FOUND, 2, SEG_TODO},
	{"... three times", ERR_NOT_FOUND, 3, SEG_FAILED},
};

static void test_failed_segments(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct bench b;
		struct err err;
		set_up(&b, 2);
		b.conf.max_batch = 1;
		start_simply(&b);
		bring_up(&b, 0);
		err_set(&err, failures[i].kind, "it cannot be");
		for (int k = 0; k < failures[i].times; k++) {
			struct event ev = {
				.type = EV_SEGMENT_FAILED, .pod = 0, .segment = 0, .err = &err};
			tell(&b, ev);
		}
		enum core_seg_state got = core_seg_state(b.core, 0);
		if (failures[i].state == SEG_TODO) /* it may have been sent again at once */
			check_field(failures[i].name, "open", got == SEG_TODO || got == SEG_HELD,
				    1);
		else
			check_field(failures[i].name, "state", got, failures[i].state);
		tear_down(&b);
	}
}

static bool noted(const struct bench *b, const char *text)
{
	for (size_t i = 0; i < b->out.count; i++)
		if (b->out.list[i].type == ACT_NOTE && strstr(b->out.list[i].text, text))
			return true;
	return false;
}

/* A pod that answers and never comes to work is given up, and the message says what that cost. */
static void test_never_ready_says_its_cost(void **state)
{
	struct bench b;
	struct err err;

	(void)state;
	set_up(&b, 2);
	start_simply(&b);
	rented(&b, 0);
	list_running(&b, 0);
	connected(&b, 0);
	wait_ms(&b, 6 * 60 * SECOND);
	err_set(&err, ERR_UNTRUSTED, "no sign of its work for 6m");
	tell(&b, (struct event){.type = EV_LOST, .pod = 0, .err = &err});
	check_field("told", "cost", noted(&b, "(never ready, $"), 1);
	tear_down(&b);
}

/* Found by fuzzing a pod: one whose agent never called its batch done was paid for until its hard
 * end. */
static void test_batch_that_never_ends(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 2);
	start_simply(&b);
	bring_up(&b, 0);
	began(&b, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		rendered(&b, 0, i);
		safe(&b, 0, i, true);
	}
	wait_ms(&b, 9 * SECOND);
	check_phase(&b, "its word is waited for", 0, POD_WORKING);
	wait_ms(&b, 2 * SECOND);
	check_field("all is safe", "releases", did(&b, ACT_RELEASE, 0), 1);
	end_well(&b);
	check_field("all is safe", "exit status", exit_status(&b), 0);
	tear_down(&b);
}

static void test_poison_stays_failed(void **state)
{
	struct err err;
	struct bench b;

	(void)state;
	err_set(&err, ERR_JOB, "poison");
	set_up(&b, 2);
	b.conf.max_batch = 1;
	start_simply(&b);
	bring_up(&b, 0);
	began(&b, 0, 0);
	tell(&b, (struct event){.type = EV_SEGMENT_FAILED, .pod = 0, .segment = 0, .err = &err});
	/* its pod goes: the other segment moves on, this one does not */
	list_in(&b, POD_STATE_GONE, 0, -1);
	bring_up(&b, 1);
	assert_int_equal(did(&b, ACT_SEND, 1), 1);
	uint32_t batch = first(&b, ACT_SEND)->batch;
	assert_int_equal(core_batch_at(b.core, batch)->segments[0], 1);
	render_batch(&b, 1, batch, SECOND, true);
	end_well(&b);
	assert_int_equal(summary(&b).status, RUN_PARTIAL);
	assert_int_equal(exit_status(&b), 1);
	tear_down(&b);
}

/* The vendor's list has this one pod, over for this reason. */
static void list_over(struct bench *b, int i, enum pod_end end, bool preempted, const char *detail)
{
	struct pod_view v = view_of(b, i, POD_STATE_GONE);

	v.end = end;
	v.preempted = preempted;
	COPY_TEXT(v.detail, detail);
	tell(b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b->now});
}

/* When it ended is said by its vendor's clock, and ours may be wrong by two minutes: what it cost
 * counts against the cap. */
static void test_ends_by_another_clock(void **state)
{
	static const struct {
		const char *name;
		int64_t ahead_ms, there_ago_s, billed_s; /* it ended 30 s ago, after 75 s */
	} cases[] = {
		{"our clock is right", 0, 0, 76},
		{"ours is ahead", 60000, 0, 76},
		{"ours is behind", -20000, 0, 76},
		{"it was there a moment ago", 0, 10, 95},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 2);
		start_simply(&b);
		int64_t made_at = b.now;
		bring_up(&b, 0);
		b.now = made_at + 105 * SECOND;
		if (cases[i].there_ago_s) {
			b.now -= cases[i].there_ago_s * SECOND;
			list_running(&b, 0);
			b.now += cases[i].there_ago_s * SECOND;
		}
		struct pod_view v = view_of(&b, 0, POD_STATE_GONE);
		v.end = POD_END_OUTSIDE;
		v.preempted = true;
		v.ended_at_s = (WALL_MS + made_at + 75 * SECOND - cases[i].ahead_ms) / 1000;
		tell(&b, (struct event){.type = EV_LISTED,
					.views = &v,
					.count = 1,
					.requested_at = b.now,
					.ahead_ms = cases[i].ahead_ms});
		check_phase(&b, cases[i].name, 0, POD_GONE);
		check_field(cases[i].name, "billed s", core_billed_ms(pod(&b, 0), b.now) / 1000,
			    cases[i].billed_s);
		tear_down(&b);
	}
}

static void test_ends_are_told_apart(void **state)
{
	static const struct {
		const char *name;
		enum pod_end end;
		bool preempted;
		const char *detail, *reason;
	} cases[] = {
		{"preempted", POD_END_OUTSIDE, true, "it was terminated",
		 "the vendor reclaimed it (preempted)"},
		{"ended by somebody else", POD_END_OUTSIDE, false, "it was terminated",
		 "it was terminated"},
		{"out of memory", POD_END_MEMORY, false, "raise pod.memory_gb",
		 "raise pod.memory_gb"},
		{"its lifetime", POD_END_LIFETIME, false, "its lifetime was over",
		 "its lifetime was over"},
		{"nobody says", POD_END_UNKNOWN, false, "", "it is gone"},
		{"the container was lost after it had come up", POD_END_SETUP, false, "no mount",
		 "no mount"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 2);
		start_simply(&b);
		bring_up(&b, 0);
		list_over(&b, 0, cases[i].end, cases[i].preempted, cases[i].detail);
		check_phase(&b, cases[i].name, 0, POD_GONE);
		assert_string_equal(pod(&b, 0)->reason, cases[i].reason);
		check_field(cases[i].name, "released all the same", did(&b, ACT_RELEASE, 0), 0);
		/* its work goes to another one at once */
		check_field(cases[i].name, "rented", did(&b, ACT_RENT, -1), 1);
		bring_up(&b, 1);
		check_field(cases[i].name, "sent", did(&b, ACT_SEND, 1) > 0, true);
		tear_down(&b);
	}
}

/* A pod that works by itself and ends by itself has finished; one that was ended has not. */
static void test_ends_of_detached_pods(void **state)
{
	static const struct {
		enum pod_end end;
		bool preempted, finished;
	} cases[] = {{POD_END_UNKNOWN, false, true}, {POD_END_SCRIPT, false, true},
		     {POD_END_OUTSIDE, true, false}, {POD_END_OUTSIDE, false, false},
		     {POD_END_MEMORY, false, false}, {POD_END_LIFETIME, false, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 2);
		b.core = core_new(&b.conf, b.segments, b.count);
		struct core_pod p = {.phase = POD_BOOTING,
				     .rental.id = "p0",
				     .rental.attempt = "a0",
				     .rental.price_microusd_h = 1000000,
				     .presence.lease = LEASE_AGENT,
				     .rental.create_at = b.now - MINUTE,
				     .rental.rented_at = b.now - MINUTE,
				     .presence.connected_at = b.now - MINUTE,
				     .rental.hard_end_ms = b.now + HOUR};
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		list_over(&b, 0, cases[i].end, cases[i].preempted, "x");
		check_phase(&b, "over", 0, POD_GONE);
		check_field("fault", "of a pod that finished", pod(&b, 0)->fault == ERR_NONE,
			    cases[i].finished);
		tear_down(&b);
	}
}

/* A container that cannot be made is tried once more, and costs no more than that. */
static void test_container_that_cannot_be_made(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 2);
	b.conf.wait_ms = HOUR;
	start_with(&b, &o, 1);
	rented(&b, 0);
	list_over(&b, 0, POD_END_SETUP, false, "it could not be set up: no such mount");
	check_phase(&b, "first", 0, POD_GONE);
	check_field("first", "rented at once", did(&b, ACT_RENT, -1), 0);
	b.now += 2 * SECOND;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_field("first", "tried again", did(&b, ACT_RENT, -1), 1);
	rented(&b, 1);
	list_over(&b, 1, POD_END_SETUP, false, "it could not be set up: no such mount");
	b.now += MINUTE;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_field("second", "tried again", did(&b, ACT_RENT, -1), 0);
	list_nothing(&b);
	assert_true(has_ended(&b));
	assert_int_equal(exit_status(&b), 2);
	assert_non_null(strstr(summary(&b).err.msg,
			       "2 pods in a row could not start, the last p1: it "
			       "could not be set up: no such mount; check pod.image"));
	tear_down(&b);
}

/* One that came up in between shows that the image is not at fault. */
static void test_container_that_was_made_in_between(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 2);
	b.conf.wait_ms = HOUR;
	start_with(&b, &o, 1);
	for (int i = 0; i < 4; i += 2) {
		rented(&b, i);
		list_over(&b, i, POD_END_SETUP, false, "no such mount");
		b.now += MINUTE;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		bring_up(&b, i + 1);
		uint32_t batch = first(&b, ACT_SEND)->batch;
		began(&b, i + 1, batch);
		list_over(&b, i + 1, POD_END_OUTSIDE, true, "");
		check_field("after one that came up", "rented", did(&b, ACT_RENT, -1), 1);
	}
	assert_false(has_ended(&b));
	tear_down(&b);
}

static void test_segment_that_ends_pods(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 1);
	start_with(&b, &o, 1);
	for (int i = 0; i < LOSSES_MAX; i++) {
		assert_int_equal(core_seg_state(b.core, 0) == SEG_FAILED, false);
		bring_up(&b, i);
		began(&b, i, (uint32_t)i);
		list_in(&b, POD_STATE_GONE, i, -1);
		b.now += 3 * OFFER_REST_MS;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	}
	assert_int_equal(core_seg_state(b.core, 0), SEG_FAILED);
	end_well(&b);
	assert_int_equal(exit_status(&b), 1);
	tear_down(&b);
}

/* What an agent had logged before it began anew is told once more, and its pod seems to be at work.
 */
static void test_failed_to_prepare_at_work(void **state)
{
	struct bench b;
	struct err err = {0};

	(void)state;
	err_set(&err, ERR_TRANSIENT, "the mirror is away");
	set_up(&b, 4);
	start_simply(&b);
	bring_up(&b, 0);
	check_field("at work", "sent", did(&b, ACT_SEND, 0) > 0, true);
	tell(&b, (struct event){.type = EV_PREPARE_FAILED, .pod = 0, .err = &err});
	check_field("it has no workers after all", "released", did(&b, ACT_RELEASE, 0), true);
	tear_down(&b);
}

/* The volume of a pod fills up: others may have room for what it was to do. Where nothing was ever
 * rendered none would. */
static void test_workers_cannot_go_on(void **state)
{
	struct offer o = offer(0, 1000000);

	(void)state;
	for (int some = 0; some < 2; some++) {
		struct bench b;
		struct err err = {0};
		err_set(&err, ERR_JOB, "the volume is full or cannot be written");
		set_up(&b, 8);
		b.conf.max_batch = 2;
		start_simply(&b);
		bring_up(&b, 0);
		if (some)
			render_batch(&b, 0, 0, SECOND, true);
		tell(&b, (struct event){.type = EV_WORKERS_FAILED, .pod = 0, .err = &err});
		check_field("full", "releases", did(&b, ACT_RELEASE, 0), 1);
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		wait_ms(&b, SECOND);
		int failed = 0, todo = 0;
		for (uint32_t i = 0; i < 8; i++) {
			failed += core_seg_state(b.core, i) == SEG_FAILED;
			todo += core_seg_state(b.core, i) == SEG_TODO;
		}
		check_field("full", "failed segments", failed, 0);
		check_field("full", "segments for others", todo, some ? 6 : 8);
		check_field("full", "pods", core_pod_count(b.core), 1 + some);
		if (!some) {
			end_well(&b);
			check_field("full from the start", "exit", exit_status(&b), 1);
		}
		tear_down(&b);
	}
}

/* It is the same image elsewhere: two pods tell enough, whether their provider calls them failed or
 * lets them pull for ever. */
static void test_images_that_cannot_be_pulled(void **state)
{
	struct offer o[] = {offer(0, 1000000), offer(0, 1100000), offer(0, 1200000)};
	struct err why = {.kind = ERR_CONFIG, .msg = "manifest unknown"};

	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.boot_limit_ms = 5 * MINUTE;
		start_with(&b, o, 3);
		for (int i = 0; i < 2; i++) {
			check_field("unpulled", "pods", core_pod_count(b.core), i + 1);
			rented(&b, i);
			if (fails) {
				list_in(&b, POD_STATE_FAILED, i, -1);
				check_field("failed", "pods while its log is read",
					    core_pod_count(b.core), i + 1);
				tell(&b,
				     (struct event){.type = EV_UNPULLED, .pod = i, .err = &why});
				check_field("failed", "hosts that are no worse for it",
					    did(&b, ACT_GOOD_HOST, i), 1);
			} else {
				wait_ms(&b, LOG_EARLY_MS);
				check_field("pulling", "logs read", did(&b, ACT_LOG, i), 1);
				tell(&b,
				     (struct event){.type = EV_UNPULLED, .pod = i, .err = &why});
				check_field("pulling", "bad hosts", did(&b, ACT_BAD_HOST, i), 0);
			}
			assert_string_equal(pod(&b, i)->reason,
					    "its image cannot be pulled: manifest unknown");
			/* the log is read again at its end */
			tell(&b, (struct event){.type = EV_UNPULLED, .pod = i, .err = &why});
			tell(&b, (struct event){
					 .type = EV_RELEASED, .pod = i, .number = RELEASE_ENDED});
		}
		check_field("unpulled", "pods", core_pod_count(b.core), 2);
		check_field("unpulled", "stopping", core_is_stopping(b.core), true);
		assert_non_null(
			strstr(summary(&b).err.msg,
			       "the image cannot be pulled: manifest unknown; check pod.image"));
		check_field("unpulled", "kind", summary(&b).err.kind, ERR_CONFIG);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failed_segments),
		cmocka_unit_test(test_never_ready_says_its_cost),
		cmocka_unit_test(test_batch_that_never_ends),
		cmocka_unit_test(test_poison_stays_failed),
		cmocka_unit_test(test_ends_by_another_clock),
		cmocka_unit_test(test_ends_are_told_apart),
		cmocka_unit_test(test_ends_of_detached_pods),
		cmocka_unit_test(test_container_that_cannot_be_made),
		cmocka_unit_test(test_container_that_was_made_in_between),
		cmocka_unit_test(test_segment_that_ends_pods),
		cmocka_unit_test(test_failed_to_prepare_at_work),
		cmocka_unit_test(test_workers_cannot_go_on),
		cmocka_unit_test(test_images_that_cannot_be_pulled),
	};

	return cmocka_run_group_tests_name("core failures", tests, NULL, NULL);
}
