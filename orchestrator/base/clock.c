/* clock.c - clocks, time zones, how durations, times and money are written and read, what a pod
 * costs, how often to save */
#include "clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- daly ---- */

/* Newton's method, since the agent is linked without libm. */
static double square_root(double x)
{
	double r = x > 1 ? x : 1;

	for (int i = 0; i < 200; i++)
		r = (r + x / r) / 2;
	return r;
}

/* Daly's formula without limits; 0 if either time is not above 0. */
static double daly_every_s(double save_s, double between_s)
{
	if (save_s <= 0 || between_s <= 0)
		return 0;
	if (save_s >= 2 * between_s)
		return between_s;
	double young = square_root(2 * save_s * between_s);

	return young * (1 + square_root(save_s / (2 * between_s)) / 3 + save_s / (18 * between_s)) -
	       save_s;
}

double checkpoint_every_s(double save_s, double between_s)
{
	enum { LEAST_S = 10, MOST_S = 1800 };
	double every_s = daly_every_s(save_s, between_s);

	return every_s <= 0 ? 0 : every_s < LEAST_S ? LEAST_S : every_s > MOST_S ? MOST_S : every_s;
}

/* ---- clock ---- */

static int64_t read_ms(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_boot_ms(void)
{
#ifdef CLOCK_BOOTTIME
	return read_ms(CLOCK_BOOTTIME);
#else
	return read_ms(CLOCK_MONOTONIC);
#endif
}

int64_t clock_wall_ms(void)
{
	return read_ms(CLOCK_REALTIME);
}

char *clock_rfc3339(char *to, size_t room, int64_t wall_ms)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(to, room, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return to;
}

char *clock_local(char *to, size_t room, const char *format, int64_t wall_ms)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm = {0};

	localtime_r(&seconds, &tm);
	if (!strftime(to, room, format, &tm))
		to[0] = '\0';
	return to;
}

int64_t clock_local_offset_ms(int64_t wall_ms)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm local;

	return localtime_r(&seconds, &local) ? (int64_t)local.tm_gmtoff * 1000 : 0;
}

/* ---- times of day ---- */

bool clock_time_of_day(const char *text, int *hour, int *minute)
{
	int used = 0;

	return sscanf(text, "%2d:%2d%n", hour, minute, &used) == 2 && !text[used] && *hour >= 0 &&
	       *hour < 24 && *minute >= 0 && *minute < 60;
}

/* This time of day, `days` days after now, with (dst 1) or without (0) daylight saving time.
 * *exists: whether the clock shows this time on that day. */
static time_t time_on_day(time_t now, int days, int hour, int minute, int dst, bool *exists)
{
	struct tm tm = {0};

	localtime_r(&now, &tm);
	tm.tm_mday += days;
	tm.tm_hour = hour;
	tm.tm_min = minute;
	tm.tm_sec = 0;
	tm.tm_isdst = dst;
	time_t at = mktime(&tm); /* changes hour and minute if the clock skips them */
	*exists = at != (time_t)-1 && tm.tm_hour == hour && tm.tm_min == minute;
	return at;
}

bool clock_next_time(const char *text, int64_t wall_ms, int64_t *out_ms)
{
	/* Of a time shown twice, the earlier one is in DST. A skipped time is read without DST. */
	enum { STANDARD, DST };
	time_t now = (time_t)(wall_ms / 1000);
	int hour, minute;

	if (!clock_time_of_day(text, &hour, &minute))
		return false;
	for (int days = 0; days < 3; days++) {
		bool has_dst, has_standard;
		time_t dst = time_on_day(now, days, hour, minute, DST, &has_dst);
		time_t standard = time_on_day(now, days, hour, minute, STANDARD, &has_standard);
		time_t next = has_dst && (dst > now || !has_standard) ? dst : standard;
		if (next > now) {
			*out_ms = (int64_t)next * 1000;
			return true;
		}
	}
	return false;
}

/* ---- dates in texts ---- */

int64_t clock_read_rfc3339(const char *text)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int hours, minutes;
	char sign;

	if (!end)
		return 0;
	int64_t at = (int64_t)timegm(&tm);
	if (*end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	if (sscanf(end, "%c%2d:%2d", &sign, &hours, &minutes) == 3 && (sign == '+' || sign == '-'))
		at -= (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
	return at > 0 && at <= EPOCH_MOST_S ? at : 0;
}

bool clock_http_date(const char *text, int64_t *epoch_s)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);

	if (!end || *end || tm.tm_year < 70)
		return false;
	*epoch_s = timegm(&tm);
	return true;
}

char *clock_offset_show(char *to, size_t room, int64_t off_ms)
{
	int64_t apart_ms = off_ms < 0 ? -off_ms : off_ms;
	char apart[24];

	if (apart_ms > 100 * 1000) /* whole minutes suffice */
		apart_ms = (apart_ms + 30000) / 60000 * 60000;
	snprintf(to, room, "%s %s", duration_show(apart, sizeof(apart), apart_ms),
		 off_ms < 0 ? "behind" : "ahead of");
	return to;
}

/* Reads a decimal number up to 1e9 at the start of text; *end: what follows it. Returns false if
 * there is none. Stricter than strtod(), which also takes "0x10", "1e3" and "inf". */
static bool read_decimal(const char *text, double *out, const char **end)
{
	size_t digits = strspn(text, "0123456789");
	size_t len = digits;

	if (text[len] == '.') {
		size_t after = strspn(text + len + 1, "0123456789");
		digits += after;
		len += 1 + after;
	}
	*end = text + len;
	if (!digits || len > 32)
		return false;
	CLEANUP(free_text) char *number = xstrndup(text, len);
	*out = strtod(number, NULL);
	return *out <= 1e9;
}

static int not_a_duration(const char *text, struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "\"%s\" is not a duration: write it like \"90s\", \"20m\" or \"2h\"", text);
}

int duration_parse(const char *text, int64_t *out_ms, struct err *err)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
	const char *end;
	double number;

	if (!read_decimal(text, &number, &end))
		return not_a_duration(text, err);
	if (!*end && number > 0) /* users disagree whether it means seconds, minutes or hours */
		return err_set(err, ERR_USAGE, "\"%s\" has no unit: write %ss, %sm or %sh", text,
			       text, text, text);
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (!*end || !strcmp(end, units[i].unit)) {
			*out_ms = (int64_t)(number * units[i].ms + 0.5);
			return 0;
		}
	return not_a_duration(text, err);
}

char *duration_show(char *to, size_t room, int64_t ms)
{
	int64_t s = (ms + 500) / 1000;

	if (ms < 9950) /* from here on it would be shown as "10.0s" */
		snprintf(to, room, "%.1fs", (double)ms / 1000);
	else if (s < 60)
		snprintf(to, room, "%ds", (int)s);
	else if (s < 3600)
		snprintf(to, room, "%dm%02ds", (int)(s / 60), (int)(s % 60));
	else
		snprintf(to, room, "%dh%02dm", (int)(s / 3600), (int)(s % 3600 / 60));
	return to;
}

int money_parse(const char *text, int64_t *out_microusd, struct err *err)
{
	const char *end;
	double dollars;

	if (!read_decimal(text + (*text == '$'), &dollars, &end) || *end)
		return err_set(err, ERR_USAGE,
			       "\"%s\" is not an amount in dollars: write it like 5 or 0.69", text);
	*out_microusd = (int64_t)(dollars * 1e6 + 0.5);
	return 0;
}

char *money_show(char *to, size_t room, int64_t microusd)
{
	double dollars = (double)microusd / 1e6;

	if (microusd > 0 && microusd < 50) /* must not read as zero */
		snprintf(to, room, "<$0.0001");
	else
		snprintf(to, room, dollars != 0 && dollars < 1 && dollars > -1 ? "$%.4f" : "$%.2f",
			 dollars);
	return to;
}

char *bytes_show(char *to, size_t room, int64_t bytes)
{
	static const char *const units[] = {"MB", "GB", "TB"};
	double n = (double)bytes / 1e6;
	size_t unit = 0;

	for (; n >= 999.95 && unit + 1 < ARRAY_LEN(units); unit++)
		n /= 1000;
	if (bytes < 1000000)
		snprintf(to, room, "%lld kB", (long long)(bytes + 999) / 1000);
	else
		snprintf(to, room, "%.1f %s", n, units[unit]);
	return to;
}

char *number_show(char to[32], double value, int digits)
{
	char rounded[32];

	/* the power of ten after rounding: 99.6 in two digits is 1.0e+02 */
	snprintf(rounded, sizeof(rounded), "%.*e", digits - 1, value);
	const char *e = strchr(rounded, 'e');
	int decimals = e ? MIN(MAX(digits - 1 - atoi(e + 1), 0), 9) : 0;
	int n = snprintf(to, 32, "%.*f", decimals, value);
	if (strchr(to, '.')) {
		while (n > 0 && to[n - 1] == '0')
			to[--n] = '\0';
		if (n > 0 && to[n - 1] == '.')
			to[--n] = '\0';
	}
	return to;
}

int64_t money_for(int64_t price_microusd_h, int64_t ms)
{
	__int128 money = ((__int128)price_microusd_h * ms + 3599999) / 3600000;

	return (int64_t)MIN(MAX(money, -(__int128)MONEY_MOST), (__int128)MONEY_MOST);
}

/* ---- billed ---- */

int64_t billed_ms(int64_t create_at, int64_t end_at)
{
	if (!create_at || end_at <= create_at)
		return 0;
	return (end_at - create_at + 999) / 1000 * 1000;
}

int64_t billed_vendor_microusd(int64_t price_microusd_h, int64_t vendor_ms, int64_t vendor_microusd)
{
	return vendor_microusd > 0 ? vendor_microusd : money_for(price_microusd_h, vendor_ms);
}

int64_t billed_microusd(int64_t price_microusd_h, int64_t create_at, int64_t end_at)
{
	return money_for(price_microusd_h, billed_ms(create_at, end_at));
}
