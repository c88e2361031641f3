/* calendar.c - reads schedules, and finds when they are due. */
#include "calendar.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "clock.h"

#define ALL_DAYS     UINT32_C(0xfffffffe)
#define ALL_WEEKDAYS 0x7f
enum {
	SEARCH_YEARS = 9, /* 29 February can be eight years away */
	LEAP_YEAR_S = 366 * 86400,
	COUNT_MOST = 1000,
	QUARTER_S = 900,
	SHIFT_MOST_S = 7200,  /* clocks go back by less */
	OUT_OF_RANGE = 10000, /* no field takes this value */
};

/* ---- reading ---- */

struct field {
	const char *name;
	int least, most;
	const char *const *words; /* whole or by three letters; the first stands for `least` */
};

static const char *const month_words[] = {"january",  "february", "march",  "april",     "may",
					  "june",     "july",     "august", "september", "october",
					  "november", "december", NULL};
static const char *const day_words[] = {"sunday",   "monday", "tuesday",  "wednesday",
					"thursday", "friday", "saturday", NULL};

static const struct field fields[] = {
	{"minute", 0, 59, NULL},
	{"hour", 0, 23, NULL},
	{"day of the month", 1, 31, NULL},
	{"month", 1, 12, month_words},
	{"day of the week", 0, 7, day_words},
};

/* Reads a number or a word of the field and moves *at behind it. Returns false if *at is at
 * neither, or the number is out of range. */
static bool read_value(const struct field *f, const char **at, int *out)
{
	char *end;

	for (int i = 0; f->words && f->words[i]; i++) {
		size_t whole = strlen(f->words[i]),
		       used = strncasecmp(*at, f->words[i], whole) == 0 ? whole : 3;
		if (strncasecmp(*at, f->words[i], used) == 0) {
			*at += used;
			*out = f->least + i;
			return true;
		}
	}
	if (!isdigit((unsigned char)**at))
		return false;
	long n = strtol(*at, &end, 10);
	*at = end;
	*out = (int)MIN(n, OUT_OF_RANGE);
	return n >= f->least && n <= f->most;
}

/* Reads one part of a list ("*", "7" or "1-5", "*" and a range perhaps with a step "/2"), sets its
 * bits and moves *at behind it. Returns false if the part is not valid. */
static bool read_part(const struct field *f, const char **at, uint64_t *bits)
{
	int from = f->least, to = f->most, step = 1;

	if (**at == '*') {
		++*at;
	} else {
		if (!read_value(f, at, &from))
			return false;
		to = from;
		if (**at == '-' && (++*at, !read_value(f, at, &to)))
			return false;
	}
	if (**at == '/') {
		char *end;
		++*at;
		long n = isdigit((unsigned char)**at) ? strtol(*at, &end, 10) : 0;
		if (n < 1 || n > f->most || to == from)
			return false;
		*at = end;
		step = (int)n;
	}
	if (to < from)
		return false;
	for (int i = from; i <= to; i += step)
		*bits |= UINT64_C(1) << i;
	return true;
}

/* Reads the whole text as a list of parts. *any: it is "*", or begins so. ERR_USAGE. */
static int read_field(const struct field *f, const char *text, uint64_t *bits, bool *any,
		      struct err *err)
{
	const char *at = text;

	*bits = 0;
	*any = *text == '*';
	bool valid = read_part(f, &at, bits);
	while (valid && *at == ',') {
		at++;
		valid = read_part(f, &at, bits);
	}
	if (!valid || *at)
		return err_set(
			err, ERR_USAGE,
			"\"%s\" is not a valid %s (%d to %d, with lists, ranges and steps as in "
			"crontab)",
			text, f->name, f->least, f->most);
	return 0;
}

static int read_fields(char *const words[5], struct calendar *out, struct err *err)
{
	uint64_t bits[5];
	bool any[5];

	for (int i = 0; i < 5; i++)
		if (read_field(&fields[i], words[i], &bits[i], &any[i], err) < 0)
			return -1;
	*out = (struct calendar){
		.minutes = bits[0],
		.hours = (uint32_t)bits[1],
		.days = (uint32_t)bits[2],
		.months = (uint32_t)bits[3],
		.weekdays = (uint8_t)((bits[4] | bits[4] >> 7) & 0x7f), /* 7 is Sunday as well */
		.any_minute = any[0],
		.any_hour = any[1],
		.any_day = any[2],
		.any_weekday = any[4],
	};
	return 0;
}

/* Reads "02:00"; text may be NULL. Refuses minutes of one digit: "daily 2:5" may be a slip. */
static bool read_time(const char *text, int *hour, int *minute)
{
	return text && isdigit((unsigned char)text[0]) && clock_time_of_day(text, hour, minute) &&
	       strlen(strchr(text, ':')) == 3 && isdigit((unsigned char)strchr(text, ':')[1]);
}

/* Turns "15m" or "6h" into the five fields of a crontab. Returns false for other texts (or NULL),
 * and for times that do not divide an hour or a day: their last interval would be shorter. */
static bool fields_of_interval(const char *text, char fields_out[64])
{
	char unit = 0;
	int n = 0, end = 0;

	if (!text || !isdigit((unsigned char)*text) ||
	    sscanf(text, "%4d%c%n", &n, &unit, &end) != 2 || text[end] || n < 1)
		return false;
	if (unit == 'm' && n < 60 && 60 % n == 0)
		snprintf(fields_out, 64, n == 1 ? "* * * * *" : "*/%d * * * *", n);
	else if (unit == 'h' && n < 24 && 24 % n == 0)
		snprintf(fields_out, 64, n == 1 ? "0 * * * *" : "0 */%d * * *", n);
	else
		return false;
	return true;
}

/* The five fields of "@daily", "hourly" and the like; NULL: it is no such word. */
static const char *fields_of_word(const char *word)
{
	static const char *const forms[][2] = {
		{"@hourly", "0 * * * *"},   {"hourly", "0 * * * *"},    {"@daily", "0 0 * * *"},
		{"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"},
		{"@yearly", "0 0 1 1 *"},   {"@annually", "0 0 1 1 *"},
	};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (!strcasecmp(word, forms[i][0]))
			return forms[i][1];
	return NULL;
}

/* Turns a schedule in words ("weekly mon 02:00") into the five fields of a crontab. Returns false
 * if the words (count: 1 to 6) are no such schedule. */
static bool fields_of_phrase(char *const words[6], int count, char out[64])
{
	const char *of_word = count == 1 ? fields_of_word(words[0]) : NULL;
	int hour = 0, minute = 0, day = 0;
	const char *at = count == 3 ? words[1] : "";

	if (of_word) {
		snprintf(out, 64, "%s", of_word);
		return true;
	}
	if (count == 2 && !strcasecmp(words[0], "every"))
		return fields_of_interval(words[1], out);
	if (!read_time(words[count - 1], &hour, &minute))
		return false;
	if (count == 2 && !strcasecmp(words[0], "daily"))
		snprintf(out, 64, "%d %d * * *", minute, hour);
	else if (count == 2 && !strcasecmp(words[0], "weekdays"))
		snprintf(out, 64, "%d %d * * 1-5", minute, hour);
	else if (count == 3 && !strcasecmp(words[0], "weekly") &&
		 read_value(&fields[4], &at, &day) && !*at)
		snprintf(out, 64, "%d %d * * %d", minute, hour, day);
	else if (count == 3 && !strcasecmp(words[0], "monthly") &&
		 read_value(&fields[2], &at, &day) && !*at)
		snprintf(out, 64, "%d %d %d * *", minute, hour, day);
	else
		return false;
	return true;
}

/* Cuts the text into at most six words, which point into it. Returns their number. */
static int split_words(char *text, char *words[6])
{
	int count = 0;
	char *rest = NULL;

	for (char *word = strtok_r(text, " \t", &rest); word && count < 6;
	     word = strtok_r(NULL, " \t", &rest))
		words[count++] = word;
	return count;
}

/* Reads both forms, in words and as five fields. ERR_USAGE. Accepts dates that never come. */
static int parse_form(const char *when, struct calendar *out, struct err *err)
{
	CLEANUP(free_text) char *text = xstrdup(when);
	char *words[6] = {NULL}, form[64];
	int count = split_words(text, words);

	if (count == 5)
		return read_fields(words, out, err);
	if (!count || !fields_of_phrase(words, count, form))
		return err_set(err, ERR_USAGE,
			       "\"%s\" is not a time to run at: use \"daily 02:00\", \"weekdays "
			       "07:30\", \"weekly mon 02:00\", \"monthly 1 02:00\", \"hourly\", "
			       "\"every 15m\", or the five fields of a crontab (\"0 2 * * *\")",
			       when);
	split_words(form, words);
	return read_fields(words, out, err);
}

int calendar_parse(const char *when, struct calendar *out, struct err *err)
{
	if (parse_form(when, out, err) < 0)
		return -1;
	if (calendar_next(out, clock_wall_ms()) < 0)
		return err_set(err, ERR_USAGE,
			       "\"%s\" never occurs: no month of it has such a "
			       "day",
			       when);
	return 0;
}

/* ---- moving ---- */

#define ALL_HOURS  UINT32_C(0xffffff)
#define ALL_MONTHS UINT32_C(0x1ffe)

/* Moves each bit down by so many places; those at the end come in again at the top of `size`. */
static uint64_t rotate_down(uint64_t bits, int by, int size)
{
	uint64_t low = (UINT64_C(1) << by) - 1;

	return bits >> by | (bits & low) << (size - by);
}

static int refuse_move(int minutes, struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "some of the times, %d minutes earlier, are on another day or in another "
		       "hour than the rest, which no schedule can say: write the earlier times",
		       minutes);
}

int calendar_move_ahead(struct calendar *c, int minutes, struct err *err)
{
	int below_hour = minutes % 60;
	uint64_t early_minutes = c->minutes & ((UINT64_C(1) << below_hour) - 1);
	int hours = minutes / 60 + (early_minutes ? 1 : 0);
	uint32_t early_hours = c->hours & (uint32_t)((UINT64_C(1) << hours) - 1);
	bool all_days = c->days == ALL_DAYS && c->months == ALL_MONTHS,
	     every_day = all_days && c->weekdays == ALL_WEEKDAYS;

	if (early_minutes && early_minutes != c->minutes && c->hours != ALL_HOURS)
		return refuse_move(minutes, err);
	if (early_hours && !every_day) {
		if (early_hours != c->hours || early_minutes != (early_minutes ? c->minutes : 0) ||
		    !all_days)
			return refuse_move(minutes, err);
		c->weekdays = (uint8_t)rotate_down(c->weekdays, 1, 7);
	}
	c->minutes = rotate_down(c->minutes, below_hour, 60);
	c->hours = (uint32_t)rotate_down(c->hours, hours, 24);
	return 0;
}

/* ---- writing ---- */

enum form { NUMBERS, NAMES };

/* Appends the values of a field as a list, then `end`. If all values are set, `any` allows "*". */
static void write_bits(struct str *to, uint64_t bits, const struct field *f, bool any,
		       enum form form, const char *end)
{
	int most = f->most == 7 ? 6 : f->most;
	uint64_t all = (UINT64_C(1) << (most + 1)) - (UINT64_C(1) << f->least);
	const char *comma = "";

	if (bits == all && any) {
		str_addf(to, "*%s", end);
		return;
	}
	for (int i = f->least; i <= most; i++) {
		if (!(bits & (UINT64_C(1) << i)))
			continue;
		if (form == NAMES)
			str_addf(to, "%s%c%.2s", comma, toupper((unsigned char)f->words[i][0]),
				 f->words[i] + 1);
		else
			str_addf(to, "%s%d", comma, i);
		comma = ",";
	}
	str_add(to, end);
}

void calendar_write(const struct calendar *c, struct str *to)
{
	write_bits(to, c->minutes, &fields[0], c->any_minute, NUMBERS, " ");
	write_bits(to, c->hours, &fields[1], c->any_hour, NUMBERS, " ");
	write_bits(to, c->days, &fields[2], c->any_day, NUMBERS, " ");
	write_bits(to, c->months, &fields[3], true, NUMBERS, " ");
	write_bits(to, c->weekdays, &fields[4], c->any_weekday, NUMBERS, "");
}

/* Appends an "OnCalendar=" line with the months, hours and minutes of *c on these days. */
static void write_systemd_line(const struct calendar *c, struct str *to, uint32_t days,
			       uint8_t weekdays)
{
	str_add(to, "OnCalendar=");
	if (weekdays != ALL_WEEKDAYS)
		write_bits(to, weekdays, &fields[4], false, NAMES, " ");
	str_add(to, "*-");
	write_bits(to, c->months, &fields[3], true, NUMBERS, "-");
	write_bits(to, days, &fields[2], true, NUMBERS, " ");
	write_bits(to, c->hours, &fields[1], true, NUMBERS, ":");
	write_bits(to, c->minutes, &fields[0], true, NUMBERS, ":00\n");
}

void calendar_write_systemd(const struct calendar *c, struct str *to)
{
	bool either_day = c->days != ALL_DAYS && c->weekdays != ALL_WEEKDAYS && !c->any_day &&
			  !c->any_weekday;

	write_systemd_line(c, to, c->days, either_day ? ALL_WEEKDAYS : c->weekdays);
	if (either_day)
		write_systemd_line(c, to, ALL_DAYS, c->weekdays);
}

/* ---- due times ----
 * Times are in seconds. A `shown` time is what the local clock shows, read as if it were UTC: it
 * jumps where the clock does. */

static int64_t shown_at(int64_t s)
{
	time_t at = (time_t)s;
	struct tm t;

	localtime_r(&at, &t);
	return s + t.tm_gmtoff;
}

/* Whether the month, day and hour fit the schedule. */
static bool fits_hour(const struct calendar *c, int64_t shown)
{
	time_t at = (time_t)shown;
	struct tm t;

	gmtime_r(&at, &t);
	bool of_month = c->days & (UINT32_C(1) << t.tm_mday),
	     of_week = c->weekdays & (1 << t.tm_wday);
	return c->months & (UINT32_C(1) << (t.tm_mon + 1)) &&
	       c->hours & (UINT32_C(1) << t.tm_hour) &&
	       (c->any_day || c->any_weekday ? of_month && of_week : of_month || of_week);
}

static bool fits_minute(const struct calendar *c, int64_t shown)
{
	return c->minutes & (UINT64_C(1) << (shown / 60 % 60)) && fits_hour(c, shown);
}

/* Whether the clock showed `shown` once before s, and then went back. */
static bool is_shown_again(int64_t s, int64_t shown)
{
	int64_t back = shown_at(s - SHIFT_MOST_S) + SHIFT_MOST_S - shown;

	return back > 0 && back < SHIFT_MOST_S && shown_at(s - back) == shown;
}

static bool is_due(const struct calendar *c, int64_t s)
{
	int64_t shown = shown_at(s), next = shown_at(s - 60) + 60;

	if (c->any_minute || c->any_hour)
		return fits_minute(c, shown);
	for (; next < shown; next += 60) /* minutes that the clock skipped */
		if (fits_minute(c, next))
			return true;
	return fits_minute(c, shown) && !is_shown_again(s, shown);
}

/* Searches from `from` to `to` (both included; backwards if `to` is less) for a due minute. Returns
 * the first one found, in seconds, or -1. */
static int64_t find_due(const struct calendar *c, int64_t from, int64_t to)
{
	/* skips whole quarters of an hour: clocks change only between them */
	int step = from <= to ? 60 : -60;
	int64_t least = MIN(from, to), most = MAX(from, to);

	for (int64_t quarter = from / QUARTER_S * QUARTER_S;
	     quarter <= most && quarter + QUARTER_S > least; quarter += step * 15) {
		int64_t shown = shown_at(quarter);
		if (!fits_hour(c, shown) && shown_at(quarter - 60) + 60 == shown)
			continue;
		int64_t s = quarter + (step > 0 ? 0 : QUARTER_S - 60);
		for (; s >= quarter && s < quarter + QUARTER_S; s += step)
			if (s >= least && s <= most && is_due(c, s))
				return s;
	}
	return -1;
}

int64_t calendar_next(const struct calendar *c, int64_t after_ms)
{
	int64_t from = after_ms / 60000 * 60 + 60,
		due = find_due(c, from, from + (int64_t)SEARCH_YEARS * LEAP_YEAR_S);

	return due < 0 ? -1 : due * 1000;
}

int64_t calendar_last(const struct calendar *c, int64_t since_ms, int64_t at_ms, int *before)
{
	int64_t since = since_ms / 60000 * 60 + 60, at = at_ms / 60000 * 60;
	int64_t last = at < since ? -1 : find_due(c, at, since);

	if (before)
		*before = 0;
	for (int64_t s = last; before && s > since && *before < COUNT_MOST; ++*before)
		if ((s = find_due(c, s - 60, since)) < 0)
			break;
	return last < 0 ? -1 : last * 1000;
}
