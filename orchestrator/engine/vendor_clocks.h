/* vendor_clocks.h - compares this machine's clock with those of the providers. */
#ifndef BURST_ENGINE_VENDOR_CLOCKS_H
#define BURST_ENGINE_VENDOR_CLOCKS_H

#include "provider.h"

enum { CALLER_CLOCK_OFF_MS = 120 * 1000, VENDOR_CLOCKS_MAX = 16 };

struct vendor_clock {
	const struct provider_ops *ops;
	int64_t off_ms;           /* ours is ahead of it by at least this */
	int64_t ahead_of_boot_ms; /* it is ahead of our boot clock, which is never set, by this */
};

struct vendor_clocks {
	struct vendor_clock list[VENDOR_CLOCKS_MAX];
	int count;
};

/* A reply may have a date. sent_*_ms: when its call was sent, by the two clocks of this machine. */
void vendor_clocks_learn(struct vendor_clocks *c, const struct provider_ops *ops,
			 const struct reply *r, int64_t sent_wall_ms, int64_t sent_boot_ms);

/* See caller_check_clock(), caller_time_there(), caller_knows_time_there(),
 * caller_clock_ahead_ms(). */
int vendor_clocks_check(const struct vendor_clocks *c, const struct provider_ops *ops,
			struct err *err);
int64_t vendor_clocks_now_ms(const struct vendor_clocks *c, const struct provider_ops *ops);
bool vendor_clocks_known(const struct vendor_clocks *c, const struct provider_ops *ops);
int64_t vendor_clocks_ahead_ms(const struct vendor_clocks *c, const struct provider_ops *ops);

#endif
