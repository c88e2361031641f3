/* billing.c - what a sandbox used: its time, by its container's own clock; its amounts, where Modal
 * counts them for one sandbox; and its app's hours, which include all its sandboxes. */
#include "impl.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/section.h"

enum { ASKED_TASK = 1, ASKED_INFO, ASKED_USAGE, ASKED_RATES, ASKED_REPORT };
enum { HOUR_S = 3600, HOURS_MOST = 48 };
#define HOUR_NS 3600e9
/* Sanity limit: the largest sandbox uses less than half of this in its 24 hours. */
#define USE_NS_MOST 1e18

static bool is_time(double at)
{
	return at > 0 && at < 1e11;
}

/* Modal may lack the call, deny it to this token, or have no figure for this sandbox. */
static bool is_withheld(const struct reply *r)
{
	return !r->failed && (r->grpc_status == 5 || r->grpc_status == 7 || r->grpc_status == 12);
}

/* ---- how long ---- */

static enum op_next request_info(struct turn *t)
{
	Modal__Client__TaskGetInfoRequest request = MODAL__CLIENT__TASK_GET_INFO_REQUEST__INIT;
	MODAL_MESSAGE(Modal__Client__SandboxGetTaskIdResponse, answer, t,
		      "asking what a sandbox used",
		      modal__client__sandbox_get_task_id_response__descriptor);

	if (!answer)
		return OP_FAILED;
	if (!modal_text(answer->task_id)[0]) {
		t->op->got.billing.reported = answer->task_result && answer->task_result->status;
		if (t->op->got.billing.reported)
			return modal_done(
				t); /* it ended before it had a machine, so it used nothing */
		err_set(t->err, ERR_NOT_FOUND, "sandbox %s has no machine yet", t->op->want->id);
		return OP_FAILED;
	}
	request.task_id = answer->task_id;
	t->op->step = ASKED_INFO;
	return modal_call(t, CALL_POLL, "TaskGetInfo", &request.base, 0);
}

static int take_info(struct turn *t)
{
	struct use *use = &t->op->use;
	MODAL_MESSAGE(Modal__Client__TaskGetInfoResponse, answer, t, "asking what a sandbox used",
		      modal__client__task_get_info_response__descriptor);
	const Modal__Client__TaskInfo *task = answer ? answer->info : NULL;

	if (!answer)
		return -1;
	bool over = task && ((task->result && task->result->status) || is_time(task->finished_at));
	if (over && !is_time(task->started_at)) {
		t->op->got.billing.reported = true; /* its container never started */
		return 0;
	}
	if (!over || !is_time(task->finished_at) || task->finished_at < task->started_at)
		return err_set(t->err, ERR_NOT_FOUND, "Modal has no end of sandbox %s's time yet",
			       t->op->want->id);
	use->started_s = task->started_at;
	use->ended_s = task->finished_at;
	use->gpus = task->gpu_config ? task->gpu_config->count : 0;
	if (modal_id_is_sound(answer->app_id, "ap-"))
		COPY_TEXT(use->app_id, answer->app_id);
	t->op->got.billing.billed_ms = (int64_t)((task->finished_at - task->started_at) * 1000);
	t->op->got.billing.reported = true;
	return 0;
}

/* ---- how much ---- */

static enum op_next request_usage(struct turn *t)
{
	Modal__Client__SandboxGetResourceUsageRequest request =
		MODAL__CLIENT__SANDBOX_GET_RESOURCE_USAGE_REQUEST__INIT;

	request.sandbox_id = (char *)t->op->want->id;
	t->op->step = ASKED_USAGE;
	return modal_call(t, CALL_POLL, "SandboxGetResourceUsage", &request.base, 0);
}

static int take_usage(struct turn *t)
{
	struct use *use = &t->op->use;
	MODAL_MESSAGE(Modal__Client__SandboxGetResourceUsageResponse, answer, t,
		      "asking what a sandbox used",
		      modal__client__sandbox_get_resource_usage_response__descriptor);

	if (!answer) {
		bool withheld = is_withheld(t->reply);
		if (withheld)
			err_clear(t->err);
		return withheld ? 0 : -1;
	}
	use->core_ns = (double)answer->cpu_core_nanosecs;
	use->gib_ns = (double)answer->mem_gib_nanosecs;
	use->gpu_ns = (double)answer->gpu_nanosecs;
	COPY_TEXT(use->gpu, modal_text(answer->gpu_type));
	use->counted = use->core_ns + use->gib_ns + use->gpu_ns > 0 &&
		       use->core_ns + use->gib_ns + use->gpu_ns < USE_NS_MOST;
	return 0;
}

static enum op_next request_rates(struct turn *t)
{
	Modal__Client__WorkspaceBillingRatesRequest request =
		MODAL__CLIENT__WORKSPACE_BILLING_RATES_REQUEST__INIT;

	t->op->step = ASKED_RATES;
	return modal_call(t, CALL_POLL, "WorkspaceBillingRates", &request.base, 0);
}

/* A better GPU than requested costs what the requested one costs. */
static const char *priced_gpu(const struct turn *t)
{
	const char *offered = t->op->want->bill.gpu;
	const struct gpu *gpu = gpu_find(*offered ? offered : t->op->use.gpu);

	return gpu && gpu->modal ? gpu->modal : t->op->use.gpu;
}

static int64_t dollars(int64_t rate, double ns)
{
	return (int64_t)((double)rate * ns / HOUR_NS + 0.5);
}

/* Compares the bill with the counted use. Modal bills cores and memory by use if that exceeds the
 * request, and rates may change, so a difference there is no error. A GPU counted for longer than
 * its container ran is one. */
static void set_beside(struct turn *t, int64_t gpu_rate)
{
	struct op_bill *bill = &t->op->got.billing;
	const struct use *use = &t->op->use;
	int64_t price = t->op->want->bill.price_microusd_h,
		fair = money_for(price, bill->billed_ms);
	double gpu_fair_ns = (double)bill->billed_ms * 1e6 * use->gpus;
	int64_t unfair = use->gpus && use->gpu_ns > gpu_fair_ns
				 ? dollars(gpu_rate, use->gpu_ns - gpu_fair_ns)
				 : 0;
	int64_t beside = bill->cost_microusd - fair - unfair;

	if (price <= 0 || beside <= fair / 100 + money_for(price, 1000))
		return;
	bill->beside_microusd = beside;
	COPY_TEXT(bill->beside_for,
		  "cores and memory used above what was asked for, or rates that have changed");
}

static int take_rates(struct turn *t)
{
	struct op_bill *bill = &t->op->got.billing;
	const struct section *conf = t->op->provider->conf;
	const struct use *use = &t->op->use;
	MODAL_MESSAGE(Modal__Client__WorkspaceBillingRatesResponse, answer, t,
		      "asking what it costs",
		      modal__client__workspace_billing_rates_response__descriptor);

	if (!answer && !is_withheld(t->reply))
		return -1;
	err_clear(t->err);
	struct modal_rates rates = modal_read_rates(conf, answer, false);
	int64_t gpu = use->gpu_ns > 0 ? modal_gpu_rate(&rates, priced_gpu(t)) : 0;
	if (use->gpu_ns > 0 && !gpu) {
		snprintf(bill->note, sizeof(bill->note),
			 "the price of its GPU per second is unknown: set "
			 "providers.modal.gpu_prices");
		return 0;
	}
	if (use->gpu_ns > 0 && modal_is_list_rate(&rates, priced_gpu(t)))
		snprintf(bill->note, sizeof(bill->note),
			 "its GPU at Modal's list price of " MODAL_LIST_DAY);
	bill->cost_microusd = dollars(rates.core, use->core_ns) + dollars(rates.gib, use->gib_ns) +
			      dollars(gpu, use->gpu_ns);
	set_beside(t, gpu);
	return 0;
}

/* ---- the hours of its app ---- */

static int64_t first_hour(const struct use *use)
{
	return (int64_t)use->started_s / HOUR_S * HOUR_S;
}

static int64_t end_of_hours(const struct use *use)
{
	int64_t end = ((int64_t)use->ended_s + HOUR_S) / HOUR_S * HOUR_S;

	return MIN(end, first_hour(use) + HOURS_MOST * HOUR_S);
}

static void note(struct turn *t, const char *fmt, ...) PRINTF(2, 3);
static void note(struct turn *t, const char *fmt, ...)
{
	char *to = t->op->got.billing.note, text[200];
	size_t len = strlen(to);
	va_list ap;

	va_start(ap, fmt);
	vformat_text(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(to + len, sizeof(t->op->got.billing.note) - len, "%s%s", len ? "; " : "", text);
}

/* The report has whole hours only. */
static enum op_next request_report(struct turn *t)
{
	const struct use *use = &t->op->use;
	char *apps[] = {t->op->use.app_id};
	Modal__Client__Timestamp start = MODAL__CLIENT__TIMESTAMP__INIT,
				 end = MODAL__CLIENT__TIMESTAMP__INIT;
	Modal__Client__WorkspaceBillingReportRequest request =
		MODAL__CLIENT__WORKSPACE_BILLING_REPORT_REQUEST__INIT;
	char at[32];

	if (!use->app_id[0])
		return modal_done(t);
	if (clock_wall_ms() / 1000 < first_hour(use) + HOUR_S) {
		clock_rfc3339(at, sizeof(at), (first_hour(use) + HOUR_S) * 1000);
		note(t, "the hours of its app can be asked for from %.5s UTC on", at + 11);
		return modal_done(t);
	}
	start.has_seconds = end.has_seconds = true;
	start.seconds = first_hour(use);
	end.seconds = end_of_hours(use);
	request.start_timestamp = &start;
	request.end_timestamp = &end;
	request.resolution = (char *)"h";
	request.n_app_ids = 1;
	request.app_ids = apps;
	t->op->step = ASKED_REPORT;
	return modal_call_stream(t, "WorkspaceBillingReport", &request.base, 0);
}

struct hours {
	int64_t microusd;
	int count;
	int64_t first_s, last_s;
};

static void add_hour(struct hours *h, const struct use *use,
		     const Modal__Client__WorkspaceBillingReportItem *item)
{
	int64_t at = item->interval ? item->interval->seconds : 0, cost;

	if (strcmp(modal_text(item->object_id), use->app_id) || at < first_hour(use) ||
	    at >= end_of_hours(use) || money_parse(modal_text(item->cost), &cost, NULL) < 0)
		return;
	h->microusd += cost;
	h->count++;
	h->first_s = h->first_s ? MIN(h->first_s, at) : at;
	h->last_s = MAX(h->last_s, at);
}

/* Other pods share the app, so its dollars are an upper bound of this pod's bill. */
static enum op_next take_report(struct turn *t)
{
	const struct use *use = &t->op->use;
	const char *app = section_text(t->op->provider->conf, "app");
	struct hours h = {0};
	const void *message;
	size_t at = 0, len;
	char from[32], until[32], money[32];
	bool withheld = is_withheld(t->reply);

	if (modal_answered(t, "asking for the hours of the app") < 0) {
		/* the sandbox's own record suffices */
		err_clear(t->err);
		note(t, withheld ? "Modal's hourly report is not open to this token"
				 : "Modal's hourly report is not available now");
		return modal_done(t);
	}
	while (modal_next_message(&t->reply->body, &at, &message, &len)) {
		Modal__Client__WorkspaceBillingReportItem *item = modal_unpack(
			&modal__client__workspace_billing_report_item__descriptor, len, message);
		if (!item)
			continue;
		add_hour(&h, use, item);
		modal__client__workspace_billing_report_item__free_unpacked(item, NULL);
	}
	if (!h.count) {
		note(t, "Modal's report has no such hour of its app yet");
		return modal_done(t);
	}
	clock_rfc3339(from, sizeof(from), h.first_s * 1000);
	clock_rfc3339(until, sizeof(until), (h.last_s + HOUR_S) * 1000);
	note(t,
	     "Modal's report has %s for its app \"%s\" from %.5s to %.5s UTC, with all else that "
	     "ran in it",
	     money_show(money, sizeof(money), h.microusd), app, from + 11, until + 11);
	return modal_done(t);
}

enum op_next modal_billing_next(struct turn *t)
{
	switch (t->op->step) {
	case 0: t->op->step = ASKED_TASK; return modal_call_task(t);
	case ASKED_TASK: return request_info(t);
	case ASKED_INFO:
		if (take_info(t) < 0)
			return OP_FAILED;
		return t->op->got.billing.billed_ms ? request_usage(t) : modal_done(t);
	case ASKED_USAGE:
		if (take_usage(t) < 0)
			return OP_FAILED;
		return t->op->use.counted ? request_rates(t) : request_report(t);
	case ASKED_RATES: return take_rates(t) < 0 ? OP_FAILED : request_report(t);
	case ASKED_REPORT: return take_report(t);
	}
	err_set(t->err, ERR_BUG, "billing: no such step");
	return OP_FAILED;
}
