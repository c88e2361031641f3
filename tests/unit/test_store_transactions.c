/* test_store_transactions.c - transactions, and the ledger in memory that must agree with the one
 * on disk. */
#include "store_bed.h"

#include <sys/wait.h>

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
	row.state = (enum request_state)state_read(&request_state_words, state);
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

static void memory_answers_as_a_file(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_commit_keeps),
		BOTH(a_rollback_restores),
		BOTH(misuse_is_a_bug),
		OPENED(memory_answers_as_a_file),
	};

	return cmocka_run_group_tests_name("store transactions", tests, make_folder, drop_folder);
}
