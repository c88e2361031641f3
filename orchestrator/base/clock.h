/* clock.h - the two clocks, how durations, times and money are written and read, what a pod
 * costs, how often to save */
#ifndef BURST_BASE_CLOCK_H
#define BURST_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/* ---- clock ----
 * The two clocks of design part 1, and how durations, times and money are written and read. */

/* Milliseconds of a clock that never jumps and, where the system has one, counts sleep
 * (CLOCK_BOOTTIME). */
int64_t clock_boot_ms(void);
/* Milliseconds since 1970 of the wall clock, which may jump. */
int64_t clock_wall_ms(void);

/* "2026-11-21T00:41:07Z"; what is below a second is dropped. room >= 32. Returns `to`. */
char *clock_rfc3339(char *to, size_t room, int64_t wall_ms);

/* The same moment as strftime() writes it by the local time zone; cut to room. Returns `to`. */
char *clock_local(char *to, size_t room, const char *format, int64_t wall_ms);

/* "07:00", "7:5". False: it is no time of day. */
bool clock_time_of_day(const char *text, int *hour, int *minute);
/* "07:00": the next such time of day after wall_ms, in the local time zone. One that the clock
 * passes twice counts as the first; one that it skips counts as the moment so long after midnight.
 * False: it is no time of day. */
bool clock_next_time(const char *text, int64_t wall_ms, int64_t *out_ms);

/* An HTTP date in the form that all servers of today write, "Sun, 06 Nov 1994 08:49:37 GMT"; false
 * when it is none. */
bool clock_http_date(const char *text, int64_t *epoch_s);
/* "24h00m behind", "3m00s ahead of": by about how much a clock is off, negative: behind. room
 * >= 40. Returns `to`. */
char *clock_off_show(char *to, size_t room, int64_t off_ms);

/* "90s", "20m", "2h", "1d", "250ms", "0"; a bare number is seconds. -1 and *err (ERR_USAGE) when it
 * is none of these. */
int duration_parse(const char *text, int64_t *out_ms, struct err *err);
/* "0.8s", "41s", "3m05s", "2h10m": for people. room >= 24. Returns `to`. */
char *duration_show(char *to, size_t room, int64_t ms);

/* Dollars in decimal ("5", "0.69") to micro-dollars, and back: "$0.0123" for people. room >= 32. */
int money_parse(const char *text, int64_t *out_microusd, struct err *err);
char *money_show(char *to, size_t room, int64_t microusd);
/* "12 kB", "3.4 MB", "1.2 TB": for people. room >= 24. Returns `to`. */
char *bytes_show(char *to, size_t room, int64_t bytes);
/* A number for people: so many significant digits, at most 9 of them behind the point and no idle
 * zeros there, never an exponent: 99.6 in two digits is "100", 0.00006 is "0.00006". Returns `to`.
 */
char *number_show(char to[32], double value, int digits);
/* Micro-dollars for `ms` at an hourly price, rounded up, within MONEY_MOST either way. */
int64_t money_for(int64_t price_microusd_h, int64_t ms);

/* What lies beyond was not meant: a moment in the year 5138 (seconds since 1970), a billion
 * dollars. Readers of foreign numbers and money_for() stop there, so that sums and products of some
 * thousand of them stay within an int64_t. */
#define EPOCH_MOST_S INT64_C(100000000000)
#define MONEY_MOST   INT64_C(1000000000000000)

/* ---- daly ----
 * How often to save work that may be cut off. */

/* The time between two saves that wastes the least, by Young (1974) and Daly (2006), from 10 s to
 * 30 minutes: save_s is what a save takes, between_s the mean time between interruptions. 0 if
 * either is not above 0. */
double checkpoint_every_s(double save_s, double between_s);

/* ---- billed ----
 * What a pod costs by burst's own count and by its vendor's. The only place that counts it: the
 * core, the ledger's rows and every report go by these. Pure. */

/* Billed time in ms: from the create call to the accepted release (of a pod that is not released:
 * to now), rounded up to the second. Both times are ms of one clock and may be negative;
 * create_at 0: the create call was not made, so nothing is billed. */
int64_t billed_ms(int64_t create_at, int64_t end_at);
/* The price of that time, in micro-dollars, rounded up. */
int64_t billed_microusd(int64_t price_microusd_h, int64_t create_at, int64_t end_at);
/* The vendor's figure in micro-dollars: its dollars, else the price of its time. 0: it gave none.
 */
int64_t billed_vendor_microusd(int64_t price_microusd_h, int64_t vendor_ms,
			       int64_t vendor_microusd);

#endif
