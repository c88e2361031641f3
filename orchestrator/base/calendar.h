/* calendar.h - when a schedule is due: cron expressions, and words like "daily 02:00", in the local
 * time zone of this machine.
 *
 * Days on which the clock changes follow the rules of Debian's cron. A schedule of fixed times
 * (neither its minute nor its hour is
 * "*") that falls into the hour that a day skips is due at the first minute after the gap; one that
 * falls into the hour that a day has twice is due in the first of the two. All others go by what
 * the clock shows. Moments are wall clock ms, whole minutes. */
#ifndef BURST_BASE_CALENDAR_H
#define BURST_BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "str.h"

struct calendar {
	uint64_t minutes;             /* bit n: minute n */
	uint32_t hours, days, months; /* bit n: hour n, day n (1 to 31), month n (1 to 12) */
	uint8_t weekdays;             /* bit n: 0 is Sunday */
	bool any_minute, any_hour;    /* written as "*" or a step of it */
	bool any_day, any_weekday;    /* else: both named, either will do, as in cron */
};

/* Five fields as crontab(5) has them (lists, ranges, steps, names of months and days), "@daily" and
 * its kind, "hourly", "daily 02:00", "weekdays 07:30", "weekly mon 02:00", "monthly 1 02:00",
 * "every 15m", "every 6h". ERR_USAGE says what is wrong, also of a date that never comes (31
 * February). */
int calendar_parse(const char *when, struct calendar *out, struct err *err);
/* As the five fields of a crontab. Appended. */
void calendar_write(const struct calendar *c, struct str *to);
/* As "OnCalendar=" lines of a systemd timer: two where either of two days will do. Appended. */
void calendar_write_systemd(const struct calendar *c, struct str *to);
/* The first moment after this one at which it is due. */
int64_t calendar_next(const struct calendar *c, int64_t after_ms);
/* The last moment at which it is due, not after at_ms and after since_ms; -1: there is none.
 * *before (may be NULL): how many others there are between since_ms and it, counted up to 1,000. */
int64_t calendar_last(const struct calendar *c, int64_t since_ms, int64_t at_ms, int *before);

#endif
