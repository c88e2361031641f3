/* extras.c - finds what comes on top of a pod's price, from the ledger or else from providers'
 * lists. */
#include "extras.h"

#include <stdlib.h>

#include "base/clock.h"
#include "engine/learn.h"
#include "plan/cost.h"
#include "store/facts.h"

#define MONTH_MS INT64_C(2592000000)
enum { RUNS_LOOKED_AT = 200, FAILING_RUNS = 3, FAILING_SEGMENTS = 5000 };

static char *day_of(char to[32], int64_t wall_ms)
{
	clock_rfc3339(to, 32, wall_ms);
	to[10] = '\0';
	return to;
}

/* ---- storage ---- */

/* Runs of this config in 30 days, including the planned one. */
static int runs_a_month(const struct estimate_of *of)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int recent = 1;

	if (of->config[0] && store_runs(of->run->runs->store, of->config, false, RUNS_LOOKED_AT,
					&runs, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			recent += runs[i].started_ms > clock_wall_ms() - MONTH_MS;
	free(runs);
	return recent;
}

struct extra extras_storage(const struct estimate_of *of, const char *provider,
			    const struct volume_row *row)
{
	const char *name = of->volume;
	struct extra e = {0};
	char day[32];

	if (!name || !name[0])
		return e;
	bool known = row && row->price_microusd_month > 0;
	double month_usd =
		known ? (double)row->price_microusd_month / 1e6
		      : prior_of_provider(provider)->volume_usd_gb_month * (double)of->volume_gb;
	int runs = runs_a_month(of);
	e.value = month_usd / runs;
	format_text(e.from, sizeof(e.from),
		    "volume %.40s, $%.2f a month (%s, %s) over %d run%s in 30 days", name,
		    month_usd, known ? "ledger" : "list price",
		    known ? day_of(day, row->seen_ms) : prior_of_provider(provider)->seen, runs,
		    runs == 1 ? "" : "s");
	return e;
}

/* ---- egress ---- */

struct extra extras_egress(const struct estimate_of *of, const char *provider, double gb)
{
	const struct prior_provider *prior = prior_of_provider(provider);
	struct extra e = {0};
	double usd_gb = prior->egress_usd_gb;
	char amount[32];
	bool own = of->egress_price(of->ctx, provider, &usd_gb);

	e.value = gb * usd_gb;
	format_text(e.from, sizeof(e.from), "%s GB at $%.2f a GB (%s)", number_show(amount, gb, 3),
		    usd_gb, own ? "config" : prior->seen);
	return e;
}

/* ---- interruptions and failed renders ---- */

struct extra extras_interrupted(const char *provider, bool spot, const struct pod_row *pods,
				size_t count)
{
	const struct prior_provider *prior = prior_of_provider(provider);
	struct extra e = {0};
	double lived_s = 0;
	int taken = 0;
	char lived[24];

	e.value = learn_interrupted_s(pods, count, spot, spot ? prior->interrupted_every_s : 0,
				      &taken, &lived_s);
	if (taken || lived_s >= prior->interrupted_every_s)
		snprintf(e.from, sizeof(e.from), "measured: %d of these pods taken in %s", taken,
			 duration_show(lived, sizeof(lived), (int64_t)(lived_s * 1000)));
	else if (spot)
		snprintf(e.from, sizeof(e.from), "a guess until the first pods ran");
	return e;
}

void extras_saves(struct store *store, const struct job_needs *needs, struct extras *x)
{
	double between_s = x->interrupted.value > 0 ? x->interrupted.value : PRIOR_ON_DEMAND_S;
	const char *from = x->interrupted.from[0] ? x->interrupted.from : "a guess";
	char took[24], between[24], ms[32];

	if (!needs->command)
		return;
	if (fact_get(store, FACT_SAVES, needs->speed_options, NULL, ms, sizeof(ms)))
		x->save_s = (double)atoll(ms) / 1000;
	duration_show(took, sizeof(took), (int64_t)(x->save_s * 1000));
	duration_show(between, sizeof(between), (int64_t)(between_s * 1000));
	x->saves.value = needs->checkpoint_every_ms ? (double)needs->checkpoint_every_ms / 1000
						    : checkpoint_every_s(x->save_s, between_s);
	if (needs->checkpoint_every_ms)
		format_text(x->saves.from, sizeof(x->saves.from), "job.checkpoint");
	else if (x->save_s > 0)
		format_text(x->saves.from, sizeof(x->saves.from),
			    "a save takes %s, measured; %s between interruptions, %.60s", took,
			    between, from);
	else
		format_text(x->saves.from, sizeof(x->saves.from),
			    "by what the first save takes; %s between interruptions, %.60s",
			    between, from);
}

struct extra extras_failing(const struct estimate_of *of)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int looked = 0, tries = 0, good = 0;
	struct extra e = {0};

	if (!of->config[0] || store_runs(of->run->runs->store, of->config, false, RUNS_LOOKED_AT,
					 &runs, &count, NULL) < 0)
		return e;
	for (size_t i = 0; i < count && looked < FAILING_RUNS; i++) {
		struct segment_row *rows = NULL;
		size_t n = 0;
		if (!runs[i].rendered || runs[i].total > FAILING_SEGMENTS ||
		    store_segments(of->run->runs->store, runs[i].id, &rows, &n, NULL) < 0)
			continue;
		for (size_t k = 0; k < n; k++) {
			tries += MAX(rows[k].tries, 1);
			good += rows[k].state == SEGMENT_ROW_SAFE;
		}
		looked++;
		free(rows);
	}
	free(runs);
	e.value = tries ? MIN(1 - (double)good / tries, 0.9) : 0;
	if (tries)
		snprintf(e.from, sizeof(e.from), "measured: %d of %d renders in %d run%s",
			 tries - good, tries, looked, looked == 1 ? "" : "s");
	return e;
}

/* ---- stages ---- */

struct extra extras_stages(const struct estimate_of *of, double *seconds)
{
	const struct runs *rs = of->run->runs;
	char day[32];
	struct run_row run;
	struct extra e = {0};

	*seconds = 0;
	for (size_t i = 0; of->stages && of->stages[i] && of->config[0]; i++) {
		if (stage_newest(rs, of->config, of->job, of->stages[i], false, &run, NULL) != 1 ||
		    run.billed_ms <= 0) {
			snprintf(e.from, sizeof(e.from), "unknown before the first one");
			e.value = *seconds = 0;
			return e;
		}
		*seconds += (double)run.billed_ms / 1000;
		e.value += (double)run.cost_microusd / 1e6;
		snprintf(e.from, sizeof(e.from), "as measured on %s", day_of(day, run.started_ms));
	}
	return e;
}
