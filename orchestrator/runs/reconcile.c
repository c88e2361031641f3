/* reconcile.c - fetches the vendors' bills for pods, judges them, and records them beside our
 * count. */
#include "reconcile.h"

#include <stdlib.h>

#include "base/clock.h"
#include "engine/caller.h"
#include "impl.h"

enum { ASK_MS = 120000 };
#define AGE_MS (INT64_C(24) * 3600 * 1000 * RECONCILE_AGE_DAYS)

/* ---- which pods ---- */

static bool is_shared(const struct pod_row *row)
{
	return row->holds > 0 || row->handed_to[0] || row->handed_from[0];
}

static int by_holds(const void *a, const void *b)
{
	return ((const struct pod_row *)a)->holds - ((const struct pod_row *)b)->holds;
}

/* Reads the rows of the same pod, one for each run that held it. */
static int read_shares(struct store *store, const struct pod_row *row, struct asked_pod *pod,
		       struct err *err)
{
	size_t count = 0, kept = 0;

	if (!is_shared(row)) {
		pod->shares = xcalloc(1, sizeof(*pod->shares));
		pod->shares[pod->share_count++] = *row;
		return 0;
	}
	if (store_pods_named(store, row->id, &pod->shares, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(pod->shares[i].id, row->id) &&
		    !strcmp(pod->shares[i].provider, row->provider))
			pod->shares[kept++] = pod->shares[i];
	qsort(pod->shares, kept, sizeof(*pod->shares), by_holds);
	pod->share_count = kept;
	return 0;
}

/* Returns whether to fetch its bill. Counts a skipped pod once, however many of its rows are read.
 */
static bool is_wanted(struct reconciliation *r, const struct asked_pod *pod,
		      const struct pod_row *row, int64_t now_ms)
{
	/* the row of the last run shows whether it is gone */
	const struct pod_row *last = &pod->shares[pod->share_count - 1];
	bool counts = r->run[0] || row->holds == last->holds;

	if (last->state != POD_ROW_GONE) {
		r->alive += counts;
		return false;
	}
	if (r->run[0])
		return true;
	if (bill_is_final(&pod->whole))
		return false;
	if (pod->whole.gone_ms >= now_ms - AGE_MS)
		return true;
	r->old += counts;
	return false;
}

static bool is_known_already(const struct reconciliation *r, const struct pod_row *row)
{
	for (size_t i = 0; is_shared(row) && i < r->count; i++)
		if (!strcmp(r->pods[i].whole.id, row->id) &&
		    !strcmp(r->pods[i].whole.provider, row->provider))
			return true;
	return false;
}

static int add_pod(struct reconciliation *r, const struct pod_row *row, struct err *err)
{
	struct asked_pod pod = {0};

	if (!row->id[0] || row->state == POD_ROW_FAILED || is_known_already(r, row))
		return 0;
	if (read_shares(r->accounts.runs->store, row, &pod, err) < 0)
		return -1;
	pod.whole = bill_whole(pod.shares, pod.share_count);
	if (is_wanted(r, &pod, row, clock_wall_ms()))
		r->pods[r->count++] = pod;
	else
		free(pod.shares);
	return 0;
}

int reconcile_find(struct reconciliation *r, const struct runs *rs, const char *run,
		   struct err *err)
{
	struct pod_row *rows = NULL;
	struct run_row row;
	size_t count;
	int status = 0;

	*r = (struct reconciliation){0};
	run_init(&r->accounts, rs);
	if ((run && named_run(rs->store, run, &row, err) < 0) ||
	    store_pods(rs->store, run ? row.id : NULL, false, &rows, &count, err) < 0)
		return -1;
	COPY_TEXT(r->run, run ? row.id : "");
	r->pods = xcalloc(count + 1, sizeof(*r->pods));
	for (size_t i = 0; i < count && status == 0; i++)
		status = add_pod(r, &rows[i], err);
	free(rows);
	return status;
}

void reconcile_free(struct reconciliation *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->pods[i].told.hours);
		free(r->pods[i].shares);
	}
	free(r->pods);
	run_free(&r->accounts);
}

bool reconcile_shows(const struct reconciliation *r, const struct pod_row *share)
{
	return !r->run[0] || !strcmp(share->run, r->run);
}

static bool is_first_of_run(const struct reconciliation *r, size_t pod, const struct pod_row *share)
{
	for (size_t i = 0; i <= pod; i++)
		for (size_t k = 0; k < r->pods[i].share_count; k++) {
			const struct pod_row *other = &r->pods[i].shares[k];
			if (other == share)
				return true;
			if (!strcmp(other->run, share->run))
				return false;
		}
	return true;
}

/* Number of runs that the rows belong to. */
size_t reconcile_count_runs(const struct reconciliation *r)
{
	size_t runs = 0;

	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < r->pods[i].share_count; k++)
			runs += reconcile_shows(r, &r->pods[i].shares[k]) &&
				is_first_of_run(r, i, &r->pods[i].shares[k]);
	return runs;
}

/* ---- fetch ---- */

static const struct engine_provider *provider_of(struct reconciliation *r, const char *name)
{
	for (int i = 0; i < r->accounts.setup.provider_count; i++)
		if (!strcmp(r->accounts.setup.providers[i].ops->name, name))
			return &r->accounts.setup.providers[i];
	return NULL;
}

static bool has_failed(const struct reconciliation *r, const char *name)
{
	for (int i = 0; i < r->failed_count; i++)
		if (!strcmp(r->failed[i], name))
			return true;
	return false;
}

/* Skips the vendor's other pods, which would fail alike. Keeps an error about credentials rather
 * than one of transport. */
static void skip_vendor(struct reconciliation *r, const char *provider, const struct err *why)
{
	if (r->failed_count < CORE_PROVIDERS_MAX)
		copy_text(r->failed[r->failed_count++], PROVIDER_NAME_MAX, provider);
	if (r->failure.kind)
		runs_note(r->accounts.runs, LOG_WARN, "%s",
			  err_is_credentials(r->failure.kind) ? why->msg : r->failure.msg);
	if (!r->failure.kind ||
	    (err_is_credentials(why->kind) && !err_is_credentials(r->failure.kind)))
		r->failure = *why;
}

/* Writes the shares as they are now in the ledger, with the vendor's record (NULL: it has none),
 * and the sums of their runs. */
static int write_shares(const struct runs *rs, struct asked_pod *pod, const struct op_bill *bill,
			struct err *err)
{
	struct store *store = rs->store;

	for (size_t i = 0; i < pod->share_count; i++)
		if (store_pod(store, pod->shares[i].attempt, &pod->shares[i], err) < 0)
			return -1;
	pod->whole = bill_whole(pod->shares, pod->share_count);
	pod->whole.vendor_asked_ms = clock_wall_ms();
	if (bill) { /* a record that was there once is kept */
		pod->whole.billed_vendor_ms = bill->billed_ms;
		pod->whole.cost_vendor_microusd = bill->cost_microusd;
		pod->whole.cost_beside_microusd = bill->beside_microusd;
		pod->whole.vendor_reported = bill->reported;
	}
	bill_split(&pod->whole, pod->shares, pod->share_count);
	for (size_t i = 0; i < pod->share_count; i++)
		if (store_put_pod(store, &pod->shares[i], err) < 0 ||
		    run_sum_ended(rs, pod->shares[i].run, err) < 0)
			return -1;
	return 0;
}

/* Records the result. Only the client of a gone pod also writes its row, at its end, with the same
 * figures. */
static int remember(struct reconciliation *r, struct asked_pod *pod, const struct op_bill *bill,
		    struct err *err)
{
	struct store *store = r->accounts.runs->store;

	if (store_begin(store, err) < 0)
		return -1;
	if (write_shares(r->accounts.runs, pod, bill, err) < 0) {
		store_rollback(store);
		return -1;
	}
	return store_commit(store, err);
}

static void say_shares(struct asked_pod *pod)
{
	size_t len = strlen(pod->verdict.why);

	if (pod->share_count > 1)
		snprintf(pod->verdict.why + len, sizeof(pod->verdict.why) - len,
			 "; %zu runs held this pod, so its bill is split by their billed time",
			 pod->share_count);
}

/* Records the provider's answer and judges it. Takes bill->hours over. NULL: the provider has no
 * record of the pod. */
static int take_bill(struct reconciliation *r, struct asked_pod *pod, struct op_bill *bill,
		     struct err *err)
{
	if (remember(r, pod, bill, err) < 0)
		return -1;
	if (bill) {
		pod->told = *bill;
		bill->hours = NULL;
	}
	pod->asked = true;
	bill_judge(&pod->whole, &pod->told, &pod->verdict);
	if (pod->verdict.state == BILL_NOT_YET && pod->other_key)
		snprintf(pod->verdict.why, sizeof(pod->verdict.why),
			 "no record for this key: the pod was rented with another one; if that "
			 "key is of another account, use it and ask again");
	if (pod->verdict.state == BILL_EXCESS)
		runs_note(r->accounts.runs, LOG_WARN,
			  "pod %s of %s: %s; confirm that it is gone (`burst reap`, the vendor's "
			  "console), then send the vendor's support the pod's id and times "
			  "(`burst ledger %s --reconcile --json`)",
			  pod->whole.id, pod->whole.provider, pod->verdict.why, pod->whole.run);
	say_shares(pod);
	return 0;
}

static int open_provider(struct reconciliation *r, const char *name,
			 const struct engine_provider **out, struct err *err)
{
	*out = provider_of(r, name);
	if (!*out && run_open_account(&r->accounts, name, err) == 0)
		*out = provider_of(r, name);
	return *out ? 0 : -1;
}

/* Records the vendor's reply. r->failure holds the error of a vendor that cannot be reached.
 * Returns -1 if the ledger failed. */
static int fetch_bill(struct reconciliation *r, struct asked_pod *pod, struct err *err)
{
	const struct engine_provider *provider;
	struct op_result result = {0};
	struct op_want want = {.since_s = pod->whole.create_ms / 1000};
	struct err why = {0};

	if (has_failed(r, pod->whole.provider)) {
		COPY_TEXT(pod->why_not, "not asked: its vendor did not answer for another pod");
		return 0;
	}
	if (open_provider(r, pod->whole.provider, &provider, &why) == 0) {
		/* a new key of the same account sees its pods too */
		pod->other_key =
			pod->whole.account[0] &&
			strcmp(pod->whole.account, provider->ops->account(provider->handle)) != 0;
		COPY_TEXT(want.id, pod->whole.id);
		want.bill.price_microusd_h = pod->whole.price_microusd_h;
		want.bill.list_microusd_h = pod->whole.price_list_microusd_h;
		COPY_TEXT(want.bill.gpu, pod->whole.gpu_offered);
		if (caller_perform(provider, OP_BILLING, &want, ASK_MS, &result, &why) == 0) {
			int status = take_bill(r, pod, &result.billing, err);
			op_result_free(&result);
			return status;
		}
		if (why.kind == ERR_NOT_FOUND)
			return take_bill(r, pod, NULL, err);
		err_wrap(&why, "%s: pod %s", pod->whole.provider, pod->whole.id);
	}
	snprintf(pod->why_not, sizeof(pod->why_not), "not known: %s", why.msg);
	skip_vendor(r, pod->whole.provider, &why);
	return 0;
}

int reconcile_fetch_bills(struct reconciliation *r, struct err *err)
{
	for (size_t i = 0; i < r->count; i++)
		if (fetch_bill(r, &r->pods[i], err) < 0)
			return err_wrap(err, "pod %s", r->pods[i].whole.id);
	return 0;
}
