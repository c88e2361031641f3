/* test_requests.c - the life of a request in the ledger; then random submits, kills and runs,
 * against what must always hold. */
#include "requests_bed.h"

static struct request_row only(struct store *s)
{
	struct request_row *rows = NULL, row;
	struct err err = {0};
	size_t count = 0;

	ok(store_requests(s, CONFIG, false, &rows, &count, &err), &err);
	assert_int_equal(count, 1);
	row = rows[0];
	free(rows);
	return row;
}

static struct request_row add(struct store *s, int64_t now_ms)
{
	struct request_row row = {.created_ms = now_ms};
	struct err err = {0};

	COPY_TEXT(row.config, CONFIG);
	ok(requests_add(s, &row, &err), &err);
	return row;
}

static int bind(struct store *s, const char *run)
{
	struct request_row newest;
	struct err err = {0};
	int count = requests_bind(s, CONFIG, run, &newest, &err);

	ok(count, &err);
	return count;
}

static void end(struct store *s, const char *run, int exit_status, const char *message,
		int64_t now_ms)
{
	struct err err = {0};

	ok(requests_end(s, CONFIG, run, requests_outcome(exit_status, false, false), exit_status,
			message, now_ms, &err),
	   &err);
}

static void exits(void **state)
{
	(void)state;
	static const struct {
		int exit_status;
		enum outcome outcome, stopped;
	} rows[] = {
		{0, OUTCOME_DONE, OUTCOME_DONE},       {1, OUTCOME_FAILED, OUTCOME_FAILED},
		{2, OUTCOME_FAILED, OUTCOME_FAILED},   {3, OUTCOME_FAILED, OUTCOME_FAILED},
		{4, OUTCOME_RETRY, OUTCOME_RETRY},     {5, OUTCOME_FAILED, OUTCOME_FAILED},
		{6, OUTCOME_RETRY, OUTCOME_RETRY},     {7, OUTCOME_AGAIN, OUTCOME_AGAIN},
		{9, OUTCOME_FAILED, OUTCOME_FAILED},   {127, OUTCOME_RETRY, OUTCOME_RETRY},
		{143, OUTCOME_FAILED, OUTCOME_RESUME}, {130, OUTCOME_FAILED, OUTCOME_RESUME},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(requests_outcome(rows[i].exit_status, false, false),
				 rows[i].outcome);
		assert_int_equal(requests_outcome(rows[i].exit_status, false, true),
				 rows[i].stopped);
	}
	assert_int_equal(requests_outcome(128 + 9, true, false), OUTCOME_RESUME);
}

static void a_failed_start_is_tried_within_bounds(void **state)
{
	static const int minutes[] = {1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30};
	struct store *s = store_memory();
	int64_t now = T0;

	(void)state;
	add(s, now);
	for (int i = 0; i < REQUEST_TRIES; i++) {
		assert_int_equal(only(s).state, REQUEST_PENDING);
		assert_int_equal(bind(s, "1"), 1);
		end(s, "1", i % 2 ? 4 : 6, "sold out", now);
		struct request_row row = only(s);
		assert_string_equal(row.error, "sold out");
		assert_int_equal(row.tries, i + 1);
		if (i < (int)ARRAY_LEN(minutes))
			assert_int_equal(row.not_before_ms - now, minutes[i] * 60000);
		now = row.not_before_ms;
	}
	assert_int_equal(only(s).state, REQUEST_FAILED);
	assert_int_equal(only(s).exit_status, 4);
	store_close(s);
}

static void nor_for_more_than_half_a_day(void **state)
{
	struct store *s = store_memory();

	(void)state;
	add(s, T0);
	bind(s, "1");
	end(s, "1", 4, "sold out", T0);
	bind(s, "2");
	end(s, "2", 4, "sold out", T0 + REQUEST_TRIES_MS);
	assert_int_equal(only(s).state, REQUEST_FAILED);
	store_close(s);
}

/* Old ones go, in the order of their submission; those of other queues and open ones stay. */
static void old_ones_are_forgotten(void **state)
{
	struct store *s = store_memory();
	struct request_row other = {.config = "/home/me/other/burst.cfg", .state = REQUEST_DONE};
	struct request_row first = add(s, T0), *rows = NULL;
	struct err err = {0};
	size_t count = 0;

	(void)state;
	COPY_TEXT(other.id, "q0");
	ok(store_put_request(s, &other, &err), &err);
	for (int i = 1; i < REQUESTS_KEPT + 3; i++)
		add(s, T0 + i);
	bind(s, "1");
	struct request_row open = add(s, T0);
	end(s, "1", 0, "", T0);
	ok(store_requests(s, CONFIG, false, &rows, &count, &err), &err);
	assert_int_equal(count, REQUESTS_KEPT + 1);
	assert_int_equal(rows[0].created_ms, T0 + 3);
	assert_string_equal(rows[REQUESTS_KEPT].id, open.id);
	free(rows);
	ok(store_requests_named(s, first.id, &rows, &count, &err), &err);
	assert_int_equal(count, 0);
	ok(store_requests_named(s, "q0", &rows, &count, &err), &err);
	assert_int_equal(count, 1);
	free(rows);
	store_close(s);
}

static void names(void **state)
{
	struct store *s = store_memory();
	struct request_row out, first = add(s, T0), second = add(s, T0 + 86400000);
	struct err err = {0};

	(void)state;
	assert_int_equal(requests_remove(s, "q", false, T0, &out, &err), -1);
	assert_int_equal(err.kind, ERR_USAGE);
	/* no id has a vowel */
	assert_int_equal(requests_remove(s, "a", false, T0, &out, &err), -1);
	assert_int_equal(err.kind, ERR_USAGE);
	ok(requests_remove(s, first.id, false, T0, &out, &err), &err);
	assert_int_equal(requests_remove(s, first.id, false, T0, &out, &err), -1);
	assert_int_equal(bind(s, "1"), 1);
	assert_int_equal(requests_remove(s, second.id, false, T0, &out, &err), -1);
	assert_int_equal(err.kind, ERR_BUSY);
	ok(requests_remove(s, second.id, true, T0, &out, &err), &err);
	end(s, "1", 0, "", T0);
	struct request_row *rows = NULL;
	size_t count = 0;
	ok(store_requests_named(s, second.id, &rows, &count, &err), &err);
	assert_int_equal(rows[0].state, REQUEST_REMOVED); /* whatever became of its run */
	free(rows);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exits),
		cmocka_unit_test(a_failed_start_is_tried_within_bounds),
		cmocka_unit_test(nor_for_more_than_half_a_day),
		cmocka_unit_test(old_ones_are_forgotten),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
