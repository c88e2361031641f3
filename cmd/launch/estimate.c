/* estimate.c - what the config wishes of a plan: goal, deadline, the value of time; and estimates
 * for it. */
#include "estimate.h"

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

bool estimate_deadline(const char *text, int64_t wall_ms, double *out_s)
{
	int hour, minute;
	int64_t ms;

	if (!clock_time_of_day(text, &hour, &minute)) {
		bool fine = duration_parse(text, &ms, NULL) == 0;
		*out_s = fine ? (double)ms / 1000 : 0;
		return fine;
	}
	time_t now = wall_ms / 1000, at = time_of_day(now, hour, minute, -1);
	for (int days = 0; difftime(now, at) > MISSED_S; days++)
		at = time_of_day(now, hour, minute, days);
	*out_s = difftime(at, now);
	return true;
}

bool estimate_has_deadline(const struct section *top)
{
	const char *deadline = section_text(top, "deadline");

	return deadline && *deadline;
}

static int read_goal(const struct section *top, struct plan_wish *wish, struct err *err)
{
	static const char *const names[] = {"cost", "time", "balanced"};
	const char *goal = section_text(top, "goal");

	wish->value_of_time_h = (double)section_int(top, "value_of_time") / 1e6;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(goal, names[i])) {
			wish->goal = (enum plan_goal)i;
			if (wish->goal == PLAN_BALANCED && wish->value_of_time_h <= 0)
				return err_set(err, ERR_CONFIG,
					       "%s: goal = \"balanced\" needs value_of_time: what "
					       "an hour of waiting costs, in dollars",
					       section_where(top, "goal"));
			return 0;
		}
	return err_set(err, ERR_CONFIG,
		       "%s: goal = \"%s\": it must be \"cost\", \"time\" or \"balanced\"",
		       section_where(top, "goal"), goal);
}

/* 0 s: none. A missed time of day is a cap that cannot be kept; any other impossible value is a
 * mistake. */
static int read_deadline(const struct section *top, double *out_s, struct err *err)
{
	const char *deadline = section_text(top, "deadline"),
		   *where = section_where(top, "deadline");
	char ago[24];

	*out_s = 0;
	if (!estimate_has_deadline(top))
		return 0;
	if (!estimate_deadline(deadline, clock_wall_ms(), out_s))
		return err_set(err, ERR_CONFIG,
			       "%s: deadline = \"%s\": it must be a duration (\"20m\") or a time "
			       "of day (\"07:00\")",
			       where, deadline);
	if (*out_s > 0)
		return 0;
	if (!strchr(deadline, ':'))
		return err_set(err, ERR_CONFIG, "%s: deadline = \"%s\": it must be longer than 0",
			       where, deadline);
	return err_set(err, ERR_CAP,
		       "%s: deadline = \"%s\": that was %s ago; give a later time, or a duration "
		       "(\"20m\"); nothing was rented",
		       where, deadline, duration_show(ago, sizeof(ago), (int64_t)(-*out_s * 1000)));
}

void estimate_check_wish(const struct section *top, struct mistakes *m)
{
	struct plan_wish wish;
	struct err err = {0};
	double seconds;

	if (read_goal(top, &wish, &err) < 0)
		mistakes_note(m, "goal", &err);
	if (read_deadline(top, &seconds, &err) < 0 && err.kind == ERR_CONFIG)
		mistakes_note(m, "deadline", &err);
}

static int read_wish(const struct section *top, struct plan_wish *wish, struct err *err)
{
	const struct section *caps = section_group(top, "caps");
	double seconds;

	if (read_goal(top, wish, err) < 0 || read_deadline(top, &seconds, err) < 0)
		return -1;
	wish->budget_usd = (double)section_int(caps, "max_cost") / 1e6;
	/* no pod outlives it */
	wish->deadline_s = (double)section_int(caps, "max_duration") / 1000;
	wish->staged = wish->goal == PLAN_COST && seconds <= 0;
	wish->pods = section_has(top, "pods") ? (int)section_int(top, "pods") : 0;
	if (seconds > 0)
		wish->deadline_s = wish->deadline_s > 0 ? MIN(wish->deadline_s, seconds) : seconds;
	return 0;
}

/* A provider may have the key; most charge nothing. */
static bool egress_price(void *ctx, const char *provider, double *usd_gb)
{
	const struct launch *l = ctx;

	for (int i = 0; i < l->run.setup.provider_count; i++) {
		const struct option_spec *o = l->run.setup.providers[i].ops->options;
		if (strcmp(l->run.setup.providers[i].ops->name, provider) != 0)
			continue;
		while (o->key && strcmp(o->key, "egress_price") != 0)
			o++;
		const struct section *conf =
			o->key ? config_provider(l->ctx->config, provider) : NULL;
		if (!conf)
			return false;
		*usd_gb = (double)section_int(conf, "egress_price") / 1e6;
		return section_has(conf, "egress_price");
	}
	return false;
}

int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count,
		  struct err *err)
{
	const struct config *config = l->ctx->config;
	const struct section *top = config_top(config), *volume = section_group(top, "volume");
	struct estimate_of of = {
		.run = &l->run,
		.config = config_path(config) ? config_path(config) : "",
		.job = config_job_name(config),
		.image = section_text(section_group(top, "pod"), "image"),
		.volume = section_text(volume, "name"),
		.volume_gb = section_int(volume, "size_gb"),
		.delivers = section_has(top, "deliver"),
		.egress_price = egress_price,
		.ctx = l,
	};

	*out = (struct estimate){0};
	if (read_wish(top, &of.wish, err) < 0)
		return -1;
	estimate_fill(out, &of, offers, count);
	return 0;
}
