/* reconcile.c - `burst ledger --reconcile`: asks the vendors what they billed and records it beside
 * our count. */
#include "reconcile.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/caller.h"
#include "launch.h"
#include "runs/bill.h"
#include "runs/runs.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/show/table.h"

enum { ASK_MS = 120000, AGE_DAYS = 30 };
#define AGE_MS (INT64_C(24) * 3600 * 1000 * AGE_DAYS)

struct asked_pod {
	struct pod_row *shares; /* a row for each run that held it, oldest first */
	size_t share_count;
	struct pod_row whole;        /* what its vendor bills: the pod from first to last */
	struct op_bill told;         /* with the hours */
	bool asked, other_key;       /* other_key: it was not rented with this one */
	struct bill_verdict verdict; /* when asked */
	char why_not[560];           /* why there is no verdict, when not asked */
};

struct reconciliation {
	struct launch l;
	char run[24]; /* only its shares are shown; "": all */
	struct asked_pod *pods;
	size_t count;
	/* left out: no record and too old to ask for by itself, and not given back yet */
	size_t old, alive;
	struct err failure; /* the first of a vendor: what it says of its pods is not known */
	char failed[CORE_PROVIDERS_MAX][PROVIDER_NAME_MAX]; /* not asked any more */
	int failed_count;
};

/* ---- which pods ---- */

static bool is_shared(const struct pod_row *row)
{
	return row->holds > 0 || row->handed_to[0] || row->handed_from[0];
}

static int by_holds(const void *a, const void *b)
{
	return ((const struct pod_row *)a)->holds - ((const struct pod_row *)b)->holds;
}

/* The rows of the pod that this row is of, one for each run that held it. */
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

/* Whether to ask for it; counts it if not, once however many of its rows are read. */
static bool is_wanted(struct reconciliation *r, const struct asked_pod *pod,
		      const struct pod_row *row, int64_t now_ms)
{
	/* the run that held it last has the row that says whether it is gone */
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
	if (read_shares(r->l.ctx->store, row, &pod, err) < 0)
		return -1;
	pod.whole = bill_whole(pod.shares, pod.share_count);
	if (is_wanted(r, &pod, row, clock_wall_ms()))
		r->pods[r->count++] = pod;
	else
		free(pod.shares);
	return 0;
}

static int find_pods(struct reconciliation *r, const char *run, struct err *err)
{
	struct store *store = r->l.ctx->store;
	struct pod_row *rows = NULL;
	struct run_row row;
	size_t count;
	int status = 0;

	if ((run && named_run(store, run, &row, err) < 0) ||
	    store_pods(store, run ? row.id : NULL, false, &rows, &count, err) < 0)
		return -1;
	COPY_TEXT(r->run, run ? row.id : "");
	r->pods = xcalloc(count + 1, sizeof(*r->pods));
	for (size_t i = 0; i < count && status == 0; i++)
		status = add_pod(r, &rows[i], err);
	free(rows);
	return status;
}

static bool is_shown(const struct reconciliation *r, const struct pod_row *share)
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

/* Of how many runs. */
static size_t count_runs(const struct reconciliation *r)
{
	size_t runs = 0;

	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < r->pods[i].share_count; k++)
			runs += is_shown(r, &r->pods[i].shares[k]) &&
				is_first_of_run(r, i, &r->pods[i].shares[k]);
	return runs;
}

static void say_which(const struct reconciliation *r)
{
	size_t runs = count_runs(r);

	if (r->count)
		log_line(LOG_NOTE, "asking for the bills of %zu pod%s of %zu run%s", r->count,
			 r->count == 1 ? "" : "s", runs, runs == 1 ? "" : "s");
	else
		log_line(LOG_NOTE, "no pod awaits its vendor's final record");
	if (r->alive)
		log_line(LOG_NOTE, "%zu pod%s not released yet: see `burst ps`", r->alive,
			 r->alive == 1 ? " is" : "s are");
	if (r->old)
		log_line(LOG_NOTE,
			 "%zu pod%s without a final record ended more than %d days ago: name the "
			 "run to ask for %s",
			 r->old, r->old == 1 ? "" : "s", AGE_DAYS, r->old == 1 ? "it" : "them");
}

/* ---- asking ---- */

static const struct engine_provider *provider_of(struct reconciliation *r, const char *name)
{
	for (int i = 0; i < r->l.run.setup.provider_count; i++)
		if (!strcmp(r->l.run.setup.providers[i].ops->name, name))
			return &r->l.run.setup.providers[i];
	return NULL;
}

static bool has_failed(const struct reconciliation *r, const char *name)
{
	for (int i = 0; i < r->failed_count; i++)
		if (!strcmp(r->failed[i], name))
			return true;
	return false;
}

/* The others of this vendor would fail alike. Who we are counts more than what went wrong on the
 * way. */
static void give_up(struct reconciliation *r, const char *provider, const struct err *why)
{
	if (r->failed_count < CORE_PROVIDERS_MAX)
		copy_text(r->failed[r->failed_count++], PROVIDER_NAME_MAX, provider);
	if (r->failure.kind)
		log_line(LOG_WARN, "%s",
			 err_is_credentials(r->failure.kind) ? why->msg : r->failure.msg);
	if (!r->failure.kind ||
	    (err_is_credentials(why->kind) && !err_is_credentials(r->failure.kind)))
		r->failure = *why;
}

/* As its shares are now in the ledger, with what the vendor said; NULL: that it has no record. */
static int write_shares(struct store *store, struct asked_pod *pod, const struct op_bill *bill,
			struct err *err)
{
	for (size_t i = 0; i < pod->share_count; i++)
		if (store_pod(store, pod->shares[i].attempt, &pod->shares[i], err) < 0)
			return -1;
	pod->whole = bill_whole(pod->shares, pod->share_count);
	pod->whole.vendor_asked_ms = clock_wall_ms();
	if (bill) { /* a record that was there once is not forgotten */
		pod->whole.billed_vendor_ms = bill->billed_ms;
		pod->whole.cost_vendor_microusd = bill->cost_microusd;
		pod->whole.cost_beside_microusd = bill->beside_microusd;
		pod->whole.vendor_reported = bill->reported;
	}
	bill_split(&pod->whole, pod->shares, pod->share_count);
	for (size_t i = 0; i < pod->share_count; i++)
		if (store_put_pod(store, &pod->shares[i], err) < 0)
			return -1;
	return 0;
}

/* Only the client of a gone pod also writes to its row, at its end, with the same figures. */
static int remember(struct reconciliation *r, struct asked_pod *pod, const struct op_bill *bill,
		    struct err *err)
{
	struct store *store = r->l.ctx->store;

	if (store_begin(store, err) < 0)
		return -1;
	if (write_shares(store, pod, bill, err) < 0) {
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
		log_line(LOG_WARN,
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
	if (!*out && run_open_account(&r->l.run, name, err) == 0)
		*out = provider_of(r, name);
	return *out ? 0 : -1;
}

/* What a vendor answers is written down; that one cannot be asked is in r->failure. -1: the ledger
 * failed. */
static int ask(struct reconciliation *r, struct asked_pod *pod, struct err *err)
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
		/* a new key of the same account knows its pods too */
		pod->other_key =
			pod->whole.account[0] &&
			strcmp(pod->whole.account, provider->ops->account(provider->handle)) != 0;
		COPY_TEXT(want.id, pod->whole.id);
		want.bill.price_microusd_h = pod->whole.price_microusd_h;
		want.bill.list_microusd_h = pod->whole.price_list_microusd_h;
		COPY_TEXT(want.bill.gpu, pod->whole.gpu_offered);
		if (caller_ask(provider, OP_BILLING, &want, ASK_MS, &result, &why) == 0) {
			int status = take_bill(r, pod, &result.billing, err);
			op_result_free(&result);
			return status;
		}
		if (why.kind == ERR_NOT_FOUND)
			return take_bill(r, pod, NULL, err);
		err_wrap(&why, "%s: pod %s", pod->whole.provider, pod->whole.id);
	}
	snprintf(pod->why_not, sizeof(pod->why_not), "not known: %s", why.msg);
	give_up(r, pod->whole.provider, &why);
	return 0;
}

/* ---- for people ---- */

struct sums {
	int64_t billed_ms, cost, vendor_ms, vendor_cost, more;
	size_t known, with_dollars;
};

static void add_up(struct sums *s, const struct pod_row *share)
{
	if (!bill_is_known(share))
		return;
	s->known++;
	s->billed_ms += share->billed_ms;
	s->cost += share->cost_microusd;
	s->vendor_ms += share->billed_vendor_ms;
	s->vendor_cost += share->cost_vendor_microusd;
	if (!bill_has_dollars(share))
		return;
	s->with_dollars++;
	s->more += share->cost_vendor_microusd - share->cost_microusd;
}

static void cell_difference(struct table *t, int64_t microusd)
{
	char text[32];

	if (microusd)
		table_cell(t, "%c%s", microusd < 0 ? '-' : '+',
			   bill_money(text, sizeof(text), llabs(microusd)));
	else
		table_cell(t, "0");
}

static void cell_ours(struct table *t, const char *pod, const char *run, int64_t ms, int64_t cost)
{
	char text[32];

	table_cell(t, "%s", pod);
	table_cell(t, "%s", run);
	table_cell(t, "%.0fs", (double)ms / 1000);
	table_cell(t, "%s", money_show(text, sizeof(text), cost));
}

static void cell_its_dollars(struct table *t, bool known, int64_t cost, int64_t more)
{
	char text[32];

	table_cell(t, "%s", known ? money_show(text, sizeof(text), cost) : "-");
	if (known)
		cell_difference(t, more);
	else
		table_cell(t, "-");
}

static void print_pod(struct table *t, const struct pod_row *pod)
{
	cell_ours(t, pod->id, pod->run, pod->billed_ms, pod->cost_microusd);
	if (!bill_is_known(pod)) {
		for (int i = 0; i < 4; i++)
			table_cell(t, "-");
		return;
	}
	table_cell(t, pod->billed_vendor_ms || pod->vendor_reported ? "%.1fs" : "-",
		   (double)pod->billed_vendor_ms / 1000);
	table_cell(t, "%s", pod->vendor_reported ? "reported" : "implied");
	cell_its_dollars(t, bill_has_dollars(pod), pod->cost_vendor_microusd,
			 pod->cost_vendor_microusd - pod->cost_microusd);
}

static void print_why(const struct asked_pod *pod)
{
	CLEANUP(free_text)
	char *line = xasprintf("%s: %s%s", pod->whole.id,
			       pod->verdict.state == BILL_EXCESS ? "TOO MUCH: " : "",
			       pod->asked ? pod->verdict.why : pod->why_not);

	output_safe_line(stdout, line, strlen(line));
}

static void print_table(const struct reconciliation *r)
{
	CLEANUP(table_free) struct table *t = table_new();
	struct sums sums = {0};

	table_column(t, "POD", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "RUN", TABLE_LEFT, 4);
	table_column(t, "OUR TIME", TABLE_RIGHT, 1);
	table_column(t, "OUR COST", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "ITS TIME", TABLE_RIGHT, 2);
	table_column(t, "", TABLE_LEFT, 3);
	table_column(t, "ITS COST", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "MORE", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < r->pods[i].share_count; k++) {
			const struct pod_row *share = &r->pods[i].shares[k];
			if (!is_shown(r, share))
				continue;
			print_pod(t, share);
			add_up(&sums, share);
		}
	if (sums.known > 1) {
		cell_ours(t, "on a bill", "", sums.billed_ms, sums.cost);
		table_cell(t, "%.1fs", (double)sums.vendor_ms / 1000);
		table_cell(t, "%s", "");
		cell_its_dollars(t, sums.with_dollars, sums.vendor_cost, sums.more);
	}
	table_print(t, stdout, terminal_width(stdout));
	if (r->count)
		putchar('\n');
	for (size_t i = 0; i < r->count; i++)
		print_why(&r->pods[i]);
}

/* ---- for scripts ---- */

static json_t *times_json(const struct pod_row *pod)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "create_at",
			 report_time(pod->create_ms), "rented_at", report_time(pod->rented_ms),
			 "vendor_started_at", report_time(pod->vendor_started_ms), "running_at",
			 report_time(pod->running_ms), "release_at", report_time(pod->release_ms),
			 "released_at", report_time(pod->released_ms), "gone_at",
			 report_time(pod->gone_ms));
}

/* Of an hour in which several runs held the pod, each has its part of the vendor's dollars. */
static json_t *hours_json(const struct asked_pod *pod, const struct pod_row *share)
{
	json_t *list = json_array();

	for (size_t i = 0; i < pod->told.hour_count; i++) {
		const struct bill_hour *h = &pod->told.hours[i];
		json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:o, s:o}", "from", report_time(h->start_s * 1000),
				  "to", report_time(h->end_s * 1000), "cost_usd",
				  report_dollars(bill_ours_between(share, h->start_s, h->end_s)),
				  "cost_vendor_usd",
				  report_dollars(
					  bill_hour_of(pod->shares, pod->share_count, share, h))));
	}
	return list;
}

static json_t *share_json(const struct asked_pod *pod, const struct pod_row *row)
{
	bool known = bill_has_dollars(row), timed = row->billed_vendor_ms || row->vendor_reported;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:b, s:o, "
		"s:o, s:o, s:o}",
		"run", report_text(row->run), "id", report_text(row->id), "provider",
		report_text(row->provider), "price_usd_hour", report_dollars(row->price_microusd_h),
		"price_list_usd_hour",
		row->price_list_microusd_h ? report_dollars(row->price_list_microusd_h)
					   : json_null(),
		"billed_seconds", report_seconds(row->billed_ms), "cost_usd",
		report_dollars(row->cost_microusd), "billed_vendor_s",
		timed ? report_seconds(row->billed_vendor_ms) : json_null(), "billed_vendor_is",
		timed ? json_string(row->vendor_reported ? "reported" : "implied") : json_null(),
		"cost_vendor_usd", known ? report_dollars(row->cost_vendor_microusd) : json_null(),
		"cost_beside_usd", known ? report_dollars(row->cost_beside_microusd) : json_null(),
		"difference_usd",
		known ? report_dollars(row->cost_vendor_microusd - row->cost_microusd)
		      : json_null(),
		"state", pod->asked ? bill_state_name(pod->verdict.state) : "not_asked", "why",
		report_text(pod->asked ? pod->verdict.why : pod->why_not), "final",
		pod->asked && pod->verdict.final, "asked_at", report_time(row->vendor_asked_ms),
		"ask_again_at", pod->asked ? report_time(pod->verdict.ask_again_ms) : json_null(),
		"hours", hours_json(pod, row), "times", times_json(row));
}

static void print_json(const struct reconciliation *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < r->pods[i].share_count; k++)
			if (is_shown(r, &r->pods[i].shares[k]))
				json_array_append_new(
					list, share_json(&r->pods[i], &r->pods[i].shares[k]));
	output_json(list);
}

/* ---- the command ---- */

/* Accounts are the user's own: a project's file is not read, and needs not be there. */
static int open_accounts(struct cmd_context *ctx, struct err *err)
{
	struct config_ask ask = {
		.user_only = true, .providers = provider_registry, .jobs = job_registry};

	return config_open(&ctx->config, &ask, err) < 0 ? -1 : config_check(ctx->config, err);
}

static int ask_all(struct reconciliation *r, struct err *err)
{
	for (size_t i = 0; i < r->count; i++)
		if (ask(r, &r->pods[i], err) < 0)
			return err_wrap(err, "pod %s", r->pods[i].whole.id);
	return 0;
}

static int verdict(const struct reconciliation *r, struct err *err)
{
	int excess = 0;

	if (cmd_flush(err) < 0)
		return -1;
	if (r->failure.kind) {
		*err = r->failure;
		return -1;
	}
	for (size_t i = 0; i < r->count; i++)
		excess += r->pods[i].verdict.state == BILL_EXCESS;
	return excess > 0;
}

int reconcile(struct cmd_context *ctx, const char *run, struct err *err)
{
	struct reconciliation r = {0};

	launch_init(&r.l, ctx);
	int status = open_accounts(ctx, err) < 0 || find_pods(&r, run, err) < 0 ? -1 : 0;
	if (status == 0) {
		say_which(&r);
		status = ask_all(&r, err);
		if (ctx->json)
			print_json(&r);
		else
			print_table(&r);
	}
	if (status == 0)
		status = verdict(&r, err);
	for (size_t i = 0; i < r.count; i++) {
		free(r.pods[i].told.hours);
		free(r.pods[i].shares);
	}
	free(r.pods);
	launch_free(&r.l);
	return status;
}
