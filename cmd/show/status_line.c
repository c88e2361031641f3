/* status_line.c - prints the summary of a ledger. */
#include "status_line.h"

#include "base/clock.h"
#include "output.h"
#include "report.h"

static json_t *running_json(const struct glance *g)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < g->running_count; i++) {
		const struct run_row *run = &g->running[i].row;
		json_array_append_new(
			rows,
			json_pack("{s:o, s:o, s:o, s:b, s:b}", "run", report_text(run->id), "job",
				  report_text(run->job), "started_at", report_time(run->started_ms),
				  "detached", run->detached, "client", g->running[i].client));
	}
	return rows;
}

void status_line_print_json(const struct status_line *s)
{
	const struct glance *g = &s->glance;
	const struct run_row *run = g->success;
	json_t *success =
		!run ? json_null()
		     : json_pack("{s:o, s:o, s:o, s:o}", "run", report_text(run->id), "job",
				 report_text(run->job), "ended_at", report_time(run->ended_ms),
				 "age_seconds", report_seconds(MAX(g->now_ms - run->ended_ms, 0)));

	const struct run_row *failed = g->failure;
	json_t *failure =
		!failed ? json_null()
			: json_pack("{s:o, s:o, s:s, s:o, s:o}", "run", report_text(failed->id),
				    "job", report_text(failed->job), "status",
				    run_status_word(failed->status), "ended_at",
				    report_time(failed->ended_ms), "age_seconds",
				    report_seconds(MAX(g->now_ms - failed->ended_ms, 0)));

	output_json(json_pack("{s:s, s:o, s:o, s:o, s:{s:i, s:i}, s:{s:i, s:i, s:o}, s:o, s:o}",
			      "ledger", s->ledger, "last_success", success, "last_failure", failure,
			      "running", running_json(g), "queued", "requests", s->queued.requests,
			      "without_client", s->queued.without_client, "pods", "billing",
			      g->bill, "without_client", g->alone, "price_usd_hour",
			      report_dollars(g->price_microusd_h), "today_usd",
			      report_dollars(g->today_microusd), "per_day_usd",
			      s->per_day.set ? report_dollars(s->per_day.microusd) : json_null()));
}

static void add_ended(struct str *line, const struct glance *g)
{
	char age[32];

	if (g->failure)
		str_addf(line, "%s %s %s ago: `burst logs %s` | ", g->failure->job,
			 run_status_word(g->failure->status),
			 duration_show(age, sizeof(age), MAX(g->now_ms - g->failure->ended_ms, 0)),
			 g->failure->id);
	if (!g->success)
		str_add(line, g->count ? "no success yet" : "no run yet");
	else
		str_addf(line, "%s done %s ago", g->success->job,
			 duration_show(age, sizeof(age), MAX(g->now_ms - g->success->ended_ms, 0)));
}

static void add_running_words(struct str *line, const struct glance *g)
{
	if (!g->running_count)
		str_add(line, " | nothing runs");
	else if (g->running_count == 1)
		str_addf(line, " | %s runs", g->running[0].row.job);
	else
		str_addf(line, " | %zu runs", g->running_count);
	if (g->unwatched_runs)
		str_addf(line, ", %d without a client", g->unwatched_runs);
}

void status_line_print(const struct status_line *s)
{
	const struct glance *g = &s->glance;
	CLEANUP(str_free) struct str line = STR_INIT;
	char money[32];

	if (!strcmp(s->ledger, "locked")) {
		output_line(stdout, "the ledger is locked by another process");
		return;
	}
	if (g->alone)
		str_addf(&line, "!! %d pod%s without a client: `burst reap` !! | ", g->alone,
			 g->alone == 1 ? " bills" : "s bill");
	add_ended(&line, g);
	add_running_words(&line, g);
	if (s->queued.requests)
		str_addf(&line, ", %d queued%s", s->queued.requests,
			 s->queued.without_client ? " without a client: `burst queue ls`" : "");
	if (g->bill)
		str_addf(&line, " | %d pod%s, %s/h", g->bill, g->bill == 1 ? " bills" : "s bill",
			 money_show(money, sizeof(money), g->price_microusd_h));
	else
		str_add(&line, " | nothing bills");
	str_addf(&line, " | %s", money_show(money, sizeof(money), g->today_microusd));
	if (s->per_day.set)
		str_addf(&line, " of %s", money_show(money, sizeof(money), s->per_day.microusd));
	str_add(&line, " today");
	output_safe_line(stdout, str_text(&line), line.len);
}
