/* wish.c - reads what the config wishes of a run, and the deadline as an absolute time. */
#include "wish.h"

#include <time.h>

#include "base/clock.h"

/* A time of day that passed less than this ago counts as missed; otherwise the next day's counts.
 */
enum { MISSED_S = 6 * 3600 };

/* This time of day, this many days from now. */
static time_t time_of_day(time_t now, int hour, int minute, int days)
{
	struct tm tm;

	localtime_r(&now, &tm);
	tm.tm_mday += days;
	tm.tm_hour = hour;
	tm.tm_min = minute;
	tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return mktime(&tm);
}

/* "20m" after from_ms, or a time of day ("07:00"): the next one, or the last one if it was less
 * than six hours before. Returns false for other texts. */
static bool find_deadline(const char *text, int64_t from_ms, int64_t *at_ms)
{
	int hour, minute;
	int64_t ms;

	if (!clock_time_of_day(text, &hour, &minute)) {
		bool fine = duration_parse(text, &ms, NULL) == 0;
		*at_ms = fine ? from_ms + ms : 0;
		return fine;
	}
	time_t now = from_ms / 1000, at = time_of_day(now, hour, minute, -1);
	for (int days = 0; difftime(now, at) > MISSED_S; days++)
		at = time_of_day(now, hour, minute, days);
	*at_ms = (int64_t)at * 1000;
	return true;
}

static int read_goal(struct choice_row *row, const struct section *top, struct err *err)
{
	const char *goal = section_text(top, "goal");
	enum plan_goal found;

	row->value_of_time_microusd = section_int(top, "value_of_time");
	COPY_TEXT(row->goal, goal);
	if (!plan_goal_find(goal, &found))
		return err_set(err, ERR_CONFIG,
			       "%s: goal = \"%s\": it must be \"cost\", \"time\" or \"balanced\"",
			       section_where(top, "goal"), goal);
	if (found == PLAN_BALANCED && row->value_of_time_microusd <= 0)
		return err_set(err, ERR_CONFIG,
			       "%s: goal = \"balanced\" needs value_of_time: what an hour of "
			       "waiting costs, in dollars",
			       section_where(top, "goal"));
	return 0;
}

static int read_deadline(struct choice_row *row, const struct section *top, int64_t from_ms,
			 struct err *err)
{
	const char *deadline = section_text(top, "deadline"),
		   *where = section_where(top, "deadline");

	COPY_TEXT(row->deadline, deadline ? deadline : "");
	row->deadline_ms = 0;
	if (!row->deadline[0])
		return 0;
	if (!find_deadline(deadline, from_ms, &row->deadline_ms))
		return err_set(err, ERR_CONFIG,
			       "%s: deadline = \"%s\": it must be a duration (\"20m\") or a time "
			       "of day (\"07:00\")",
			       where, deadline);
	if (row->deadline_ms <= from_ms && !strchr(deadline, ':'))
		return err_set(err, ERR_CONFIG, "%s: deadline = \"%s\": it must be longer than 0",
			       where, deadline);
	return 0;
}

/* A missed time of day is a cap that cannot be kept, any other impossible value a mistake. */
int wish_in_time(const struct launch *l, struct err *err)
{
	const struct choice_row *row = &l->choice.row;
	const struct section *top = config_top(l->ctx->config);
	int64_t now = clock_wall_ms();
	char ago[24];

	if (!row->deadline_ms || now < row->deadline_ms)
		return 0;
	return err_set(err, ERR_CAP,
		       "%s: deadline = \"%s\": that was %s ago; give a later time, or a duration "
		       "(\"20m\"); nothing was rented",
		       section_where(top, "deadline"), row->deadline,
		       duration_show(ago, sizeof(ago), now - row->deadline_ms));
}

void wish_name(struct choice_row *row, const struct order *o)
{
	CLEANUP(str_free) struct str gpus = STR_INIT;

	if (o->pods) {
		row->pods = (int)o->pods;
		row->pods_open = false;
		row->pods_most = 0;
	}
	if (!o->gpus)
		return;
	for (size_t i = 0; o->gpus[i]; i++)
		str_addf(&gpus, "%s%s", i ? "," : "", o->gpus[i]);
	COPY_TEXT(row->gpus, str_text(&gpus));
	row->gpus_open = false;
}

int wish_read(struct launch *l, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	struct choice_row *row = &l->choice.row;

	if (row->decided_ms)
		return 0;
	row->pods_open = row->gpus_open = true;
	wish_name(row, &l->order);
	if (read_goal(row, top, err) < 0 || read_deadline(row, top, l->ctx->began_ms, err) < 0)
		return -1;
	row->decided_ms = clock_wall_ms();
	return 0;
}

int wish_renew(struct launch *l, bool given, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	const char *deadline = section_text(top, "deadline");

	if (!given && !strcmp(deadline ? deadline : "", l->choice.row.deadline))
		return 0;
	return read_deadline(&l->choice.row, top, l->ctx->began_ms, err) < 0 ? -1
									     : wish_in_time(l, err);
}

void wish_check(const struct section *top, struct mistakes *m)
{
	struct choice_row row = {0};
	struct err err = {0};

	if (read_goal(&row, top, &err) < 0)
		mistakes_note(m, "goal", &err);
	if (read_deadline(&row, top, clock_wall_ms(), &err) < 0)
		mistakes_note(m, "deadline", &err);
}
