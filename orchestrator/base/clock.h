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

/* Reads such a text, also with a fraction of a second or another offset than Z: epoch seconds. 0 if
 * it is none, or beyond what a vendor may name. */
int64_t clock_read_rfc3339(const char *text);

/* The same moment as strftime() writes it by the local time zone; cut to room. Returns `to`. */
char *clock_local(char *to, size_t room, const char *format, int64_t wall_ms);

/* Local time minus UTC at this moment. */
int64_t clock_local_offset_ms(int64_t wall_ms);

/* Reads a time of day, "07:00" or "7:5". Returns false if the text is none. */
bool clock_time_of_day(const char *text, int *hour, int *minute);
/* Finds the next time of day `text` ("07:00") after wall_ms in the local time zone. If the clock
 * shows that time twice on a day, the first one counts. If the clock skips it, the moment that long
 * after midnight counts. Returns false if text is no time of day. */
bool clock_next_time(const char *text, int64_t wall_ms, int64_t *out_ms);

/* Reads an HTTP date like "Sun, 06 Nov 1994 08:49:37 GMT". Returns false if the text is none. */
bool clock_http_date(const char *text, int64_t *epoch_s);
/* Writes by about how much a clock is off: "24h00m behind", "3m00s ahead of". room >= 40. */
char *clock_offset_show(char *to, size_t room, int64_t off_ms);

/* Reads "90s", "20m", "2h", "1d", "250ms" or "0". ERR_USAGE for other texts. */
int duration_parse(const char *text, int64_t *out_ms, struct err *err);
/* Writes a duration for people: "0.8s", "41s", "3m05s", "2h10m". room >= 24. Returns `to`. */
char *duration_show(char *to, size_t room, int64_t ms);

/* Reads dollars in decimal: "5", "0.69", "$0.69". ERR_USAGE. */
int money_parse(const char *text, int64_t *out_microusd, struct err *err);
/* Writes an amount for people: "$0.0123", "$2.50". room >= 32. Returns `to`. */
char *money_show(char *to, size_t room, int64_t microusd);
/* "12 kB", "3.4 MB", "1.2 TB": for people. room >= 24. Returns `to`. */
char *bytes_show(char *to, size_t room, int64_t bytes);
/* Writes a number for people with this many significant digits, at most 9 of them behind the point,
 * without trailing zeros there and without an exponent: 99.6 in two digits is "100", 0.00006 is
 * "0.00006". Returns `to`. */
char *number_show(char to[32], double value, int digits);
/* Micro-dollars for `ms` at an hourly price, rounded up, within MONEY_MOST either way. */
int64_t money_for(int64_t price_microusd_h, int64_t ms);

/* Limits for numbers from outside: the year 5138 (in seconds since 1970), and a billion dollars.
 * Readers of foreign numbers and money_for() cut to these, so that sums and products of some
 * thousand of them stay within an int64_t. */
#define EPOCH_MOST_S INT64_C(100000000000)
#define MONEY_MOST   INT64_C(1000000000000000)

/* ---- daly ----
 * How often to save work that may be cut off. */

/* The time in seconds between two saves that wastes the least, by Young (1974) and Daly (2006), cut
 * to 10 s to 30 minutes. save_s: how long a save takes; between_s: the mean time between
 * interruptions. Returns 0 if either is not above 0. */
double checkpoint_every_s(double save_s, double between_s);

/* ---- billed ----
 * What a pod costs by burst's own count and by its vendor's. No other code computes a pod's cost:
 * the core, the ledger's rows and every report call these. Pure. */

/* Billed time in ms: from the create call (create_at) to the accepted release (end_at; now for a
 * pod that is not released), rounded up to the second. Both are ms of one clock and may be
 * negative. create_at 0: the create call was not made, so nothing is billed. */
int64_t billed_ms(int64_t create_at, int64_t end_at);
/* The price of billed_ms(), in micro-dollars, rounded up. */
int64_t billed_microusd(int64_t price_microusd_h, int64_t create_at, int64_t end_at);
/* The vendor's own figure in micro-dollars: the dollars that it reported, else the price of the
 * time that it reported. 0: it reported neither. */
int64_t billed_vendor_microusd(int64_t price_microusd_h, int64_t vendor_ms,
			       int64_t vendor_microusd);

#endif
