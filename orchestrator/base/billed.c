/* billed.c - counts what a pod costs: the time from create to release, and its price. */
#include "billed.h"

#include "clock.h"

int64_t billed_ms(int64_t create_at, int64_t end_at)
{
	if (!create_at || end_at <= create_at)
		return 0;
	return (end_at - create_at + 999) / 1000 * 1000;
}

int64_t billed_vendor_microusd(int64_t price_microusd_h, int64_t vendor_ms, int64_t vendor_microusd)
{
	return vendor_microusd > 0 ? vendor_microusd : money_for(price_microusd_h, vendor_ms);
}

int64_t billed_microusd(int64_t price_microusd_h, int64_t create_at, int64_t end_at)
{
	return money_for(price_microusd_h, billed_ms(create_at, end_at));
}
