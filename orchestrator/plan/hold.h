/* hold.h - decides for how long a pod without work is held for the next run. Pure. */
#ifndef BURST_PLAN_HOLD_H
#define BURST_PLAN_HOLD_H

#include <stddef.h>
#include <stdint.h>

enum {
	HOLD_GAPS_LEAST = 8, /* fewer gaps say nothing */
	HOLD_GAPS_MOST = 20  /* older ones are forgotten */
};

/* A hold is billed until the next run comes, or to its end; then the next run pays for a cold start
 * as well. gaps_ms: the newest times from when a pod had no work until the next run began, in any
 * order. Returns the hold of at most cold_ms that would have cost the least over these gaps; 0:
 * release the pod at once. With too few gaps it is cold_ms (ski rental): hold and cold start
 * together then never exceed twice the better choice. */
int64_t hold_ms(const int64_t *gaps_ms, size_t count, int64_t cold_ms);

#endif
