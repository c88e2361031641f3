/* extras.c - finds what comes on top of a pod's price, from the ledger or else from providers'
 * lists. */
#include "extras.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cmd/show/output.h"
#include "engine/learn.h"
#include "plan/prior.h"

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
static int runs_a_month(struct launch *l)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int recent = 1;

	if (config_path(l->ctx->config) &&
	    store_runs(l->ctx->store, config_path(l->ctx->config), false, RUNS_LOOKED_AT, &runs,
		       &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			recent += runs[i].started_ms > clock_wall_ms() - MONTH_MS;
	free(runs);
	return recent;
}

struct extra extras_storage(struct launch *l, const char *provider, const struct volume_row *row)
{
	const struct section *conf = section_group(config_top(l->ctx->config), "volume");
	const char *name = section_text(conf, "name");
	struct extra e = {0};
	char day[32];

	if (!name || !name[0])
		return e;
	bool known = row && row->price_microusd_month > 0;
	double month_usd = known ? (double)row->price_microusd_month / 1e6
				 : prior_of_provider(provider)->volume_usd_gb_month *
					   (double)section_int(conf, "size_gb");
	int runs = runs_a_month(l);
	e.value = month_usd / runs;
	format_text(e.from, sizeof(e.from),
		    "volume %.40s, $%.2f a month (%s, %s) over %d run%s in 30 days", name,
		    month_usd, known ? "ledger" : "list price",
		    known ? day_of(day, row->seen_ms) : prior_of_provider(provider)->seen, runs,
		    runs == 1 ? "" : "s");
	return e;
}

/* ---- egress ---- */

/* A provider may have the key; most charge nothing. */
static bool own_egress(struct launch *l, const char *provider, double *usd_gb)
{
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

struct extra extras_egress(struct launch *l, const char *provider, double gb)
{
	const struct prior_provider *prior = prior_of_provider(provider);
	struct extra e = {0};
	double usd_gb = prior->egress_usd_gb;
	bool own = own_egress(l, provider, &usd_gb);

	e.value = gb * usd_gb;
	format_text(e.from, sizeof(e.from), "%.3g GB at $%.2f a GB (%s)", gb, usd_gb,
		    own ? "config" : prior->seen);
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

struct extra extras_failing(struct launch *l)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int looked = 0, tries = 0, good = 0;
	struct extra e = {0};

	if (!config_path(l->ctx->config) ||
	    store_runs(l->ctx->store, config_path(l->ctx->config), false, RUNS_LOOKED_AT, &runs,
		       &count, NULL) < 0)
		return e;
	for (size_t i = 0; i < count && looked < FAILING_RUNS; i++) {
		struct segment_row *rows = NULL;
		size_t n = 0;
		if (!runs[i].rendered || runs[i].total > FAILING_SEGMENTS ||
		    store_segments(l->ctx->store, runs[i].id, &rows, &n, NULL) < 0)
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

/* ---- delivery ---- */

struct extra extras_delivery(struct launch *l, double *seconds)
{
	const struct section *top = config_top(l->ctx->config);
	char key[RUN_JOB_KEY], day[32];
	struct run_row run;
	struct extra e = {0};

	*seconds = 0;
	if (!section_has(top, "deliver") || !config_path(l->ctx->config))
		return e;
	run_job_key(config_path(l->ctx->config), config_job_name(l->ctx->config), key);
	if (delivery_newest(&l->ctx->runs, key, &run, NULL) != 1 || run.billed_ms <= 0) {
		snprintf(e.from, sizeof(e.from), "unknown before the first one");
		return e;
	}
	*seconds = (double)run.billed_ms / 1000;
	e.value = (double)run.cost_microusd / 1e6;
	snprintf(e.from, sizeof(e.from), "as measured on %s, on a pod without a GPU",
		 day_of(day, run.started_ms));
	return e;
}
