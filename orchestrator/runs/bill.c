/* bill.c - fetches the vendors' bills for pods, compares them with our count, and records both */
#include "bill.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/caller.h"
#include "impl.h"
#include "store/pod_cost.h"

/* ---- bill: compares our count of a pod's cost with its vendor's bill ---- */

enum {
	SECOND_MS = 1000,
	MINUTE_MS = 60 * SECOND_MS,
	HOUR_MS = 60 * MINUTE_MS,
	DAY_MS = 24 * HOUR_MS
};
enum {
	/* after the end of an hour: vendors charge accounts every 5 minutes */
	LAG_MS = 15 * MINUTE_MS,
	CALL_MOST_MS = 10 * SECOND_MS, /* of a call: a longer one was found later, or repeated */
	GONE_OFF_MS = 2 * MINUTE_MS,
	CENT_MICROUSD = 10000,
	GRAIN_MICROUSD = 100, /* dollars have at least four decimals */
};

const char *bill_state_name(enum bill_state state)
{
	switch (state) {
	case BILL_NOT_YET: return "not_yet";
	case BILL_AGREES: return "agrees";
	case BILL_DIFFERS: return "differs";
	case BILL_EXCESS: return "excess";
	}
	return "";
}

/* ---- times ---- */

static int64_t round_up(int64_t ms, int64_t to)
{
	return (ms + to - 1) / to * to;
}

/* When the pod was released, or gone if no release is recorded. */
static int64_t release_end_ms(const struct pod_row *pod)
{
	return pod->released_ms > 0 ? pod->released_ms : pod->gone_ms;
}

/* When the vendor's bill should include the whole hour of the release. */
static int64_t complete_at_ms(const struct pod_row *pod)
{
	return round_up(release_end_ms(pod) + 1, HOUR_MS) + LAG_MS;
}

/* "14:15 UTC", with the day if it is another one. */
static char *minute_show(char *to, size_t room, int64_t at_ms, int64_t now_ms)
{
	char at[32], now[32];

	clock_rfc3339(at, sizeof(at), at_ms);
	clock_rfc3339(now, sizeof(now), now_ms);
	if (strncmp(at, now, 10))
		snprintf(to, room, "%.10s %.5s UTC", at, at + 11);
	else
		snprintf(to, room, "%.5s UTC", at + 11);
	return to;
}

bool bill_is_known(const struct pod_row *pod)
{
	return pod->billed_vendor_ms > 0 || pod->cost_vendor_microusd > 0 || pod->vendor_reported;
}

bool bill_has_dollars(const struct pod_row *pod)
{
	return bill_is_known(pod) &&
	       (pod->cost_vendor_microusd > 0 || !pod->billed_vendor_ms || !pod->price_microusd_h);
}

/* Whether the row holds the vendor's final record. */
static bool bill_is_final(const struct pod_row *pod)
{
	return bill_is_known(pod) && pod->vendor_asked_ms >= release_end_ms(pod) + DAY_MS;
}

/* ---- a pod that several runs held ---- */

struct pod_row bill_whole(const struct pod_row *shares, size_t count)
{
	struct pod_row whole = shares[count - 1];

	if (count == 1)
		return whole;
	whole.create_ms = pod_row_bills_from(&shares[0]);
	whole.rented_ms = shares[0].rented_ms;
	whole.running_ms = shares[0].running_ms;
	whole.vendor_started_ms = shares[0].vendor_started_ms;
	whole.billed_ms = whole.cost_microusd = 0;
	whole.billed_vendor_ms = whole.cost_vendor_microusd = whole.cost_beside_microusd = 0;
	for (size_t i = 0; i < count; i++) {
		whole.billed_vendor_ms += shares[i].billed_vendor_ms;
		whole.cost_vendor_microusd += shares[i].cost_vendor_microusd;
		whole.cost_beside_microusd += shares[i].cost_beside_microusd;
	}
	/* each share is rounded up by itself, but the vendor rounds once */
	pod_row_bill(&whole, release_end_ms(&whole));
	return whole;
}

/* The part of an amount that falls into [from, until) of `all` ms. The parts sum to the amount. */
static int64_t part_of(int64_t amount, int64_t from, int64_t until, int64_t all)
{
	return (int64_t)((__int128)amount * until / all) - (int64_t)((__int128)amount * from / all);
}

void bill_split(const struct pod_row *whole, struct pod_row *shares, size_t count)
{
	int64_t all = 0, from = 0;

	for (size_t i = 0; i < count; i++)
		all += shares[i].billed_ms;
	all = MAX(all, INT64_C(1)); /* if the pod was never billed, the last run has all */
	for (size_t i = 0; i < count; i++) {
		struct pod_row *s = &shares[i];
		int64_t until = i + 1 < count ? from + s->billed_ms : all;
		s->billed_vendor_ms = part_of(whole->billed_vendor_ms, from, until, all);
		s->cost_vendor_microusd = part_of(whole->cost_vendor_microusd, from, until, all);
		s->cost_beside_microusd = part_of(whole->cost_beside_microusd, from, until, all);
		s->vendor_reported = whole->vendor_reported;
		s->vendor_asked_ms = whole->vendor_asked_ms;
		from = until;
	}
}

char *bill_money(char *to, size_t room, int64_t microusd)
{
	if (microusd <= 0 || microusd >= CENT_MICROUSD)
		return money_show(to, room, microusd);
	snprintf(to, room, "$0.%06d", (int)microusd);
	return to;
}

/* ---- the difference ---- */

/* By how much the vendor's time may differ from ours: an hour's dollars are rounded, and a vendor's
 * first and last moments differ. */
static int64_t tolerance_ms(const struct pod_row *pod, const struct op_bill *told)
{
	int64_t ms = SECOND_MS + pod->billed_ms / 100;

	if (!pod->vendor_reported && pod->price_microusd_h > 0)
		ms += GRAIN_MICROUSD * (int64_t)MAX(told->hour_count, (size_t)1) * HOUR_MS /
		      pod->price_microusd_h;
	return ms;
}

static int64_t lived_ms(const struct pod_row *pod)
{
	return MAX(pod->gone_ms - pod_row_bills_from(pod), pod->billed_ms);
}

/* Whether the vendor bills hours after the end; then says so in out->why. */
static bool billed_after_its_end(const struct pod_row *pod, const struct op_bill *told,
				 struct bill_verdict *out)
{
	for (size_t i = 0; i < told->hour_count; i++) {
		const struct bill_hour *h = &told->hours[i];
		char money[32], hour[40], gone[40];
		if (h->cost_microusd <= 0 || h->start_s * 1000 < pod->gone_ms + GONE_OFF_MS)
			continue;
		snprintf(out->why, sizeof(out->why),
			 "%s is billed for the hour from %s, but the pod was confirmed gone at %s",
			 bill_money(money, sizeof(money), h->cost_microusd),
			 minute_show(hour, sizeof(hour), h->start_s * 1000, pod->vendor_asked_ms),
			 minute_show(gone, sizeof(gone), pod->gone_ms, pod->vendor_asked_ms));
		return true;
	}
	return false;
}

/* Whether the vendor bills more time than the pod lived; then says so in out->why. */
static bool billed_too_long(const struct pod_row *pod, const struct op_bill *told,
			    struct bill_verdict *out)
{
	char billed[32], lived[32], price[32];

	if (pod->billed_vendor_ms <= round_up(lived_ms(pod), MINUTE_MS) + tolerance_ms(pod, told))
		return false;
	snprintf(out->why, sizeof(out->why),
		 "billed for %s at %s per hour, but from create to gone the pod lived %s",
		 duration_show(billed, sizeof(billed), pod->billed_vendor_ms),
		 money_show(price, sizeof(price), pod->price_microusd_h),
		 duration_show(lived, sizeof(lived), lived_ms(pod)));
	return true;
}

/* Whether the vendor's dollars exceed its own time; then says so in out->why. Only if the vendor
 * reports the time: implied seconds match the cost by definition. */
static bool billed_too_much(const struct pod_row *pod, struct bill_verdict *out)
{
	int64_t dollars = pod->cost_vendor_microusd - pod->cost_beside_microusd;
	int64_t fair = money_for(pod->price_microusd_h, pod->billed_vendor_ms);
	char more[32], price[32];

	if (!pod->vendor_reported || !pod->price_microusd_h ||
	    dollars <= fair + fair / 100 + money_for(pod->price_microusd_h, SECOND_MS) +
			       GRAIN_MICROUSD)
		return false;
	snprintf(out->why, sizeof(out->why), "%s more than its seconds cost at %s per hour",
		 bill_money(more, sizeof(more), dollars - fair),
		 money_show(price, sizeof(price), pod->price_microusd_h));
	return true;
}

/* Time of the create and release calls, which our count includes and the vendor's may not. */
static int64_t within_calls_ms(const struct pod_row *pod)
{
	int64_t most = CALL_MOST_MS, none = 0;
	int64_t create = pod->run_ms ? 0 : pod->rented_ms - pod->create_ms,
		release = pod->released_ms - pod->release_ms;

	return MIN(MAX(create, none), most) + MIN(MAX(release, none), most);
}

static void compare_time(const struct pod_row *pod, const struct op_bill *told,
			 struct bill_verdict *out)
{
	int64_t more = pod->billed_vendor_ms - pod->billed_ms, off = tolerance_ms(pod, told);
	char text[32];

	out->state =
		more <= off && -more <= off + within_calls_ms(pod) ? BILL_AGREES : BILL_DIFFERS;
	if (!pod->billed_vendor_ms && !pod->vendor_reported)
		snprintf(out->why, sizeof(out->why),
			 "its price is unknown, so the cost implies no seconds");
	else if (out->state == BILL_AGREES)
		snprintf(out->why, sizeof(out->why), "agrees");
	else
		snprintf(out->why, sizeof(out->why), "the vendor bills %s %s than burst counted",
			 duration_show(text, sizeof(text), more > 0 ? more : -more),
			 more > 0 ? "more" : "less");
}

static void judge_known(const struct pod_row *pod, const struct op_bill *told,
			struct bill_verdict *out)
{
	if (billed_after_its_end(pod, told, out) || billed_too_long(pod, told, out) ||
	    billed_too_much(pod, out)) {
		out->state = BILL_EXCESS;
		return;
	}
	compare_time(pod, told, out);
	if (told->note[0])
		COPY_TEXT(out->why, told->note);
}

/* Whether the vendor's record may still grow: there is none, its last hour is incomplete, or it has
 * less than we counted. */
static bool may_record_grow(const struct pod_row *pod, const struct op_bill *told,
			    const struct bill_verdict *v)
{
	if (v->state == BILL_NOT_YET)
		return pod->vendor_asked_ms - release_end_ms(pod) < DAY_MS;
	if (v->state == BILL_EXCESS || v->final || pod->vendor_reported)
		return false;
	if (pod->vendor_asked_ms < complete_at_ms(pod))
		return told->hour_count > 0;
	return v->state == BILL_DIFFERS && pod->billed_vendor_ms < pod->billed_ms;
}

/* Sets when to ask again, and says so in out->why. */
static void set_next_query(const struct pod_row *pod, struct bill_verdict *out)
{
	int64_t at = complete_at_ms(pod), now = pod->vendor_asked_ms;
	size_t len = strlen(out->why);
	char when[40];

	out->ask_again_ms = round_up(at <= now ? now + HOUR_MS : at, MINUTE_MS);
	snprintf(out->why + len, sizeof(out->why) - len, "; ask again after %s",
		 minute_show(when, sizeof(when), out->ask_again_ms, now));
}

void bill_judge(const struct pod_row *pod, const struct op_bill *told, struct bill_verdict *out)
{
	static const struct op_bill nothing;

	told = told ? told : &nothing;
	*out = (struct bill_verdict){.state = BILL_NOT_YET,
				     .final = bill_is_final(pod),
				     .why = "no record: check the vendor's console"};
	if (bill_is_known(pod))
		judge_known(pod, told, out);
	else if (may_record_grow(pod, told, out))
		COPY_TEXT(out->why, "no record yet");
	if (may_record_grow(pod, told, out))
		set_next_query(pod, out);
}

/* ---- fetches the vendors' bills for pods, judges them, and records them beside our count ---- */

enum { ASK_MS = 120000 };
#define AGE_MS (INT64_C(24) * 3600 * 1000 * RECONCILE_AGE_DAYS)

/* ---- which pods ---- */

static bool is_shared(const struct pod_row *row)
{
	return row->holds > 0 || row->handed_to[0] || row->handed_from[0];
}

static int compare_holds(const void *a, const void *b)
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
	if (kept)
		qsort(pod->shares, kept, sizeof(*pod->shares), compare_holds);
	pod->share_count = kept;
	return 0;
}

/* Whether to fetch the pod's bill. Counts a skipped pod once, however many of its rows are read. */
static bool wants_bill(struct reconciliation *r, const struct asked_pod *pod,
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

/* Adds the row's pod with all its shares, if its bill is to be fetched. -1: the ledger failed. */
static int add_pod(struct reconciliation *r, const struct pod_row *row, struct err *err)
{
	struct asked_pod pod = {0};

	if (!row->id[0] || row->state == POD_ROW_FAILED || is_known_already(r, row))
		return 0;
	if (read_shares(r->accounts.runs->store, row, &pod, err) < 0)
		return -1;
	pod.whole = bill_whole(pod.shares, pod.share_count);
	if (wants_bill(r, &pod, row, clock_wall_ms()))
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
		free(r->pods[i].shares);
	}
	free(r->pods);
	run_free(&r->accounts);
}

bool reconcile_shows(const struct reconciliation *r, const struct pod_row *share)
{
	return !r->run[0] || !strcmp(share->run, r->run);
}

/* ---- fetch ---- */

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
static int record_bill(struct reconciliation *r, struct asked_pod *pod, const struct op_bill *bill,
		       struct err *err)
{
	struct store *store = r->accounts.runs->store;

	if (store_begin(store, err) < 0)
		return -1;
	return store_end(store, write_shares(r->accounts.runs, pod, bill, err), err);
}

static void add_share_note(struct asked_pod *pod)
{
	size_t len = strlen(pod->verdict.why);

	if (pod->share_count > 1)
		snprintf(pod->verdict.why + len, sizeof(pod->verdict.why) - len,
			 "; %zu runs held this pod, so its bill is split by their billed time",
			 pod->share_count);
}

/* Records the provider's answer and judges it. NULL: the provider has no record of the pod. */
static int record_and_judge(struct reconciliation *r, struct asked_pod *pod,
			    const struct op_bill *bill, struct err *err)
{
	if (record_bill(r, pod, bill, err) < 0)
		return -1;
	pod->asked = true;
	bill_judge(&pod->whole, bill, &pod->verdict);
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
	add_share_note(pod);
	return 0;
}

/* Sets *out to the vendor's account, and opens it if needed. -1: it cannot be opened. */
static int open_provider(struct reconciliation *r, const char *name,
			 const struct engine_provider **out, struct err *err)
{
	*out = run_provider(&r->accounts, name);
	if (!*out && run_open_account(&r->accounts, name, err) == 0)
		*out = run_provider(&r->accounts, name);
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
			int status = record_and_judge(r, pod, &result.billing, err);
			op_result_free(&result);
			return status;
		}
		if (why.kind == ERR_NOT_FOUND)
			return record_and_judge(r, pod, NULL, err);
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
