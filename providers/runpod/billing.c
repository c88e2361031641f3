/* billing.c - reads what RunPod has billed for a pod, hour by hour. */
#include "impl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"

enum { CLOCKS_APART_S = 120 };

/* Hours are by the vendor's clock, which may make the pod a little older. */
static enum op_next request_bill(struct turn *t)
{
	const struct op_want *want = t->op->want;
	char since[32] = "";

	if (want->since_s > CLOCKS_APART_S)
		clock_rfc3339(since, sizeof(since), (want->since_s - CLOCKS_APART_S) * 1000);
	return api_request(t, CALL_POLL, "GET", NULL, "/billing/pods?podId=%s&bucketSize=hour%s%s",
			   want->id, since[0] ? "&startTime=" : "", since);
}

static int by_start(const void *a, const void *b)
{
	const struct bill_hour *x = a, *y = b;

	return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

static void take_hour(struct op_bill *bill, const json_t *record, size_t *cap)
{
	GROW(bill->hours, bill->hour_count, *cap);
	struct bill_hour *hour = &bill->hours[bill->hour_count++];
	hour->start_s = api_time(jsonx_text(record, "startTime", ""));
	hour->end_s = api_time(jsonx_text(record, "endTime", ""));
	hour->cost_microusd = api_microusd(record, "totalAmount");
	bill->cost_microusd += hour->cost_microusd;
}

/* RunPod reports dollars only, so the seconds follow from the pod's price, which includes its disk.
 */
static void imply_seconds(struct op_bill *bill, const struct op_want *want)
{
	if (want->bill.price_microusd_h <= 0)
		return;
	double ms = (double)bill->cost_microusd * 3600000.0 / (double)want->bill.price_microusd_h;
	bill->billed_ms = (int64_t)MIN(ms, 1e15);
}

static int read_bill(struct turn *t, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "records"), *item;
	struct op_bill *bill = &t->op->got.billing;
	size_t i, cap = 0;

	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "billing: the answer has no records");
	json_array_foreach (list, i, item) {
		if (strcmp(jsonx_text(item, "podId", ""), t->op->want->id))
			continue;
		take_hour(bill, item, &cap);
	}
	if (!bill->hour_count)
		return err_set(t->err, ERR_NOT_FOUND, "RunPod has no record of pod %s's costs yet",
			       t->op->want->id);
	qsort(bill->hours, bill->hour_count, sizeof(*bill->hours), by_start);
	imply_seconds(bill, t->op->want);
	return 0;
}

enum op_next billing_next(struct turn *t)
{
	if (!t->reply)
		return request_bill(t);
	CLEANUP(json_decref) json_t *answer = api_object(t, "billing");
	return answer && read_bill(t, answer) == 0 ? api_done(t) : OP_FAILED;
}
