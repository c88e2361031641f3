/* test_err.c - errors, clocks, and memory that grows and moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "checks.h"

/* ---- err ---- */

static void err_tells_its_story(void **state)
{
	struct err err = {.signal = 2, .retry_after_ms = 5};

	(void)state;
	assert_int_equal(err_set(&err, ERR_NETWORK, "reset by %s", "peer"), -1);
	assert_int_equal(err.signal, 0);
	assert_int_equal(err.retry_after_ms, 0);
	err.retry_after_ms = 700;
	assert_int_equal(err_wrap(&err, "segment %d", 12), -1);
	assert_int_equal(err_wrap(&err, "run 7"), -1);
	assert_string_equal(err.msg, "run 7: segment 12: reset by peer");
	assert_int_equal(err.kind, ERR_NETWORK);
	assert_int_equal(err.retry_after_ms, 700);
	assert_int_equal(err_set(&err, ERR_BUG, "again: %s", err.msg), -1);
	assert_string_equal(err.msg, "again: run 7: segment 12: reset by peer");
	err_clear(&err);
	assert_int_equal(err.kind, ERR_NONE);
	assert_string_equal(err.msg, "");
	assert_int_equal(err_set(NULL, ERR_BUG, "nobody listens"), -1);
	assert_int_equal(err_wrap(NULL, "nobody listens"), -1);
}

static void err_stays_inside_its_room(void **state)
{
	char much[2000];
	struct err err = {0};

	(void)state;
	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	err_set(&err, ERR_JOB, "%s", much);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	for (int i = 0; i < 9; i++)
		err_wrap(&err, "%s", much);
	assert_true(strlen(err.msg) < sizeof(err.msg));
}

static void err_gives_the_exit_status(void **state)
{
	static const struct {
		enum err_kind kind;
		int signal, want;
	} cases[] = {
		{ERR_NONE, 0, 0},          {ERR_JOB, 0, 1},           {ERR_LOCAL, 0, 1},
		{ERR_USAGE, 0, 2},         {ERR_CONFIG, 0, 2},        {ERR_CREDENTIALS, 0, 3},
		{ERR_NO_ACCOUNT, 0, 3},    {ERR_NO_CAPACITY, 0, 4},   {ERR_CAP, 0, 5},
		{ERR_NETWORK, 0, 6},       {ERR_AMBIGUOUS, 0, 6},     {ERR_BUSY, 0, 7},
		{ERR_UNRELEASED, 0, 9},    {ERR_INTERRUPTED, 1, 129}, {ERR_INTERRUPTED, 2, 130},
		{ERR_INTERRUPTED, 0, 143},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {.kind = cases[i].kind, .signal = cases[i].signal};
		check_int(err_kind_name(err.kind), err_exit_status(&err), cases[i].want);
	}
	for (enum err_kind k = ERR_NONE; k <= ERR_BUG; k++)
		assert_string_not_equal(err_kind_name(k), "unknown");
}

/* ---- clock ---- */

static const struct {
	const char *text;
	int64_t ms; /* -1: refused */
} durations[] = {
	{"90s", 90000}, {"20m", 1200000}, {"2h", 7200000},   {"1d", 86400000}, {"250ms", 250},
	{"0", 0},       {"15", -1},       {"1.5h", 5400000}, {"0.001s", 1},    {"", -1},
	{"s", -1},      {"-5s", -1},      {"+5s", -1},       {"5 s", -1},      {" 5s", -1},
	{"5s ", -1},    {"5x", -1},       {"0x10", -1},      {"1e3", -1},      {"nan", -1},
	{"inf", -1},    {"1h30m", -1},    {".", -1},         {"1..5s", -1},    {"99999999999d", -1},
	{"1,5h", -1},
};

static void durations_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
		int64_t ms = -1;
		struct err err = {0};
		int result = duration_parse(durations[i].text, &ms, &err);
		check_int(durations[i].text, ms, durations[i].ms);
		check_int(durations[i].text, result, durations[i].ms < 0 ? -1 : 0);
		check_int(durations[i].text, err.kind, result ? ERR_USAGE : ERR_NONE);
	}
}

static void durations_are_shown(void **state)
{
	static const struct {
		int64_t ms;
		const char *want;
	} cases[] = {
		{0, "0.0s"},         {849, "0.8s"},      {9949, "9.9s"},     {9950, "10s"},
		{41000, "41s"},      {59499, "59s"},     {59500, "1m00s"},   {185000, "3m05s"},
		{3599499, "59m59s"}, {3599500, "1h00m"}, {7800000, "2h10m"}, {90000000, "25h00m"},
	};
	char got[24];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_text("shown", duration_show(got, sizeof(got), cases[i].ms), cases[i].want);
}

static void times_are_written(void **state)
{
	char got[32];

	(void)state;
	check_text("epoch", clock_rfc3339(got, sizeof(got), 0), "1970-01-01T00:00:00Z");
	check_text("ms are dropped", clock_rfc3339(got, sizeof(got), 1795221667999),
		   "2026-11-21T00:41:07Z");
	int64_t before = clock_boot_ms();
	assert_true(clock_boot_ms() >= before);
	assert_true(clock_wall_ms() > 1700000000000);
}

static const struct {
	const char *text;
	int64_t microusd; /* -1: refused */
} moneys[] = {
	{"5", 5000000}, {"0.69", 690000}, {"$1.20", 1200000}, {".5", 500000},
	{"0", 0},       {"0.000001", 1},  {"", -1},           {"$", -1},
	{"-1", -1},     {"1.2.3", -1},    {"5 usd", -1},      {"0x5", -1},
	{"1e3", -1},    {"nan", -1},      {"$$5", -1},        {"2000000000", -1},
};

static void money_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(moneys); i++) {
		int64_t got = -1;
		int result = money_parse(moneys[i].text, &got, NULL);
		check_int(moneys[i].text, got, moneys[i].microusd);
		check_int(moneys[i].text, result, moneys[i].microusd < 0 ? -1 : 0);
	}
}

static void money_is_shown_and_counted(void **state)
{
	char got[32];

	(void)state;
	check_text("nothing", money_show(got, sizeof(got), 0), "$0.00");
	check_text("next to nothing", money_show(got, sizeof(got), 49), "<$0.0001");
	check_text("a hundredth of a cent", money_show(got, sizeof(got), 50), "$0.0001");
	check_text("cents", money_show(got, sizeof(got), 12300), "$0.0123");
	check_text("dollars", money_show(got, sizeof(got), 5250000), "$5.25");
	check_int("an hour", money_for(690000, 3600000), 690000);
	check_int("rounded up", money_for(690000, 1), 1);
	check_int("nothing", money_for(690000, 0), 0);
	check_int("what nobody wrote", money_for(INT64_MAX, INT64_MAX), MONEY_MOST);
	check_int("... and below nothing", money_for(INT64_MAX, INT64_MIN), -MONEY_MOST);
	check_int("years of the dearest", money_for(100000000, 315360000000), 8760000000000);
}

static void numbers_are_shown_without_exponents(void **state)
{
	static const struct {
		double value;
		int digits;
		const char *text;
	} cases[] = {
		{100, 2, "100"},         {99.6, 2, "100"},    {95.04, 2, "95"},
		{3.71, 2, "3.7"},        {0.37, 2, "0.37"},   {0, 2, "0"},
		{3600000, 6, "3600000"}, {1234.5, 3, "1234"}, {0.00006, 4, "0.00006"},
		{1e-12, 4, "0"},         {0.5, 6, "0.5"},     {-2.5, 2, "-2.5"},
		{20, 1, "20"},
	};
	char got[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_text(cases[i].text, number_show(got, cases[i].value, cases[i].digits),
			   cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_tells_its_story),
		cmocka_unit_test(err_stays_inside_its_room),
		cmocka_unit_test(err_gives_the_exit_status),
		cmocka_unit_test(durations_are_read),
		cmocka_unit_test(numbers_are_shown_without_exponents),
		cmocka_unit_test(durations_are_shown),
		cmocka_unit_test(times_are_written),
		cmocka_unit_test(money_is_read),
		cmocka_unit_test(money_is_shown_and_counted),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
