/* pod_cost.c - reads from, and writes into, a pod's row what the pod cost. */
#include "pod_cost.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

static bool never_existed(const struct pod_row *row)
{
	return row->state == POD_ROW_FAILED || row->create_ms <= 0;
}

bool pod_row_outlives(const struct pod_row *row)
{
	return !pod_row_over(row) && row->outlived_ms > 0 && row->outlived_ms >= row->released_ms;
}

/* Whether the row has the final count: the pod is released or gone. */
static bool is_recorded(const struct pod_row *row)
{
	return (row->released_ms > 0 && !pod_row_outlives(row)) || row->gone_ms > 0;
}

int64_t pod_row_bills_from(const struct pod_row *row)
{
	return row->run_ms ? row->start_ms : row->create_ms;
}

bool pod_row_is_unstarted(const struct pod_row *row)
{
	return row->run_ms && !row->start_ms;
}

int64_t pod_row_to_come_ms(const struct pod_row *row, int64_t at_ms)
{
	int64_t left_ms = row->hard_end_s * 1000 - at_ms;

	return pod_row_is_unstarted(row) ? MIN(left_ms, row->run_ms) : left_ms;
}

int64_t pod_row_billed_ms(const struct pod_row *row, int64_t now_ms)
{
	if (never_existed(row))
		return 0;
	if (is_recorded(row))
		return row->billed_ms;
	return MAX(row->billed_ms, billed_ms(pod_row_bills_from(row), now_ms));
}

int64_t pod_row_counted(const struct pod_row *row, int64_t now_ms)
{
	if (never_existed(row))
		return 0;
	if (is_recorded(row))
		return row->cost_microusd;
	return MAX(row->cost_microusd,
		   money_for(row->price_microusd_h, pod_row_billed_ms(row, now_ms)));
}

int64_t pod_row_vendor(const struct pod_row *row)
{
	if (never_existed(row))
		return 0;
	return billed_vendor_microusd(row->price_microusd_h, row->billed_vendor_ms,
				      row->cost_vendor_microusd);
}

int64_t pod_row_cost(const struct pod_row *row, int64_t now_ms)
{
	return MAX(pod_row_counted(row, now_ms), pod_row_vendor(row));
}

int64_t pod_row_unpriced_ms(const struct pod_row *row, int64_t now_ms)
{
	return row->unpriced && !row->cost_vendor_microusd ? pod_row_billed_ms(row, now_ms) : 0;
}

int64_t pod_row_spread_ms(const struct pod_row *row, int64_t now_ms)
{
	return never_existed(row) ? 0 : MAX(pod_row_billed_ms(row, now_ms), row->billed_vendor_ms);
}

int64_t pod_row_may_have_cost(const struct pod_row *row)
{
	bool maybe = row->state == POD_ROW_FAILED ||
		     (row->state == POD_ROW_GONE && pod_row_is_unstarted(row));

	if (!maybe || row->create_ms <= 0 || row->released_ms <= 0)
		return 0;
	if (row->run_ms)
		return money_for(row->price_microusd_h,
				 MIN(billed_ms(row->queued_ms, row->released_ms), row->run_ms));
	return billed_microusd(row->price_microusd_h, row->create_ms, row->released_ms);
}

void pod_row_bill(struct pod_row *row, int64_t end_ms)
{
	row->billed_ms = MAX(row->billed_ms, billed_ms(pod_row_bills_from(row), end_ms));
	row->cost_microusd =
		MAX(row->cost_microusd, money_for(row->price_microusd_h, row->billed_ms));
}
