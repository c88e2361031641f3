/* billed.h - what a pod costs by burst's own count and by its vendor's. The only place that counts
 * it: the core, the ledger's rows and every report go by these. Pure. */
#ifndef BURST_BILLED_H
#define BURST_BILLED_H

#include <stdint.h>

/* Billed time in ms: from the create call to the accepted release (of a pod that is not released:
 * to now), rounded up to the second. Both times are ms of one clock and may be negative;
 * create_at 0: the create call was not made, so nothing is billed. */
int64_t billed_ms(int64_t create_at, int64_t end_at);
/* The price of that time, in micro-dollars, rounded up. */
int64_t billed_microusd(int64_t price_microusd_h, int64_t create_at, int64_t end_at);
/* The vendor's figure in micro-dollars: its dollars, else the price of its time. 0: it gave none.
 */
int64_t billed_vendor_microusd(int64_t price_microusd_h, int64_t vendor_ms,
			       int64_t vendor_microusd);

#endif
