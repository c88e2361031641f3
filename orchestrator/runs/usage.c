/* usage.c - reads from a ledger when pods ran and work came, and which pod a job had last. */
#include "usage.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/mem.h"
#include "engine/learn.h"
#include "store/pod_cost.h"

#define HOUR_MS   INT64_C(3600000)
#define MINUTE_MS INT64_C(60000)

/* The offsets of the local time zone in this time. The caller frees the list. */
static struct forecast_offset *list_offsets(int64_t from_ms, int64_t to_ms, size_t *count)
{
	struct forecast_offset *list = xcalloc(1, sizeof(*list));

	list[0] = (struct forecast_offset){from_ms, clock_local_offset_ms(from_ms)};
	*count = 1;
	for (int64_t at = from_ms + HOUR_MS; at < to_ms; at += HOUR_MS) {
		int64_t offset = clock_local_offset_ms(at), since = at;
		if (offset == list[*count - 1].offset_ms)
			continue;
		while (clock_local_offset_ms(since - MINUTE_MS) == offset)
			since -= MINUTE_MS;
		since -= since % MINUTE_MS;
		list = xrealloc(list, (*count + 1) * sizeof(*list));
		list[(*count)++] = (struct forecast_offset){since, offset};
	}
	return list;
}

static int find_first_run(struct store *store, int64_t *started_ms, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;

	if (store_runs(store, NULL, false, 0, &runs, &count, err) < 0)
		return -1;
	*started_ms = count ? runs[count - 1].started_ms : INT64_MAX;
	free(runs);
	return 0;
}

/* Fills the spans, one for each pod that counts. Returns how many. */
static size_t fill_spans(struct forecast_span *spans, const struct pod_row *pods, size_t count,
			 int64_t now_ms, bool paid)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t from = pod_row_bills_from(&pods[i]),
			billed = pod_row_billed_ms(&pods[i], now_ms);
		bool is_paid = pods[i].price_microusd_h > 0 || pods[i].unpriced;
		if (from > 0 && billed > 0 && (is_paid || !paid))
			spans[n++] = (struct forecast_span){from, from + billed};
	}
	return n;
}

int usage_forecast(struct forecast *out, struct store *store, int64_t since_ms, int64_t now_ms,
		   bool paid, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0, offset_count;
	int64_t first_ms;

	if (find_first_run(store, &first_ms, err) < 0 ||
	    store_pods_since(store, since_ms, &pods, &count, err) < 0)
		return -1;
	since_ms = MIN(MAX(since_ms, first_ms), now_ms);
	struct forecast_offset *offsets = list_offsets(since_ms, now_ms, &offset_count);
	struct forecast_span *spans = xcalloc(count + 1, sizeof(*spans));
	forecast_make(out, spans, fill_spans(spans, pods, count, now_ms, paid), offsets,
		      offset_count, since_ms, now_ms);
	free(spans);
	free(offsets);
	free(pods);
	return 0;
}

enum { RUNS_LOOKED_AT = 20 };

/* Whether the pod's run rented it itself and reached it. */
static bool is_own_pod(const struct pod_row *pod)
{
	return pod->connected_ms > 0 && !pod->handed_from[0];
}

/* Sets *out to the run's last pod of these. */
static bool last_pod_of_run(struct pod_row *out, struct store *store, const char *run)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	bool found = false;

	if (store_pods(store, run, false, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (is_own_pod(&pods[i])) {
			*out = pods[i];
			found = true;
		}
	free(pods);
	return found;
}

bool usage_last_pod(struct pod_row *out, struct store *store, const char *config)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	bool found = false;

	if (store_runs(store, config, false, RUNS_LOOKED_AT, &runs, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !found; i++)
		found = last_pod_of_run(out, store, runs[i].id);
	free(runs);
	return found;
}

int usage_pods(struct pod_row **out, size_t *count, struct store *store, const char *config,
	       struct err *err)
{
	struct run_row *runs = NULL;
	size_t run_count = 0;
	int status = 0;

	*out = NULL;
	*count = 0;
	if (store_runs(store, config, false, RUNS_LOOKED_AT, &runs, &run_count, err) < 0)
		return -1;
	for (size_t i = 0; i < run_count && status == 0; i++) {
		struct pod_row *pods = NULL;
		size_t n = 0;
		status = store_pods(store, runs[i].id, false, &pods, &n, err);
		*out = xrealloc(*out, (*count + n + 1) * sizeof(**out));
		for (size_t k = 0; status == 0 && k < n; k++)
			if (is_own_pod(&pods[k]))
				(*out)[(*count)++] = pods[k];
		free(pods);
	}
	free(runs);
	return status;
}

enum { PODS_LEARNED_FROM = 200 };

int usage_cold_start(struct cold *out, struct store *store, const struct pod_row *pod,
		     struct err *err)
{
	struct pod_row *rows = NULL;
	size_t count = 0;

	if (store_pods_up(store, pod->provider, PODS_LEARNED_FROM, &rows, &count, err) < 0)
		return -1;
	*out = prior_cold(pod->provider, !gpu_is_none(pod->gpu));
	learn_cold(rows, count,
		   &(struct cold_what){.gpu = pod->gpu,
				       .image = pod->image,
				       .setup = pod->setup,
				       .volume_ready = pod->synced_bytes == 0},
		   out);
	free(rows);
	return 0;
}

#define DEMAND_MS (8 * FORECAST_HOURS * HOUR_MS)

/* Compute time of the run, with that of its stages. */
static double work_of_run(const struct run_row *run, const struct run_row *runs, size_t count)
{
	int64_t ms = run->compute_ms;

	for (size_t i = 0; i < count; i++)
		ms += !strcmp(runs[i].part_of, run->id) ? runs[i].compute_ms : 0;
	return (double)ms / 1000;
}

/* Fills the list, one row for each run that counts. Returns how many. */
static size_t fill_arrivals(struct forecast_arrival *list, struct usage_demand *out,
			    const struct run_row *runs, size_t count, const char *config,
			    const char *name, bool segments)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const struct run_row *r = &runs[i];
		double made = segments ? (double)(r->rendered + r->failed) : 1;
		bool is_its = config ? !strcmp(r->config, config) : !strcmp(r->job, name);
		if (!is_its || r->stage[0] || r->status == RUN_RUNNING || made <= 0)
			continue;
		double work_s = work_of_run(r, runs, count);
		if (work_s <= 0)
			continue;
		if (!n) {
			COPY_TEXT(out->job, r->job);
			COPY_TEXT(out->config, r->config);
		}
		list[n++] = (struct forecast_arrival){r->started_ms, made, work_s};
	}
	return n;
}

int usage_demand(struct usage_demand *out, struct store *store, const char *config,
		 const char *name, bool segments, int64_t now_ms, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0, offset_count;
	int64_t since_ms = now_ms - DEMAND_MS;

	*out = (struct usage_demand){.job = ""};
	if (store_runs(store, NULL, false, 0, &runs, &count, err) < 0)
		return -1;
	while (count && runs[count - 1].started_ms < since_ms)
		count--;
	struct forecast_offset *offsets = list_offsets(since_ms, now_ms, &offset_count);
	struct forecast_arrival *list = xcalloc(count + 1, sizeof(*list));
	size_t n = fill_arrivals(list, out, runs, count, config, name, segments);
	out->enough = forecast_demand(&out->of, list, n, offsets, offset_count, now_ms);
	free(list);
	free(offsets);
	free(runs);
	return 0;
}
