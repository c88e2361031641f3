/* offers.c - checks what this job would rent, and whether its caps can pay for it. */
#include "checks.h"

#include "base/clock.h"
#include "base/gpus.h"
#include "cmd/launch/wanted.h"
#include "engine/caller.h"

/* The mark of a finding that stops rents here: with other providers, a run still works. */
static const char *stops(const struct launch *l)
{
	return l->run.setup.provider_count > 1 ? "warn" : "bad";
}

bool check_balance(struct launch *l, const struct engine_provider *p, struct findings *f)
{
	int64_t cap =
		l->run.setup.job
			? section_int(section_group(config_top(l->ctx->config), "caps"), "max_cost")
			: 0;
	struct op_result result = {0};
	struct err err = {0};
	char text[32], most[32];
	bool enough = true;

	if (caller_perform(p, OP_BALANCE, NULL, CHECK_ASK_MS, &result, &err) == 0 &&
	    result.balance_microusd >= 0) {
		money_show(text, sizeof(text), result.balance_microusd);
		enough = result.balance_microusd >= cap;
		if (!enough)
			findings_say(
				f, stops(l),
				"%s: balance %s cannot pay a run's cap of %s: add credit, or lower "
				"caps.max_cost",
				p->ops->name, text, money_show(most, sizeof(most), cap));
		else
			findings_say(f, "ok", "%s: balance %s", p->ops->name, text);
	}
	op_result_free(&result);
	return enough;
}

/* Prints the offer that a run would take first. */
static void say_best(struct findings *f, const char *provider, const struct offer *offers,
		     size_t count)
{
	const struct offer *best = offers;
	char price[32];

	for (size_t i = 1; i < count; i++)
		if (offers[i].wish < best->wish ||
		    (offers[i].wish == best->wish &&
		     offers[i].price_microusd_h < best->price_microusd_h))
			best = &offers[i];
	findings_say(f, "ok", "%s: %zu offer%s for this job, first %s at %s an hour", provider,
		     count, count == 1 ? "" : "s", gpu_called(best->gpu),
		     money_show(price, sizeof(price), best->price_microusd_h));
}

bool check_offers(struct launch *l, int provider, struct findings *f)
{
	const char *name = l->run.setup.providers[provider].ops->name;
	CLEANUP(wanted_free) struct wanted wanted = {0};
	struct op_result result = {0};
	struct err err = {0};
	char price[32];
	size_t len;

	if (!l->run.setup.job)
		return true;
	if (launch_fetch_offers(l, provider, true, LAUNCH_ASK_MS, &result, &err) < 0) {
		findings_say(f, err.kind == ERR_CONFIG ? stops(l) : "warn", "%s: %s", name,
			     err.msg);
		return err.kind != ERR_CONFIG;
	}
	for (const char *at = str_text(&result.text), *line; (line = str_next_line(&at, &len));)
		findings_say(f, "warn", "%s: %.*s", name, (int)len, line);
	wanted_add(l, &wanted, result.offers, result.offer_count);
	wanted_end(&wanted);
	bool too_dear = !wanted.count && wanted.left_out[NOT_AT_PRICE];
	if (wanted.count)
		say_best(f, name, wanted.list, wanted.count);
	else if (too_dear)
		findings_say(f, stops(l),
			     "%s: the cheapest offer for this job is %s an hour, above "
			     "caps.max_price_per_hour",
			     name,
			     money_show(price, sizeof(price), wanted.cheapest.price_microusd_h));
	else
		findings_say(f, "warn", "%s: no offers now", name);
	op_result_free(&result);
	return !too_dear;
}
