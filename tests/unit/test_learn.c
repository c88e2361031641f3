/* test_learn.c - what the ledger teaches: keys, sums over runs, estimates from the nearest GPU,
 * cold starts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/learn.h"
#include "plan_bed.h"

static const struct speed truth = {.once_s = .3, .longest_s = .008, .each_s = .0004};

/* A run of batches of several sizes on this GPU, `factor` times as slow as the truth. */
static void add_run(struct store *s, const struct learn_what *what, double factor, int64_t wall_ms)
{
	struct batch_row rows[12] = {0};
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct batch_row *r = &rows[i];
		learn_key(what, r->speed);
		r->segments = 1 << (i % 6);
		r->longest = 80 + 10 * (double)(i % 5);
		r->sum = r->longest * r->segments * .9;
		r->took_ms = (int64_t)(1000 * factor * speed_batch_s(&truth, r->longest, r->sum));
	}
	assert_int_equal(learn_fold(s, rows, ARRAY_LEN(rows), true, wall_ms, &err), 0);
}

static enum plan_source speed_of(struct store *s, const struct learn_what *what,
				 const struct speed *prior, struct speed *out,
				 char from[LEARN_FROM])
{
	struct learned_speed got;

	learn_speed(s, what, prior, &got);
	*out = got.speed;
	if (from)
		snprintf(from, LEARN_FROM, "%s", got.from);
	return got.source;
}

static void keys_are_whole(void **state)
{
	(void)state;
	char a[LEARN_KEY], b[LEARN_KEY];

	learn_key(&(struct learn_what){"chatterbox", "ab12.w1", "NVIDIA GeForce RTX 4090", "runpod",
				       "0.1.7"},
		  a);
	assert_string_equal(a, "chatterbox|ab12.w1|RTX_4090|runpod|0.1.7");
	learn_key(&(struct learn_what){"e|vil\n", NULL, "none", "local", NULL}, b);
	assert_string_equal(b, "e_vil_||none|local|");
	char wide[300];
	memset(wide, 'x', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = '\0';
	learn_key(&(struct learn_what){wide, wide, wide, wide, wide}, b);
	assert_true(strlen(b) < LEARN_KEY);
	int bars = 0;
	for (const char *p = b; *p; p++)
		bars += *p == '|';
	assert_int_equal(bars, 4);
}

static void the_nearest_measurement_is_taken(void **state)
{
	(void)state;
	struct store *s = store_memory();
	const struct speed prior = {.each_s = .07};
	struct learn_what l4 = {"eng", "o", "L4", "modal", "1"},
			  h200 = {"eng", "o", "H200", "modal", NULL};
	struct speed got;
	char from[LEARN_FROM];

	assert_int_equal(speed_of(s, &l4, &prior, &got, from), PLAN_PRIOR);
	assert_near(got.each_s, .07, 0);
	assert_string_equal(from, "");
	add_run(s, &l4, 1, 1);
	assert_int_equal(speed_of(s, &l4, &prior, &got, from), PLAN_MEASURED);
	assert_near(got.longest_s, truth.longest_s, truth.longest_s * .02);
	assert_near(got.each_s, truth.each_s, truth.each_s * .02);
	assert_non_null(strstr(from, "L4 at modal"));
	/* another GPU, by bandwidth (16 times) and peak */
	assert_int_equal(speed_of(s, &h200, &prior, &got, from), PLAN_CARRIED);
	assert_near(got.longest_s, truth.longest_s / 16, truth.longest_s * .01);
	assert_near(got.once_s, truth.once_s, truth.once_s * .05);
	/* the same GPU of another provider goes before another GPU of this one */
	struct learn_what elsewhere = {"eng", "o", "H200", "runpod", "1"};
	add_run(s, &elsewhere, .1, 2);
	assert_int_equal(speed_of(s, &h200, &prior, &got, from), PLAN_MEASURED);
	assert_near(got.longest_s, truth.longest_s * .1, truth.longest_s * .01);
	/* other options are another speed */
	struct learn_what other = {"eng", "p", "L4", "modal", "1"};
	assert_int_equal(speed_of(s, &other, &prior, &got, from), PLAN_PRIOR);
	store_close(s);
}

static void newer_runs_count_more(void **state)
{
	(void)state;
	struct store *s = store_memory();
	const struct learn_what what = {"eng", "o", "L4", "modal", "1"};
	const struct speed prior = {0};
	struct speed got;

	for (int run = 0; run < 10; run++)
		add_run(s, &what, 2, run);
	for (int run = 0; run < 30; run++)
		add_run(s, &what, 1, 10 + run);
	assert_int_equal(speed_of(s, &what, &prior, &got, NULL), PLAN_MEASURED);
	assert_near(got.longest_s, truth.longest_s, truth.longest_s * .1);
	store_close(s);
}

static void few_batches_are_no_measurement(void **state)
{
	(void)state;
	struct store *s = store_memory();
	struct batch_row row = {.longest = 10, .sum = 10, .took_ms = 1000};
	const struct learn_what what = {"eng", "o", "L4", "modal", "1"};
	const struct speed prior = {.each_s = 1};
	struct speed got;
	struct err err = {0};

	learn_key(&what, row.speed);
	for (int i = 0; i < SPEED_MEASURED_MIN; i++) {
		assert_int_equal(speed_of(s, &what, &prior, &got, NULL), PLAN_PRIOR);
		assert_int_equal(learn_fold(s, &row, 1, i == 0, 1, &err), 0);
	}
	assert_int_equal(speed_of(s, &what, &prior, &got, NULL), PLAN_MEASURED);
	assert_near(got.each_s, .1, 1e-6);
	store_close(s);
}

/* The ledger's batches, by run: a run on a slow host widens what the next one may take. */
static void runs_that_differ_widen_the_estimate(void **state)
{
	(void)state;
	struct store *s = store_memory();
	struct learn_what what = {"eng", "o", "L4", "modal", "1"};
	const struct speed prior = {.each_s = 1};
	struct learned_speed got;
	struct err err = {0};

	learn_speed(s, &what, &prior, &got);
	assert_near(got.sigma, SPEED_SIGMA_PRIOR_ELSEWHERE, 0);
	for (int i = 0; i < 12; i++) {
		struct batch_row row = {.longest = 100, .sum = 1000, .segments = 10};
		learn_key(&what, row.speed);
		snprintf(row.run, sizeof(row.run), "r%d", i / 4); /* 8, 10 and 12.5 s a batch */
		snprintf(row.id, sizeof(row.id), "%d", i);
		COPY_TEXT(row.attempt, "a");
		row.took_ms = i < 4 ? 8000 : i < 8 ? 10000 : 12500;
		assert_int_equal(store_put_batch(s, &row, &err), 0);
		assert_int_equal(learn_fold(s, &row, 1, false, 1, &err), 0);
	}
	learn_speed(s, &what, &prior, &got);
	assert_int_equal(got.source, PLAN_MEASURED);
	assert_int_equal(got.runs, 3);
	/* log(1.25) squared, twice, and .1125: over 7, 4/3 of it, and t(7) = 1.415 */
	assert_near(got.sigma, .2010 * 1.415 / 1.2816, .001);
	what.provider = "runpod"; /* other hosts */
	learn_speed(s, &what, &prior, &got);
	assert_near(got.sigma, hypot(.2010 * 1.415 / 1.2816, .25), .001);
	what.gpu = "H200";
	learn_speed(s, &what, &prior, &got);
	assert_near(got.sigma, SPEED_SIGMA_CARRIED, 0);
	store_close(s);
}

static struct pod_row pod_that_took(const char *gpu, int64_t queue_ms, int64_t boot_ms)
{
	struct pod_row row = {.create_ms = 1000};

	COPY_TEXT(row.gpu, gpu);
	row.running_ms = row.create_ms + queue_ms;
	row.reached_ms = row.running_ms + boot_ms;
	row.connected_ms = row.reached_ms + 500;
	row.synced_ms = row.connected_ms + 1000;
	row.ready_ms = row.connected_ms + 800; /* workers were started while code was on its way */
	return row;
}

/* Without a single part that tells "longest" and "each" apart, the ratio is the other GPU's. */
static void batches_of_one_kind_keep_the_ratio_of_another_gpu(void **state)
{
	(void)state;
	struct store *s = store_memory();
	struct learn_what l4 = {"eng", "o", "L4", "modal", "1"},
			  l40s = {"eng", "o", "L40S", "modal", "1"};
	const struct speed none = {0};
	struct batch_row rows[4] = {0};
	struct speed carried, got;
	struct err err = {0};

	add_run(s, &l4, 1, 1);
	assert_int_equal(speed_of(s, &l40s, &none, &carried, NULL), PLAN_CARRIED);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		learn_key(&l40s, rows[i].speed);
		rows[i].longest = 100;
		rows[i].sum = 1600;
		/* half as fast as carried over */
		rows[i].took_ms = (int64_t)(2000 * speed_batch_s(&carried, 100, 1600));
	}
	assert_int_equal(learn_fold(s, rows, ARRAY_LEN(rows), true, 2, &err), 0);
	assert_int_equal(speed_of(s, &l40s, &none, &got, NULL), PLAN_MEASURED);
	assert_near(speed_batch_s(&got, 100, 1600), 2 * speed_batch_s(&carried, 100, 1600), .01);
	assert_near(got.longest_s / got.each_s, carried.longest_s / carried.each_s, 1e-3);
	store_close(s);
}

/* An engine without a prior: two batches are better than no estimate at all. */
/* Three runs of a command over 20, 60 and 140 lines, each on one pod: 1 s and 0.01 s for each line.
 * 1000 lines then take 11 s. Runs count less as they age, which changes nothing on a line. */
static void a_command_is_learned_by_its_size(void **state)
{
	static const double lines[] = {20, 60, 140};
	const struct learn_what what = {"command", "0123456789ab.per-lines", "none", "local", NULL,
					0};
	struct learned_speed got;
	struct err err = {0};

	(void)state;
	struct store *s = store_memory();

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct batch_row row = {.longest = lines[i],
					.sum = lines[i],
					.segments = 1,
					.took_ms = 1000 + (int64_t)(lines[i] * 10)};
		learn_key(&what, row.speed);
		assert_int_equal(learn_fold(s, &row, 1, true, 1, &err), 0);
	}
	learn_speed(s, &what, &(struct speed){0}, &got);
	assert_int_equal(got.source, PLAN_MEASURED);
	assert_float_equal(speed_batch_s(&got.speed, 0, 0), 1, 1e-6);
	assert_float_equal(speed_batch_s(&got.speed, 1000, 1000), 11, 1e-6);
	assert_string_equal(got.from, "no GPU at local, 3 commands, 1970-01-01");
	store_close(s);
}

static void two_batches_are_better_than_nothing(void **state)
{
	(void)state;
	struct store *s = store_memory();
	struct learn_what t4 = {"eng", "o", "T4", "modal", "1"},
			  l4 = {"eng", "o", "L4", "modal", "1"};
	struct batch_row rows[2] = {0};
	struct learned_speed got;
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		learn_key(&t4, rows[i].speed);
		rows[i].longest = 50;
		rows[i].sum = 150.0 * (double)(i + 1);
		rows[i].took_ms = 900;
		rows[i].most = 24;
		rows[i].batching = ROW_BATCHING_PADDED;
	}
	assert_int_equal(learn_fold(s, rows, ARRAY_LEN(rows), true, 1, &err), 0);
	learn_speed(s, &t4, &(struct speed){0}, &got);
	assert_int_equal(got.source, PLAN_MEASURED);
	assert_string_equal(got.from, "T4 at modal, 2 batches, 1970-01-01");
	assert_int_equal(got.batch_max, 24);
	assert_true(got.padded);
	learn_speed(s, &l4, &(struct speed){0}, &got);
	assert_int_equal(got.source, PLAN_CARRIED);
	learn_speed(s, &t4, &(struct speed){.each_s = .1}, &got);
	assert_int_equal(got.source, PLAN_PRIOR);
	assert_int_equal(got.batch_max, 0);
	store_close(s);
}

/* What larger batches gain: batches of one size, and larger ones that took no longer, do not show
 * it; a prior with a shared part, or a card where it was measured, does. */
static void gain_of_larger_batches(void **state)
{
	static const struct {
		const char *name;
		double sums[3], took_s[3];
		struct speed prior;
		bool unknown;
	} cases[] = {
		{"one size", {800, 800, 800}, {4, 4.1, 3.9}, {0}, true},
		{"larger ones took no longer", {700, 800, 900}, {4.2, 4.1, 4}, {0}, true},
		{"larger ones took longer", {400, 800, 1600}, {3, 4, 6}, {0}, false},
		{"a prior with a shared part",
		 {800, 800, 800},
		 {4, 4.1, 3.9},
		 {0, .01, .001},
		 false},
		{"a prior without one", {800, 800, 800}, {4, 4.1, 3.9}, {0, 0, .001}, true},
	};
	struct learn_what t4 = {"eng", "o", "T4", "modal", "1"},
			  l4 = {"eng", "o", "L4", "modal", "1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct store *s = store_memory();
		struct batch_row rows[3] = {0};
		struct learned_speed here, elsewhere;
		struct err err = {0};
		for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
			learn_key(&t4, rows[k].speed);
			rows[k].segments = 8;
			rows[k].longest = 100;
			rows[k].sum = cases[i].sums[k];
			rows[k].took_ms = (int64_t)(1000 * cases[i].took_s[k]);
		}
		assert_int_equal(learn_fold(s, rows, ARRAY_LEN(rows), true, 1, &err), 0);
		learn_speed(s, &t4, &cases[i].prior, &here);
		learn_speed(s, &l4, &cases[i].prior, &elsewhere);
		if (here.source != PLAN_MEASURED || here.gain_unknown != cases[i].unknown)
			fail_msg("%s: %d", cases[i].name, here.gain_unknown);
		if (elsewhere.source != PLAN_CARRIED || elsewhere.gain_unknown != cases[i].unknown)
			fail_msg("%s, elsewhere: %d", cases[i].name, elsewhere.gain_unknown);
		store_close(s);
	}
}

static void cold_starts_by_gpu(void **state)
{
	(void)state;
	struct pod_row rows[] = {pod_that_took("RTX 4090", 2000, 30000),
				 pod_that_took("NVIDIA GeForce RTX 4090", 4000, 50000),
				 pod_that_took("RTX 4090", 3000, 40000),
				 pod_that_took("H100 SXM", 1000, 90000),
				 pod_that_took("RTX 4090", 10, 10)};
	struct cold c = {.phase = {[COLD_SETUP] = {7, 9, 0}}};

	COPY_TEXT(rows[4].handed_from, "r1"); /* taken over warm: no cold start of its own */
	learn_cold(rows, ARRAY_LEN(rows), &(struct cold_what){.gpu = "RTX 4090"}, &c);
	assert_near(c.phase[COLD_QUEUE].p50_s, 3, 1e-9);
	assert_near(c.phase[COLD_BOOT].p50_s, 40, 1e-9);
	assert_int_equal(c.phase[COLD_BOOT].samples, 3);
	assert_near(c.phase[COLD_LOAD].p50_s, 0, 1e-9); /* within sync */
	assert_near(c.phase[COLD_SETUP].p50_s, 7, 0);
	/* fewer than three: of any GPU */
	c = (struct cold){0};
	learn_cold(rows, ARRAY_LEN(rows), &(struct cold_what){.gpu = "H100 SXM"}, &c);
	assert_int_equal(c.phase[COLD_BOOT].samples, 4);
	assert_near(c.phase[COLD_BOOT].p50_s, 45, 1e-9);
}

/* A free queue is one of its GPU alone, and costs nothing. */
static void free_queues_by_gpu(void **state)
{
	(void)state;
	struct pod_row rows[] = {
		pod_that_took("A40", 60000, 30000), pod_that_took("A40", 600000, 30000),
		pod_that_took("A40", 120000, 30000), pod_that_took("H100 SXM", 7200000, 30000)};
	struct cold c = {.queue_is_free = true};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		rows[i].run_ms = 1;
	learn_cold(rows, ARRAY_LEN(rows), &(struct cold_what){.gpu = "A40"}, &c);
	assert_near(c.phase[COLD_QUEUE].p50_s, 120, 1e-9);
	assert_near(cold_p50_s(&c) - cold_billed_p50_s(&c), 120, 1e-9);
	c = (struct cold){.queue_is_free = true};
	learn_cold(rows, ARRAY_LEN(rows), &(struct cold_what){.gpu = "L4"}, &c);
	assert_int_equal(c.phase[COLD_QUEUE].samples, 0); /* unknown */
	assert_int_equal(c.phase[COLD_BOOT].samples, 4);
}

static void interruptions_are_counted(void **state)
{
	(void)state;
	struct pod_row rows[] = {
		{.spot = true, .billed_ms = 3600000, .preempted = true},
		{.spot = true, .billed_ms = 7200000},
		{.spot = true, .billed_ms = 3600000, .preempted = true},
		{.spot = false, .billed_ms = 36000000},
	};
	int taken;
	double lived_s;

	/* four hours over two pods that were taken; the guess counts no more */
	assert_near(learn_interrupted_s(rows, 4, true, 8 * 3600, &taken, &lived_s), 2 * 3600, 1e-6);
	assert_int_equal(taken, 2);
	assert_near(lived_s, 4 * 3600, 1e-6);
	assert_near(learn_interrupted_s(rows, 0, true, 8 * 3600, &taken, &lived_s), 8 * 3600, 1e-6);
	/* none was taken in two hours, or in ten: no less than the guess, and no less than that */
	assert_near(learn_interrupted_s(rows + 1, 1, true, 8 * 3600, &taken, &lived_s), 8 * 3600,
		    1e-6);
	assert_int_equal(taken, 0);
	assert_near(learn_interrupted_s(rows + 1, 1, true, 3600, &taken, &lived_s), 7200, 1e-6);
	/* one, after three seconds */
	struct pod_row early = {.spot = true, .billed_ms = 3000, .preempted = true};
	assert_near(learn_interrupted_s(&early, 1, true, 8 * 3600, &taken, &lived_s), 3, 1e-6);
	/* on demand, and none was taken */
	assert_near(learn_interrupted_s(rows, 4, false, 0, &taken, &lived_s), 0, 0);
	rows[3].preempted = true;
	assert_near(learn_interrupted_s(rows, 4, false, 0, &taken, &lived_s), 10 * 3600, 1e-6);
}

/* An engine that only the host limits is as fast on any card. */
static void hosts_decide_where_cards_do_not(void **state)
{
	(void)state;
	struct store *s = store_memory();
	const struct learn_what had = {
		.engine = "e", .options = "o", .gpu = "none", .provider = "local"};
	struct learn_what what = {.engine = "e",
				  .options = "o",
				  .gpu = "H100",
				  .provider = "runpod",
				  .host_share = 1};
	const struct speed prior = {.each_s = 1};
	struct speed got;

	add_run(s, &had, 1, 1000);
	assert_int_equal(speed_of(s, &what, &prior, &got, NULL), PLAN_CARRIED);
	assert_near(speed_batch_s(&got, 100, 800) / speed_batch_s(&truth, 100, 800), 1, .02);
	what.host_share = 0;
	/* no card to compare with */
	assert_int_equal(speed_of(s, &what, &prior, &got, NULL), PLAN_PRIOR);
	store_close(s);
}

static struct pod_row pod_prepared(const char *image, const char *setup, int64_t setup_ms,
				   int64_t synced_bytes)
{
	struct pod_row row = pod_that_took("L4", 1000, 10000);

	COPY_TEXT(row.image, image);
	COPY_TEXT(row.setup, setup);
	row.setup_ms = setup_ms;
	row.synced_bytes = synced_bytes;
	row.synced_ms = row.connected_ms + setup_ms + (synced_bytes > 0 ? 4000 : 100);
	row.ready_ms = row.synced_ms + 5000;
	return row;
}

static void setup_is_a_phase_of_its_own(void **state)
{
	(void)state;
	struct pod_row rows[] = {
		pod_prepared("i", "s1", 90000, 1000),
		pod_prepared("i", "s1", 110000, 2000),
		pod_prepared("i", "s2", 7000, 3000),
		pod_prepared("i", "s1", 0, 0),
		pod_prepared("i", "s1", 0, 0),
		pod_prepared("i", "s1", 0, 0),
		pod_prepared("i", "s1", 0, SYNCED_BY_ANOTHER),
	};
	struct cold_what what = {.gpu = "L4", .image = "i", .setup = "s1"};
	struct cold c = {.phase = {[COLD_SETUP] = {300, 600, 0}}};

	rows[3].synced_ms = 0; /* its workers were started at once */
	rows[3].ready_ms = rows[3].connected_ms + 5000;
	/* it waited for the first one's setup: neither setup nor sync of its own */
	rows[6].synced_ms = rows[6].connected_ms + 95000;
	rows[6].ready_ms = rows[6].synced_ms + 5000;
	learn_cold(rows, ARRAY_LEN(rows), &what, &c);
	assert_int_equal(c.phase[COLD_SETUP].samples, 2);
	assert_near(c.phase[COLD_SETUP].p50_s, 100, 1e-9);
	assert_int_equal(c.phase[COLD_SYNC].samples, 3);
	assert_near(c.phase[COLD_SYNC].p50_s, 4, 1e-9);
	assert_near(c.phase[COLD_LOAD].p50_s, 5, 1e-9);
	what.volume_ready = true;
	learn_cold(rows, ARRAY_LEN(rows), &what, &c);
	assert_int_equal(c.phase[COLD_SYNC].samples, 3);
	assert_near(c.phase[COLD_SYNC].p50_s, .1, 1e-9);
	/* a setup that has never run keeps its prior */
	c.phase[COLD_SETUP] = (struct cold_time){300, 600, 0};
	what.setup = "s3";
	learn_cold(rows, ARRAY_LEN(rows), &what, &c);
	assert_near(c.phase[COLD_SETUP].p50_s, 300, 0);
}

/* Workers that say what took how long before their hello. */
static void loads_have_phases(void **state)
{
	(void)state;
	struct pod_row rows[4];
	const struct cold_what what = {.gpu = "L4", .image = "i", .setup = ""};
	struct cold c = {.phase = {[COLD_LOAD] = {25, 75, 0}}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rows[i] = pod_prepared("i", "", 0, 0);
		rows[i].ready_ms = rows[i].synced_ms + 20000;
		pod_row_set_load(&rows[i], (int64_t[LOAD_PHASES]){[LOAD_IMPORT] = 2000,
								  [LOAD_READ] = 7000,
								  [LOAD_BUILD] = 1000,
								  [LOAD_WARM_UP] = 5000});
	}
	learn_cold(rows, 3, &what, &c);
	assert_near(c.phase[COLD_IMPORT].p50_s, 2, 1e-9);
	assert_near(c.phase[COLD_READ].p50_s, 7, 1e-9);
	assert_near(c.phase[COLD_BUILD].p50_s, 1, 1e-9);
	assert_near(c.phase[COLD_WARM_UP].p50_s, 5, 1e-9);
	assert_near(c.phase[COLD_PROBE].p90_s, 0, 0);
	assert_near(c.phase[COLD_LOAD].p50_s, 5, 1e-9); /* what is left of 20 s */
	assert_int_equal(c.phase[COLD_LOAD].samples, 3);
	/* read while Python was imported: shares of the time that both took */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		pod_row_set_load(&rows[i], (int64_t[LOAD_PHASES]){
						   [LOAD_IMPORT] = 10000, [LOAD_READ] = 30000});
	learn_cold(rows, 3, &what, &c);
	assert_near(c.phase[COLD_IMPORT].p50_s, 5, 1e-9);
	assert_near(c.phase[COLD_READ].p50_s, 15, 1e-9);
	assert_near(c.phase[COLD_LOAD].p50_s, 0, 1e-9);
	/* the agent's part, before the worker's */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		pod_row_set_load(&rows[i], (int64_t[LOAD_PHASES]){
						   [LOAD_UNPACK] = 12000, [LOAD_IMPORT] = 3000});
	learn_cold(rows, 3, &what, &c);
	assert_near(c.phase[COLD_UNPACK].p50_s, 12, 1e-9);
	assert_near(c.phase[COLD_IMPORT].p50_s, 3, 1e-9);
	assert_near(c.phase[COLD_LOAD].p50_s, 5, 1e-9);
	/* a pod of an earlier burst, or of a worker that does not say: all of it is "load", and the
	 * sum stays true */
	for (size_t i = 0; i < 3; i++)
		pod_row_set_load(&rows[i], (int64_t[LOAD_PHASES]){0});
	learn_cold(rows, 4, &what, &c);
	assert_near(c.phase[COLD_LOAD].p50_s, 20, 1e-9);
	assert_near(c.phase[COLD_READ].p50_s, 0, 1e-9);
	/* numbers of a pod that lies */
	pod_row_set_load(&rows[0], (int64_t[LOAD_PHASES]){[LOAD_IMPORT] = STORE_NUMBER_MOST,
							  [LOAD_READ] = STORE_NUMBER_MOST,
							  [LOAD_BUILD] = STORE_NUMBER_MOST});
	learn_cold(rows, 1, &what, &c);
	assert_true(c.phase[COLD_IMPORT].p50_s + c.phase[COLD_READ].p50_s +
			    c.phase[COLD_BUILD].p50_s <=
		    20);
}

static void images_come_up_apart(void **state)
{
	(void)state;
	struct pod_row rows[6];
	struct cold c = {0};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rows[i] = pod_that_took("L4", 1000, i < 3 ? 20000 : 200000);
		COPY_TEXT(rows[i].image, i < 3 ? "small" : "large");
	}
	learn_cold(rows, ARRAY_LEN(rows), &(struct cold_what){.gpu = "L4", .image = "large"}, &c);
	assert_near(c.phase[COLD_BOOT].p50_s, 200, 1e-9);
	learn_cold(rows, ARRAY_LEN(rows), &(struct cold_what){.gpu = "H100 SXM", .image = "small"},
		   &c);
	assert_near(c.phase[COLD_BOOT].p50_s, 20, 1e-9); /* another GPU, the same image */
	learn_cold(rows, ARRAY_LEN(rows), &(struct cold_what){.gpu = "L4", .image = "new"}, &c);
	assert_near(c.phase[COLD_BOOT].p50_s, 110, 1e-9);
}

static void what_comes_after_the_last_batch(void **state)
{
	(void)state;
	struct pod_row rows[3] = {{.worked_ms = 1000, .safe_ms = 1500, .released_ms = 1700},
				  {.worked_ms = 1000, .safe_ms = 1700, .released_ms = 2000},
				  {.worked_ms = 1000, .safe_ms = 0, .released_ms = 9000}};
	struct cold_time fetch = {3, 4, 0}, release = {5, 6, 0};

	learn_tail(rows, 0, &fetch, &release);
	assert_near(fetch.p50_s + release.p50_s, 8, 0);
	learn_tail(rows, ARRAY_LEN(rows), &fetch, &release);
	assert_int_equal(fetch.samples, 2);
	assert_near(fetch.p50_s, .6, 1e-9);
	assert_near(release.p50_s, .25, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_of_one_kind_keep_the_ratio_of_another_gpu),
		cmocka_unit_test(two_batches_are_better_than_nothing),
		cmocka_unit_test(a_command_is_learned_by_its_size),
		cmocka_unit_test(setup_is_a_phase_of_its_own),
		cmocka_unit_test(loads_have_phases),
		cmocka_unit_test(images_come_up_apart),
		cmocka_unit_test(what_comes_after_the_last_batch),
		cmocka_unit_test(keys_are_whole),
		cmocka_unit_test(the_nearest_measurement_is_taken),
		cmocka_unit_test(newer_runs_count_more),
		cmocka_unit_test(few_batches_are_no_measurement),
		cmocka_unit_test(runs_that_differ_widen_the_estimate),
		cmocka_unit_test(gain_of_larger_batches),
		cmocka_unit_test(cold_starts_by_gpu),
		cmocka_unit_test(free_queues_by_gpu),
		cmocka_unit_test(interruptions_are_counted),
		cmocka_unit_test(hosts_decide_where_cards_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
