/* vendor_clocks.c - compares this machine's clock with those of the providers. */
#include "vendor_clocks.h"

#include "base/clock.h"

static const struct vendor_clock *clock_of(const struct vendor_clocks *c,
					   const struct provider_ops *ops)
{
	for (int i = 0; i < c->count; i++)
		if (c->list[i].ops == ops)
			return &c->list[i];
	return NULL;
}

void vendor_clocks_learn(struct vendor_clocks *c, const struct provider_ops *ops,
			 const struct reply *r, int64_t sent_wall_ms, int64_t sent_boot_ms)
{
	int64_t wall = clock_wall_ms(), boot = clock_boot_ms(), off_ms, off_now_ms;

	if (!reply_clock_off(r, sent_wall_ms, wall, &off_ms))
		return;
	/* our clock may have been set since it was sent */
	reply_clock_off(r, wall - (boot - sent_boot_ms), wall, &off_now_ms);
	struct vendor_clock *k = (struct vendor_clock *)clock_of(c, ops);
	if (!k && c->count == VENDOR_CLOCKS_MAX)
		return;
	if (!k)
		k = &c->list[c->count++];
	*k = (struct vendor_clock){ops, off_ms, wall - off_now_ms - boot};
}

int vendor_clocks_check(const struct vendor_clocks *c, const struct provider_ops *ops,
			struct err *err)
{
	const struct vendor_clock *k = clock_of(c, ops);
	char off[48], now[32];

	if (!k || (k->off_ms >= -CALLER_CLOCK_OFF_MS && k->off_ms <= CALLER_CLOCK_OFF_MS))
		return 0;
	return err_set(err, ERR_CONFIG,
		       "this machine's clock is %s %s's, which shows %s: pods would end at the "
		       "wrong time, so none is rented there; set the clock (\"timedatectl "
		       "set-ntp true\" as root, or by hand) and retry",
		       clock_off_show(off, sizeof(off), k->off_ms), ops->name,
		       clock_rfc3339(now, sizeof(now), vendor_clocks_now_ms(c, ops)));
}

int64_t vendor_clocks_now_ms(const struct vendor_clocks *c, const struct provider_ops *ops)
{
	const struct vendor_clock *k = clock_of(c, ops);

	return k ? clock_boot_ms() + k->ahead_of_boot_ms : clock_wall_ms();
}

bool vendor_clocks_known(const struct vendor_clocks *c, const struct provider_ops *ops)
{
	return clock_of(c, ops);
}

int64_t vendor_clocks_ahead_ms(const struct vendor_clocks *c, const struct provider_ops *ops)
{
	const struct vendor_clock *k = clock_of(c, ops);

	return k ? MAX(k->off_ms, 0) : 0;
}
