/* test_store.c - one suite that both ledgers pass, the two in lockstep, and what only a file can
 * suffer. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "store/store_impl.h"
#include "ledgers.h"

static char folder[] = "/tmp/burst-store-XXXXXX";

struct bed { /* what each test gets */
	struct store *s;
	char *path;
};

static int make_bed(void **state)
{
	struct bed *bed = xcalloc(1, sizeof(*bed));
	static int serial;

	bed->path = xasprintf("%s/ledger-%d.db", folder, ++serial);
	*state = bed;
	return 0;
}

static void open_file(struct bed *bed)
{
	struct err err = {0};

	if (store_open(&bed->s, bed->path, &err) < 0)
		fail_msg("%s", err.msg);
}

static void reopen(struct bed *bed)
{
	store_close(bed->s);
	bed->s = NULL;
	open_file(bed);
}

static int open_sqlite(void **state)
{
	make_bed(state);
	open_file(*state);
	return 0;
}

static int open_memory(void **state)
{
	make_bed(state);
	((struct bed *)*state)->s = store_memory();
	return 0;
}

static int drop_bed(void **state)
{
	struct bed *bed = *state;

	store_close(bed->s);
	free(bed->path);
	free(bed);
	return 0;
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	(void)state;
	return path_remove_tree(folder, NULL);
}

static void ok(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err->msg);
}

/* ---- rows to put, and short ways to look ---- */

static struct run_row run_named(const char *id, const char *config, const char *status,
				int64_t started_ms)
{
	struct run_row row = {.started_ms = started_ms};

	COPY_TEXT(row.id, id);
	COPY_TEXT(row.config, config);
	COPY_TEXT(row.status, status);
	return row;
}

static void put_run(struct store *s, const char *id, const char *config, const char *status,
		    int64_t started_ms)
{
	struct run_row row = run_named(id, config, status, started_ms);
	struct err err = {0};

	ok(store_put_run(s, &row, &err), &err);
}

static void put_pod(struct store *s, const char *attempt, const char *run, const char *id,
		    const char *state)
{
	struct pod_row row = {0};
	struct err err = {0};

	COPY_TEXT(row.attempt, attempt);
	COPY_TEXT(row.run, run);
	COPY_TEXT(row.id, id);
	COPY_TEXT(row.state, state);
	ok(store_put_pod(s, &row, &err), &err);
}

static void put_segment(struct store *s, const char *run, const char *id, int tries)
{
	struct segment_row row = {.state = SEGMENT_ROW_SAFE, .tries = tries};
	struct err err = {0};

	COPY_TEXT(row.run, run);
	COPY_TEXT(row.id, id);
	ok(store_put_segments(s, &row, 1, &err), &err);
}

static void put_volume(struct store *s, const char *provider, const char *id, int64_t size_gb)
{
	struct volume_row row = {.size_gb = size_gb};
	struct err err = {0};

	COPY_TEXT(row.provider, provider);
	COPY_TEXT(row.id, id);
	ok(store_put_volume(s, &row, &err), &err);
}

static void check_words(const char *what, struct str *got, const char *want)
{
	if (strcmp(str_text(got), want))
		fail_msg("%s: got \"%s\", want \"%s\"", what, str_text(got), want);
	str_free(got);
}

/* "r3 r2 r1": the ids in the order in which they are listed. */
static void check_runs(struct store *s, const char *config, bool running, size_t most,
		       const char *want)
{
	struct run_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_runs(s, config, running, most, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s", i ? " " : "", rows[i].id);
	assert_true((rows == NULL) == (n == 0));
	free(rows);
	check_words("runs", &got, want);
}

static void check_pods(struct store *s, const char *run, bool open_only, const char *want)
{
	struct pod_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_pods(s, run, open_only, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s", i ? " " : "", rows[i].attempt);
	assert_true((rows == NULL) == (n == 0));
	free(rows);
	check_words("pods", &got, want);
}

static void check_segments(struct store *s, const char *run, const char *want)
{
	struct segment_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_segments(s, run, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s:%d", i ? " " : "", rows[i].id, rows[i].tries);
	free(rows);
	check_words("segments", &got, want);
}

static void check_volumes(struct store *s, const char *want)
{
	struct volume_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_volumes(s, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s/%s:%d", i ? " " : "", rows[i].provider, rows[i].id,
			 (int)rows[i].size_gb);
	free(rows);
	check_words("volumes", &got, want);
}

static void check_fact(struct store *s, const char *name, const char *want)
{
	char got[64] = "untouched";
	bool found = store_fact(s, name, got, sizeof(got));

	if (found != (want != NULL) || strcmp(got, want ? want : "untouched"))
		fail_msg("fact %s: got \"%s\", want \"%s\"", name, got, want ? want : "none");
}

/* ---- every field ---- */

static size_t align_of(enum column_type type)
{
	switch (type) {
	case COLUMN_TEXT: return 1;
	case COLUMN_BOOL: return _Alignof(bool);
	case COLUMN_INT: return _Alignof(int);
	case COLUMN_INT64: return _Alignof(int64_t);
	case COLUMN_DOUBLE: return _Alignof(double);
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
		}
	}
}

static void check_row(const struct table *t, const void *got, const void *put)
{
	union any_row want;

	row_copy(t, &want, put);
	for (size_t i = 0; i < t->count; i++)
		if (memcmp((const char *)got + t->columns[i].offset,
			   (char *)&want + t->columns[i].offset, t->columns[i].size))
			fail_msg("%s.%s came back changed", t->name, t->columns[i].name);
	assert_memory_equal(got, &want, t->row_size);
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

static void schedules_come_back_and_go_with_their_firings(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct schedule_row schedule, other, got, *schedules;
	struct firing_row firing, *firings;
	struct err err = {0};
	size_t n;

	fill(&store_tables[TABLE_SCHEDULE], &schedule, 1);
	fill(&store_tables[TABLE_SCHEDULE], &other, 2);
	ok(store_put_schedule(s, &schedule, &err), &err);
	ok(store_put_schedule(s, &other, &err), &err);
	ok(store_schedule(s, schedule.name, &got, &err), &err);
	check_row(&store_tables[TABLE_SCHEDULE], &got, &schedule);
	for (int seed = 0; seed < 3; seed++) {
		fill(&store_tables[TABLE_FIRING], &firing, seed);
		COPY_TEXT(firing.schedule, seed < 2 ? schedule.name : other.name);
		ok(store_put_firing(s, &firing, &err), &err);
	}
	ok(store_firings(s, schedule.name, 1, &firings, &n, &err), &err);
	assert_int_equal(n, 1);
	fill(&store_tables[TABLE_FIRING], &firing, 1); /* the newest */
	assert_string_equal(firings[0].due, firing.due);
	ok(store_remove_firing(s, &firings[0], &err), &err);
	free(firings);
	ok(store_firings(s, schedule.name, 0, &firings, &n, &err), &err);
	assert_int_equal(n, 1);
	free(firings);
	ok(store_remove_schedule(s, schedule.name, &err), &err);
	ok(store_remove_schedule(s, "never was", &err), &err);
	assert_int_equal(store_schedule(s, schedule.name, &got, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	ok(store_firings(s, schedule.name, 0, &firings, &n, &err), &err);
	assert_int_equal(n, 0);
	ok(store_firings(s, other.name, 0, &firings, &n, &err), &err);
	assert_int_equal(n, 1);
	free(firings);
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

/* ---- asking ---- */

static void an_empty_ledger_is_empty(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct run_row run = {.id = "kept"};
	struct pod_row pod = {.attempt = "kept"};
	struct err err = {0};

	check_runs(s, NULL, false, 0, "");
	check_pods(s, NULL, false, "");
	check_segments(s, "r", "");
	check_volumes(s, "");
	check_fact(s, "f", NULL);
	assert_int_equal(store_run(s, "r", &run, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_string_equal(run.id, "kept");
	assert_int_equal(store_pod(s, "p", &pod, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_string_equal(pod.attempt, "kept");
	ok(store_put_segments(s, NULL, 0, &err), &err);
}

static void add_ids(struct str *to, const char *first, const char *second)
{
	str_addf(to, "%s%s%s%s", to->len ? " " : "", first, second[0] ? "/" : "", second);
}

static void ids_are_found_by_a_part(void **state)
{
	static const struct {
		const char *name, *ask, *runs, *pods;
	} cases[] = {
		{"whole", "7f3a01", "7f3a01", "a1/x7f3a01"},
		{"the beginning", "7f3", "7f3a01", "a1/x7f3a01"},
		{"the middle", "3a", "7f3a01", "a1/x7f3a01"},
		{"the end", "c", "abc", "a2"},
		{"several", "7", "7f3a01 7f 7e", "a1/x7f3a01"},
		{"an attempt", "a1", "", "a1/x7f3a01"},
		{"a name", "urst-c", "", "a2"},
		{"none", "q", "", ""},
		{"longer than it", "abcd", "", ""},
		{"a pattern", "a%", "", ""},
		{"another pattern", "a*", "", ""},
		{"other case", "ABC", "", ""},
		{"not ASCII", "\xa9t", "\xc3\xa9t\xc3\xa9", ""},
	};
	struct store *s = ((struct bed *)*state)->s;
	struct pod_row pod = {.attempt = "a2", .run = "abc", .name = "burst-c"};
	struct err err = {0};

	put_run(s, "7f3a01", "c", "done", 1);
	put_run(s, "7f", "c", "done", 2);
	put_run(s, "7e", "c", "done", 3);
	put_run(s, "abc", "c", "done", 4);
	put_run(s, "\xc3\xa9t\xc3\xa9", "c", "done", 5);
	put_pod(s, "a1", "7f", "x7f3a01", "live");
	ok(store_put_pod(s, &pod, &err), &err);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str got_runs = STR_INIT, got_pods = STR_INIT;
		struct run_row *runs = NULL;
		struct pod_row *pods = NULL;
		size_t run_count, pod_count;
		ok(store_runs_named(s, cases[i].ask, &runs, &run_count, &err), &err);
		ok(store_pods_named(s, cases[i].ask, &pods, &pod_count, &err), &err);
		for (size_t k = 0; k < run_count; k++)
			add_ids(&got_runs, runs[k].id, "");
		for (size_t k = 0; k < pod_count; k++)
			add_ids(&got_pods, pods[k].attempt, pods[k].id);
		if (strcmp(str_text(&got_runs), cases[i].runs) ||
		    strcmp(str_text(&got_pods), cases[i].pods))
			fail_msg("%s: got runs \"%s\", pods \"%s\"", cases[i].name,
				 str_text(&got_runs), str_text(&got_pods));
		free(runs);
		free(pods);
	}
}

static void runs_are_listed_newest_first(void **state)
{
	struct store *s = ((struct bed *)*state)->s;

	put_run(s, "r1", "a.cfg", "running", 100);
	put_run(s, "r2", "b.cfg", "running", 300);
	put_run(s, "r3", "a.cfg", "done", 200);
	put_run(s, "r4", "a.cfg", "running", 200); /* in the same ms: the later put is newer */
	put_run(s, "r1", "a.cfg", "running", 100); /* put again: stays where it was */
	check_runs(s, NULL, false, 0, "r2 r4 r3 r1");
	check_runs(s, NULL, false, 2, "r2 r4");
	check_runs(s, NULL, false, 9, "r2 r4 r3 r1");
	check_runs(s, NULL, true, 0, "r2 r4 r1");
	check_runs(s, NULL, true, 1, "r2");
	check_runs(s, "a.cfg", false, 0, "r4 r3 r1");
	check_runs(s, "a.cfg", true, 0, "r4 r1");
	check_runs(s, "a.cfg", true, 1, "r4");
	check_runs(s, "a", false, 0, "");
	put_run(s, "r2", "b.cfg", "done", 300);
	check_runs(s, "b.cfg", true, 0, "");
	check_runs(s, "b.cfg", false, 0, "r2");
}

static void put_up(struct store *s, const char *attempt, const char *provider, int64_t connected_ms)
{
	struct pod_row row = {.connected_ms = connected_ms};
	struct err err = {0};

	COPY_TEXT(row.attempt, attempt);
	COPY_TEXT(row.provider, provider);
	ok(store_put_pod(s, &row, &err), &err);
}

static void check_up(struct store *s, const char *provider, size_t most, const char *want)
{
	struct pod_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_pods_up(s, provider, most, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s", i ? " " : "", rows[i].attempt);
	assert_true((rows == NULL) == (n == 0));
	free(rows);
	check_words("pods that came up", &got, want);
}

static void pods_that_came_up_are_listed(void **state)
{
	struct store *s = ((struct bed *)*state)->s;

	check_up(s, "runpod", 0, "");
	put_up(s, "a", "runpod", 500);
	put_up(s, "b", "runpod", 0);
	put_up(s, "c", "modal", 700);
	put_up(s, "d", "runpod", 600);
	put_up(s, "e", "runpod", 100);
	check_up(s, "runpod", 0, "e d a");
	check_up(s, "runpod", 2, "e d");
	put_up(s, "b", "runpod", 900); /* written anew, first put long ago */
	check_up(s, "runpod", 0, "e d b a");
	check_up(s, "modal", 0, "c");
	check_up(s, "", 0, "");
}

static void check_since(struct store *s, int64_t wall_ms, const char *want)
{
	struct pod_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_pods_since(s, wall_ms, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s", i ? " " : "", rows[i].attempt);
	assert_true((rows == NULL) == (n == 0));
	free(rows);
	check_words("pods since then", &got, want);
}

static void put_billed(struct store *s, const char *attempt, const char *state, int64_t create_ms,
		       int64_t billed_ms, int64_t released_ms)
{
	struct pod_row row = {
		.create_ms = create_ms, .billed_ms = billed_ms, .released_ms = released_ms};
	struct err err = {0};

	COPY_TEXT(row.attempt, attempt);
	COPY_TEXT(row.state, state);
	ok(store_put_pod(s, &row, &err), &err);
}

static void pods_that_were_billed_since_are_listed(void **state)
{
	struct store *s = ((struct bed *)*state)->s;

	check_since(s, 0, "");
	put_billed(s, "a", "gone", 900, 50, 950);
	put_billed(s, "b", "gone", 900, 200, 1100);
	put_billed(s, "c", "live", 10, 0, 0);
	put_billed(s, "d", "failed", 900, 0, 1200);
	put_billed(s, "e", "failed", 900, 0, 0);
	put_billed(s, "f", "releasing", 900, 20, 920);
	put_billed(s, "g", "gone", 20000, 5, 20005);
	check_since(s, 1000, "b c d f g");
	check_since(s, 1100, "c d f g");
	check_since(s, 1000000, "c f");
	check_since(s, -1, "a b c d e f g");
}

static void pods_are_listed_in_order(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct pod_row row = {0};
	struct err err = {0};

	put_pod(s, "z", "r1", "", "intent");
	put_pod(s, "y", "r2", "", "intent");
	put_pod(s, "x", "r1", "", "ambiguous");
	put_pod(s, "w", "r1", "", "failed");
	put_pod(s, "z", "r1", "pod-1", "live");
	check_pods(s, NULL, false, "z y x w");
	check_pods(s, NULL, true, "z y x");
	check_pods(s, "r1", false, "z x w");
	check_pods(s, "r1", true, "z x");
	put_pod(s, "z", "r1", "pod-1", "gone");
	check_pods(s, "r1", true, "x");
	put_pod(s, "x", "r1", "", "releasing");
	check_pods(s, "r1", true, "x");
	check_pods(s, "r", false, "");

	ok(store_pod(s, "pod-1", &row, &err), &err);
	assert_string_equal(row.attempt, "z");
	assert_string_equal(row.state, "gone");
	put_pod(s, "v", "r2", "pod-1", "live"); /* a vendor that uses an id again */
	ok(store_pod(s, "pod-1", &row, &err), &err);
	assert_string_equal(row.attempt, "v");
	put_pod(s, "u", "r2", "z", "live"); /* an attempt goes before an id */
	ok(store_pod(s, "z", &row, &err), &err);
	assert_string_equal(row.id, "pod-1");
	assert_int_equal(store_pod(s, "", &row, &err), -1); /* not any of those without an id */
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(store_pod(s, "pod", &row, &err), -1);
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

/* ---- transactions ---- */

static void a_commit_keeps(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct err err = {0};

	ok(store_begin(s, &err), &err);
	put_run(s, "r1", "c", "running", 1);
	put_pod(s, "p1", "r1", "", "intent");
	check_runs(s, NULL, false, 0, "r1"); /* we see our own */
	ok(store_commit(s, &err), &err);
	store_rollback(s); /* nothing is open: nothing happens */
	check_runs(s, NULL, false, 0, "r1");
	check_pods(s, NULL, false, "p1");
	ok(store_begin(s, &err), &err);
	ok(store_commit(s, &err), &err);
}

static void a_rollback_restores(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct err err = {0};

	put_run(s, "r1", "c", "running", 1);
	put_volume(s, "p", "v1", 1);
	put_volume(s, "p", "v2", 2);
	ok(store_put_fact(s, "f", "before", &err), &err);
	for (int round = 0; round < 2;
	     round++) { /* it leaves nothing behind that a second one meets */
		ok(store_begin(s, &err), &err);
		put_run(s, "r1", "c", "done", 9);
		put_run(s, "r2", "c", "running", 2);
		put_run(s, "r2", "c", "done", 2);
		for (int i = 0; i < 200; i++) { /* enough for the memory twin to grow */
			char id[16];
			snprintf(id, sizeof(id), "s%d", i);
			put_segment(s, "r1", id, i);
		}
		ok(store_remove_volume(s, "p", "v1", &err), &err);
		put_volume(s, "p", "v1", 11);
		put_volume(s, "p", "v1", 12);
		ok(store_remove_volume(s, "p", "v1", &err), &err);
		ok(store_remove_volume(s, "p", "v2", &err), &err);
		ok(store_put_fact(s, "f", "inside", &err), &err);
		check_volumes(s, "");
		store_rollback(s);
		check_runs(s, NULL, false, 0, "r1");
		check_runs(s, NULL, true, 0, "r1");
		check_segments(s, "r1", "");
		check_volumes(s, "p/v1:1 p/v2:2");
		check_fact(s, "f", "before");
	}
	put_segment(s, "r1", "s7", 7);
	check_segments(s, "r1", "s7:7");
	put_volume(s, "p", "v1", 3);
	check_volumes(s, "p/v1:3 p/v2:2");
}

/* In a child: 0 when the child died of an assertion. */
static int dies_of_assert(struct store *s, void (*wrong)(struct store *s))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		close(STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		wrong(s);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? 0 : -1;
}

static void begin_twice(struct store *s)
{
	store_begin(s, NULL);
	store_begin(s, NULL);
}

static void commit_without_begin(struct store *s)
{
	store_commit(s, NULL);
}

static void misuse_is_a_bug(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(dies_of_assert(bed->s, begin_twice), 0);
	assert_int_equal(dies_of_assert(bed->s, commit_without_begin), 0);
}

/* ---- the two in lockstep ---- */

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static const char *pick(uint32_t *seed, const char *const *words, size_t count)
{
	return words[next_random(seed) % count];
}

static void put_batch(struct store *s, const char *attempt, const char *run, int segments)
{
	struct batch_row row = {.segments = segments};
	struct err err = {0};

	COPY_TEXT(row.attempt, attempt);
	COPY_TEXT(row.id, "1");
	COPY_TEXT(row.run, run);
	ok(store_put_batch(s, &row, &err), &err);
}

static void put_speed(struct store *s, const char *key, int64_t batches)
{
	struct speed_row row = {.batches = batches, .n = (double)batches / 3};
	struct err err = {0};

	COPY_TEXT(row.key, key);
	ok(store_put_speed(s, &row, &err), &err);
}

static void put_request(struct store *s, const char *id, const char *config, const char *state)
{
	struct request_row row = {.created_ms = 7};
	struct err err = {0};

	COPY_TEXT(row.id, id);
	COPY_TEXT(row.config, config);
	COPY_TEXT(row.state, state);
	ok(store_put_request(s, &row, &err), &err);
}

static void random_change(struct store *s, uint32_t seed, bool *in_transaction)
{
	static const char *const ids[] = {"a", "ab", "abc", "b", "ba", "c", "7", "77"};
	static const char *const run_states[] = {"running", "running", "done", "failed"};
	static const char *const pod_states[] = {"intent",    "ambiguous", "live",
						 "releasing", "gone",      "failed"};
	static const char *const configs[] = {"x.cfg", "y.cfg"};
	static const char *const request_states[] = {"pending", "running", "done", "failed",
						     "removed"};
	const char *id = pick(&seed, ids, ARRAY_LEN(ids)),
		   *other = pick(&seed, ids, ARRAY_LEN(ids));
	struct err err = {0};

	switch (next_random(&seed) % 14) {
	case 0:
	case 1:
		put_run(s, id, pick(&seed, configs, 2), pick(&seed, run_states, 4),
			next_random(&seed) % 5);
		break;
	case 2:
	case 3: put_pod(s, id, other, pick(&seed, ids, 3), pick(&seed, pod_states, 6)); break;
	case 4:
	case 5: put_segment(s, id, other, (int)(next_random(&seed) % 9)); break;
	case 6: put_volume(s, id, other, next_random(&seed) % 9); break;
	case 7: ok(store_remove_volume(s, id, other, &err), &err); break;
	case 8: ok(store_put_fact(s, id, other, &err), &err); break;
	case 9: put_batch(s, id, other, (int)(next_random(&seed) % 9)); break;
	case 10: put_speed(s, id, next_random(&seed) % 9); break;
	case 12:
	case 13: put_request(s, id, pick(&seed, configs, 2), pick(&seed, request_states, 5)); break;
	case 11:
		if (!*in_transaction)
			ok(store_begin(s, &err), &err);
		else if (next_random(&seed) % 2)
			ok(store_commit(s, &err), &err);
		else
			store_rollback(s);
		*in_transaction = !*in_transaction;
		break;
	}
}

static void add_rows(struct str *to, void *rows, size_t count, enum table_id table)
{
	str_addn(to, &count, sizeof(count));
	str_addn(to, rows ? rows : "", count * store_tables[table].row_size);
	free(rows);
}

/* All that can be asked, in bytes. */
static void everything(struct store *s, struct str *to)
{
	static const char *const asks[] = {"", "a", "ab", "abc", "b", "7", "c"};
	void *rows;
	size_t n;

	for (int i = 0; i < 8; i++) {
		store_runs(s, i & 1 ? "x.cfg" : NULL, i & 2, i & 4 ? 2 : 0,
			   (struct run_row **)&rows, &n, NULL);
		add_rows(to, rows, n, TABLE_RUN);
		store_pods(s, i & 1 ? "a" : NULL, i & 2, (struct pod_row **)&rows, &n, NULL);
		add_rows(to, rows, n, TABLE_POD);
		store_requests(s, i & 1 ? "x.cfg" : NULL, i & 2, (struct request_row **)&rows, &n,
			       NULL);
		add_rows(to, rows, n, TABLE_REQUEST);
	}
	for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
		struct run_row run = {0};
		struct pod_row pod = {0};
		struct err err = {0};
		char fact[8] = "";
		store_segments(s, asks[i], (struct segment_row **)&rows, &n, NULL);
		add_rows(to, rows, n, TABLE_SEGMENT);
		store_batches(s, asks[i], (struct batch_row **)&rows, &n, NULL);
		add_rows(to, rows, n, TABLE_BATCH);
		store_speeds(s, asks[i], (struct speed_row **)&rows, &n, NULL);
		add_rows(to, rows, n, TABLE_SPEED);
		store_requests_named(s, asks[i], (struct request_row **)&rows, &n, NULL);
		add_rows(to, rows, n, TABLE_REQUEST);
		store_runs_named(s, asks[i], (struct run_row **)&rows, &n, NULL);
		add_rows(to, rows, n, TABLE_RUN);
		store_pods_named(s, asks[i], (struct pod_row **)&rows, &n, NULL);
		add_rows(to, rows, n, TABLE_POD);
		store_run(s, asks[i], &run, &err);
		str_addn(to, &run, sizeof(run));
		store_pod(s, asks[i], &pod, &err);
		str_addn(to, &pod, sizeof(pod));
		str_addf(to, "%s %s", err.msg,
			 store_fact(s, asks[i], fact, sizeof(fact)) ? fact : "none");
	}
	store_volumes(s, (struct volume_row **)&rows, &n, NULL);
	add_rows(to, rows, n, TABLE_VOLUME);
}

static void the_twins_agree(void **state)
{
	struct bed *bed = *state;
	struct store *twin = store_memory();
	bool in_file = false, in_memory = false;

	for (uint32_t i = 0; i < 600; i++) {
		CLEANUP(str_free) struct str file = STR_INIT, memory = STR_INIT;
		random_change(bed->s, i * 7919, &in_file);
		random_change(twin, i * 7919, &in_memory);
		everything(bed->s, &file);
		everything(twin, &memory);
		if (file.len != memory.len || memcmp(file.s, memory.s, file.len))
			fail_msg("they differ after change %u", i);
	}
	store_close(twin);
}

/* ---- what only a file can suffer ---- */

static void a_ledger_is_there_again(void **state)
{
	struct bed *bed = *state;
	struct err err = {0};

	put_run(bed->s, "r1", "c", "running", 1);
	put_pod(bed->s, "p1", "r1", "", "intent");
	reopen(bed);
	check_runs(bed->s, NULL, true, 0, "r1");
	check_pods(bed->s, NULL, true, "p1");
	ok(store_begin(bed->s, &err), &err);
	put_run(bed->s, "r2", "c", "running", 2);
	reopen(bed); /* closed in the middle: undone */
	check_runs(bed->s, NULL, false, 0, "r1");
}

static void check_mode(const char *path, const char *suffix, mode_t want)
{
	CLEANUP(free_text) char *name = xasprintf("%s%s", path, suffix);
	struct stat st;

	if (stat(name, &st) < 0)
		fail_msg("%s: %s", name, strerror(errno));
	if ((st.st_mode & 0777) != want)
		fail_msg("%s: mode %o, want %o", name, (unsigned)(st.st_mode & 0777),
			 (unsigned)want);
}

static void nobody_else_can_read_it(void **state)
{
	struct bed *bed = *state;
	mode_t was = umask(0);

	open_file(bed);
	put_run(bed->s, "r1", "c", "running", 1);
	check_mode(bed->path, "", 0600);
	check_mode(bed->path, "-wal", 0600);
	check_mode(bed->path, "-shm", 0600);
	store_close(TAKE(bed->s));
	assert_int_equal(chmod(bed->path, 0644), 0); /* as a copy would have it */
	open_file(bed);
	check_mode(bed->path, "", 0600);
	umask(was);
}

/* It must be refused in one line that names the file and says what to do. */
static void check_refused(const char *path, const char *words)
{
	struct store *s = (void *)1;
	struct err err = {0};

	if (store_open(&s, path, &err) == 0)
		fail_msg("opened, want \"%s\"", words);
	assert_ptr_equal(s, (void *)1);
	assert_int_equal(err.kind, ERR_LOCAL);
	if (!starts_with(err.msg, path) || !strstr(err.msg, words) || strchr(err.msg, '\n'))
		fail_msg("got \"%s\", want \"%s: ... %s ...\"", err.msg, path, words);
}

static void poke(const char *path, off_t at, const void *bytes, size_t len)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, bytes, len, at), len);
}

static void make_ledger(struct bed *bed)
{
	open_file(bed);
	for (int i = 0; i < 50; i++) {
		char id[16];
		snprintf(id, sizeof(id), "r%d", i);
		put_run(bed->s, id, "c", "done", i);
	}
	store_close(TAKE(bed->s));
}

/* Where SQLite's file format keeps these, big-endian. */
#define AT_USER_VERSION   60
#define AT_APPLICATION_ID 68

static void what_is_no_ledger_is_refused(void **state)
{
	struct bed *bed = *state;
	CLEANUP(str_free) struct str before = STR_INIT, after = STR_INIT;
	static const char text[] =
		"this is not a database, and it is longer than a header of one hundred bytes "
		"would be, so that nobody can take it for an empty one";

	assert_int_equal(path_write(bed->path, text, strlen(text), 0600, NULL), 0);
	check_refused(bed->path, "is not a ledger: move it away");
	unlink(bed->path);

	make_ledger(bed);
	poke(bed->path, AT_APPLICATION_ID, "\0\0\0\7", 4);
	assert_int_equal(path_read(bed->path, 1 << 20, &before, NULL), 0);
	check_refused(bed->path, "another program");
	assert_int_equal(path_read(bed->path, 1 << 20, &after, NULL), 0);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.s, after.s, before.len);
}

static void a_newer_ledger_is_refused(void **state)
{
	struct bed *bed = *state;
	CLEANUP(str_free) struct str before = STR_INIT, after = STR_INIT;

	make_ledger(bed);
	poke(bed->path, AT_USER_VERSION, "\0\0\1\0", 4);
	assert_int_equal(path_read(bed->path, 1 << 20, &before, NULL), 0);
	check_refused(bed->path, "newer burst (version 256");
	assert_int_equal(path_read(bed->path, 1 << 20, &after, NULL), 0);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.s, after.s, before.len);
}

static void a_ledger_without_a_true_version_is_damaged(void **state)
{
	struct bed *bed = *state;

	make_ledger(bed);
	poke(bed->path, AT_USER_VERSION, "\x94\xff\0\2", 4);
	check_refused(bed->path, "is damaged: move it away");
}

/* As the first burst made it, with rows in it. */
static void a_ledger_of_version_1_is_brought_up(void **state)
{
	struct bed *bed = *state;
	struct pod_row pod;
	struct err err = {0};

	if (system("command -v sqlite3 >/dev/null && test -r orchestrator/store/schema.sql") != 0)
		skip();
	CLEANUP(free_text)
	char *command = xasprintf(
		"{ cat orchestrator/store/schema.sql; echo 'PRAGMA application_id=%d; PRAGMA "
		"user_version=1;"
		"INSERT INTO pod VALUES "
		"(1,\"a1\",\"r1\",\"p\",\"acct\",\"burst-a1\",\"id1\",\"gone\",0,\"g\",\"eu\",0,1,"
		"\"\",\"\",690000,1800,\"h\",22,\"root\",1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,"
		"18,\"why\");'; } | "
		"tr '\"' \"'\" | sqlite3 %s",
		0x62757273, bed->path);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 2; i++) { /* what was brought up is opened again as it is */
		open_file(bed);
		ok(store_pod(bed->s, "a1", &pod, &err), &err);
		assert_int_equal(pod.price_microusd_h, 690000);
		assert_string_equal(pod.gpu, "g");
		assert_string_equal(pod.gpu_offered, "");
		assert_int_equal(pod.gone_ms, 12);
		assert_int_equal(pod.billed_ms, 15);
		assert_int_equal(pod.billed_vendor_ms, 16);
		assert_int_equal(pod.cost_microusd, 17);
		assert_int_equal(pod.event, 18);
		assert_string_equal(pod.error, "why");
		assert_int_equal(pod.vendor_asked_ms + pod.cost_vendor_microusd +
					 pod.cost_beside_microusd + pod.price_list_microusd_h +
					 pod.vendor_started_ms + pod.vendor_reported +
					 pod.gpu_samples + pod.gpu_memory_peak_mib + pod.preempted,
				 i ? 44 : 0);
		pod.vendor_asked_ms = 44;
		ok(store_put_pod(bed->s, &pod, &err), &err);
		store_close(TAKE(bed->s));
	}
}

/* An old ledger with three rows in each table, each column with a value of its own. */
#define OLD_VALUES                                                                                 \
	"import sqlite3, sys\n"                                                                    \
	"flags = ('detached', 'spot', 'volume_safe', 'suspect', 'vendor_reported', 'preempted')\n" \
	"def value(c, row):\n"                                                                     \
	"    if c[2] == 'TEXT': return '%s %d' % (c[1], row)\n"                                    \
	"    return row if c[1] == 'seq' else row % 2 if c[1] in flags else 1000 * row + c[0]\n"
static const char *const make_old_ledger = OLD_VALUES
	"path, version, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3:]\n"
	"db = sqlite3.connect(path)\n"
	"db.executescript(open('orchestrator/store/schema.sql').read() + ''.join(steps[:version - "
	"1])\n"
	"                 + 'PRAGMA application_id=%d; PRAGMA user_version=%d;' % (0x62757273, "
	"version))\n"
	"for (table,) in db.execute(\"select name from sqlite_master where type = "
	"'table'\").fetchall():\n"
	"    columns = db.execute('pragma table_info(%s)' % table).fetchall()\n"
	"    for row in range(1, 4):\n"
	"        db.execute('insert into %s values (%s)' % (table, ','.join('?' * len(columns))),\n"
	"                   [value(c, row) for c in columns])\n"
	"db.commit()\n";
/* The same columns of the same rows, as they are now. */
static const char *const check_old_ledger = OLD_VALUES
	"db, version, steps = sqlite3.connect(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]\n"
	"assert db.execute('pragma user_version').fetchone()[0] == len(steps) + 1, 'version'\n"
	"assert db.execute('pragma integrity_check').fetchone()[0] == 'ok', 'integrity'\n"
	"old = sqlite3.connect(':memory:')\n"
	"old.executescript(open('orchestrator/store/schema.sql').read() + ''.join(steps[:version - "
	"1]))\n"
	"for (table,) in old.execute(\"select name from sqlite_master where type = "
	"'table'\").fetchall():\n"
	"    columns = old.execute('pragma table_info(%s)' % table).fetchall()\n"
	"    rows = db.execute('select %s from %s order by seq' % (','.join(c[1] for c in "
	"columns), table)).fetchall()\n"
	"    assert rows == [tuple(value(c, row) for c in columns) for row in range(1, 4)], "
	"table\n";

static int run_python(const char *script, const char *path, int version)
{
	char number[8];
	const char *args[5 + ARRAY_LEN(ledger_steps) + 1] = {"python3", "-c", script, path, number};
	int status = -1;

	snprintf(number, sizeof(number), "%d", version);
	for (size_t i = 0; i < ARRAY_LEN(ledger_steps); i++)
		args[5 + i] = ledger_steps[i];
	pid_t pid = fork();
	if (pid == 0) {
		execvp(args[0], (char *const *)args);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

/* Whatever the version: each row is there, each column of it says what it said, and burst reads and
 * writes it. */
static void every_old_ledger_is_brought_up_whole(void **state)
{
	struct bed *bed = *state;
	struct err err = {0};

	if (system("command -v python3 >/dev/null && test -r orchestrator/store/schema.sql") != 0)
		skip();
	for (int version = 1; version <= (int)ARRAY_LEN(ledger_steps) + 1; version++) {
		struct pod_row *pods = NULL;
		struct run_row run;
		size_t count = 0;
		assert_int_equal(run_python(make_old_ledger, bed->path, version), 0);
		for (int again = 0; again < 2; again++) {
			open_file(bed);
			ok(store_pods(bed->s, "run 2", false, &pods, &count, &err), &err);
			assert_int_equal(count, 1);
			assert_string_equal(pods[0].attempt, "attempt 2");
			assert_int_equal(pods[0].synced_bytes,
					 version < 6 ? SYNCED_UNKNOWN : pods[0].synced_bytes);
			ok(store_put_pod(bed->s, &pods[0], &err), &err);
			ok(store_run(bed->s, "id 3", &run, &err), &err);
			assert_int_equal(run.planned_ms, version < 4 ? 0 : run.planned_ms);
			ok(store_put_run(bed->s, &run, &err), &err);
			free(pods);
			store_close(TAKE(bed->s));
		}
		if (run_python(check_old_ledger, bed->path, version) != 0)
			fail_msg("a ledger of version %d is not what it was", version);
		unlink(bed->path);
	}
}

static void numbers_of_others_have_bounds(void **state)
{
	struct bed *bed = *state;
	struct run_row run = run_named("r1", "c", "done", 5);
	struct err err = {0};

	if (system("command -v sqlite3 >/dev/null") != 0)
		skip();
	open_file(bed);
	ok(store_put_run(bed->s, &run, &err), &err);
	CLEANUP(free_text)
	char *command = xasprintf("sqlite3 %s 'UPDATE run SET total=9223372036854775807, "
				  "rendered=-9e18, cached=\"x\", cost_microusd=1e300'",
				  bed->path);
	assert_int_equal(system(command), 0);
	ok(store_run(bed->s, "r1", &run, &err), &err);
	assert_true(run.total == STORE_NUMBER_MOST && run.rendered == -STORE_NUMBER_MOST &&
		    run.cached == 0);
	assert_true(run.cost_microusd == STORE_NUMBER_MOST);
}

static void a_damaged_ledger_is_refused(void **state)
{
	struct bed *bed = *state;
	char junk[4096];

	make_ledger(bed);
	memset(junk, 0xa5, sizeof(junk));
	poke(bed->path, 100, junk, sizeof(junk) - 100); /* the schema's page, behind its header */
	check_refused(bed->path, "is damaged: move it away");
}

/* The page on which a table begins, by the sqlite3 program; 0 without it. */
static off_t first_page(const char *path, const char *table)
{
	CLEANUP(free_text)
	char *command = xasprintf(
		"sqlite3 %s \"SELECT rootpage FROM sqlite_master WHERE name='%s'\" 2>/dev/null",
		path, table);
	FILE *f = popen(command, "r");
	long page = 0;

	if (f && fscanf(f, "%ld", &page) != 1)
		page = 0;
	if (f)
		pclose(f);
	return page;
}

static void damage_found_later_is_told(void **state)
{
	struct bed *bed = *state;
	struct run_row *rows = NULL;
	struct err err = {0};
	char junk[4096];
	size_t n;

	make_ledger(bed);
	off_t page = first_page(bed->path, "run");
	if (!page)
		skip();
	memset(junk, 0xa5, sizeof(junk));
	poke(bed->path, (page - 1) * 4096, junk, sizeof(junk));
	open_file(bed); /* the schema is whole */
	assert_int_equal(store_runs(bed->s, NULL, false, 0, &rows, &n, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_non_null(strstr(err.msg, "is damaged"));
	assert_null(rows);
}

static void an_empty_file_is_a_new_ledger(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(path_write(bed->path, "", 0, 0600, NULL),
			 0); /* died right after making it */
	open_file(bed);
	put_run(bed->s, "r1", "c", "done", 1);
	reopen(bed);
	check_runs(bed->s, NULL, false, 0, "r1");
}

static void what_stands_in_its_place_is_named(void **state)
{
	struct bed *bed = *state;
	CLEANUP(free_text) char *below = path_join(bed->path, "ledger.db");

	check_refused(below, "cannot be created"); /* no such folder */
	assert_int_equal(mkdir(bed->path, 0700), 0);
	check_refused(bed->path, "is a folder");
	assert_int_equal(rmdir(bed->path), 0);
	assert_int_equal(mkfifo(bed->path, 0600), 0);
	check_refused(bed->path, "is not a file");
}

static void odd_names_are_only_names(void **state)
{
	static const char *const names[] = {":memory:", "file:x?mode=memory", "with space & %41"};
	char was[4096];

	(void)state;
	assert_non_null(getcwd(was, sizeof(was)));
	assert_int_equal(chdir(folder), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct bed bed = {.path = (char *)names[i]};
		open_file(&bed);
		put_run(bed.s, "r1", "c", "done", 1);
		reopen(&bed);
		check_runs(bed.s, NULL, false, 0, "r1");
		store_close(bed.s);
	}
	assert_int_equal(chdir(was), 0);
}

/* ---- children: they cannot use cmocka's checks, so they say what went wrong and exit ---- */

#define SKIPPED 77

static void child_wants(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "child: %s\n", what);
	_exit(1);
}

static int in_child(void (*work)(const char *path), const char *path)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		work(path);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void become_nobody(void)
{
	if (geteuid() == 0)
		child_wants(setgid(65534) == 0 && setuid(65534) == 0, "cannot become nobody");
}

static void child_is_refused(const char *path)
{
	struct store *s = NULL;
	struct err err = {0};

	become_nobody();
	child_wants(store_open(&s, path, &err) < 0, "opened");
	child_wants(err.kind == ERR_LOCAL && starts_with(err.msg, path) &&
			    strstr(err.msg, "check who owns"),
		    err.msg);
}

static void a_read_only_place_is_told(void **state)
{
	struct bed *bed = *state;
	CLEANUP(free_text) char *dir = xasprintf("%s/read-only", folder);
	CLEANUP(free_text) char *path = path_join(dir, "ledger.db");

	free(bed->path);
	bed->path = xstrdup(path);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(mkdir(dir, 0555), 0);
	assert_int_equal(in_child(child_is_refused, path), 0); /* cannot be made */
	assert_int_equal(chmod(dir, 0755), 0);
	make_ledger(bed);
	assert_int_equal(chmod(path, 0444), 0);
	if (geteuid() == 0) /* else it is ours to change */
		assert_int_equal(in_child(child_is_refused, path), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(chmod(dir, 0555), 0);
	assert_int_equal(in_child(child_is_refused, path), 0); /* no place for its journal */
	assert_int_equal(chmod(dir, 0700), 0);
}

#define EACH 100

static void child_writes_its_share(const char *path)
{
	struct store *s = NULL;
	struct err err = {0};

	child_wants(store_open(&s, path, &err) == 0, err.msg);
	for (int i = 0; i < EACH; i++) {
		char text[16] = "0", id[32];
		struct run_row row = {.started_ms = i};
		snprintf(id, sizeof(id), "%x-%d", (unsigned)getpid() & 0xffff, i);
		COPY_TEXT(row.id, id);
		child_wants(store_put_run(s, &row, &err) == 0, err.msg);
		/* what is read in a transaction is still true when it is written */
		child_wants(store_begin(s, &err) == 0, err.msg);
		store_fact(s, "counter", text, sizeof(text));
		snprintf(text, sizeof(text), "%d", atoi(text) + 1);
		child_wants(store_put_fact(s, "counter", text, &err) == 0, err.msg);
		child_wants(store_commit(s, &err) == 0, err.msg);
	}
	store_close(s);
}

static void processes_share_a_ledger(void **state)
{
	struct bed *bed = *state;
	pid_t children[3];
	struct run_row *rows;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(children); i++) { /* all of them make it, at once */
		children[i] = fork();
		if (children[i] == 0) {
			child_writes_its_share(bed->path);
			_exit(0);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(children); i++) {
		int status = -1;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	open_file(bed);
	assert_int_equal(store_runs(bed->s, NULL, false, 0, &rows, &n, NULL), 0);
	assert_int_equal(n, EACH * ARRAY_LEN(children));
	free(rows);
	check_fact(bed->s, "counter", "300");
}

/* Puts run after run, says each number once its put has returned, and leaves a transaction open now
 * and then. */
static void child_writes_for_ever(const char *path, int tell)
{
	struct store *s = NULL;
	struct err err = {0};

	child_wants(store_open(&s, path, &err) == 0, err.msg);
	for (int i = 0;; i++) {
		struct run_row row = {.started_ms = i}, half = {.started_ms = i};
		snprintf(row.id, sizeof(row.id), "r%d", i);
		snprintf(half.id, sizeof(half.id), "half%d", i);
		child_wants(store_put_run(s, &row, &err) == 0, err.msg);
		child_wants(write(tell, &i, sizeof(i)) == sizeof(i), "pipe");
		child_wants(store_begin(s, &err) == 0, err.msg);
		child_wants(store_put_run(s, &half, &err) == 0, err.msg);
		store_rollback(s);
	}
}

static void a_killed_writer_loses_nothing_it_was_told(void **state)
{
	struct bed *bed = *state;

	for (int round = 0; round < 5; round++) {
		int ends[2], last = -1, number;
		assert_int_equal(pipe(ends), 0);
		pid_t child = fork();
		if (child == 0)
			child_writes_for_ever(bed->path, ends[1]);
		close(ends[1]);
		while (last < 20 + 7 * round &&
		       read(ends[0], &number, sizeof(number)) == sizeof(number))
			last = number;
		assert_int_equal(kill(child, SIGKILL), 0);
		while (read(ends[0], &number, sizeof(number)) == sizeof(number))
			last = number; /* said before it died */
		assert_int_equal(waitpid(child, NULL, 0), child);
		close(ends[0]);
		assert_true(last >= 20);

		open_file(bed);
		for (int i = 0; i <= last; i++) {
			struct run_row row;
			char id[16];
			snprintf(id, sizeof(id), "r%d", i);
			assert_int_equal(store_run(bed->s, id, &row, NULL), 0);
			assert_string_equal(row.id, id);
		}
		struct run_row half;
		struct err err = {0};
		assert_int_equal(store_run(bed->s, "half", &half, &err), -1);
		assert_int_equal(err.kind, ERR_NOT_FOUND);
		store_close(TAKE(bed->s));
	}
}

/* Opens a transaction, says so, and waits to be killed. */
static void child_dies_in_a_transaction(const char *path, int tell)
{
	struct store *s = NULL;
	struct run_row row = {.id = "unfinished"};

	child_wants(store_open(&s, path, NULL) == 0 && store_begin(s, NULL) == 0, "begin");
	child_wants(store_put_run(s, &row, NULL) == 0, "put");
	child_wants(write(tell, "b", 1) == 1, "pipe");
	pause();
}

static void a_transaction_dies_with_its_process(void **state)
{
	struct bed *bed = *state;
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		child_dies_in_a_transaction(bed->path, ends[1]);
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	open_file(bed);
	put_run(bed->s, "r1", "c", "done", 1);
	check_runs(bed->s, NULL, false, 0, "r1");
	close(ends[0]);
	close(ends[1]);
}

#ifdef __linux__
static bool on_small_disk(const char *dir)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) == 0 && mkdir(dir, 0700) == 0 &&
	       mount("none", dir, "tmpfs", 0, "size=512k") == 0;
}

static void fill_disk(const char *path)
{
	static const char block[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
}

/* Segments one by one until the disk is full; how many were taken. */
static int put_until_full(struct store *s, int from, struct err *err)
{
	for (int i = from;; i++) {
		struct segment_row row = {.run = "r"};
		snprintf(row.id, sizeof(row.id), "s%d", i);
		memset(row.reason, 'x', sizeof(row.reason) - 1);
		if (store_put_segments(s, &row, 1, err) < 0)
			return i;
	}
}

static size_t count_segments(struct store *s)
{
	struct segment_row *rows = NULL;
	size_t n = 0;

	child_wants(store_segments(s, "r", &rows, &n, NULL) == 0, "listing failed");
	free(rows);
	return n;
}

static void child_fills_the_disk(const char *dir)
{
	CLEANUP(free_text) char *path = path_join(dir, "ledger.db");
	CLEANUP(free_text) char *filler = path_join(dir, "filler");
	CLEANUP(free_text) char *late = path_join(dir, "late.db");
	struct store *s = NULL;
	struct err err = {0};

	if (!on_small_disk(dir))
		_exit(SKIPPED);
	child_wants(store_open(&s, path, &err) == 0, err.msg);
	fill_disk(filler);
	int taken = put_until_full(s, 0, &err);
	child_wants(err.kind == ERR_LOCAL && strstr(err.msg, "the disk is full: free some space"),
		    err.msg);
	child_wants(count_segments(s) == (size_t)taken, "a row is missing or too many");
	child_wants(store_open(&(struct store *){NULL}, late, &err) < 0, "opened on a full disk");
	child_wants(strstr(err.msg, "the disk is full") != NULL, err.msg);

	/* what goes on in a transaction after a failure must not slip in alone */
	child_wants(store_begin(s, &err) == 0, err.msg);
	put_until_full(s, taken, &err);
	child_wants(unlink(filler) == 0, "filler");
	struct segment_row row = {.run = "r", .id = "after the failure"};
	bool put = store_put_segments(s, &row, 1, &err) == 0;
	bool committed = store_commit(s, &err) == 0;
	child_wants(!committed || put, "committed without its last row");
	child_wants(committed || count_segments(s) == (size_t)taken,
		    "part of a failed transaction is there");

	child_wants(store_put_segments(s, &row, 1, &err) == 0, err.msg); /* there is room again */
	size_t n = count_segments(s);
	store_close(s);
	child_wants(store_open(&s, path, &err) == 0, err.msg);
	child_wants(count_segments(s) == n, "lost on reopening");
	store_close(s);
}

static void a_full_disk_is_told_and_survived(void **state)
{
	struct bed *bed = *state;

	free(bed->path);
	bed->path = xasprintf("%s/small", folder);
	int status = in_child(child_fills_the_disk, bed->path);
	if (status == SKIPPED) {
		print_message("skipped: no small disk can be mounted here (needs root)\n");
		skip();
	}
	assert_int_equal(status, 0);
}
#endif

/* ---- size ---- */

/* Whatever its size, ten runs are alive, fifty are of b.cfg, and the small run has three segments.
 */
static void fill_large(struct store *s, int runs, int segments)
{
	struct err err = {0};

	ok(store_begin(s, &err), &err);
	for (int i = 0; i < runs; i++) {
		bool alive = i % (runs / 10) == 0;
		char id[24];
		snprintf(id, sizeof(id), "run%06d", i);
		put_run(s, id, i % (runs / 50) ? "a.cfg" : "b.cfg", alive ? "running" : "done", i);
		put_pod(s, id, alive ? "run000000" : "run000001", id, alive ? "live" : "gone");
	}
	for (int i = 0; i < segments; i++) {
		char id[24];
		snprintf(id, sizeof(id), "%d", i);
		put_segment(s, i % (segments / 3) ? "run000000" : "run000001", id, i);
	}
	ok(store_commit(s, &err), &err);
}

static void ask_runs(struct store *s, const char *config, bool running, size_t most, size_t want)
{
	struct run_row *rows = NULL;
	size_t n = 0;

	assert_int_equal(store_runs(s, config, running, most, &rows, &n, NULL), 0);
	assert_int_equal(n, want);
	free(rows);
}

static void ask_newest(struct store *s)
{
	ask_runs(s, NULL, false, 10, 10);
}

static void ask_newest_of(struct store *s)
{
	ask_runs(s, "b.cfg", false, 10, 10);
}

static void ask_running(struct store *s)
{
	ask_runs(s, NULL, true, 0, 10);
}

static void ask_running_of(struct store *s)
{
	ask_runs(s, "b.cfg", true, 0, 10);
}

static void ask_run(struct store *s)
{
	struct run_row row;

	assert_int_equal(store_run(s, "run00002", &row, NULL), -1);
	assert_int_equal(store_run(s, "run000020", &row, NULL), 0);
}

static void ask_pod(struct store *s)
{
	struct pod_row row;

	assert_int_equal(store_pod(s, "run000020", &row, NULL), 0);
	assert_int_equal(store_pod(s, "absent", &row, NULL), -1);
}

static void ask_open(struct store *s)
{
	struct pod_row *rows = NULL;
	size_t n = 0;

	assert_int_equal(store_pods(s, NULL, true, &rows, &n, NULL), 0);
	assert_int_equal(n, 10);
	free(rows);
}

static void ask_open_of(struct store *s)
{
	struct pod_row *rows = NULL;
	size_t n = 0;

	assert_int_equal(store_pods(s, "run000000", true, &rows, &n, NULL), 0);
	assert_int_equal(n, 10);
	free(rows);
}

static void ask_segments(struct store *s)
{
	struct segment_row *rows = NULL;
	size_t n = 0;

	assert_int_equal(store_segments(s, "run000001", &rows, &n, NULL), 0);
	assert_in_range(n, 3, 4);
	free(rows);
}

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The least of several tries, in processor time: what the work takes when nobody disturbs it. */
static int64_t least_ns(struct store *s, void (*ask)(struct store *s))
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < 30; i++) {
		int64_t start = cpu_ns();
		ask(s);
		least = MIN(least, cpu_ns() - start);
	}
	return least;
}

static void who_only_reads_changes_nothing(void **state)
{
	struct bed *bed = *state;
	struct store *reader = NULL;
	struct run_row *runs = NULL, row = run_named("r2", "/c", "done", 2);
	struct err err = {0};
	size_t count = 0;

	assert_int_equal(store_open_to_read(&reader, bed->path, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(access(bed->path, F_OK), -1);
	open_file(bed);
	put_run(bed->s, "r1", "/c", "done", 1);
	ok(store_begin(bed->s, &err), &err); /* a writer at work is no hindrance */
	ok(store_open_to_read(&reader, bed->path, &err), &err);
	assert_int_equal(store_put_run(reader, &row, &err), -1);
	assert_int_equal(err.kind, ERR_BUG);
	ok(store_put_run(bed->s, &row, &err), &err);
	ok(store_commit(bed->s, &err), &err);
	/* as it was when it was opened */
	ok(store_runs(reader, NULL, false, 0, &runs, &count, &err), &err);
	assert_int_equal(count, 1);
	free(runs);
	store_close(reader);
	ok(store_open_to_read(&reader, bed->path, &err), &err);
	ok(store_runs(reader, NULL, false, 0, &runs, &count, &err), &err);
	assert_int_equal(count, 2);
	free(runs);
	store_close(reader);
}

/* The same answer from forty times the rows: with an index it takes as long, without one tens of
 * times as long. */
static void a_large_ledger_is_quick_to_ask(void **state)
{
	static const struct {
		const char *name;
		void (*ask)(struct store *s);
	} asks[] = {
		{"newest runs", ask_newest}, {"newest of a config", ask_newest_of},
		{"running", ask_running},    {"running of a config", ask_running_of},
		{"a run", ask_run},          {"a pod", ask_pod},
		{"open pods", ask_open},     {"open pods of a run", ask_open_of},
		{"segments", ask_segments},
	};
	struct bed *bed = *state, *small = NULL;

	open_sqlite((void **)&small);
	fill_large(small->s, 250, 2500);
	fill_large(bed->s, 10000, 100000);
	for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
		int64_t in_small = least_ns(small->s, asks[i].ask),
			in_large = least_ns(bed->s, asks[i].ask);
		if (in_large > 4 * in_small)
			fail_msg("%s: %lld us of 10,000 runs, %lld us of 250", asks[i].name,
				 (long long)in_large / 1000, (long long)in_small / 1000);
	}
	drop_bed((void **)&small);
}

#define BOTH(test)                                                                                 \
	{"sqlite: " #test, test, open_sqlite, drop_bed, NULL},                                     \
	{                                                                                          \
		"memory: " #test, test, open_memory, drop_bed, NULL                                \
	}
#define OPENED(test)                                                                               \
	{                                                                                          \
#test, test, open_sqlite, drop_bed, NULL                                           \
	}
#define CLOSED(test)                                                                               \
	{                                                                                          \
#test, test, make_bed, drop_bed, NULL                                              \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_field_is_forgotten),
		BOTH(every_field_comes_back),
		BOTH(odd_values_come_back),
		BOTH(numbers_have_bounds),
		BOTH(an_empty_ledger_is_empty),
		BOTH(ids_are_found_by_a_part),
		BOTH(runs_are_listed_newest_first),
		BOTH(pods_that_came_up_are_listed),
		BOTH(pods_that_were_billed_since_are_listed),
		BOTH(pods_are_listed_in_order),
		BOTH(segments_belong_to_their_run),
		BOTH(volumes_come_and_go),
		BOTH(schedules_come_back_and_go_with_their_firings),
		BOTH(facts_are_kept),
		BOTH(a_commit_keeps),
		BOTH(a_rollback_restores),
		BOTH(misuse_is_a_bug),
		OPENED(the_twins_agree),
		OPENED(a_ledger_is_there_again),
		CLOSED(nobody_else_can_read_it),
		CLOSED(what_is_no_ledger_is_refused),
		CLOSED(a_newer_ledger_is_refused),
		CLOSED(a_ledger_without_a_true_version_is_damaged),
		CLOSED(a_ledger_of_version_1_is_brought_up),
		CLOSED(every_old_ledger_is_brought_up_whole),
		CLOSED(numbers_of_others_have_bounds),
		CLOSED(a_damaged_ledger_is_refused),
		CLOSED(damage_found_later_is_told),
		CLOSED(an_empty_file_is_a_new_ledger),
		CLOSED(what_stands_in_its_place_is_named),
		CLOSED(odd_names_are_only_names),
		CLOSED(a_read_only_place_is_told),
		CLOSED(who_only_reads_changes_nothing),
		CLOSED(processes_share_a_ledger),
		CLOSED(a_killed_writer_loses_nothing_it_was_told),
		CLOSED(a_transaction_dies_with_its_process),
#ifdef __linux__
		CLOSED(a_full_disk_is_told_and_survived),
#endif
		OPENED(a_large_ledger_is_quick_to_ask),
	};

	return cmocka_run_group_tests_name("store", tests, make_folder, drop_folder);
}
