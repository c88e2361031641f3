/* allow.c - computes what the caps over runs leave for one more run. */
#include "allow.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "spend.h"
#include "store/pod_cost.h"

enum { SELF_END_MS = 10 * 1000 }; /* as in core/, for a pod that ends itself */

int64_t allow_spent(const struct pod_row *pod, int64_t begins_ms, int64_t at_ms)
{
	int64_t maybe = pod_row_may_have_cost(pod);
	int64_t cost = maybe ? maybe : pod_row_cost(pod, at_ms);
	int64_t spread = maybe ? pod->released_ms - pod->create_ms : pod_row_spread_ms(pod, at_ms);

	return spend_since(cost, spread, pod->create_ms, begins_ms);
}

int64_t allow_to_come(const struct pod_row *pod, int64_t at_ms)
{
	if (pod_row_over(pod) || (pod->released_ms > 0 && !pod_row_outlives(pod)))
		return 0;
	return money_for(pod->price_microusd_h,
			 MAX(pod->hard_end_s * 1000 + SELF_END_MS - at_ms, 0));
}

int64_t allow_reserved(const struct run_row *run, bool has_client, const struct pod_row *pods,
		       size_t count, int64_t at_ms)
{
	int64_t cost = 0, to_come = 0;

	for (size_t i = 0; i < count; i++) {
		cost += pod_row_cost(&pods[i], at_ms) + pod_row_may_have_cost(&pods[i]);
		to_come += allow_to_come(&pods[i], at_ms);
	}
	return has_client ? MAX(run->max_cost_microusd - cost, to_come) : to_come;
}

int64_t allow_left(const struct allowance *a)
{
	return MAX(a->cap_microusd - a->spent_microusd - a->reserved_microusd, 0);
}

const struct allowance *allow_tightest(const struct allowance *list, size_t count)
{
	const struct allowance *tightest = NULL;

	for (size_t i = 0; i < count; i++)
		if (!tightest || allow_left(&list[i]) < allow_left(tightest))
			tightest = &list[i];
	return tightest;
}

int64_t allow_give(const struct allowance *list, size_t count, int64_t wanted, int64_t least)
{
	const struct allowance *tightest = allow_tightest(list, count);
	int64_t given = tightest ? MIN(wanted, allow_left(tightest)) : wanted;

	return given < wanted && given < least ? 0 : given;
}

/* ---- messages ---- */

static bool is_month(const struct allowance *a)
{
	return !strcmp(a->key, "per_month");
}

void allow_say_used(struct str *to, const struct allowance *a)
{
	char used[32], cap[32];

	str_addf(to, "%s of %s %s%s are spent or reserved",
		 money_show(used, sizeof(used), a->spent_microusd + a->reserved_microusd),
		 money_show(cap, sizeof(cap), a->cap_microusd),
		 is_month(a) ? "this month" : "today", a->project ? " in this project" : "");
}

int allow_refuse(const struct allowance *a, int64_t least, struct err *err)
{
	CLEANUP(str_free) struct str why = STR_INIT;
	char money[32], until[32];
	int64_t left = allow_left(a);

	allow_say_used(&why, a);
	str_addf(&why, " (caps.%s)", a->key);
	if (a->holders)
		str_addf(&why,
			 "; %s of that is reserved by %d run%s in progress (see `burst "
			 "ps`)",
			 money_show(money, sizeof(money), a->reserved_microusd), a->holders,
			 a->holders == 1 ? "" : "s");
	if (left)
		str_addf(&why, "; %s is left", money_show(money, sizeof(money), left));
	if (left && least > left)
		str_addf(&why, ", but %s is spent before a pod is ready",
			 money_show(money, sizeof(money), least));
	str_addf(&why, ": wait until %s%s, or raise caps.%s; nothing was rented",
		 clock_local(until, sizeof(until), "%Y-%m-%d %H:%M", a->ends_ms),
		 a->holders ? " or until those have ended" : "", a->key);
	return err_set(err, ERR_CAP, "%s: %s", a->where, str_text(&why));
}
