/* test_calendar.c - when schedules are due: what is read, what is refused, and days on which the
 * clock changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/calendar.h"
#include "base/clock.h"

static void zone(const char *name)
{
	setenv("TZ", name, 1);
	tzset();
}

static int64_t utc(const char *text)
{
	struct tm t = {0};

	assert_non_null(strptime(text, "%Y-%m-%dT%H:%M:%S", &t));
	return (int64_t)timegm(&t) * 1000;
}

static struct calendar read_it(const char *when)
{
	struct calendar c;
	struct err err = {0};

	if (calendar_parse(when, &c, &err) < 0)
		fail_msg("%s: %s", when, err.msg);
	return c;
}

static void same_moment(int64_t got, const char *want)
{
	char shown[32];

	assert_string_equal(got < 0 ? "never" : clock_rfc3339(shown, sizeof(shown), got), want);
}

static void next_is(const char *when, const char *after, const char *want)
{
	struct calendar c = read_it(when);

	same_moment(calendar_next(&c, utc(after)), want);
}

static void forms_are_read(void **state)
{
	static const char *const forms[][2] = {
		{"daily 02:00", "0 2 * * *"},
		{"weekdays 7:30", "30 7 * * 1,2,3,4,5"},
		{"weekly mon 02:00", "0 2 * * 1"},
		{"weekly Sunday 02:00", "0 2 * * 0"},
		{"weekly sundae 02:00", NULL},
		{"monthly 15 23:59", "59 23 15 * *"},
		{"hourly", "0 * * * *"},
		{"@daily", "0 0 * * *"},
		{"every 15m", "0,15,30,45 * * * *"},
		{"every 1m", "* * * * *"},
		{"every 6h", "0 0,6,12,18 * * *"},
		{"*/20 9-17/4 1,15 jan-mar Mon,wed", "0,20,40 9,13,17 1,15 1,2,3 1,3"},
		{"0 0 * * 7", "0 0 * * 0"},
		{"0 0 * * 5-7", "0 0 * * 0,5,6"},
		{"daily 25:00", NULL},
		{"daily 2", NULL},
		{"daily 02:0", NULL},
		{"daily 02:00x", NULL},
		{"every 7m", NULL},
		{"every 5h", NULL},
		{"every 0m", NULL},
		{"tomorrow", NULL},
		{"", NULL},
		{"60 * * * *", NULL},
		{"0,60 * * * *", NULL},
		{"0 2-24 * * *", NULL},
		{"* 24 * * *", NULL},
		{"* * 0 * *", NULL},
		{"* * * 13 *", NULL},
		{"* * * * 8", NULL},
		{"1, * * * *", NULL},
		{"5-1 * * * *", NULL},
		{"*/0 * * * *", NULL},
		{"1/5 * * * *", NULL},
		{"* * * *", NULL},
		{"* * * * * *", NULL},
		{"@reboot", NULL},
		{"0 0 31 2 *", NULL},
		{"0 0 30 2 *", NULL},
	};

	(void)state;
	zone("UTC");
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct calendar c;
		struct err err = {0};
		struct str text = STR_INIT;
		int result = calendar_parse(forms[i][0], &c, &err);
		if (result != (forms[i][1] ? 0 : -1))
			fail_msg("\"%s\": %s", forms[i][0], result ? err.msg : "was taken");
		if (!result) {
			calendar_write(&c, &text);
			assert_string_equal(str_text(&text), forms[i][1]);
			struct calendar again = read_it(str_text(&text));
			assert_int_equal(again.minutes, c.minutes);
			assert_int_equal(again.weekdays, c.weekdays);
		} else {
			assert_int_equal(err.kind, ERR_USAGE);
			bool never = strstr(forms[i][0], " 2 *"), said = strstr(err.msg, "never");
			if (said != never)
				fail_msg("\"%s\": %s", forms[i][0], err.msg);
		}
		str_free(&text);
	}
}

static void moved_ahead(void **state)
{
	static const struct {
		const char *when;
		int minutes;
		const char *want; /* NULL: refused */
	} cases[] = {
		{"daily 02:00", 0, "0 2 * * *"},
		{"daily 02:00", 4, "56 1 * * *"},
		{"daily 02:30", 30, "0 2 * * *"},
		{"daily 00:10", 20, "50 23 * * *"},
		{"weekly mon 00:10", 20, "50 23 * * 0"},
		{"weekly sun 00:10", 20, "50 23 * * 6"},
		{"weekdays 07:30", 90, "0 6 * * 1,2,3,4,5"},
		{"hourly", 4, "56 * * * *"},
		{"every 15m", 4, "11,26,41,56 * * * *"},
		{"* * * * *", 7, "* * * * *"},
		{"monthly 1 02:00", 5, "55 1 1 * *"},
		{"monthly 1 00:04", 5, NULL}, /* the last day of a month */
		{"0,30 2 * * *", 10, NULL},   /* 01:50 and 02:20 */
		{"0 0,12 * * 1", 10, NULL},   /* on Sunday and on Monday */
		{"0 0,12 * * *", 10, "50 11,23 * * *"},
		{"daily 02:00", 23 * 60 + 59, "1 2 * * *"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct calendar c = read_it(cases[i].when);
		CLEANUP(str_free) struct str text = STR_INIT;
		struct err err = {0};
		int result = calendar_move_ahead(&c, cases[i].minutes, &err);
		if (result != (cases[i].want ? 0 : -1))
			fail_msg("\"%s\": %s", cases[i].when, result ? err.msg : "was moved");
		calendar_write(&c, &text);
		if (!result)
			assert_string_equal(str_text(&text), cases[i].want);
	}
}

static void the_next_moment(void **state)
{
	(void)state;
	zone("UTC");
	next_is("daily 02:00", "2026-11-25T01:59:59", "2026-11-25T02:00:00Z");
	next_is("daily 02:00", "2026-11-25T02:00:00", "2026-11-26T02:00:00Z");
	next_is("monthly 31 00:00", "2026-11-25T00:00:00", "2026-12-31T00:00:00Z");
	next_is("0 0 29 2 *", "2026-11-25T00:00:00", "2028-02-29T00:00:00Z");
	next_is("0 0 29 2 *", "2096-03-01T00:00:00", "2104-02-29T00:00:00Z"); /* 2100 has none */
	/* both days named: either will do (crontab(5)): Friday 4 December comes before the 13th */
	next_is("0 0 13 * 5", "2026-11-28T00:00:00", "2026-12-04T00:00:00Z");
	next_is("0 0 13 * *", "2026-11-28T00:00:00", "2026-12-13T00:00:00Z");
	next_is("*/15 * * * *", "2026-12-31T23:50:00", "2027-01-01T00:00:00Z");
}

static void the_last_moment_and_those_before(void **state)
{
	struct calendar c;
	int before;

	(void)state;
	zone("UTC");
	c = read_it("daily 02:00");
	same_moment(
		calendar_last(&c, utc("2026-11-20T12:00:00"), utc("2026-11-25T01:00:00"), &before),
		"2026-11-24T02:00:00Z");
	assert_int_equal(before, 3);
	same_moment(
		calendar_last(&c, utc("2026-11-24T02:00:00"), utc("2026-11-25T01:00:00"), &before),
		"never");
	assert_int_equal(before, 0);
	same_moment(
		calendar_last(&c, utc("2026-11-25T01:59:00"), utc("2026-11-25T02:00:00"), &before),
		"2026-11-25T02:00:00Z");
	c = read_it("every 1m");
	same_moment(
		calendar_last(&c, utc("2025-11-25T01:59:00"), utc("2026-11-25T02:00:30"), &before),
		"2026-11-25T02:00:00Z");
	assert_true(before >= 999);
}

/* Berlin: 29 March 2026 has no 02:00 to 02:59, 25 October 2026 has it twice. */
static void the_hour_that_is_skipped(void **state)
{
	(void)state;
	zone("Europe/Berlin");
	next_is("daily 02:30", "2026-03-28T12:00:00", "2026-03-29T01:00:00Z"); /* shown as 03:00 */
	next_is("daily 02:30", "2026-03-29T01:00:00", "2026-03-30T00:30:00Z");
	next_is("daily 03:00", "2026-03-28T12:00:00", "2026-03-29T01:00:00Z");
	next_is("every 15m", "2026-03-29T00:45:00", "2026-03-29T01:00:00Z"); /* 01:45, then 03:00 */
	zone("Australia/Lord_Howe"); /* half an hour: 4 October 2026, 02:00 to 02:29 */
	next_is("daily 02:15", "2026-10-03T10:00:00", "2026-10-03T15:30:00Z");
	next_is("daily 02:45", "2026-10-03T10:00:00", "2026-10-03T15:45:00Z");
	zone("Africa/Cairo"); /* midnight: 24 April 2026 begins at 01:00 */
	next_is("daily 00:30", "2026-04-23T12:00:00", "2026-04-23T22:00:00Z");
	next_is("daily 00:30", "2026-04-23T22:00:00", "2026-04-24T21:30:00Z");
}

static void the_hour_that_comes_twice(void **state)
{
	struct calendar c;
	int before;

	(void)state;
	zone("Europe/Berlin");
	next_is("daily 02:30", "2026-10-24T12:00:00", "2026-10-25T00:30:00Z");
	next_is("daily 02:30", "2026-10-25T00:30:00", "2026-10-26T01:30:00Z");
	/* what is not fixed goes by the clock */
	next_is("every 15m", "2026-10-25T00:45:00", "2026-10-25T01:00:00Z");
	c = read_it("hourly");
	calendar_last(&c, utc("2026-10-24T22:00:00"), utc("2026-10-25T23:00:00"), &before);
	assert_int_equal(before, 24); /* 25 hours */
	c = read_it("daily 02:30");
	same_moment(
		calendar_last(&c, utc("2026-10-24T12:00:00"), utc("2026-10-25T12:00:00"), &before),
		"2026-10-25T00:30:00Z");
	assert_int_equal(before, 0);
}

/* A year, minute by minute as cron would: each schedule is due exactly where next says. */
static void next_and_last_agree(void **state)
{
	static const char *const zones[] = {
		"UTC",          "Europe/Berlin",       "America/New_York",
		"Africa/Cairo", "Australia/Lord_Howe", "Asia/Kolkata"};
	static const char *const whens[] = {"daily 02:30", "weekdays 00:00", "monthly 1 12:00",
					    "every 6h", "30 1,2,3 * * sun"};

	(void)state;
	for (size_t z = 0; z < ARRAY_LEN(zones); z++) {
		zone(zones[z]);
		for (size_t w = 0; w < ARRAY_LEN(whens); w++) {
			struct calendar c = read_it(whens[w]);
			int64_t begin = utc("2026-01-15T00:00:00"), at = begin,
				end = utc("2026-11-15T00:00:00");
			int count = 0, before;
			while ((at = calendar_next(&c, at)) <= end) {
				count++;
				assert_int_equal(calendar_last(&c, begin, at, NULL), at);
				assert_true(calendar_last(&c, begin, at - 1, NULL) < at);
			}
			assert_true(calendar_last(&c, begin, end, &before) > 0);
			assert_int_equal(before, MIN(count - 1, 1000));
		}
	}
}

static void dates_of_vendors(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} cases[] = {
		{"2026-11-28T08:00:00Z", 1795852800},
		{"2026-11-28T08:00:00.123456Z", 1795852800},
		{"2026-11-28T10:00:00+02:00", 1795852800},
		{"2026-11-28T06:30:00.5-01:30", 1795852800},
		{"1969-12-31T23:59:59Z", 0},
		{"2026-11-28", 0},
		{"", 0},
		{"soon", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(clock_read_rfc3339(cases[i].text), cases[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_are_read),
		cmocka_unit_test(moved_ahead),
		cmocka_unit_test(the_next_moment),
		cmocka_unit_test(the_last_moment_and_those_before),
		cmocka_unit_test(the_hour_that_is_skipped),
		cmocka_unit_test(the_hour_that_comes_twice),
		cmocka_unit_test(next_and_last_agree),
		cmocka_unit_test(dates_of_vendors),
	};

	return cmocka_run_group_tests_name("calendar", tests, NULL, NULL);
}
