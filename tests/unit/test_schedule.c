/* test_schedule.c - what cron and systemd are told, when a time is due, late or missed, and what is
 * submitted then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "unattended/schedule.h"

enum { MINUTE = 60000, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

static struct schedule_row named(const char *name, const char *rule, int64_t catch_up_ms)
{
	struct schedule_row row = {.catch_up_ms = catch_up_ms};

	COPY_TEXT(row.name, name);
	COPY_TEXT(row.rule, rule);
	return row;
}

static struct calendar of(const char *rule)
{
	struct calendar c;
	struct err err = {0};

	if (calendar_parse(rule, &c, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

static void cron_gets_lines_that_leave_no_trace(void **state)
{
	static const char
		mine[] = "# mine\nMAILTO=me\n0 1 * * * backup\n",
		other[] =
			"0 1 * * * BURST_STATE_DIR='/home/me/it'\\''s' '/b' schedule run nightly2 "
			"--due\n";
	struct schedule_row row = named("nightly", "daily 02:00", 12 * HOUR);
	struct calendar c = of(row.rule);
	struct str text = STR_INIT, rest = STR_INIT;

	(void)state;
	str_add(&text, mine);
	schedule_cron_lines(&text, &row, &c, "/opt/my tools/100%/burst", "/home/me/it's");
	str_add(&text, other);
	assert_non_null(strstr(str_text(&text),
			       "\n0 2 * * * BURST_STATE_DIR='/home/me/it'\\''s' '/opt/my "
			       "tools/100\\%/burst' schedule run nightly --due >"));
	assert_non_null(strstr(str_text(&text), "\n*/15 * * * * BURST_STATE_DIR="));
	assert_true(schedule_cron_remove(&rest, str_text(&text), "nightly", "/home/me/it's"));
	assert_memory_equal(str_text(&rest), mine, strlen(mine));
	assert_string_equal(str_text(&rest) + strlen(mine), other);
	str_reset(&rest);
	assert_false(schedule_cron_remove(&rest, mine, "nightly", "/s"));
	assert_string_equal(str_text(&rest), mine);
	row.catch_up_ms = 0;
	str_reset(&text);
	schedule_cron_lines(&text, &row, &c, "/b", "/s");
	assert_null(strstr(str_text(&text), "*/15"));
	str_free(&text);
	str_free(&rest);
}

#define LINE(dir)                                                                                  \
	"0 2 * * * BURST_STATE_DIR='" dir "' '/b' schedule run nightly --due >/dev/null 2>&1"
#define OURS   LINE("/s")
#define OTHERS LINE("/s2")
#define USERS  "0 1 * * * backup"

/* What is left of a crontab without the lines of "nightly" in "/s". */
static const struct {
	const char *name, *crontab, *left;
	bool found;
} crontabs[] = {
	{"as burst wrote it", USERS "\n" OURS "\n" OURS "\n" USERS "\n", USERS "\n" USERS "\n",
	 true},
	{"apart from each other", OURS "\n" USERS "\n" OURS "\n", USERS "\n", true},
	{"another schedule between", OURS "\nx schedule run weekly --due\n" OURS "\n",
	 "x schedule run weekly --due\n", true},
	{"lines end with CR LF", USERS "\r\n" OURS "\r\n" USERS "\r\n", USERS "\r\n" USERS "\r\n",
	 true},
	{"no line end at the end", USERS "\n" OURS, USERS "\n", true},
	{"no line end after the user's last", OURS "\n" USERS, USERS, true},
	{"the user has changed our line", "#" OURS "\n", "", true},
	{"another state folder's", OTHERS "\n", OTHERS "\n", false},
	{"of two state folders", OTHERS "\n" OURS "\n", OTHERS "\n", true},
	{"empty", "", "", false},
};

static void crontab_lines_of_others_stay(void **state)
{
	struct str left = STR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(crontabs); i++) {
		str_reset(&left);
		bool found = schedule_cron_remove(&left, crontabs[i].crontab, "nightly", "/s");
		if (found != crontabs[i].found || strcmp(str_text(&left), crontabs[i].left) != 0)
			fail_msg("%s: %d, left:\n%s", crontabs[i].name, found, str_text(&left));
	}
	struct schedule_row row = named("nightly", "daily 02:00", 0);
	struct calendar c = of(row.rule);
	str_reset(&left);
	str_add(&left, USERS); /* without a line end, which cron refuses */
	schedule_cron_lines(&left, &row, &c, "/b", "/s");
	assert_true(starts_with(str_text(&left), USERS "\n0 2 * * * BURST"));
	str_free(&left);
}

static void paths_that_would_add_a_line(void **state)
{
	static const struct {
		const char *path;
		enum schedule_backend backend;
		bool fits;
	} paths[] = {
		{"/home/me/100% \"it's\" $HOME \\ `x` <&>", BACKEND_CRONTAB, true},
		{"/home/m\xc3\xbcller", BACKEND_SYSTEMD, true},
		{"/home/m\xfcller", BACKEND_CRONTAB, true},
		{"/home/m\xfcller", BACKEND_SYSTEMD, false},
		{"/s\n* * * * * touch /tmp/x", BACKEND_CRONTAB, false},
		{"/s\nExecStart=/bin/x", BACKEND_SYSTEMD, false},
		{"/s\r", BACKEND_CRONTAB, false},
		{"/s\033[2J", BACKEND_SYSTEMD, false},
		{"/s\x7f", BACKEND_SYSTEMD, false},
		{"/s\t", BACKEND_CRONTAB, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct err err = {0};
		int got = schedule_check_path(paths[i].backend, "burst", paths[i].path, &err);
		if ((got == 0) != paths[i].fits || (got < 0 && err.kind != ERR_USAGE) ||
		    strpbrk(err.msg, "\n\r\033\x7f"))
			fail_msg("%zu: %d %s", i, got, err.msg);
	}
}

static void systemd_gets_the_same_times(void **state)
{
	static const char *const pairs[][2] = {
		{"daily 02:00", "\nOnCalendar=*-*-* 2:0:00\n"},
		{"weekdays 07:30", "\nOnCalendar=Mon,Tue,Wed,Thu,Fri *-*-* 7:30:00\n"},
		{"*/20 9,17 1 1-3 *", "\nOnCalendar=*-1,2,3-1 9,17:0,20,40:00\n"},
		/* either day */
		{"0 0 13 * 5", "\nOnCalendar=*-*-13 0:0:00\nOnCalendar=Fri *-*-* 0:0:00\n"},
		{"every 1m", "\nOnCalendar=*-*-* *:*:00\n"},
	};
	struct str text = STR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct schedule_row row = named("x", pairs[i][0], 0);
		struct calendar c = of(row.rule);
		str_reset(&text);
		schedule_systemd_timer(&text, &row, &c);
		if (!strstr(str_text(&text), pairs[i][1]))
			fail_msg("%s: %s", pairs[i][0], str_text(&text));
		assert_null(strstr(str_text(&text), "Persistent"));
	}
	struct schedule_row row = named("x", "daily 02:00", HOUR);
	str_reset(&text);
	schedule_systemd_service(&text, &row, "/a $b/100%/\"burst\"", "/home/50%$me");
	/* a shell gets what systemd would not take as a program's path */
	assert_non_null(strstr(str_text(&text),
			       "\nExecStart=/bin/sh -c \"exec \\\"$$0\\\" \\\"$$@\\\"\" "
			       "\"/a $$b/100%%/\\\"burst\\\"\" schedule run x --due\n"));
	assert_non_null(strstr(str_text(&text), "\nKillMode=process\n"));
	assert_true(schedule_unit_has_state(str_text(&text), "/home/50%$me"));
	assert_false(schedule_unit_has_state(str_text(&text), "/home/50%$m"));
	assert_non_null(
		strstr(str_text(&text), "\nEnvironment=\"BURST_STATE_DIR=/home/50%%$me\"\n"));
	str_reset(&text);
	schedule_systemd_service(&text, &row, "/my tools/100%/burst", "/s");
	assert_non_null(strstr(str_text(&text),
			       "\nExecStart=\"/my tools/100%%/burst\" schedule run x --due\n"));
	str_free(&text);
}

static void a_run_is_due_late_or_missed(void **state)
{
	struct schedule_row row = named("x", "daily 02:00", 12 * HOUR);
	struct calendar c = of(row.rule);
	int64_t day = INT64_C(1795651200000), due; /* 2026-11-26 00:00 UTC */
	int missed;

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	assert_int_equal(schedule_check_due(&row, &c, day, day + 2 * HOUR - 1, &due, &missed),
			 SCHEDULE_NOT_DUE);
	assert_int_equal(schedule_check_due(&row, &c, day, day + 2 * HOUR, &due, &missed),
			 SCHEDULE_DUE);
	assert_int_equal(due, day + 2 * HOUR);
	assert_int_equal(missed, 0);
	/* it was run */
	assert_int_equal(schedule_check_due(&row, &c, due, day + 2 * HOUR, &due, &missed),
			 SCHEDULE_NOT_DUE);
	assert_int_equal(schedule_check_due(&row, &c, day, day + 14 * HOUR, &due, &missed),
			 SCHEDULE_DUE);
	assert_int_equal(schedule_check_due(&row, &c, day, day + 14 * HOUR + 1, &due, &missed),
			 SCHEDULE_TOO_LATE);
	/* three nights asleep: the last one is made up for, once */
	assert_int_equal(schedule_check_due(&row, &c, day, day + 2 * DAY + 3 * HOUR, &due, &missed),
			 SCHEDULE_DUE);
	assert_int_equal(due, day + 2 * DAY + 2 * HOUR);
	assert_int_equal(missed, 2);
	row.catch_up_ms = 0; /* still not by the minute: timers are late at times */
	assert_int_equal(
		schedule_check_due(&row, &c, day, day + 2 * HOUR + 4 * MINUTE, &due, &missed),
		SCHEDULE_DUE);
	assert_int_equal(
		schedule_check_due(&row, &c, day, day + 2 * HOUR + 6 * MINUTE, &due, &missed),
		SCHEDULE_TOO_LATE);
}

static void fires(struct store *s, int64_t now_ms, bool by_hand)
{
	struct err err = {0};

	if (schedule_submit(s, "x", by_hand, now_ms, &err) < 0)
		fail_msg("%s", err.msg);
}

/* However often its timer fires, and however many times were missed: one request for them. */
static void one_request_for_what_is_due(void **state)
{
	static const struct {
		const char *name;
		int64_t at;
		bool by_hand;
		int requests; /* afterwards */
		int64_t due;  /* the newest one's; 0: as before */
		bool missed;
	} steps[] = {
		{"before it is due", HOUR, false, 0, 0, false},
		{"by hand", HOUR, true, 1, HOUR, false},
		{"on time", 2 * HOUR, false, 2, 2 * HOUR, false},
		{"fired twice", 2 * HOUR, false, 2, 0, false},
		{"a tick", 2 * HOUR + 15 * MINUTE, false, 2, 0, false},
		{"three nights asleep", 3 * DAY + 9 * HOUR, false, 3, 3 * DAY + 2 * HOUR, false},
		{"a tick after that", 3 * DAY + 10 * HOUR, false, 3, 0, false},
		{"too late", 4 * DAY + 15 * HOUR, false, 4, 4 * DAY + 2 * HOUR, true},
		{"a tick after it was missed", 4 * DAY + 16 * HOUR, false, 4, 0, true},
		{"the clock went back", 3 * DAY, false, 4, 0, true},
		{"the next night", 5 * DAY + 2 * HOUR + 1, false, 5, 5 * DAY + 2 * HOUR, false},
	};
	int64_t day = INT64_C(1795651200000), due = 0; /* 2026-11-26 00:00 UTC */
	struct schedule_row row = named("x", "daily 02:00", 12 * HOUR);
	struct store *s = store_memory();
	struct err err = {0};

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	row.made_ms = day;
	COPY_TEXT(row.config, "/home/me/quiz/burst.cfg");
	assert_int_equal(store_put_schedule(s, &row, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct request_row *rows;
		size_t count;
		fires(s, day + steps[i].at, steps[i].by_hand);
		assert_int_equal(store_requests(s, row.config, false, &rows, &count, &err), 0);
		assert_int_equal(store_schedule(s, "x", &row, &err), 0);
		due = steps[i].due ? day + steps[i].due : due;
		if ((int)count != steps[i].requests || row.due_ms != due)
			fail_msg("%s: %zu requests, due %lld", steps[i].name, count,
				 (long long)(row.due_ms - day));
		if (count) {
			const struct request_row *newest = &rows[count - 1];
			assert_string_equal(newest->id, row.request);
			assert_int_equal(newest->state,
					 steps[i].missed ? REQUEST_REMOVED : REQUEST_PENDING);
			assert_int_equal(newest->error[0] != 0, steps[i].missed);
			assert_int_equal(newest->quiet_ms, 0); /* it starts at once */
		}
		free(rows);
	}
	assert_int_equal(schedule_submit(s, "y", true, day, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cron_gets_lines_that_leave_no_trace),
		cmocka_unit_test(crontab_lines_of_others_stay),
		cmocka_unit_test(paths_that_would_add_a_line),
		cmocka_unit_test(systemd_gets_the_same_times),
		cmocka_unit_test(a_run_is_due_late_or_missed),
		cmocka_unit_test(one_request_for_what_is_due),
	};

	return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
