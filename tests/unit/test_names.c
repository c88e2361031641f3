/* test_names.c - what a whole id, or a part of one, means to commands that take a run, a pod or a
 * request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "runs/runs.h"

static struct err err;

static void ok(int result)
{
	if (result < 0)
		fail_msg("%s", err.msg);
}

static void put_run(struct store *s, const char *id, const char *job)
{
	struct run_row row = {0};

	COPY_TEXT(row.id, id);
	COPY_TEXT(row.job, job);
	ok(store_put_run(s, &row, &err));
}

static void put_pod(struct store *s, const char *attempt, const char *id, const char *run,
		    const char *state)
{
	struct pod_row row = {0};

	COPY_TEXT(row.attempt, attempt);
	COPY_TEXT(row.id, id);
	COPY_TEXT(row.run, run);
	row.state = (enum pod_row_state)state_read(&pod_row_state_words, state);
	snprintf(row.name, sizeof(row.name), "burst-%s", attempt);
	ok(store_put_pod(s, &row, &err));
}

static void put_request(struct store *s, const char *id, const char *run)
{
	struct request_row row = {.state = REQUEST_PENDING};

	COPY_TEXT(row.id, id);
	COPY_TEXT(row.run, run);
	ok(store_put_request(s, &row, &err));
}

static struct store *ledger(void)
{
	struct store *s = store_memory();

	put_run(s, "k7x2fd", "quiz");
	put_run(s, "k7x2", "old");
	put_run(s, "b4k7zz", "book");
	put_run(s, "w9w9w9", "idle");
	put_pod(s, "aaaa1111", "vendor-m3", "k7x2fd", "live");
	put_pod(s, "bbbb2222", "vendor-n5", "b4k7zz", "live");
	put_pod(s, "cccc3333", "", "b4k7zz", "intent");
	put_pod(s, "dddd4444", "vendor-m3", "k7x2", "gone");
	put_pod(s, "eeee5555", "gone-pod", "k7x2", "gone");
	put_request(s, "qh8h8h8", "k7x2fd");
	put_request(s, "qj6j6j6", "");
	return s;
}

static const struct {
	const char *name, *text, *found; /* the id; or the error */
} runs[] =
	{
		{"whole, though others begin so", "k7x2", "k7x2"},
		{"the beginning", "k7x2f", "k7x2fd"},
		{"the beginning goes before the middle", "b", "b4k7zz"},
		{"the middle", "k7z", "b4k7zz"},
		{"the end", "2fd", "k7x2fd"},
		{"several begin so", "k7",
		 "\"k7\" may be run k7x2fd (quiz), run k7x2 (old): give more of the id"},
		{"several have it", "7",
		 "\"7\" may be run k7x2fd (quiz), run k7x2 (old), run b4k7zz (book): give more of "
		 "the id"},
		{"a pod's id", "vendor-n5", "b4k7zz"},
		{"part of one", "n5", "b4k7zz"},
		{"a pod's attempt", "cccc3333", "b4k7zz"},
		{"a pod that is gone", "gone-p", "k7x2"},
		{"a request", "qh8h8h8", "k7x2fd"},
		{"part of a request", "h8h", "k7x2fd"},
		{"a request without a run", "qj6",
		 "request qj6j6j6 has no run yet (see `burst queue ls`)"},
		{"none", "zzzz", "no run \"zzzz\"; `burst ledger` lists them"},
		{"a pattern", "k%", "no run \"k%\"; `burst ledger` lists them"},
},
  pods[] =
	  {
		  {"the vendor's id", "vendor-n5", "bbbb2222"},
		  {"that of two: the one that bills", "vendor-m3", "aaaa1111"},
		  {"part of it", "m3", "aaaa1111"},
		  {"its attempt", "dddd4444", "dddd4444"},
		  {"its name", "burst-cccc3333", "cccc3333"},
		  {"part of its name", "st-ee", "eeee5555"},
		  {"several", "vendor",
		   "\"vendor\" may be pod vendor-m3 (of run k7x2fd), pod vendor-n5 (of run "
		   "b4k7zz): give more of the id"},
		  {"a run with one pod", "k7x2fd", "aaaa1111"},
		  {"a run with two", "b4k",
		   "run b4k7zz has 2 pods: name one of pod vendor-n5 (), pod cccc3333 ()"},
		  {"a run without", "w9", "run w9w9w9 has no pod now"},
		  {"none", "zzzz", "no pod \"zzzz\" in this ledger; `burst ps` lists them"},
},
  requests[] = {
	  {"whole", "qh8h8h8", "qh8h8h8"},
	  {"part", "j6", "qj6j6j6"},
	  {"several", "q",
	   "\"q\" may be request qh8h8h8 (pending), request qj6j6j6 (pending): give more of the "
	   "id"},
	  {"none", "k7x2fd", "no request \"k7x2fd\"; `burst queue ls` lists them"},
};

static void check(const char *name, int result, const char *got, const char *want)
{
	const char *said = result < 0 ? err.msg : got;

	if (strcmp(said, want))
		fail_msg("%s: got \"%s\", want \"%s\"", name, said, want);
}

static void test_runs(void **state)
{
	struct store *s = ledger();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
		struct run_row row = {0};
		err_clear(&err);
		check(runs[i].name, named_run(s, runs[i].text, &row, &err), row.id, runs[i].found);
	}
	store_close(s);
}

static void test_pods(void **state)
{
	struct store *s = ledger();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
		struct pod_row row = {0};
		err_clear(&err);
		check(pods[i].name, named_pod(s, pods[i].text, &row, &err), row.attempt,
		      pods[i].found);
	}
	store_close(s);
}

static void test_requests(void **state)
{
	struct store *s = ledger();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		struct request_row row = {0};
		err_clear(&err);
		check(requests[i].name, named_request(s, requests[i].text, &row, &err), row.id,
		      requests[i].found);
	}
	store_close(s);
}

static void test_very_many_are_counted(void **state)
{
	struct store *s = store_memory();
	struct run_row row;

	(void)state;
	for (int i = 0; i < 9; i++) {
		char id[8];
		snprintf(id, sizeof(id), "x%d", i);
		put_run(s, id, "j");
	}
	err_clear(&err);
	check("nine", named_run(s, "x", &row, &err), "",
	      "\"x\" may be run x0 (j), run x1 (j), run x2 (j), run x3 (j), run x4 (j) and 4 more: "
	      "give more of the id");
	store_close(s);
}

static void test_new_ids(void **state)
{
	char id[NAME_LEN + 1], before[NAME_LEN + 1] = "";

	(void)state;
	for (int i = 0; i < 200; i++) {
		name_draw(id);
		assert_int_equal(strlen(id), 6);
		assert_int_equal(strspn(id, "bcdfghjkmnprstvwxz23456789"), 6);
		assert_string_not_equal(id, before);
		memcpy(before, id, sizeof(id));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),     cmocka_unit_test(test_pods),
		cmocka_unit_test(test_requests), cmocka_unit_test(test_very_many_are_counted),
		cmocka_unit_test(test_new_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
