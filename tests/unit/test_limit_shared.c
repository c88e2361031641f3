/* test_limit_shared.c - a rate limit as text, and shared through the ledger. */
#include "limit_bed.h"

static void nonsense_limits_nothing(void **state)
{
	static const char *const heads[] = {
		"RateLimit: \r\n",
		"RateLimit: \"minute\"\r\n",
		"RateLimit: \"minute\";r=-5;t=3\r\n",
		"RateLimit: \"\";r=0;t=9\r\n",
		"RateLimit: minute;r=0;t=9\r\n",
		"RateLimit: \"a b\";r=0;t=9\r\n",
		"RateLimit: \"minute\";r=0;t=99999999999999\r\n",
		"RateLimit: \"a-name-that-is-far-too-long\";r=0;t=9\r\n",
		"RateLimit-Policy: \"minute\";q=0;w=60\r\n",
		"RateLimit-Policy: \"minute\";q=9;w=0\r\n",
		"RateLimit: \"minute;r=0;t=9\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		struct limits l = {0};
		learn(&l, 200, heads[i], 0);
		if (go_through(&l, CALL_POLL, NOW) != 1000)
			fail_msg("%s", heads[i]);
	}
	struct limits l = {0};
	learn(&l, 200,
	      "RateLimit: \"a\";r=1;t=1, \"b\";r=1;t=1, \"c\";r=1;t=1, \"d\";r=1;t=1, "
	      "\"e\";r=1;t=1\r\n",
	      0);
	assert_int_equal(l.count, LIMIT_WINDOWS);
}

static void a_clock_set_back_does_not_block(void **state)
{
	struct limits l = a_minute(60, 0);

	(void)state;
	assert_int_equal(limits_take(&l, CALL_POLL, NOW - 86400000), 0);
	l = (struct limits){.blocked_until_ms = NOW + INT64_C(30) * 86400000};
	assert_int_equal(limits_take(&l, CALL_POLL, NOW), 0);
}

static void text_and_back(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"1",
		"1 2 3 4 minute",
		"1 2 3 4 minute 3 4 5 6 1",
		"1 2 3 4 5 minute 3 4 5 6",
		"1 2 3 4 5 mi\"nute 1 2 3 4 1",
		"1 2 3 4 5 hour 9223372036854775807 3600000 5 9223372036854775807 1",
		"-9223372036854775808 2 3 4 5 hour 1 2 3 4 1",
		"1 2 3 4 5 minute 60 60000 12 5 1 hour 3000 9223372036854775807 1 4 1",
		"1 2 3 4 5 hour 3 4 -5 6 1",
		"1 2 3 4 -5 hour 3 4 5 6 1"};
	struct limits l = a_minute(60, 12), got;
	char text[LIMIT_TEXT_MAX];

	(void)state;
	l.windows[1] = (struct limit_window){"hour", 3000, 3600000, 7, NOW + 5};
	l.count = 2;
	l.refused_until_ms = NOW + 1;
	l.blocked_until_ms = NOW + 2;
	l.released_ms = NOW - 1;
	l.listed_ms = NOW - 3;
	l.windows[1].said = 1;
	limits_write(&l, text);
	limits_read(&got, text);
	assert_memory_equal(&got, &l, sizeof(l));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		limits_read(&got, bad[i]);
		assert_int_equal(got.count, 0);
		assert_int_equal(limits_take(&got, CALL_POLL, NOW), 0);
	}
}

static void processes_share_it(void **state)
{
	char *dir = new_folder();
	struct store *one, *two;
	struct err err;

	(void)state;
	CLEANUP(free_text) char *path = path_join(dir, "ledger.db");
	assert_int_equal(store_open(&one, path, &err), 0);
	assert_int_equal(store_open(&two, path, &err), 0);
	CLEANUP(limiter_free) struct limiter *a = limiter_new(one), *b = limiter_new(two);
	/* no ledger: for itself, and none refused for want of one */
	CLEANUP(limiter_free) struct limiter *c = limiter_new(NULL);
	int n = 0;
	while (n < 100 &&
	       limiter_take(n % 2 ? a : b, "runpod:x", 20, CALL_POLL, clock_wall_ms()) == 0)
		n++;
	assert_int_equal(n, 14);
	assert_int_equal(limiter_take(a, "runpod:another", 20, CALL_POLL, clock_wall_ms()), 0);
	assert_int_equal(limiter_take(c, "runpod:x", 20, CALL_POLL, clock_wall_ms()), 0);
	struct reply r = answer(429, "", 60000);
	int64_t now = clock_wall_ms();
	limiter_learn(b, "runpod:x", &r, &(struct limit_call){now, now, 0, CALL_POLL});
	reply_free(&r);
	assert_true(limiter_take(a, "runpod:x", 20, CALL_RELEASE, clock_wall_ms()) > 0);
	assert_int_equal(limiter_take(a, "local", 0, CALL_POLL, clock_wall_ms()), 0);
	store_close(one);
	store_close(two);
	assert_int_equal(remove_folder(dir), 0);
}

/* "Wait for ten minutes" was said by a clock that is set right since: that is no reason to let a
 * pod bill for a day. */
static void a_clock_set_back_blocks_nobody(void **state)
{
	struct limits l = {0}, read;
	char text[LIMIT_TEXT_MAX];

	(void)state;
	learn(&l, 429,
	      "HTTP/1.1 429 x\r\nRateLimit: \"hour\";r=0;t=600\r\nRateLimit-Policy: "
	      "\"hour\";q=100;w=3600\r\n",
	      600000);
	limits_write(&l, text);
	limits_read(&read, text);
	for (int class = 0; class <= CALL_LIST; class ++) {
		struct limits again = read;
		assert_true(limits_take(&again, (enum call_class) class, NOW + 59000) > 0);
		again = read;
		assert_int_equal(limits_take(&again, (enum call_class) class, NOW - 86400000), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_set_back_blocks_nobody),
		cmocka_unit_test(nonsense_limits_nothing),
		cmocka_unit_test(a_clock_set_back_does_not_block),
		cmocka_unit_test(text_and_back),
		cmocka_unit_test(processes_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
