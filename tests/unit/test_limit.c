/* test_limit.c - how often an account may be asked: what is kept for whom, what the vendor's
 * headers overrule, and that processes share it. */
#include "limit_bed.h"

static void each_class_leaves_something_to_those_before_it(void **state)
{
	struct limits l = a_minute(60, 60);

	(void)state;
	assert_int_equal(go_through(&l, CALL_POLL, NOW), 60 - 18);
	assert_int_equal(go_through(&l, CALL_CREATE, NOW), 18 - 6);
	assert_int_equal(l.windows[0].left, 6);
	for (int i = 0; i < 20; i++) /* a release is never held back by our own counting */
		assert_int_equal(limits_take(&l, CALL_RELEASE, NOW), 0);
	assert_int_equal(l.windows[0].left, 0);
	int64_t wait = limits_take(&l, CALL_POLL, NOW);
	/* looked at again soon: another process may know better */
	assert_true(wait > 0 && wait <= 5000);
	assert_int_equal(limits_take(&l, CALL_POLL, NOW + 40000), 0);
	assert_int_equal(l.windows[0].left, 59);
}

static void the_tightest_window_counts(void **state)
{
	struct limits l = a_minute(60, 60);

	(void)state;
	l.windows[1] = (struct limit_window){"day", 1000, 86400000, 301, NOW + 86400000};
	l.count = 2;
	assert_int_equal(go_through(&l, CALL_POLL, NOW), 1);
	assert_int_equal(go_through(&l, CALL_CREATE, NOW), 59 - 6);
}

/* Sixty are on their way when the first of them is answered: the server has not counted the others
 * yet, we have. */
static void what_is_under_way_is_counted(void **state)
{
	struct limits l = {0};
	struct reply late;

	(void)state;
	learn(&l, 200,
	      "RateLimit-Policy: \"minute\";q=60;w=60\r\nRateLimit: \"minute\";r=60;t=30\r\n", 0);
	assert_int_equal(go_through(&l, CALL_RELEASE, NOW), 60);
	late = answer(200, "RateLimit: \"minute\";r=59;t=30\r\n", 0);
	limits_learn(&l, &late, &(struct limit_call){NOW, NOW + 20, 59, CALL_POLL});
	assert_true(limits_take(&l, CALL_RELEASE, NOW + 21) > 0);
	reply_free(&late);
	/* of the next minute, in which the rest may be counted */
	late = answer(200, "RateLimit: \"minute\";r=50;t=60\r\n", 0);
	limits_learn(&l, &late, &(struct limit_call){NOW + 30000, NOW + 30000, 8, CALL_POLL});
	assert_int_equal(l.windows[0].left, 42);
	reply_free(&late);
}

/* A thousand of them at once: no more are sent than the vendor says that it will take, however long
 * that takes. */
static void releases_of_a_wide_run_keep_within_the_word(void **state)
{
	struct limits l = {0};
	int sent = 0;

	(void)state;
	learn(&l, 200,
	      "RateLimit-Policy: \"minute\";q=60;w=60\r\nRateLimit: \"minute\";r=40;t=30\r\n", 0);
	assert_int_equal(go_through(&l, CALL_RELEASE, NOW), 40);
	assert_true(limits_take(&l, CALL_RELEASE, NOW + 29999) > 0);
	for (int minute = 0; minute < 16; minute++) {
		int n = go_through(&l, CALL_RELEASE, NOW + 30000 + minute * 60000);
		assert_int_equal(n, 60);
		sent += n;
	}
	assert_int_equal(sent, 960);
	/* an hour that is used up, or is said to be: one a minute finds out */
	learn(&l, 200,
	      "RateLimit-Policy: \"hour\";q=3000;w=3600\r\nRateLimit: \"hour\";r=0;t=3000\r\n", 0);
	int64_t later = NOW + 20 * 60000;
	assert_int_equal(go_through(&l, CALL_RELEASE, later), 1);
	assert_int_equal(go_through(&l, CALL_RELEASE, later + 59000), 0);
	assert_int_equal(go_through(&l, CALL_RELEASE, later + 60000), 1);
}

/* Another process looks again soon, but a user is told how long it takes. */
static void all_of_the_wait_is_known(void **state)
{
	struct limits l = a_minute(60, 60);

	(void)state;
	learn(&l, 429, "Retry-After: 3600\r\n", 3600000);
	assert_int_equal(limits_take(&l, CALL_POLL, NOW + 1000), 5000);
	assert_in_range(limits_wait(&l, CALL_POLL, NOW + 1000), 3590000, 3600000);
	l = (struct limits){.windows = {{"hour", 3000, 3600000, 1500, NOW + 3600000}}, .count = 1};
	go_through(&l, CALL_POLL, NOW);
	assert_int_equal(limits_wait(&l, CALL_POLL, NOW), 5000);
}

/* Whoever has asked too much of an hour early on asks every few seconds for the rest of it. */
static void a_long_window_is_never_shut(void **state)
{
	struct limits l = {.windows = {{"hour", 3000, 3600000, 1500, NOW + 3600000}}, .count = 1};
	int polls = go_through(&l, CALL_POLL, NOW);

	(void)state;
	assert_int_equal(polls, 600);
	for (int minute = 1; minute < 60; minute++) {
		polls = go_through(&l, CALL_POLL, NOW + minute * 60000);
		assert_in_range(polls, 14, 16);
	}
	assert_true(l.windows[0].left >= 10); /* and there is something left for releases */
}

static void headers_overrule(void **state)
{
	struct limits l = a_minute(60, 60);

	(void)state;
	learn(&l, 200,
	      "RateLimit-Policy: \"minute\";q=120;w=60, \"hour\";q=3000;w=3600\r\nratelimit: "
	      "\"minute\";r=37;t=44, \"hour\";r=2800;t=1812\r\n",
	      0);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.windows[0].quota, 120);
	assert_int_equal(l.windows[0].left, 37);
	assert_int_equal(l.windows[0].reset_at_ms, NOW + 44000);
	assert_int_equal(l.windows[1].left, 2800);
	assert_int_equal(l.windows[1].length_ms, 3600000);
	assert_int_equal(go_through(&l, CALL_POLL, NOW), 1);
}

/* A reply that was written before the newest calls arrived does not know of them. */
static void calls_on_their_way_count(void **state)
{
	struct limits l = a_minute(60, 60);

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(limits_take(&l, CALL_POLL, NOW), 0);
	learn(&l, 200, "RateLimit: \"minute\";r=59;t=41\r\n", 0);
	assert_int_equal(l.windows[0].left, 50);
	learn(&l, 200, "RateLimit: \"minute\";r=30;t=40\r\n", 0); /* others ask too */
	assert_int_equal(l.windows[0].left, 30);
	learn(&l, 200,
	      "RateLimit-Policy: \"minute\";q=100;w=60\r\nRateLimit: \"minute\";r=90;t=40\r\n", 0);
	assert_int_equal(l.windows[0].left, 70); /* and there is more than was thought */
	struct reply slow = answer(200, "RateLimit: \"minute\";r=80;t=50\r\n", 0);
	/* written when its call came */
	limits_learn(&l, &slow, &(struct limit_call){NOW - 10000, NOW, 0, CALL_POLL});
	assert_int_equal(l.windows[0].left, 70);
	assert_int_equal(l.windows[0].reset_at_ms, NOW + 40000);
	reply_free(&slow);
	learn(&l, 200, "RateLimit: \"minute\";r=99;t=60\r\n", 0);
	assert_int_equal(l.windows[0].left, 99); /* the next window */
}

static void a_refusal_is_waited_out(void **state)
{
	struct limits l = a_minute(60, 60);

	(void)state;
	learn(&l, 429, "RateLimit: \"minute\";r=0;t=12\r\n", 2000);
	assert_true(limits_take(&l, CALL_RELEASE, NOW + 1999) > 0);
	/* none went through for a minute: what was said may be wrong */
	assert_true(limits_take(&l, CALL_RELEASE, NOW + 2000) == 0);
	/* ... and then it is waited for */
	assert_true(limits_take(&l, CALL_RELEASE, NOW + 2001) > 0);
	assert_true(limits_take(&l, CALL_RELEASE, NOW + 11999) > 0);
	assert_int_equal(limits_take(&l, CALL_RELEASE, NOW + 12000), 0);
	assert_true(limits_take(&l, CALL_POLL, NOW + 11999) > 0);
	assert_int_equal(limits_take(&l, CALL_POLL, NOW + 12000), 0);
	l = (struct limits){0};
	learn(&l, 429, "", 0); /* a 429 that says nothing */
	assert_true(limits_take(&l, CALL_POLL, NOW + 1000) > 0);
	assert_int_equal(limits_take(&l, CALL_POLL, NOW + 2000), 0);
}

/* "Come again in an hour": pods that are to be released bill meanwhile. */
static void nobody_keeps_a_pod_billing_for_an_hour(void **state)
{
	static const enum call_class pressing[] = {CALL_RELEASE, CALL_LIST};

	(void)state;
	for (int said = 0; said < 2; said++) {
		struct limits l = {0};
		learn(&l, 429,
		      said ? "RateLimit: \"hour\";r=0;t=3600\r\nRateLimit-Policy: "
			     "\"hour\";q=3000;w=3600\r\n"
			   : "",
		      3600000);
		/* neither takes the other's turn */
		for (size_t i = 0; i < ARRAY_LEN(pressing); i++) {
			assert_true(limits_take(&l, pressing[i], NOW + 59999) > 0);
			assert_int_equal(go_through(&l, pressing[i], NOW + 60000), 1);
			assert_true(limits_take(&l, pressing[i], NOW + 119999) > 0);
			assert_int_equal(go_through(&l, pressing[i], NOW + 120000), 1);
		}
		for (int minute = 3; minute < 60; minute++) {
			assert_int_equal(limits_take(&l, CALL_RELEASE, NOW + minute * 60000), 0);
			assert_true(limits_take(&l, CALL_POLL, NOW + minute * 60000) > 0);
			assert_true(limits_take(&l, CALL_CREATE, NOW + minute * 60000) > 0);
		}
		assert_int_equal(limits_take(&l, CALL_POLL, NOW + 3600000), 0);
	}
}

/* ... and where one is accepted there is room for those behind it, whatever was said before. */
static void an_accepted_release_opens_the_way(void **state)
{
	static const struct {
		const char *name;
		int status;
		bool failed;
		int grpc_status;
		int64_t sent_ms;
		enum call_class class;
		bool opens;
	} cases[] = {
		{"accepted", 204, false, 0, 60000, CALL_RELEASE, true},
		{"there is no such pod", 404, false, 0, 60000, CALL_RELEASE, true},
		{"refused again", 429, false, 0, 60000, CALL_RELEASE, false},
		{"out of order", 503, false, 0, 60000, CALL_RELEASE, false},
		{"no answer", 0, true, 0, 60000, CALL_RELEASE, false},
		{"too many, as gRPC says it", 200, false, 8, 60000, CALL_RELEASE, false},
		{"sent before the refusal", 204, false, 0, -100, CALL_RELEASE, false},
		{"a look", 200, false, 0, 60000, CALL_LIST, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct limits l = {0};
		struct reply r = {.status = cases[i].status,
				  .failed = cases[i].failed,
				  .grpc_status = cases[i].grpc_status};
		learn(&l, 429, "", 3600000);
		assert_int_equal(go_through(&l, CALL_RELEASE, NOW + 60000), 1);
		limits_learn(&l, &r,
			     &(struct limit_call){NOW + cases[i].sent_ms, NOW + 60100, 0,
						  cases[i].class});
		int64_t wait = limits_take(&l, CALL_RELEASE, NOW + 60101);
		if ((wait == 0) != cases[i].opens)
			fail_msg("%s: the next one waits %lld ms", cases[i].name, (long long)wait);
		assert_true(limits_take(&l, CALL_POLL, NOW + 60101) > 0);
		assert_true(limits_take(&l, CALL_CREATE, NOW + 60101) > 0);
	}
}

/* ... also beyond a window that is used up by the vendor's own word, where it takes them all the
 * same: each the next one. */
static void an_accepted_release_opens_the_way_beyond_a_window(void **state)
{
	static const char head[] =
		"RateLimit-Policy: \"hour\";q=3000;w=3600\r\nRateLimit: \"hour\";r=0;t=1800\r\n";
	struct limits l = {0};

	(void)state;
	learn(&l, 429, head, 1800000);
	for (int i = 0; i < 3; i++) {
		int64_t now = NOW + 60000 + i * 200;
		assert_int_equal(go_through(&l, CALL_RELEASE, now), 1);
		assert_true(limits_take(&l, CALL_RELEASE, now + 50) > 0);
		struct reply r = {.status = 204};
		limits_learn(&l, &r, &(struct limit_call){now, now + 100, 0, CALL_RELEASE});
		assert_true(limits_take(&l, CALL_CREATE, now + 150) > 0);
	}
	assert_int_equal(go_through(&l, CALL_RELEASE, NOW + 61000), 1);
	struct reply r = {.status = 429, .retry_after_ms = 1800000};
	limits_learn(&l, &r, &(struct limit_call){NOW + 61000, NOW + 61100, 0, CALL_RELEASE});
	assert_true(limits_take(&l, CALL_RELEASE, NOW + 62000) > 0);
}

/* ... while those that are accepted within it say nothing of what is beyond: the next one waits for
 * the next minute. */
static void releases_that_use_up_a_window_open_nothing(void **state)
{
	struct limits l = {0};

	(void)state;
	learn(&l, 200,
	      "RateLimit-Policy: \"minute\";q=60;w=60\r\nRateLimit: \"minute\";r=60;t=60\r\n", 0);
	assert_int_equal(go_through(&l, CALL_RELEASE, NOW), 60);
	for (int left = 59; left >= 0; left--) {
		char head[64];
		snprintf(head, sizeof(head), "RateLimit: \"minute\";r=%d;t=60\r\n", left);
		struct reply r = answer(204, head, 0);
		limits_learn(&l, &r, &(struct limit_call){NOW, NOW + 100, left, CALL_RELEASE});
		reply_free(&r);
	}
	assert_true(limits_take(&l, CALL_RELEASE, NOW + 5000) > 0);
	assert_true(limits_take(&l, CALL_RELEASE, NOW + 59000) > 0);
	assert_int_equal(go_through(&l, CALL_RELEASE, NOW + 60100), 60);
}

/* A look is a poll as long as there is room for polls: it takes nothing of what is kept for
 * releases but one a minute. */
static void a_look_is_a_poll_but_once_a_minute(void **state)
{
	struct limits l = a_minute(60, 60);

	(void)state;
	l.windows[0].reset_at_ms = NOW + 60000;
	assert_int_equal(go_through(&l, CALL_LIST, NOW), 60 - 18 + 1);
	assert_int_equal(go_through(&l, CALL_LIST, NOW + 59999), 0);
	assert_int_equal(go_through(&l, CALL_RELEASE, NOW + 59999), 1000);
}

/* A minute that is used up is soon over; an hour is not. */
static void a_look_waits_for_a_window_that_opens_soon(void **state)
{
	static const struct {
		const char *head;
		int goes;
	} cases[] = {
		{"RateLimit-Policy: \"minute\";q=60;w=60\r\nRateLimit: \"minute\";r=0;t=40\r\n", 0},
		{"RateLimit-Policy: \"hour\";q=3000;w=3600\r\nRateLimit: \"hour\";r=0;t=1800\r\n",
		 1},
		{"RateLimit-Policy: \"minute\";q=60;w=60\r\nRateLimit: \"minute\";r=5;t=40\r\n", 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct limits l = {0};
		learn(&l, 200, cases[i].head, 0);
		assert_int_equal(go_through(&l, CALL_LIST, NOW + 1000), cases[i].goes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_class_leaves_something_to_those_before_it),
		cmocka_unit_test(releases_of_a_wide_run_keep_within_the_word),
		cmocka_unit_test(what_is_under_way_is_counted),
		cmocka_unit_test(the_tightest_window_counts),
		cmocka_unit_test(all_of_the_wait_is_known),
		cmocka_unit_test(a_long_window_is_never_shut),
		cmocka_unit_test(headers_overrule),
		cmocka_unit_test(calls_on_their_way_count),
		cmocka_unit_test(a_refusal_is_waited_out),
		cmocka_unit_test(nobody_keeps_a_pod_billing_for_an_hour),
		cmocka_unit_test(an_accepted_release_opens_the_way),
		cmocka_unit_test(an_accepted_release_opens_the_way_beyond_a_window),
		cmocka_unit_test(releases_that_use_up_a_window_open_nothing),
		cmocka_unit_test(a_look_is_a_poll_but_once_a_minute),
		cmocka_unit_test(a_look_waits_for_a_window_that_opens_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
