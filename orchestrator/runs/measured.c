/* measured.c - reads speed, price and cold starts of the newest runs from a ledger */
#include "measured.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/pod_cost.h"

enum { RUNS_MOST = 50 };

/* Weight of all batches that the run rendered; 0: unknown. */
static double characters_of_run(struct store *store, const char *run)
{
	struct batch_row *batches = NULL;
	size_t count = 0;
	double sum = 0;

	if (store_batches(store, run, &batches, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		sum += batches[i].sum;
	free(batches);
	return sum;
}

/* Returns false if one of its figures is 0. */
static bool measured_rate_of(struct store *store, const struct run_row *r,
			     struct measured_rate *out)
{
	double busy_s = (double)r->compute_ms / 1000, chars = characters_of_run(store, r->id);

	if (!(busy_s > 0 && chars > 0 && r->billed_ms > 0 && r->cost_microusd > 0))
		return false;
	*out = (struct measured_rate){
		.price_h = (double)r->cost_microusd / 1e6 / ((double)r->billed_ms / 3600000),
		.chars_per_hour = chars / busy_s * 3600,
		.duty = MIN((double)r->compute_ms / (double)r->billed_ms, 1.0)};
	COPY_TEXT(out->run, r->id);
	return true;
}

bool measured_rate(struct store *store, struct measured_rate *out)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	bool found = false;

	if (store_runs(store, NULL, false, RUNS_MOST, &runs, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !found; i++)
		found = !strcmp(runs[i].type, "tts") && measured_rate_of(store, &runs[i], out);
	free(runs);
	return found;
}

/* Of the last pod with a cold start; 0: none. A pod that was handed over had none here. */
static double cold_start_s(const struct pod_row *pods, size_t count)
{
	double cold_s = 0;

	for (size_t i = 0; i < count; i++)
		if (pods[i].ready_ms > pod_row_bills_from(&pods[i]) &&
		    pod_row_bills_from(&pods[i]) > 0 && !pods[i].handed_from[0])
			cold_s = (double)(pods[i].ready_ms - pod_row_bills_from(&pods[i])) / 1000;
	return cold_s;
}

bool measured_work(struct store *store, struct measured_work *out)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	bool found = false;

	*out = (struct measured_work){0};
	if (store_runs(store, NULL, false, RUNS_MOST, &runs, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !found; i++) {
		found = runs[i].compute_ms > 0 && store_pods(store, runs[i].id, false, &out->pods,
							     &out->pod_count, NULL) == 0;
		if (!found)
			continue;
		COPY_TEXT(out->run, runs[i].id);
		out->work_s = (double)runs[i].compute_ms / 1000;
		out->cold_s = cold_start_s(out->pods, out->pod_count);
	}
	free(runs);
	return found;
}
