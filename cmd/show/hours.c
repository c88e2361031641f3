/* hours.c - shows in which hours of the week pods run. */
#include "hours.h"

#include "base/clock.h"

#define DEEPEST 0.6 /* of a cell's colour, behind which its text stays readable */

static const char *const days[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

json_t *hours_json(const struct forecast *f)
{
	bool enough = forecast_is_enough(f);
	json_t *list = json_array();

	for (int i = 0; i < FORECAST_HOURS; i++) {
		const struct forecast_hour *h = &f->hour[i];
		json_array_append_new(list, json_pack("{s:s, s:i, s:f, s:i, s:i, s:f, s:f}", "day",
						      days[i / 24], "hour", i % 24, "used", h->used,
						      "weeks", h->seen, "weeks_busy", h->busy,
						      "least", h->least, "most", h->most));
	}
	return json_pack("{s:f, s:f, s:f, s:f, s:o, s:o, s:o}", "days", f->days, "used_hours",
			 f->used_h, "pod_hours", f->pod_h, "share", f->share, "share_least",
			 enough ? json_real(f->least) : json_null(), "share_most",
			 enough ? json_real(f->most) : json_null(), "by_hour", list);
}

static void append_sentence(struct str *to, const struct forecast *f)
{
	char text[5][32];

	str_addf(to, "<p class=\"note\">Pods ran %s h (%s pod hours) in %s days",
		 number_show(text[0], f->used_h, 3), number_show(text[1], f->pod_h, 3),
		 number_show(text[2], f->days, 2));
	if (forecast_is_enough(f))
		str_addf(to, ": %s%% of all hours (90%% interval %s%% to %s%%).",
			 number_show(text[2], 100 * f->share, 2),
			 number_show(text[3], 100 * f->least, 2),
			 number_show(text[4], 100 * f->most, 2));
	else
		str_addf(to, ": too little for a forecast, which needs %d days.",
			 7 * FORECAST_WEEKS_LEAST);
	str_add(to, " A cell is the mean share of an hour, in this machine's time zone; its title "
		    "says in how many weeks a pod ran then.</p>\n");
}

static void append_cell(struct str *to, const char *day, int hour, const struct forecast_hour *h)
{
	if (!h->busy && h->used <= 0) {
		str_add(to, "<td></td>");
		return;
	}
	str_addf(to,
		 "<td style=\"background:rgb(45 164 78/%.2f)\" title=\"%s %02d:00: in %d of %d "
		 "weeks, 90%% interval %.0f%% to %.0f%%\">%.0f%%</td>",
		 DEEPEST * h->used, day, hour, h->busy, h->seen, 100 * h->least, 100 * h->most,
		 100 * h->used);
}

void hours_append_table(struct str *to, const struct forecast *f)
{
	str_add(to, "<section id=\"hours\"><h2>Hours of the week in which pods ran</h2>\n");
	append_sentence(to, f);
	str_add(to, "<div class=\"scroll\"><table id=\"hours-table\">\n<tr><th "
		    "scope=\"col\">hour</th>");
	for (int hour = 0; hour < 24; hour++)
		str_addf(to, "<th scope=\"col\">%02d</th>", hour);
	for (size_t day = 0; day < ARRAY_LEN(days); day++) {
		str_addf(to, "</tr>\n<tr><th scope=\"row\">%s</th>", days[day]);
		for (int hour = 0; hour < 24; hour++)
			append_cell(to, days[day], hour, &f->hour[day * 24 + (size_t)hour]);
	}
	str_add(to, "</tr>\n</table></div></section>\n");
}
