/* calendar.h - when a schedule is due: cron expressions, and words like "daily 02:00", in the local
 * time zone of this machine.
 *
 * Days on which the clock changes follow the rules of Debian's cron. If a schedule of fixed times
 * (neither minute nor hour is "*") falls into the hour that a day skips, it is due at the first
 * minute after the gap. If it falls into an hour that a day has twice, it is due in the first one.
 * All other schedules go by what the clock shows. Moments are wall clock ms, whole minutes. */
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
	/* The field was written as "*" or a step of it. If neither any_day nor any_weekday is set,
	 * a day that fits one of the two fields is enough, as in cron. */
	bool any_minute, any_hour, any_day, any_weekday;
};

/* Reads five fields as crontab(5) has them (lists, ranges, steps, names of months and days),
 * "@daily" and its kind, "hourly", "daily 02:00", "weekdays 07:30", "weekly mon 02:00", "monthly 1
 * 02:00", "every 15m", "every 6h". ERR_USAGE: the text is none of these, or names a date that never
 * comes (31 February). */
int calendar_parse(const char *when, struct calendar *out, struct err *err);
/* Moves each due time so many minutes earlier, less than a day. ERR_USAGE: five fields cannot say
 * the result, since only some of the times would be on the day before, or in the hour before. */
int calendar_move_ahead(struct calendar *c, int minutes, struct err *err);
/* Appends the schedule as the five fields of a crontab. */
void calendar_write(const struct calendar *c, struct str *to);
/* Appends the schedule as one or two "OnCalendar=" lines of a systemd timer. */
void calendar_write_systemd(const struct calendar *c, struct str *to);
/* The first moment after after_ms at which the schedule is due; -1: none in the next nine years. */
int64_t calendar_next(const struct calendar *c, int64_t after_ms);
/* The last moment at which the schedule is due, after since_ms and not after at_ms; -1: none.
 * *before (may be NULL): the number of due moments between since_ms and that one, at most 1,000. */
int64_t calendar_last(const struct calendar *c, int64_t since_ms, int64_t at_ms, int *before);

#endif
