/* test_store_rows.c - each kind of row comes back as it was put, from both kinds of ledger. */
#include "store_bed.h"
#include "store/facts.h"

#include <math.h>

static size_t align_of(enum column_type type)
{
	switch (type) {
	case COLUMN_TEXT: return 1;
	case COLUMN_BOOL: return _Alignof(bool);
	case COLUMN_INT: return _Alignof(int);
	case COLUMN_INT64: return _Alignof(int64_t);
	case COLUMN_DOUBLE: return _Alignof(double);
	case COLUMN_STATE: return _Alignof(enum run_status);
	}
	return 0;
}

static size_t align_up(size_t at, size_t to)
{
	return (at + to - 1) / to * to;
}

static const struct column *column_at(const struct table *t, size_t from, size_t *at)
{
	const struct column *next = NULL;

	for (size_t i = 0; i < t->count; i++)
		if (t->columns[i].offset >= from && (!next || t->columns[i].offset < next->offset))
			next = &t->columns[i];
	*at = next ? next->offset : t->row_size;
	return next;
}

/* A field that no column knows would be a hole in the struct larger than the compiler makes. */
static void no_field_is_forgotten(void **state)
{
	(void)state;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		const struct table *t = &store_tables[i];
		const struct column *c;
		size_t end = 0, at, widest = 1;
		while ((c = column_at(t, end, &at))) {
			widest = MAX(widest, align_of(c->type));
			if (at != align_up(end, align_of(c->type)))
				fail_msg("%s: something is missing before %s", t->name, c->name);
			end = at + c->size;
		}
		if (align_up(end, widest) != t->row_size)
			fail_msg("%s: something is missing at its end", t->name);
	}
}

/* A value in every field, none like another: texts as long as they can be. */
static void fill(const struct table *t, void *row, int seed)
{
	memset(row, 0x5a, t->row_size); /* what is between and behind must not matter */
	for (size_t i = 0; i < t->count; i++) {
		const struct column *c = &t->columns[i];
		char *field = (char *)row + c->offset;
		int64_t number = -STORE_NUMBER_MOST + seed * 1000 + (int64_t)i;
		switch (c->type) {
		case COLUMN_TEXT:
			memset(field, 'a' + (int)(i + (size_t)seed) % 26, c->size - 1);
			field[c->size - 1] = '\0';
			break;
		case COLUMN_INT: *(int *)field = INT32_MIN + seed * 1000 + (int)i; break;
		case COLUMN_INT64: memcpy(field, &number, sizeof(number)); break;
		case COLUMN_BOOL: *(bool *)field = (i + (size_t)seed) % 2; break;
		case COLUMN_DOUBLE: *(double *)field = 0.1 * (double)i + seed; break;
		case COLUMN_STATE: *(unsigned *)field = (unsigned)seed % c->words->count; break;
		}
	}
}

/* The columns as they were put, and zeros behind and between them. */
static void check_row(const struct table *t, const void *got, const void *put)
{
	CLEANUP(free_text) char *want = xcalloc(1, t->row_size);

	for (size_t i = 0; i < t->count; i++) {
		const struct column *c = &t->columns[i];
		memcpy(want + c->offset, (const char *)put + c->offset, c->size);
		if (memcmp((const char *)got + c->offset, want + c->offset, c->size))
			fail_msg("%s.%s came back changed", t->name, c->name);
	}
	assert_memory_equal(got, want, t->row_size);
}

static void every_field_comes_back(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct err err = {0};

	for (int seed = 0; seed < 2;
	     seed++) { /* the second time it is there already, or is another */
		struct run_row run, got_run;
		struct pod_row pod, got_pod;
		fill(&store_tables[TABLE_RUN], &run, seed);
		fill(&store_tables[TABLE_POD], &pod, seed);
		ok(store_put_run(s, &run, &err), &err);
		ok(store_put_pod(s, &pod, &err), &err);
		ok(store_run(s, run.id, &got_run, &err), &err);
		ok(store_pod(s, pod.attempt, &got_pod, &err), &err);
		check_row(&store_tables[TABLE_RUN], &got_run, &run);
		check_row(&store_tables[TABLE_POD], &got_pod, &pod);
	}
	struct segment_row segment, *segments;
	struct volume_row volume, *volumes;
	size_t n;
	fill(&store_tables[TABLE_SEGMENT], &segment, 3);
	fill(&store_tables[TABLE_VOLUME], &volume, 3);
	ok(store_put_segments(s, &segment, 1, &err), &err);
	ok(store_put_volume(s, &volume, &err), &err);
	ok(store_segments(s, segment.run, &segments, &n, &err), &err);
	assert_int_equal(n, 1);
	check_row(&store_tables[TABLE_SEGMENT], segments, &segment);
	ok(store_volumes(s, &volumes, &n, &err), &err);
	assert_int_equal(n, 1);
	check_row(&store_tables[TABLE_VOLUME], volumes, &volume);
	free(segments);
	free(volumes);
	struct batch_row batch, *batches;
	struct speed_row speed, *speeds;
	for (int seed = 0; seed < 2; seed++) {
		fill(&store_tables[TABLE_BATCH], &batch, seed);
		fill(&store_tables[TABLE_SPEED], &speed, seed);
		ok(store_put_batch(s, &batch, &err), &err);
		ok(store_put_speed(s, &speed, &err), &err);
		ok(store_batches(s, batch.run, &batches, &n, &err), &err);
		assert_int_equal(n, 1);
		check_row(&store_tables[TABLE_BATCH], batches, &batch);
		ok(store_speeds(s, speed.key, &speeds, &n, &err), &err);
		assert_int_equal(n, 1);
		check_row(&store_tables[TABLE_SPEED], speeds, &speed);
		free(batches);
		free(speeds);
	}
	struct choice_row choice, got_choice;
	struct forecast_row forecast, *forecasts;
	for (int seed = 0; seed < 2; seed++) {
		fill(&store_tables[TABLE_CHOICE], &choice, seed);
		fill(&store_tables[TABLE_FORECAST], &forecast, seed);
		ok(store_put_choice(s, &choice, &err), &err);
		ok(store_put_forecast(s, &forecast, &err), &err);
		ok(store_choice(s, choice.run, &got_choice, &err), &err);
		check_row(&store_tables[TABLE_CHOICE], &got_choice, &choice);
		ok(store_forecasts(s, forecast.run, &forecasts, &n, &err), &err);
		assert_int_equal(n, 1);
		check_row(&store_tables[TABLE_FORECAST], forecasts, &forecast);
		free(forecasts);
	}
	ok(store_speeds(s, "", &speeds, &n, &err), &err);
	assert_int_equal(n, 2);
	free(speeds);
	struct request_row request, *requests;
	for (int seed = 0; seed < 2; seed++) {
		fill(&store_tables[TABLE_REQUEST], &request, seed);
		ok(store_put_request(s, &request, &err), &err);
		ok(store_requests_named(s, request.id, &requests, &n, &err), &err);
		assert_int_equal(n, 1);
		check_row(&store_tables[TABLE_REQUEST], requests, &request);
		free(requests);
	}
}

static void schedules_come_back(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct schedule_row schedule, other, got, *schedules;
	struct err err = {0};
	size_t n;

	fill(&store_tables[TABLE_SCHEDULE], &schedule, 1);
	fill(&store_tables[TABLE_SCHEDULE], &other, 2);
	ok(store_put_schedule(s, &schedule, &err), &err);
	ok(store_put_schedule(s, &other, &err), &err);
	ok(store_schedule(s, schedule.name, &got, &err), &err);
	check_row(&store_tables[TABLE_SCHEDULE], &got, &schedule);
	ok(store_remove_schedule(s, schedule.name, &err), &err);
	ok(store_remove_schedule(s, "never was", &err), &err);
	assert_int_equal(store_schedule(s, schedule.name, &got, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	ok(store_schedules(s, &schedules, &n, &err), &err);
	assert_int_equal(n, 1);
	free(schedules);
}

static void odd_values_come_back(void **state)
{
	static const char *const texts[] = {"",
					    "it's \"quoted\"; DROP TABLE run; --",
					    "100% _[*]?",
					    "caf\xc3\xa9",
					    "tab\tnewline\n",
					    "\xff not UTF-8"};
	struct store *s = ((struct bed *)*state)->s;
	struct segment_row segment = {.run = "r", .id = "s", .seconds = NAN}, *got;
	struct err err = {0};
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct run_row row = run_named("odd", "c", "running", 1), back;
		COPY_TEXT(row.error, texts[i]);
		ok(store_put_run(s, &row, &err), &err);
		ok(store_run(s, "odd", &back, &err), &err);
		assert_string_equal(back.error, texts[i]);
	}
	ok(store_put_segments(s, &segment, 1, &err), &err);
	ok(store_segments(s, "r", &got, &n, &err), &err);
	assert_true(got[0].seconds == 0.0);
	free(got);
	segment.seconds = -1.0 / 3;
	memset(segment.reason, 'x', sizeof(segment.reason)); /* no end: cut, not read past */
	ok(store_put_segments(s, &segment, 1, &err), &err);
	ok(store_segments(s, "r", &got, &n, &err), &err);
	assert_true(got[0].seconds == -1.0 / 3);
	assert_int_equal(strlen(got[0].reason), sizeof(segment.reason) - 1);
	free(got);
}

/* Whatever is read can be added to the time of day and multiplied by a thousand. */
static void numbers_have_bounds(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct run_row row = run_named("odd", "c", "running", INT64_MAX), back;
	struct segment_row segment = {.run = "r",
				      .id = "s",
				      .bytes = INT64_MIN,
				      .seconds = INFINITY},
			   *got;
	struct err err = {0};
	size_t n;

	ok(store_put_run(s, &row, &err), &err);
	ok(store_run(s, "odd", &back, &err), &err);
	assert_true(back.started_ms == STORE_NUMBER_MOST);
	ok(store_put_segments(s, &segment, 1, &err), &err);
	ok(store_segments(s, "r", &got, &n, &err), &err);
	assert_true(got[0].bytes == -STORE_NUMBER_MOST && got[0].seconds == 0);
	free(got);
}

static void segments_belong_to_their_run(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct segment_row many[50] = {{{0}}};
	struct err err = {0};
	struct segment_row *rows;
	size_t n;

	put_segment(s, "r1", "b", 1);
	put_segment(s, "r2", "b", 7);
	put_segment(s, "r1", "a", 2);
	put_segment(s, "r1", "b", 3);
	put_segment(s, "r1b", "", 4); /* "r1" + "b" once more */
	check_segments(s, "r1", "b:3 a:2");
	check_segments(s, "r2", "b:7");
	check_segments(s, "r1b", ":4");
	for (int i = 0; i < 50; i++) {
		COPY_TEXT(many[i].run, "r3");
		snprintf(many[i].id, sizeof(many[i].id), "%d", i % 40);
		many[i].tries = i;
	}
	ok(store_put_segments(s, many, 50, &err), &err);
	ok(store_segments(s, "r3", &rows, &n, &err), &err);
	assert_int_equal(n, 40);
	assert_int_equal(rows[0].tries, 40);
	assert_int_equal(rows[39].tries, 39);
	free(rows);
}

static void volumes_come_and_go(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct err err = {0};

	put_volume(s, "modal", "v1", 1);
	put_volume(s, "runpod", "v1", 2);
	put_volume(s, "modal", "v2", 3);
	put_volume(s, "modal", "v1", 4);
	check_volumes(s, "modal/v1:4 runpod/v1:2 modal/v2:3");
	ok(store_remove_volume(s, "modal", "v1", &err), &err);
	ok(store_remove_volume(s, "modal", "v1", &err), &err);
	ok(store_remove_volume(s, "local", "v9", &err), &err);
	check_volumes(s, "runpod/v1:2 modal/v2:3");
	put_volume(s, "modal", "v1", 5);
	check_volumes(s, "runpod/v1:2 modal/v2:3 modal/v1:5");
}

static void facts_are_kept(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct err err = {0};
	char much[5000], small[4];

	memset(much, 'm', sizeof(much));
	ok(store_put_fact(s, "a", "1", &err), &err);
	ok(store_put_fact(s, "b", "", &err), &err);
	ok(store_put_fact(s, "a", "long enough to be cut", &err), &err);
	check_fact(s, "a", "long enough to be cut");
	check_fact(s, "b", "");
	check_fact(s, "c", NULL);
	assert_true(store_fact(s, "a", small, sizeof(small)));
	assert_string_equal(small, "lon");
	much[4096] = '\0';
	assert_int_equal(store_put_fact(s, "a", much, &err), -1);
	check_fact(s, "a", "long enough to be cut");
	much[4095] = '\0';
	ok(store_put_fact(s, "a", much, &err), &err);
	much[96] = '\0';
	assert_int_equal(store_put_fact(s, much, "x", &err), -1);
	check_fact(s, much, NULL);
}

static void states_have_words(void **state)
{
	static const struct state_words *const all[] = {&run_status_words, &pod_row_state_words,
							&request_state_words};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		for (unsigned k = 0; k < all[i]->count; k++)
			assert_int_equal(state_read(all[i], state_word(all[i], k)), k);
		assert_string_equal(state_word(all[i], all[i]->count), "unknown");
		assert_int_equal(state_read(all[i], "Done"), 0);
		assert_int_equal(state_read(all[i], ""), 0);
		assert_int_equal(state_read(all[i], NULL), 0);
	}
	assert_string_equal(run_status_word(RUN_UNRELEASED), "unreleased");
	assert_string_equal(pod_row_state_word(POD_ROW_FAILED), "failed");
	assert_string_equal(request_state_word(REQUEST_REMOVED), "removed");
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Ledgers on disk have these names. */
static void facts_keep_their_names(void **state)
{
	static const struct {
		enum fact fact;
		const char *a, *b, *name;
	} cases[] = {
		{FACT_MACHINE, NULL, NULL, "machine"},
		{FACT_UNFINISHED, "k7x2fd", NULL, "unfinished:k7x2fd"},
		{FACT_VOLUME_TAKEN, "k7x2fd", "abc", "gone:k7x2fd:abc"},
		{FACT_CHECKPOINT, "k7x2fd", "s001", "checkpoint:k7x2fd:s001"},
		{FACT_HOOK, "abc", NULL, "hook:abc"},
		{FACT_ENDED, "abc", NULL, "ended:abc"},
		{FACT_QUEUE, "abc", NULL, "queue:abc"},
		{FACT_QUEUE_POD, "abc", NULL, "queue-pod:abc"},
		{FACT_AHEAD, "nightly", NULL, "ahead:nightly"},
		{FACT_TRAVEL, HASH, NULL, "travel:0123456789abcdef01234567"},
		{FACT_SAVES, HASH, NULL, "saves:0123456789abcdef0123456789abcdef01234567"},
		{FACT_SWITCH, "runpod", NULL, "switch.runpod"},
		{FACT_NO_SWITCH, "runpod a", NULL, "no_switch:runpod a"},
		{FACT_RATE, HASH, NULL, "rate:0123456789abcdef"},
		{FACT_BAD_OFFER, "modal", HASH, "bad:modal:0123456789abcdef01234567"},
		{FACT_PRICES, "modal", HASH, "prices:modal:0123456789abcdef01234567"},
		{FACT_UNFIT_CARD, HASH, NULL, "unfit:0123456789abcdef0123456789abcdef01234567"},
		{FACT_GAPS, HASH, NULL, "gaps:0123456789abcdef0123456789abcdef"},
		{FACT_IMAGE, "ac", HASH, "image:ac:0123456789abcdef"},
		{FACT_IMAGE_WITH, "ac", HASH, "image-with:ac:0123456789abcdef"},
		{FACT_IMAGE_ENV, HASH, NULL, "image-env:0123456789abcdef0123456789abcdef01234567"},
		{FACT_VOLUME_CREATE, "abc", NULL, "volume-create:abc"},
		{FACT_VOLUME_OWNER, "abc", NULL, "volume-of:abc"},
		{FACT_VOLUME_GRANT, "abc", NULL, "volume-ok:abc"},
		{FACT_KIT, "local", "v1", "kit:local:v1"},
		{FACT_TREE, "local", "v1", "tree:local:v1"},
		{FACT_CODE, HASH, NULL, "code:0123456789abcdef0123456789abcdef01234567"},
		{FACT_MADE_ENV, HASH, NULL, "made-env:0123456789abcdef0123456789abcdef01234567"},
		{FACT_MADE_DEBS, HASH, NULL, "made-debs:0123456789abcdef0123456789abcdef01234567"},
	};
	struct store *s = ((struct bed *)*state)->s;
	struct err err = {0};
	char got[16];

	assert_int_equal(ARRAY_LEN(cases), FACT_COUNT);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *a = cases[i].a, *b = cases[i].b;
		assert_int_equal(cases[i].fact, i);
		assert_false(fact_get(s, cases[i].fact, a, b, got, sizeof(got)));
		ok(fact_put(s, cases[i].fact, a, b, "yes", &err), &err);
		if (!store_fact(s, cases[i].name, got, sizeof(got)) || strcmp(got, "yes"))
			fail_msg("%s: not under its name", cases[i].name);
		ok(store_put_fact(s, cases[i].name, "as said", &err), &err);
		assert_true(fact_get(s, cases[i].fact, a, b, got, sizeof(got)));
		assert_string_equal(got, "as said");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_have_words),
		cmocka_unit_test(no_field_is_forgotten),
		BOTH(every_field_comes_back),
		BOTH(schedules_come_back),
		BOTH(odd_values_come_back),
		BOTH(numbers_have_bounds),
		BOTH(segments_belong_to_their_run),
		BOTH(volumes_come_and_go),
		BOTH(facts_are_kept),
		BOTH(facts_keep_their_names),
	};

	return cmocka_run_group_tests_name("store rows", tests, make_folder, drop_folder);
}
