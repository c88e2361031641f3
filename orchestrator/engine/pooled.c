/* pooled.c - passes pods from run to run: what a pod is good for, and which run the ledger says has
 * it. */
#include "pooled.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/str.h"
#include "store/pod_cost.h"

enum { LEFT_LEAST_MS = 30 * 1000 }; /* of a pod's time, beyond the plan */

/* ---- what a pod is good for ---- */

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* Adds the text with its length, so that no other list of parts gives the same bytes. */
static void add_part(struct str *to, const char *text)
{
	str_addf(to, "%zu:%s\n", strlen(or_empty(text)), or_empty(text));
}

/* A local pod that fetches packages has this machine's network: it goes to no run that brings a
 * script or a program of its own, even if its text is burst's. */
void pooled_describe(const struct engine_setup *setup, char pool[96])
{
	const struct job_needs *n = setup->job_ops->needs(setup->job);
	bool own = n->command || setup->worker_root;
	CLEANUP(str_free) struct str text = STR_INIT;
	char hex[SHA256_HEX];

	add_part(&text, setup->image);
	add_part(&text, setup->volume_name);
	add_part(&text, n->setup);
	add_part(&text, n->install);
	add_part(&text, own ? setup->run->config : NULL);
	add_part(&text, own ? setup->run->job : NULL);
	add_part(&text, n->setup_is_ours ? "burst's own" : NULL);
	str_addf(&text, "%d %d %d %d %s", setup->card.nvenc, setup->card.bf16,
		 setup->card.least_capability, setup->card.vram_gb, setup->card.cuda);
	sha256_hex(str_text(&text), text.len, hex);
	snprintf(pool, 96, "%.32s %d %lld %lld %lld", hex, !setup->gpus, (long long)setup->cpu,
		 (long long)setup->memory_gb, (long long)setup->disk_gb);
}

struct pool_parts {
	char key[33];
	int any_gpu;
	long long cpu, memory_gb, disk_gb;
};

/* Returns false if the text does not come from pooled_describe(). */
static bool parse_pool(const char *pool, struct pool_parts *d)
{
	return sscanf(pool, "%32s %d %lld %lld %lld", d->key, &d->any_gpu, &d->cpu, &d->memory_gb,
		      &d->disk_gb) == 5;
}

bool pooled_serves(const char *has, const char *wanted)
{
	struct pool_parts a, b;

	return parse_pool(has, &a) && parse_pool(wanted, &b) && !strcmp(a.key, b.key) &&
	       a.any_gpu >= b.any_gpu && a.cpu >= b.cpu && a.memory_gb >= b.memory_gb &&
	       a.disk_gb >= b.disk_gb;
}

bool pooled_is_offered(const struct pod_row *row, int64_t now_ms)
{
	return row->state == POD_ROW_LIVE && row->pool[0] && row->id[0] && row->reach &&
	       now_ms < row->kept_until_ms && row->holds < POOLED_HOLDS_MOST;
}

/* ---- what a run wants ---- */

static json_t *list_accounts(const struct engine_setup *setup)
{
	json_t *list = json_array();

	for (int i = 0; i < setup->provider_count; i++) {
		const struct engine_provider *p = &setup->providers[i];
		json_array_append_new(list, json_pack("{s:s,s:s}", "provider", p->ops->name,
						      "account", p->ops->account(p->handle)));
	}
	return list;
}

static json_t *list_gpus(const struct engine_setup *setup)
{
	json_t *list = json_array();

	for (const char *const *gpu = setup->gpus; gpu && *gpu; gpu++)
		json_array_append_new(list, json_string(*gpu));
	return list;
}

json_t *pooled_want(const struct engine_setup *setup, int64_t left_microusd)
{
	int64_t planned_ms = setup->run->planned_ms;

	return json_pack("{s:s,s:o,s:o,s:b,s:I,s:I,s:I,s:I,s:I}", "pool", setup->pool, "accounts",
			 list_accounts(setup), "gpus", list_gpus(setup), "spot", setup->want_spot,
			 "price", (json_int_t)setup->conf.max_price_microusd_h, "ms",
			 (json_int_t)(planned_ms + planned_ms / 2 + LEFT_LEAST_MS), "lease_ms",
			 (json_int_t)setup->conf.lease_ms, "cost", (json_int_t)left_microusd,
			 "until", (json_int_t)setup->run->ends_by_ms);
}

static bool has_wanted_gpu(const json_t *want, const struct pod_row *pod)
{
	const json_t *gpus = json_object_get(want, "gpus"), *gpu;
	size_t i;

	json_array_foreach (gpus, i, gpu) {
		const char *name = json_string_value(gpu);
		if (name && gpu_is_same(name, pod->gpu_offered))
			return true;
	}
	return !json_array_size(gpus);
}

static bool is_of_wanted_account(const json_t *want, const struct pod_row *pod)
{
	const json_t *account;
	size_t i;

	json_array_foreach (json_object_get(want, "accounts"), i, account)
		if (!strcmp(jsonx_text(account, "provider", ""), pod->provider))
			return !strcmp(jsonx_text(account, "account", ""), pod->account);
	return false;
}

/* Whether the pod lives long enough for the work and stays within the run's caps. If both clients
 * die, a pod bills until one of the two leases ends, or its hard end: that counts, too. */
static bool lasts_within_caps(const json_t *want, const struct pod_row *pod, int64_t now_ms)
{
	int64_t price_most = jsonx_int(want, "price", 0), wanted_ms = jsonx_int(want, "ms", 0),
		until_ms = jsonx_int(want, "until", 0), left_ms = pod->hard_end_s * 1000 - now_ms,
		most_ms = MIN(MAX(wanted_ms, pod->kept_until_ms - now_ms) +
				      jsonx_int(want, "lease_ms", 0),
			      left_ms);

	return left_ms >= wanted_ms && (!price_most || pod->price_microusd_h <= price_most) &&
	       (!until_ms || now_ms + most_ms <= until_ms) &&
	       money_for(pod->price_microusd_h, most_ms) <= jsonx_int(want, "cost", 0);
}

bool pooled_fits(const json_t *want, const struct pod_row *row, int64_t now_ms)
{
	return want && pooled_is_offered(row, now_ms) &&
	       pooled_serves(row->pool, jsonx_text(want, "pool", "")) &&
	       has_wanted_gpu(want, row) && (!row->spot || jsonx_bool(want, "spot", false)) &&
	       is_of_wanted_account(want, row) && lasts_within_caps(want, row, now_ms);
}

/* ---- whose it is ---- */

void pooled_part_name(const char *attempt, int holds, char part[ATTEMPT_MAX])
{
	snprintf(part, ATTEMPT_MAX, "%.*s-%02d", ATTEMPT_LEN, attempt, holds % 100);
}

/* Turns the pod's row into the part that stays with the earlier run: the time until now. */
static void end_part(struct pod_row *part, const char *to, int64_t now_ms)
{
	char name[ATTEMPT_MAX];

	pooled_part_name(part->attempt, part->holds, name);
	COPY_TEXT(part->attempt, name);
	part->state = POD_ROW_GONE;
	COPY_TEXT(part->handed_to, to);
	part->release_ms = part->released_ms = part->gone_ms = MAX(now_ms, part->create_ms);
	pod_row_bill(part, part->gone_ms);
	part->pool[0] = '\0';
}

/* Turns the pod's row into that of the run `to`, which begins now: without the times, costs and
 * measurements of the earlier run. kept: the pod stays on offer. */
static void begin_part(struct pod_row *pod, const char *to, bool kept, int64_t now_ms)
{
	struct pod_row was = *pod;

	COPY_TEXT(pod->handed_from, was.run);
	COPY_TEXT(pod->run, to);
	pod->holds++;
	pod->create_ms = pod->rented_ms = pod->running_ms = now_ms;
	pod->run_ms = pod->start_ms = pod->queued_ms = 0; /* it runs: it bills from now on */
	pod->reached_ms = pod->connected_ms = pod->synced_ms = pod->ready_ms = pod->worked_ms = 0;
	pod->safe_ms = pod->release_ms = pod->released_ms = pod->gone_ms = 0;
	pod->volume_safe = false;
	pod->compute_ms = pod->wasted_ms = pod->billed_ms = pod->cost_microusd = 0;
	pod->billed_vendor_ms = pod->cost_vendor_microusd = pod->cost_beside_microusd = 0;
	pod->vendor_asked_ms = pod->setup_ms = pod->event = 0;
	pod->gpu_samples = pod->gpu_busy_p50 = pod->gpu_busy_p95 = 0;
	pod->gpu_memory_peak_mib = 0;
	pod->synced_bytes = SYNCED_UNKNOWN;
	pod_row_set_load(pod, (int64_t[LOAD_PHASES]){0});
	pod->unpack_bytes = 0;
	pod->error[0] = '\0';
	pod->kept_ms = kept ? now_ms : 0;
	if (kept)
		return;
	pod->kept_until_ms = 0;
	pod->pool[0] = '\0';
}

static int take_in_transaction(struct store *store, const char *to, const struct run_row *run,
			       bool kept, int64_t now_ms, struct pod_row *pod, struct err *err)
{
	struct pod_row now, part;

	if (store_pod(store, pod->attempt, &now, err) < 0)
		return -1;
	if (strcmp(now.run, pod->run) || !pooled_is_offered(&now, now_ms))
		return err_set(err, ERR_NOT_FOUND, "pod %s is not on offer any more",
			       pod_row_called(pod));
	part = now;
	end_part(&part, to, now_ms);
	begin_part(&now, to, kept, part.gone_ms);
	if ((run && store_put_run(store, run, err) < 0) || store_put_pod(store, &part, err) < 0 ||
	    store_put_pod(store, &now, err) < 0)
		return -1;
	*pod = now;
	return 0;
}

int pooled_take(struct store *store, const char *to, const struct run_row *run, bool kept,
		int64_t now_ms, struct pod_row *pod, struct err *err)
{
	struct pod_row got = *pod;

	if (store_begin(store, err) < 0)
		return -1;
	if (take_in_transaction(store, to, run, kept, now_ms, &got, err) < 0) {
		store_rollback(store);
		return -1;
	}
	if (store_commit(store, err) < 0)
		return -1;
	*pod = got;
	return 0;
}

int64_t pooled_taken_ms(struct store *store, const char *attempt, const char *run)
{
	struct pod_row row, part;
	char name[ATTEMPT_MAX];

	if (store_pod(store, attempt, &row, NULL) < 0 || !strcmp(row.run, run))
		return 0;
	/* it may have been handed on more than once */
	for (int holds = row.holds - 1; holds >= 0; holds--) {
		pooled_part_name(attempt, holds, name);
		if (store_pod(store, name, &part, NULL) == 0 && !strcmp(part.run, run))
			return part.gone_ms;
	}
	return MAX(row.create_ms, 1);
}

int pooled_put_row(struct store *store, const struct pod_row *row, int64_t *taken_ms,
		   struct err *err)
{
	*taken_ms = 0;
	if (store_begin(store, err) < 0)
		return -1;
	int64_t taken = pooled_taken_ms(store, row->attempt, row->run);
	if (taken || store_put_pod(store, row, err) < 0) {
		store_rollback(store);
		*taken_ms = taken;
		return taken ? 0 : -1;
	}
	return store_commit(store, err);
}
