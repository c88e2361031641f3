/* test_store_queries.c - which rows a query finds, and in which order. */
#include "store_bed.h"

#include <time.h>

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
	row.state = (enum pod_row_state)state_read(&pod_row_state_words, state);
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
	assert_int_equal(row.state, POD_ROW_GONE);
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

static void query_runs(struct store *s, const char *config, bool running, size_t most, size_t want)
{
	struct run_row *rows = NULL;
	size_t n = 0;

	assert_int_equal(store_runs(s, config, running, most, &rows, &n, NULL), 0);
	assert_int_equal(n, want);
	free(rows);
}

static void query_newest(struct store *s)
{
	query_runs(s, NULL, false, 10, 10);
}

static void query_newest_of(struct store *s)
{
	query_runs(s, "b.cfg", false, 10, 10);
}

static void query_running(struct store *s)
{
	query_runs(s, NULL, true, 0, 10);
}

static void query_running_of(struct store *s)
{
	query_runs(s, "b.cfg", true, 0, 10);
}

static void query_run(struct store *s)
{
	struct run_row row;

	assert_int_equal(store_run(s, "run00002", &row, NULL), -1);
	assert_int_equal(store_run(s, "run000020", &row, NULL), 0);
}

static void query_pod(struct store *s)
{
	struct pod_row row;

	assert_int_equal(store_pod(s, "run000020", &row, NULL), 0);
	assert_int_equal(store_pod(s, "absent", &row, NULL), -1);
}

static void query_open(struct store *s)
{
	struct pod_row *rows = NULL;
	size_t n = 0;

	assert_int_equal(store_pods(s, NULL, true, &rows, &n, NULL), 0);
	assert_int_equal(n, 10);
	free(rows);
}

static void query_open_of(struct store *s)
{
	struct pod_row *rows = NULL;
	size_t n = 0;

	assert_int_equal(store_pods(s, "run000000", true, &rows, &n, NULL), 0);
	assert_int_equal(n, 10);
	free(rows);
}

static void query_segments(struct store *s)
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

/* The same answer from forty times the rows: with an index it takes as long, without one tens of
 * times as long. */
static void a_large_ledger_is_quick_to_ask(void **state)
{
	static const struct {
		const char *name;
		void (*ask)(struct store *s);
	} asks[] = {
		{"newest runs", query_newest}, {"newest of a config", query_newest_of},
		{"running", query_running},    {"running of a config", query_running_of},
		{"a run", query_run},          {"a pod", query_pod},
		{"open pods", query_open},     {"open pods of a run", query_open_of},
		{"segments", query_segments},
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(an_empty_ledger_is_empty),
		BOTH(ids_are_found_by_a_part),
		BOTH(runs_are_listed_newest_first),
		BOTH(pods_that_came_up_are_listed),
		BOTH(pods_that_were_billed_since_are_listed),
		BOTH(pods_are_listed_in_order),
		OPENED(a_large_ledger_is_quick_to_ask),
	};

	return cmocka_run_group_tests_name("store queries", tests, make_folder, drop_folder);
}
