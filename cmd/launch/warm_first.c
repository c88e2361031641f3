/* warm_first.c - fills a run's volume from a pod without a GPU before the run rents GPUs. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "engine/caller.h"
#include "jobs/warm/warm.h"
#include "volume_make.h"
#include "volume_trust.h"
#include "volume_warm.h"
#include "warm_first.h"

enum { ASK_MS = 60000, NO_CAPACITY_STATUS = 4 };

bool warm_first_due(struct launch *l, const struct estimate *e, const struct plan *pick)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);

	return needs->gpu && !needs->setup_by_card && e->volume && e->volume[0] &&
	       l->order.config[0] && cold_setup_s(&e->machines[pick->machine].cold) > 0;
}

/* ---- the volume ---- */

static const struct engine_provider *provider_of(const struct launch *l, const char *name)
{
	for (int i = 0; i < l->run.setup.provider_count; i++)
		if (!strcmp(l->run.setup.providers[i].ops->name, name))
			return &l->run.setup.providers[i];
	return NULL;
}

/* Returns 1 if it exists, 0 if it is missing and this run may not create it. */
static int find_volume(struct launch *l, const struct engine_provider *p, const struct estimate *e,
		       const struct plan *pick, struct volume_row *row, struct err *err)
{
	const char *const gpus[] = {e->offers[pick->machine].gpu, NULL};
	struct op_want want = {.volume.name = e->volume};
	struct op_result result = {0};

	if (caller_perform(p, OP_VOLUME, &want, ASK_MS, &result, err) == 0 && result.volume_count) {
		volume_remember(l->ctx, p->ops->name, &result.volumes[0], row);
		op_result_free(&result);
		return 1;
	}
	op_result_free(&result);
	if (err->kind && err->kind != ERR_NOT_FOUND)
		return err_wrap(err, "%s: volume %s", p->ops->name, e->volume);
	err_clear(err);
	if (!l->order.volume_create)
		return 0;
	int made = volume_make(l, p, e->volume, gpus, row, err);
	if (made == 1 && volume_trust_note(l, p->ops->name, e->volume, err) < 0)
		return -1;
	return made < 0 ? -1 : 1;
}

/* ---- the run that fills it ---- */

/* Runs under the caps of this run. Returns the exit status of `burst volume warm`. */
static int fill(struct launch *l, struct volume_row *v, struct err *err)
{
	const char *const there[] = {v->provider, NULL};
	struct launch w;

	launch_within(&w, l);
	order_providers(&w.order, there);
	int status = launch_open_providers(&w, err) < 0 ? -1 : volume_warm(&w, v, 0, stderr, err);
	if (status < 0) {
		config_place_error(l->ctx->config, err);
		output_error(l->ctx, err);
		status = err_exit_status(err);
	}
	err_clear(err);
	engine_unblock_signals();
	launch_free(&w);
	return status;
}

static int64_t count_pods(struct launch *l, const struct run_row *run)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int64_t there = 0;

	if (store_pods(l->ctx->store, run->id, false, &pods, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		there += pods[i].state != POD_ROW_FAILED && pods[i].billed_ms > 0;
	free(pods);
	return there;
}

/* What the warming runs since then did. */
static void sum_up(struct launch *l, int64_t since_ms, int64_t *cost_microusd, int64_t *pods)
{
	struct run_row *runs = NULL;
	size_t count = 0;

	*cost_microusd = *pods = 0;
	if (store_runs(l->ctx->store, l->order.config, false, 0, &runs, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(runs[i].type, JOB_WARM) != 0 || runs[i].started_ms < since_ms)
			continue;
		*cost_microusd += runs[i].cost_microusd;
		*pods += count_pods(l, &runs[i]);
	}
	free(runs);
}

static int failed(const struct volume_row *v, int status, struct err *err)
{
	err_set(err,
		status == 9    ? ERR_UNRELEASED
		: status == 5  ? ERR_CAP
		: status > 128 ? ERR_INTERRUPTED
			       : ERR_JOB,
		"volume %s of %s could not be filled from a pod without a GPU (exit status %d): "
		"no GPU was rented",
		v->name, v->provider, status);
	if (status > 128)
		err->signal = status - 128;
	return -1;
}

/* A pod without a GPU was there and is lost, and no other one is free. What it did not finish is
 * not done again at the price of a GPU. */
static int lost(const struct volume_row *v, struct err *err)
{
	return err_set(err, ERR_NO_CAPACITY,
		       "volume %s of %s: the pod without a GPU that filled it was lost, and no "
		       "other was free in time: no GPU was rented; retry later, raise `wait`, or "
		       "fill it now with `burst volume warm %s`",
		       v->name, v->provider, v->name);
}

int warm_first(struct launch *l, const struct estimate *e, const struct plan *pick,
	       int64_t *spent_microusd, struct err *err)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	const struct engine_provider *p = provider_of(l, e->offers[pick->machine].provider);
	int64_t least, most, pods, began_ms = clock_wall_ms();
	struct volume_row v;

	*spent_microusd = 0;
	int there = p ? find_volume(l, p, e, pick, &v, err) : 0;
	if (there <= 0)
		return there;
	if (volume_warm_prices(l, p, &v, volume_warm_memory_gb(needs), &least, &most, err) < 0) {
		log_line(LOG_NOTE, "no pod without a GPU can fill volume %s: %s", v.name, err->msg);
		err_clear(err);
		return 0;
	}
	if (!most) {
		log_line(LOG_NOTE,
			 "no pod without a GPU is free beside volume %s of %s: the first GPU pod "
			 "runs the setup",
			 v.name, v.provider);
		return 0;
	}
	log_line(LOG_NOTE,
		 "volume %s of %s lacks what the job's setup makes: a pod without a GPU fills it "
		 "before GPUs are rented",
		 v.name, v.provider);
	int status = fill(l, &v, err);
	sum_up(l, began_ms, spent_microusd, &pods);
	if (l->order.max_cost_microusd && *spent_microusd)
		l->order.max_cost_microusd = MAX(l->order.max_cost_microusd - *spent_microusd, 1);
	if (status == NO_CAPACITY_STATUS && pods)
		return lost(&v, err);
	if (status == NO_CAPACITY_STATUS) {
		log_line(LOG_NOTE, "volume %s: the first GPU pod runs the setup", v.name);
		return 0;
	}
	return status ? failed(&v, status, err) : 1;
}
