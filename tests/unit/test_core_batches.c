/* test_core_batches.c - batches: which segments, how many, in which order, for each kind of engine.
 */
#include "core_bench.h"

static void test_batches_shrink(void **state)
{
	struct bench b;
	size_t sent = 0, last = SIZE_MAX, biggest = 0;

	(void)state;
	set_up(&b, 60);
	b.conf.max_batch = 32;
	b.conf.workers = 2;
	start_simply(&b);
	bring_up(&b, 0);
	for (uint32_t batch = 0; sent < b.count; batch++) {
		assert_true(batch < b.core->batch_count);
		size_t size = core_batch_at(b.core, batch)->count;
		/* the first was measured by nothing; later ones follow what is left */
		if (size > last)
			fail_msg("batch %u has %zu segments, the one before it %zu", batch, size,
				 last);
		last = size;
		biggest = MAX(biggest, size);
		sent += size;
		render_batch(&b, 0, batch, (int64_t)size * 500, true);
	}
	assert_int_equal(last, 1);
	assert_true(biggest >= 10);
	assert_true(biggest <= 32);
	assert_int_equal(summary(&b).local, 60);
	tear_down(&b);
}

/* It has nobody to finish together with. */
static void test_batches_of_one_worker_do_not_shrink(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 100);
	b.conf.max_batch = 32;
	b.conf.canary = true;
	start_simply(&b);
	bring_up(&b, 0);
	for (uint32_t batch = 0; batch < b.core->batch_count; batch++)
		render_batch(&b, 0, batch, 500, true);
	assert_int_equal(b.core->batch_count, 5);
	for (uint32_t batch = 1; batch < 4; batch++)
		assert_int_equal(core_batch_at(b.core, batch)->count, 32);
	assert_int_equal(summary(&b).local, 100);
	tear_down(&b);
}

/* 300 segments on two workers, whose engine takes so long for a batch and so much more for each of
 * its segments. */
static void test_batches_that_cost_by_themselves(void **state)
{
	static const struct {
		const char *name;
		int64_t fixed_ms, each_ms, most_ms; /* most_ms: of compute, by both */
	} cases[] = {
		{"all of a batch at once: four batches would be 10.4 s", 978, 22, 16000},
		{"one after the other", 0, 500, 150000},
		{"one after the other, with a little for each batch", 20, 500, 152000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		int64_t compute_ms = 0;
		set_up(&b, 300);
		b.conf.max_batch = 80;
		b.conf.workers = 2;
		b.conf.canary = true;
		start_simply(&b);
		bring_up(&b, 0);
		for (uint32_t batch = 0; batch < b.core->batch_count; batch++) {
			int64_t ms =
				cases[i].fixed_ms +
				(int64_t)core_batch_at(b.core, batch)->count * cases[i].each_ms;
			compute_ms += ms;
			render_batch(&b, 0, batch, ms, true);
		}
		check_field(cases[i].name, "segments", (long long)summary(&b).local, 300);
		if (compute_ms > cases[i].most_ms)
			fail_msg("%s: %lld ms in %zu batches, more than %lld", cases[i].name,
				 (long long)compute_ms, b.core->batch_count,
				 (long long)cases[i].most_ms);
		tear_down(&b);
	}
}

/* An engine that renders a batch at once: full batches, then even shares for all workers. */
static void test_padded_batches(void **state)
{
	static const struct {
		const char *name;
		int segments, workers, max_batch, conf_max;
		bool cap;
		const char *sizes;
	} cases[] = {
		{"one is enough", 60, 1, 80, 16, false, "60"},
		{"equal rounds", 300, 1, 80, 16, false, "75 75 75 75"},
		{"two workers", 300, 2, 80, 16, false, "75 75 75 75"},
		{"a share for each of three", 60, 3, 80, 16, false, "20 20 20"},
		{"and of a second round", 250, 3, 80, 16, false, "42 42 42 42 41 41"},
		{"fewer segments than workers", 2, 3, 80, 16, false, "1 1"},
		{"the worker can do less than the job assumes", 40, 1, 10, 16, false,
		 "10 10 10 10"},
		{"the user's word", 40, 1, 80, 16, true, "14 13 13"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str sizes = STR_INIT;
		struct bench b;
		set_up(&b, (uint32_t)cases[i].segments);
		b.conf.max_batch = cases[i].conf_max;
		b.conf.max_batch_is_cap = cases[i].cap;
		b.conf.workers = cases[i].workers;
		b.hello = (struct event){.max_batch = cases[i].max_batch,
					 .batching = BATCHING_PADDED};
		start_simply(&b);
		bring_up(&b, 0);
		for (uint32_t batch = 0; batch < b.core->batch_count; batch++) {
			str_addf(&sizes, "%s%zu", batch ? " " : "",
				 core_batch_at(b.core, batch)->count);
			render_batch(&b, 0, batch,
				     1000 + 20 * (int64_t)core_batch_at(b.core, batch)->count,
				     true);
		}
		if (strcmp(str_text(&sizes), cases[i].sizes) != 0)
			fail_msg("%s: got %s, want %s", cases[i].name, str_text(&sizes),
				 cases[i].sizes);
		tear_down(&b);
	}
}

/* Two pods whose workers take `places` segments at a time. */
static void start_continuous(struct bench *b, uint32_t segments, int places)
{
	struct offer o = offer(0, 1000000);

	set_up(b, segments);
	b->conf.pods = 2;
	b->conf.max_batch = 16;
	b->hello = (struct event){.max_batch = places, .batching = BATCHING_CONTINUOUS};
	start_with(b, &o, 1);
	bring_up(b, 0);
	bring_up(b, 1);
}

/* The next one that the pod holds of this run's batches, in the order in which they were given. */
static uint32_t next_held(const struct bench *b, int i)
{
	for (uint32_t k = 0; k < b->core->batch_count; k++) {
		const struct core_batch *batch = core_batch_at(b->core, k);
		for (size_t s = 0; batch->pod == i && s < batch->count; s++)
			if (core_seg_state(b->core, batch->segments[s]) == SEG_HELD)
				return batch->segments[s];
	}
	return UINT32_MAX;
}

/* Rendered, or, with `fails`, failed for good. */
static void end_one(struct bench *b, int i, bool fails)
{
	uint32_t segment = next_held(b, i), batch = b->core->segs[segment].batch;

	for (uint32_t k = 0; k < b->core->batch_count; k++)
		if (core_batch_at(b->core, k)->pod == i && !core_batch_at(b->core, k)->started)
			began(b, i, k);
	if (fails) {
		struct err err;
		err_set(&err, ERR_JOB, "no voice for it");
		tell(b,
		     (struct event){
			     .type = EV_SEGMENT_FAILED, .pod = i, .segment = segment, .err = &err});
	} else {
		rendered(b, i, segment);
	}
	const struct core_batch *k = core_batch_at(b->core, batch);
	for (size_t s = 0; s < k->count; s++)
		if (core_seg_state(b->core, k->segments[s]) == SEG_HELD)
			return;
	done(b, i, batch);
}

static void finish_one(struct bench *b, int i)
{
	end_one(b, i, false);
}

/* All places of a worker, and half as many that wait with its agent; as one is finished, more are
 * sent, before any batch is over. */
static void test_continuous_is_kept_full(void **state)
{
	struct bench b;
	size_t most = 0, least = SIZE_MAX;

	(void)state;
	start_continuous(&b, 400, 16);
	for (int i = 0; i < 2; i++)
		check_field("at first", "held", (long long)pod(&b, i)->workload.held, 24);
	assert_true(did(&b, ACT_SEND, 1) == 6); /* four segments each */
	for (int n = 0; n < 150; n++)
		for (int i = 0; i < 2; i++) {
			b.now += 10;
			finish_one(&b, i);
			most = MAX(most, pod(&b, i)->workload.held);
			least = MIN(least, pod(&b, i)->workload.held);
		}
	check_field("while there is enough", "the most held", (long long)most, 24);
	assert_true(least > 16); /* the agent has one for whoever asks */
	check_field("finished", "segments",
		    (long long)(b.core->seg_count - b.core->todo - pod(&b, 0)->workload.held -
				pod(&b, 1)->workload.held),
		    300);
	tear_down(&b);
}

/* What is left is shared: no pod keeps what another one could begin. */
static void test_continuous_shares_the_end(void **state)
{
	struct bench b;

	(void)state;
	start_continuous(&b, 100, 16);
	for (int n = 0; n < 60; n++)
		for (int i = 0; i < 2; i++) {
			b.now += 10;
			if (next_held(&b, i) == UINT32_MAX)
				continue;
			finish_one(&b, i);
			long long a = (long long)pod(&b, 0)->workload.held,
				  z = (long long)pod(&b, 1)->workload.held;
			if (b.core->todo && llabs(a - z) > 6)
				fail_msg("after %d rounds: %lld with one pod, %lld with the other, "
					 "%zu with none",
					 n, a, z, b.core->todo);
		}
	check_field(
		"in the end", "left",
		(long long)(b.core->todo + pod(&b, 0)->workload.held + pod(&b, 1)->workload.held),
		0);
	tear_down(&b);

	start_continuous(&b, 8, 16);
	for (int i = 0; i < 2; i++) /* though one was up before the other */
		check_field("few", "held", (long long)pod(&b, i)->workload.held, 4);
	tear_down(&b);
}

/* Places are filled by the user's word, if there is one. The pace is what a pod finishes, however
 * its batches overlap; a segment that fails took as long as another one. */
static void test_continuous_pace(void **state)
{
	(void)state;
	for (int fails = -1; fails < 16; fails++) { /* which of the first ones, or none */
		struct bench b;
		set_up(&b, 400);
		b.conf.max_batch = 8;
		b.conf.max_batch_is_cap = true;
		b.hello = (struct event){.max_batch = 16, .batching = BATCHING_CONTINUOUS};
		start_simply(&b);
		bring_up(&b, 0);
		check_field("by the user's word", "held", (long long)pod(&b, 0)->workload.held, 12);
		for (int n = 0; n < 200; n++) {
			/* the batches of the worker's first eight segments began at 0: each one
			 * takes 800 ms */
			b.now += 100;
			end_one(&b, 0, n == fails);
		}
		double rate = pace_rate(b.core);
		if (rate < 9 || rate > 11) /* segments weigh 1 */
			fail_msg("segment %d fails: ten segments a second are measured as %.2f",
				 fails, rate);
		assert_false(pace_is_rough(b.core));
		tear_down(&b);
	}
}

/* A pod is lost with several batches begun: each of its segments goes to the other one, once, and
 * wasted time counts once. */
static void test_continuous_pod_lost(void **state)
{
	struct bench b;
	bool seen[100] = {false};

	(void)state;
	start_continuous(&b, 100, 16);
	for (int n = 0; n < 6; n++) {
		b.now += SECOND;
		finish_one(&b, 0);
	}
	size_t held = pod(&b, 0)->workload.held, todo = b.core->todo;
	tell_err(&b, EV_WORKERS_FAILED, 0, ERR_JOB);
	check_field("lost", "held", (long long)pod(&b, 0)->workload.held, 0);
	check_field("lost", "open again", (long long)(b.core->todo + pod(&b, 1)->workload.held),
		    (long long)(held + todo + 24));
	assert_true(pod(&b, 0)->workload.wasted_ms <= 6 * SECOND);
	for (int n = 0; n < 94; n++) {
		uint32_t segment = next_held(&b, 1);
		assert_int_not_equal(segment, UINT32_MAX);
		assert_false(seen[segment]);
		seen[segment] = true;
		finish_one(&b, 1);
	}
	assert_int_equal(b.core->todo, 0);
	tear_down(&b);
}

/* To measure an engine: batches of sizes that the caller names, nothing else in flight beside them.
 */
static void test_batches_of_given_sizes(void **state)
{
	static const struct {
		const char *name;
		int segments, workers, max_batch;
		const int sizes[6];
		/* a "|" wherever the pod was given nothing before all that it had was done */
		const char *sent;
	} cases[] = {
		{"in their order", 16, 1, 8, {1, 1, 2, 4, 8}, "1|1|2|4|8"},
		{"each worker gets one", 6, 2, 8, {1, 2}, "1 1|2 2"},
		{"no larger than the worker takes", 9, 1, 3, {1, 2, 4, 8}, "1|2|3|3"},
		{"the last size for what is left", 9, 1, 8, {1, 2}, "1|2|2|2|2"},
		{"fewer segments than sizes", 4, 1, 8, {1, 1, 2, 4}, "1|1|2"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str sent = STR_INIT;
		struct bench b;
		size_t done = 0;
		set_up(&b, (uint32_t)cases[i].segments);
		b.conf.workers = cases[i].workers;
		b.conf.max_batch = 16;
		b.conf.canary = true;
		b.conf.batch_sizes = cases[i].sizes;
		while (b.conf.batch_size_count < ARRAY_LEN(cases[i].sizes) &&
		       cases[i].sizes[b.conf.batch_size_count])
			b.conf.batch_size_count++;
		b.hello = (struct event){.max_batch = cases[i].max_batch,
					 .batching = BATCHING_PADDED};
		start_simply(&b);
		bring_up(&b, 0);
		while (done < b.core->batch_count) {
			size_t count = b.core->batch_count;
			for (uint32_t batch = (uint32_t)done; batch < count; batch++)
				str_addf(&sent, "%s%zu",
					 !batch          ? ""
					 : batch == done ? "|"
							 : " ",
					 core_batch_at(b.core, batch)->count);
			for (; done < count; done++) {
				check_field(cases[i].name, "batches while others are out",
					    (long long)b.core->batch_count, (long long)count);
				render_batch(&b, 0, (uint32_t)done, 1000, true);
			}
		}
		if (strcmp(str_text(&sent), cases[i].sent) != 0)
			fail_msg("%s: got %s, want %s", cases[i].name, str_text(&sent),
				 cases[i].sent);
		check_field(cases[i].name, "segments", (long long)summary(&b).local,
			    cases[i].segments);
		tear_down(&b);
	}
}

static void test_long_ones_first(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 6);
	for (int i = 0; i < 6; i++)
		b.segments[i].weight = 1 + i;
	start_simply(&b);
	bring_up(&b, 0);
	assert_int_equal(core_batch_at(b.core, 0)->segments[0], 5);
	tear_down(&b);
}

static void test_max_batch(void **state)
{
	static const struct {
		const char *name;
		int conf, worker; /* what the config says, and what the worker says of itself */
		double max_weight;
		bool command;
		size_t most;
	} cases[] = {
		{"the config's", 4, 0, 0, false, 4},
		{"the worker can less", 4, 2, 0, false, 2},
		{"the worker can more", 4, 9, 0, false, 4},
		{"padding counts: longest times how many", 8, 0, 3, false, 3},
		{"commands one at a time", 1, 0, 0, true, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 200);
		b.conf.max_batch = cases[i].conf;
		b.conf.max_batch_weight = cases[i].max_weight;
		b.conf.command = cases[i].command;
		start_simply(&b);
		rented(&b, 0);
		b.now += 10;
		list_running(&b, 0);
		connected(&b, 0);
		tell(&b, (struct event){.type = EV_SHARED_READY, .pod = 0});
		tell(&b, (struct event){.type = EV_WORKERS,
					.pod = 0,
					.number = 1,
					.max_batch = cases[i].worker});
		check_field(cases[i].name, "size", (long long)core_batch_at(b.core, 0)->count,
			    (long long)cases[i].most);
		check_field(cases[i].name, "batches", did(&b, ACT_SEND, 0),
			    cases[i].command ? 1 : 2);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batches_shrink),
		cmocka_unit_test(test_batches_of_one_worker_do_not_shrink),
		cmocka_unit_test(test_batches_that_cost_by_themselves),
		cmocka_unit_test(test_padded_batches),
		cmocka_unit_test(test_continuous_is_kept_full),
		cmocka_unit_test(test_continuous_shares_the_end),
		cmocka_unit_test(test_continuous_pace),
		cmocka_unit_test(test_continuous_pod_lost),
		cmocka_unit_test(test_batches_of_given_sizes),
		cmocka_unit_test(test_long_ones_first),
		cmocka_unit_test(test_max_batch),
	};

	return cmocka_run_group_tests_name("core batches", tests, NULL, NULL);
}
