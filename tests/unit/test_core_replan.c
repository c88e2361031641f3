/* test_core_replan.c - plans made again while the run goes on: pace, prices and deadlines. */
#include "core_bench.h"

/* A second for each segment, on either of two GPUs; pods come up in 15 s. */
static const struct core_forecast forecasts[] = {
	{.provider = "alpha",
	 .gpu = "GPU 0",
	 .speed.each_s = 1,
	 .measured = true,
	 .batch_max = 4,
	 .cold_p50_s = 15,
	 .cold_p90_s = 20},
	{.provider = "alpha",
	 .gpu = "GPU 1",
	 .speed.each_s = 1,
	 .measured = true,
	 .batch_max = 4,
	 .cold_p50_s = 15,
	 .cold_p90_s = 20},
};

static void set_up_planned(struct bench *b, size_t segments, int64_t deadline_s)
{
	set_up(b, segments);
	b->conf.plan = (struct core_plan){.forecasts = forecasts,
					  .forecast_count = ARRAY_LEN(forecasts),
					  .deadline_ms = deadline_s * SECOND,
					  .pods_most = 4,
					  .pods_open = true,
					  .gpus_open = true};
}

/* This pod renders so many of the batches that it has, each segment in so many ms. */
static void work_on(struct bench *b, int i, int batches, int64_t each_ms)
{
	for (uint32_t n = 0; batches && n < b->core->batch_count; n++) {
		const struct core_batch *k = core_batch_at(b->core, n);
		if (k->pod != i || k->over || k->started)
			continue;
		render_batch(b, i, n, each_ms * (int64_t)k->count, true);
		batches--;
	}
	assert_int_equal(batches, 0);
}

static void check_said(const struct bench *b, const char *name, const char *words)
{
	if (!core_replans(b->core) ||
	    !strstr(core_replan_text(b->core, core_replans(b->core) - 1), words))
		fail_msg("%s: it said \"%s\", not \"%s\"", name,
			 core_replans(b->core)
				 ? core_replan_text(b->core, core_replans(b->core) - 1)
				 : "",
			 words);
}

static void test_slower_or_faster_than_planned(void **state)
{
	static const struct {
		const char *name;
		int64_t deadline_s, each_ms;
		int pods; /* rented in all */
		bool fixed;
		const char *said;
	} cases[] = {
		{"1.9 times as slow", 300, 1900, 1, false, NULL},
		{"2.1 times as slow", 300, 2100, 2, false,
		 "slower than planned: 2.1 s a segment on GPU 0 instead of 1 s; renting 1 more pod "
		 "with GPU 0: the rest takes about "},
		{"four times", 300, 4000, 4, false, "renting 3 more pods"},
		{"there is time enough", 3000, 4000, 1, false, NULL},
		{"nobody waits", 0, 4000, 1, false, NULL},
		{"the width is the user's", 700, 4000, 1, true, NULL}, /* a little late */
		{"faster", 300, 300, 1, false, NULL},
		{"out of reach", 100, 20000, 1, false, "the deadline cannot be met"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up_planned(&b, 200, cases[i].deadline_s);
		if (cases[i].fixed)
			b.conf.plan.pods_most = b.conf.plan.pods_open = 0;
		start_simply(&b);
		bring_up(&b, 0);
		work_on(&b, 0, 2, cases[i].each_ms);
		check_field(cases[i].name,
			    "re-plans after a worker's first batch, and one more of its batches",
			    core_replans(b.core) && cases[i].each_ms < 5000, 0);
		work_on(&b, 0, 1, cases[i].each_ms);
		check_field(cases[i].name, "pods", core_pod_count(b.core), cases[i].pods);
		check_field(cases[i].name, "re-plans", core_replans(b.core), cases[i].said != NULL);
		if (cases[i].said)
			check_said(&b, cases[i].name, cases[i].said);
		tear_down(&b);
	}
}

/* What is in the hands of its worker is rendered, and kept. */
static void test_stops_for_a_deadline(void **state)
{
	struct bench b;

	(void)state;
	set_up_planned(&b, 200, 100);
	start_simply(&b);
	bring_up(&b, 0);
	work_on(&b, 0, 1, 20000);
	began(&b, 0, 1);
	began(&b, 0, 2);
	b.now += 80 * SECOND;
	done(&b, 0, 1);
	check_said(&b, "stop", "stopping when the current batches are done");
	assert_int_equal(did(&b, ACT_REVOKE, 0), 1);
	check_phase(&b, "while it renders", 0, POD_WORKING);
	b.now += SECOND;
	const struct core_batch k = *core_batch_at(b.core, 2);
	for (size_t n = 0; n < k.count; n++) {
		rendered(&b, 0, k.segments[n]);
		safe(&b, 0, k.segments[n], true);
	}
	done(&b, 0, 2);
	tell(&b, (struct event){.type = EV_REVOKED, .pod = 0, .batch = 3});
	end_well(&b);
	assert_int_equal(exit_status(&b), 5);
	assert_int_equal(summary(&b).status, RUN_CAPPED);
	assert_non_null(strstr(summary(&b).err.msg,
			       "`burst resume r1 --deadline WHEN` continues from here"));
	assert_int_equal(summary(&b).local, 4 + k.count);
	assert_int_equal(core_pod_count(b.core), 1);
	tear_down(&b);
}

/* A price moves when one batch is done. By the forecast the deadline cannot be met; at the pace of
 * that batch it can. Where batches are as slow as that, it stops. */
static void test_does_not_stop_for_a_forecast(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		struct offer o = offer(0, 1000000);
		struct bench b;
		set_up_planned(&b, 200, 100);
		b.conf.plan.pods_most = b.conf.plan.pods_open = 0;
		start_with(&b, &o, 1);
		bring_up(&b, 0);
		work_on(&b, 0, slow ? 3 : 1, slow ? 10000 : 200);
		o.price_microusd_h = 1300000;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_field(slow ? "slow" : "fast", "stops", b.core->replan.stop.kind != ERR_NONE,
			    slow);
		check_field(slow ? "slow" : "fast", "re-plans", core_replans(b.core), slow);
		tear_down(&b);
	}
}

static void test_gives_back_what_comes_up(void **state)
{
	struct bench b;
	struct offer o = offer(0, 1000000);

	(void)state;
	set_up_planned(&b, 100, 0);
	b.conf.pods = 3;
	b.conf.at_once = true;
	start_with(&b, &o, 1);
	assert_int_equal(core_pod_count(b.core), 3);
	bring_up(&b, 0);
	rented(&b, 1);
	rented(&b, 2);
	work_on(&b, 0, 3, 330);
	check_said(&b, "faster",
		   "faster than planned: 0.33 s a segment on GPU 0 instead of 1 s; releasing 2 "
		   "pods that boot");
	check_phase(&b, "given back", 1, POD_RELEASING);
	check_phase(&b, "given back", 2, POD_RELEASING);
	wait_ms(&b, MINUTE);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	tear_down(&b);
}

/* GPU 1 costs 30 % less than it did, or GPU 0 costs more. */
static void test_prices_that_move(void **state)
{
	static const struct {
		const char *name;
		int64_t first, second;
		bool open, replaces;
	} cases[] = {
		{"a tenth more", 1090000, 1000000, true, false},
		{"no other price is better", 1120000, 1000000, true, false},
		{"another GPU is cheaper by 30 %", 1000000, 700000, true, true},
		{"by 15 %", 1000000, 850000, true, false},
		{"the GPUs are the user's", 1000000, 700000, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
		struct bench b;
		set_up_planned(&b, 400, 0);
		b.conf.plan.gpus_open = cases[i].open;
		start_with(&b, offers, 2);
		bring_up(&b, 0);
		wait_ms(&b, 5 * MINUTE + SECOND);
		check_field(cases[i].name, "looks at prices", did(&b, ACT_OFFERS, -1),
			    cases[i].open);
		work_on(&b, 0, 2, 1000);
		offers[0].price_microusd_h = cases[i].first;
		offers[1].price_microusd_h = cases[i].second;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		check_field(cases[i].name, "re-plans", core_replans(b.core), cases[i].replaces);
		check_field(cases[i].name, "pods", core_pod_count(b.core), 1 + cases[i].replaces);
		if (cases[i].replaces) {
			check_said(&b, cases[i].name,
				   "the price of GPU 1 at alpha moved from $1.00 to $0.7000 an "
				   "hour; continuing with 1 pod of GPU 1");
			assert_string_equal(pod(&b, 1)->rental.offer.gpu, "GPU 1");
			work_on(&b, 0, 1, 1000);
			/* it works until the other one does */
			assert_true(did(&b, ACT_SEND, 0) > 0);
			bring_up(&b, 1);
			assert_int_equal(did(&b, ACT_REVOKE, 0), 1);
			assert_int_equal(core_pod_count(b.core), 2);
		}
		tear_down(&b);
	}
}

/* With no room for both, the old one ends first. */
static void test_replaces_within_pods(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up_planned(&b, 400, 0);
	b.conf.plan.pods_most = b.conf.plan.pods_open = 0;
	start_with(&b, offers, 2);
	bring_up(&b, 0);
	wait_ms(&b, 5 * MINUTE + SECOND);
	work_on(&b, 0, 1, 1000);
	offers[1].price_microusd_h = 500000;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
	check_said(&b, "replaced", "continuing with 1 pod of GPU 1");
	assert_int_equal(core_pod_count(b.core), 1);
	tell(&b, (struct event){.type = EV_REVOKED, .pod = 0, .batch = 1});
	tell(&b, (struct event){.type = EV_REVOKED, .pod = 0, .batch = 2});
	check_phase(&b, "drained", 0, POD_RELEASING);
	assert_int_equal(core_pod_count(b.core), 2);
	assert_string_equal(pod(&b, 1)->rental.offer.gpu, "GPU 1");
	tear_down(&b);
}

/* The second pod that the user allows was not worth it: while the old one works on, one new pod
 * takes its place, not two. */
static void test_replaces_one_of_two(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up_planned(&b, 44, 0);
	b.conf.canary = true;
	b.conf.pods = 2;
	b.conf.plan.pods_most = b.conf.plan.pods_open = 0;
	start_with(&b, offers, 2);
	bring_up(&b, 0);
	work_on(&b, 0, 2, 1000);
	assert_int_equal(core_pod_count(b.core), 1);
	offers[1].price_microusd_h = 300000;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
	check_said(&b, "replaced", "continuing with 1 pod of GPU 1");
	check_phase(&b, "the old one", 0, POD_WORKING);
	check_field("in its place", "pods", core_pod_count(b.core), 2);
	tear_down(&b);
}

/* The better GPU is sold out until 25 s of work are left. A pod of it would come up in 15 s, while
 * the old one works on: not worth it. */
static void test_replaces_too_late(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up_planned(&b, 44, 0);
	b.conf.canary = true;
	b.conf.wait_ms = HOUR;
	start_with(&b, offers, 2);
	bring_up(&b, 0);
	work_on(&b, 0, 2, 1000);
	offers[1].price_microusd_h = 300000;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
	check_said(&b, "replaced", "continuing with 1 pod of GPU 1");
	assert_string_equal(pod(&b, 1)->rental.offer.gpu, "GPU 1");
	for (int i = 0; i < 3; i++) {
		int newest = core_pod_count(b.core) - 1;
		if (pod(&b, newest)->phase == POD_RENTING)
			tell_err(&b, EV_RENT_FAILED, newest, ERR_NO_CAPACITY);
		work_on(&b, 0, 1, 1000);
	}
	check_field("sold out", "segments done", summary(&b).local, 19);
	int rented = core_pod_count(b.core);
	check_phase(&b, "the newest", rented - 1, POD_NEVER);
	wait_ms(&b, MINUTE);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
	check_field("at the end", "pods", core_pod_count(b.core), rented);
	check_phase(&b, "the old one", 0, POD_WORKING);
	tear_down(&b);
}

/* Its price, two hours for a segment, and a cap on cost of an hour. */
static void test_a_budget_for_nothing(void **state)
{
	struct bench b;

	(void)state;
	set_up_planned(&b, 200, 0);
	b.conf.max_cost_microusd = 1000000;
	start_simply(&b);
	bring_up(&b, 0);
	work_on(&b, 0, 1, 1000);
	began(&b, 0, 1);
	b.now += 58 * MINUTE;
	done(&b, 0, 1);
	check_said(&b, "no money", "stopping: the budget does not pay for one more segment");
	check_phase(&b, "no money", 0, POD_RELEASING);
	end_well(&b);
	assert_int_equal(exit_status(&b), 5);
	assert_int_equal(summary(&b).local, 4);
	tear_down(&b);
}

/* Room is kept for pods that a plan may add: a pod holds its share of the cap until it ends. */
static void test_a_reserve_for_haste(void **state)
{
	struct bench b;

	(void)state;
	set_up_planned(&b, 200, 300);
	b.conf.max_cost_microusd = 1000000;
	b.conf.plan.cost_microusd = 60000;
	start_simply(&b);
	bring_up(&b, 0);
	assert_in_range(pod(&b, 0)->rental.hard_end_ms - b.now, 28 * MINUTE, 30 * MINUTE);
	work_on(&b, 0, 3, 2100);
	assert_int_equal(core_pod_count(b.core), 2);
	assert_true(budget_committed(b.core) <= b.conf.max_cost_microusd);
	tear_down(&b);
}

static void test_two_plans_are_the_most(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up_planned(&b, 1000, 0);
	start_with(&b, offers, 2);
	bring_up(&b, 0);
	for (int round = 1; round <= 3; round++) {
		const char *gpu = round % 2 ? "GPU 1" : "GPU 0";
		int had = core_pod_count(b.core);
		wait_ms(&b, 3 * MINUTE);
		offers[round % 2].price_microusd_h /= 4 * round;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		check_field("re-plans", gpu, core_replans(b.core), MIN(round, 2));
		check_field("pods", gpu, core_pod_count(b.core), round <= 2 ? had + 1 : had);
		if (round > 2)
			break;
		/* at once it is not planned again, whatever is heard */
		offers[round % 2].price_microusd_h /= 2;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		check_field("re-plans at once", gpu, core_replans(b.core), round);
		offers[round % 2].price_microusd_h *= 2;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		bring_up(&b, round);
		for (int i = 0; i < 20 && pod(&b, round - 1)->phase == POD_WORKING; i++)
			for (uint32_t n = 0; n < b.core->batch_count; n++)
				if (core_batch_at(b.core, n)->pod == round - 1 &&
				    !core_batch_at(b.core, n)->over)
					tell(&b, (struct event){.type = EV_REVOKED,
								.pod = round - 1,
								.batch = n});
		check_phase(&b, gpu, round - 1, POD_RELEASING);
	}
	tear_down(&b);
}

struct play {
	struct bench *b;
	int64_t cold_ms, ms_each;
	/* of each pod: its next segment is rendered; 0: it has no batch in hand */
	int64_t next_at[16];
	uint32_t batch[16];
	size_t segment[16];
};

static void come_up(struct play *p, int i)
{
	struct bench *b = p->b;

	list_running(b, i);
	connected(b, i);
	tell(b, (struct event){.type = EV_SHARED_READY, .pod = i});
	tell(b, (struct event){.type = EV_WORKERS, .pod = i, .number = 1});
}

static void next_segment(struct play *p, int i)
{
	const struct core_batch *k = core_batch_at(p->b->core, p->batch[i]);

	p->next_at[i] = p->b->now + (int64_t)(p->b->segments[k->segments[p->segment[i]]].weight *
					      (double)p->ms_each);
}

static void take_batch(struct play *p, int i)
{
	for (uint32_t n = 0; n < p->b->core->batch_count; n++) {
		const struct core_batch *k = core_batch_at(p->b->core, n);
		if (k->pod != i || k->over || k->started)
			continue;
		began(p->b, i, n);
		p->batch[i] = n;
		p->segment[i] = 0;
		next_segment(p, i);
		return;
	}
}

static void segment_done(struct play *p, int i)
{
	const struct core_batch k = *core_batch_at(p->b->core, p->batch[i]);
	uint32_t segment = k.segments[p->segment[i]];

	p->next_at[i] = 0;
	rendered(p->b, i, segment);
	safe(p->b, i, segment, true);
	if (++p->segment[i] < k.count)
		next_segment(p, i);
	else
		done(p->b, i, p->batch[i]);
}

static int64_t next_of(const struct play *p, int i)
{
	const struct core_pod *k = pod(p->b, i);

	if (pod_is_coming_up(k))
		return k->rental.create_at + p->cold_ms;
	return k->phase == POD_WORKING && p->next_at[i] ? p->next_at[i] : INT64_MAX;
}

static void play_pod(struct play *p, int i)
{
	struct bench *b = p->b;

	if (pod(b, i)->phase == POD_RENTING)
		rented(b, i);
	else if (pod_is_coming_up(pod(b, i)) && b->now >= pod(b, i)->rental.create_at + p->cold_ms)
		come_up(p, i);
	else if (pod(b, i)->phase == POD_WORKING && p->next_at[i] && b->now >= p->next_at[i])
		segment_done(p, i);
	if (pod(b, i)->phase == POD_WORKING && !p->next_at[i])
		take_batch(p, i);
}

/* Until all segments are safe, or the run stops; returns how long that took. */
static int64_t play(struct bench *b, int64_t cold_ms, int64_t ms_each)
{
	struct play p = {.b = b, .cold_ms = cold_ms, .ms_each = ms_each};
	int64_t began_at = b->now;

	for (int turns = 0; !segments_settled(b->core) && !core_is_stopping(b->core); turns++) {
		assert_true(turns < 100000);
		for (int i = 0; i < core_pod_count(b->core); i++)
			play_pod(&p, i);
		if (segments_settled(b->core))
			break;
		int64_t at = core_wake_at(b->core);
		for (int i = 0; i < core_pod_count(b->core); i++)
			at = MIN(at, next_of(&p, i));
		b->now = MAX(b->now, at);
		if (b->now >= core_wake_at(b->core))
			tell(b, (struct event){.type = EV_TICK});
	}
	return b->now - began_at;
}

/* 20 min of work, pods that take 90 s, a deadline of 5 min: six pods at once take 90 + 200 s, where
 * a canary alone first would take 2 x 90 + 200 s. */
static void test_a_deadline_pays_one_cold_start(void **state)
{
	int64_t took[2];

	(void)state;
	for (int at_once = 0; at_once < 2; at_once++) {
		struct bench b;
		set_up(&b, 1000);
		for (size_t i = 0; i < b.count; i++)
			b.segments[i].weight = 1 + (double)(i % 3) / 10; /* 1.1 in the mean */
		b.conf.canary = true;
		b.conf.pods = 6;
		b.conf.at_once = at_once;
		start_simply(&b);
		took[at_once] = play(&b, 90 * SECOND, 1091);
		check_field("a deadline", "pods", core_pod_count(b.core), 6);
		check_field("a deadline", "segments", summary(&b).local, 1000);
		tear_down(&b);
	}
	assert_in_range(took[1], 290 * SECOND, 300 * SECOND);
	assert_in_range(took[0], 350 * SECOND, 400 * SECOND);
}

/* Ten minutes of work were planned for one pod, and a deadline of 15 min. It takes 2.5 times as
 * long: more pods keep the deadline. */
static void test_a_new_plan_keeps_the_deadline(void **state)
{
	static const struct {
		int64_t deadline_s, ms_each;
		int pods;
		bool in_time;
	} cases[] = {{900, 1000, 1, true},  {900, 2500, 3, true}, /* two would be done in time,
								     unless the new one is slow */
		     {1000, 2500, 2, true}, {900, 4000, 4, true}, {2400, 2500, 1, true},
		     {0, 2500, 1, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		char name[32];
		snprintf(name, sizeof(name), "case %zu", i);
		set_up_planned(&b, 600, cases[i].deadline_s);
		b.conf.canary = true;
		start_simply(&b);
		int64_t took = play(&b, 60 * SECOND, cases[i].ms_each);
		check_field(name, "segments", summary(&b).local, 600);
		check_field(name, "pods", core_pod_count(b.core), cases[i].pods);
		if (cases[i].in_time && took > cases[i].deadline_s * SECOND)
			fail_msg("%s: it took %lld s", name, (long long)took / 1000);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slower_or_faster_than_planned),
		cmocka_unit_test(test_stops_for_a_deadline),
		cmocka_unit_test(test_does_not_stop_for_a_forecast),
		cmocka_unit_test(test_gives_back_what_comes_up),
		cmocka_unit_test(test_prices_that_move),
		cmocka_unit_test(test_replaces_within_pods),
		cmocka_unit_test(test_replaces_one_of_two),
		cmocka_unit_test(test_replaces_too_late),
		cmocka_unit_test(test_a_budget_for_nothing),
		cmocka_unit_test(test_a_reserve_for_haste),
		cmocka_unit_test(test_two_plans_are_the_most),
		cmocka_unit_test(test_a_deadline_pays_one_cold_start),
		cmocka_unit_test(test_a_new_plan_keeps_the_deadline),
	};

	return cmocka_run_group_tests_name("core replan", tests, NULL, NULL);
}
