/* measured.c - reads speed, price and cold starts of the newest runs. */
#include "measured.h"

#include <stdlib.h>

enum { RUNS_MOST = 50 };

static double characters(struct store *store, const char *run)
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

bool measured_rate(struct store *store, struct breakeven_rate *out, char run[24])
{
	struct run_row *runs = NULL;
	size_t count = 0;
	bool found = false;

	if (store_runs(store, NULL, false, RUNS_MOST, &runs, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !found; i++) {
		const struct run_row *r = &runs[i];
		found = !strcmp(r->type, "tts") &&
			breakeven_rate(characters(store, r->id), r->compute_ms, r->billed_ms,
				       r->cost_microusd, out);
		if (found)
			copy_text(run, 24, r->id);
	}
	free(runs);
	return found;
}

/* A pod that an earlier run handed over had no cold start in this one. */
static double cold_start_s(const struct pod_row *pods, size_t count)
{
	double cold_s = 0;

	for (size_t i = 0; i < count; i++)
		if (pods[i].ready_ms > pods[i].create_ms && pods[i].create_ms > 0 &&
		    !pods[i].handed_from[0])
			cold_s = (double)(pods[i].ready_ms - pods[i].create_ms) / 1000;
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
