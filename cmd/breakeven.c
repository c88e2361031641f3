/* breakeven.c - `burst breakeven`: compares the cost of a million characters on a rented GPU with
 * APIs, own machines and spot pods */
#include <stdlib.h>

#include "cmd.h"
#include "cmd/show/sizing.h"
#include "plan/cost.h"
#include "runs/estimate.h"

/* `show` points into the other fields: do not copy the struct. */
struct breakeven_flags {
	struct breakeven show;
	struct breakeven_api api;
	struct breakeven_own own;
	struct breakeven_spot spot;
	char rate_from[64], work_from[64], every_from[EXTRAS_FROM];
};

static int read_number(const struct cmd_context *ctx, const char *flag, double *out,
		       struct err *err)
{
	const char *text = opt_text(ctx, flag);
	char *end;

	if (!text)
		return 0;
	*out = strtod(text, &end);
	if (*end || end == text || !(*out > 0 && *out < 1e12))
		return err_set(err, ERR_USAGE, "--%s: \"%.40s\" must be a number above 0", flag,
			       text);
	return 0;
}

/* A share of 1, or percent. */
static int read_share(const struct cmd_context *ctx, const char *flag, double *out, struct err *err)
{
	const char *text = opt_text(ctx, flag);

	if (text && !breakeven_read_share(text, out))
		return err_set(
			err, ERR_USAGE,
			"--%s: \"%.40s\" must be above 0 and at most 100%%, like 40, 40%% or "
			"0.4",
			flag, text);
	return 0;
}

static int read_seconds(const struct cmd_context *ctx, const char *flag, double *out,
			struct err *err)
{
	int64_t ms = 0;

	if (!opt_has(ctx, flag))
		return 0;
	if (opt_duration(ctx, flag, &ms, err) < 0)
		return -1;
	*out = (double)ms / 1000;
	return 0;
}

/* "openai-tts-1", or "openai-tts-1=12" and any other name with the user's own price. */
static int read_api(const char *text, struct breakeven_api *out, struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	const struct breakeven_api *known = breakeven_find_api(text), *apis;
	size_t count;

	if (strchr(text, '=')) {
		if (breakeven_read_api(text, out))
			return 0;
		return err_set(err, ERR_USAGE,
			       "--api: \"%.60s\" must be a name and dollars per million "
			       "characters, like openai-tts-1=15",
			       text);
	}
	if (known) {
		*out = *known;
		return 0;
	}
	apis = breakeven_apis(&count);
	for (size_t i = 0; i < count; i++)
		str_addf(&all, "%s%s", i ? ", " : "", apis[i].name);
	return err_set(err, ERR_USAGE,
		       "--api: no known price for \"%.40s\" (write %.40s=15 to give one); "
		       "known: %s",
		       text, text, str_text(&all));
}

static void spot_from_ledger(struct cmd_context *ctx, struct breakeven_flags *a)
{
	struct measured_work work;

	if (!measured_work(ctx->store, &work))
		return;
	a->spot.work_s = work.work_s;
	a->spot.cold_s = work.cold_s;
	snprintf(a->work_from, sizeof(a->work_from), "run %s", work.run);
	if (work.pod_count) {
		struct extra e =
			extras_interrupted(work.pods[0].provider, true, work.pods, work.pod_count);
		a->spot.every_s = e.value;
		COPY_TEXT(a->every_from, e.from);
	}
	free(work.pods);
}

static int read_spot(struct cmd_context *ctx, struct breakeven_flags *a, struct err *err)
{
	struct breakeven_spot *s = &a->spot;

	spot_from_ledger(ctx, a);
	if (opt_has(ctx, "work") || opt_has(ctx, "interrupted")) {
		COPY_TEXT(a->work_from, "as given");
		a->every_from[0] = '\0';
	}
	if (read_seconds(ctx, "work", &s->work_s, err) < 0 ||
	    read_seconds(ctx, "cold", &s->cold_s, err) < 0 ||
	    read_seconds(ctx, "interrupted", &s->every_s, err) < 0 ||
	    read_seconds(ctx, "checkpoint", &s->checkpoint_s, err) < 0)
		return -1;
	if (s->every_s <= 0)
		s->every_s = prior_of_provider("")->interrupted_every_s;
	if (s->work_s <= 0)
		return err_set(err, ERR_USAGE,
			       "--spot: no run in this ledger has computed yet: give --work "
			       "TIME (the compute time of a run)");
	a->show.spot = s;
	return 0;
}

/* Reads from the ledger what no flag sets. */
static int read_rate(struct cmd_context *ctx, struct breakeven_flags *a, struct err *err)
{
	struct breakeven_rate *rate = &a->show.rate;
	double chars = 0, price = 0, duty = 0;
	char run[24];

	if (read_number(ctx, "price", &price, err) < 0 ||
	    read_number(ctx, "chars-per-hour", &chars, err) < 0 ||
	    read_share(ctx, "duty", &duty, err) < 0)
		return -1;
	*rate = (struct breakeven_rate){.duty = 1};
	COPY_TEXT(a->rate_from, "as given");
	if (!chars || !price) {
		if (measured_rate(ctx->store, rate, run))
			snprintf(a->rate_from, sizeof(a->rate_from), "run %s in this ledger", run);
		else if (!chars)
			return err_set(err, ERR_USAGE,
				       "no run in this ledger has rendered speech at a price yet: "
				       "give --price USD (per hour) and --chars-per-hour N");
	}
	rate->chars_per_hour = chars > 0 ? chars : rate->chars_per_hour;
	rate->price_h = price > 0 ? price : rate->price_h;
	if (duty > 0)
		rate->duty = duty;
	if (rate->price_h <= 0)
		return err_set(err, ERR_USAGE,
			       "the pods in this ledger cost nothing: give --price USD (per "
			       "hour)");
	return 0;
}

static int read_owning(struct cmd_context *ctx, struct breakeven_flags *a, struct err *err)
{
	const char *own = opt_text(ctx, "own");

	a->own.years = 3;
	if (read_number(ctx, "years", &a->own.years, err) < 0)
		return -1;
	if (own && !breakeven_read_own(own, &a->own.capex_usd, &a->own.opex_usd_year))
		return err_set(
			err, ERR_USAGE,
			"--own: \"%.40s\" must be the purchase price and the running cost in "
			"dollars, like 18750+2000/y",
			own);
	if (read_share(ctx, "reserved", &a->show.saving, err) < 0)
		return -1;
	if (a->show.saving >= 1)
		return err_set(err, ERR_USAGE,
			       "--reserved: nothing is rented at a saving of 100%%");
	a->show.own = own ? &a->own : NULL;
	return 0;
}

/* Reads the flags, and the rest from the ledger's newest runs. */
static int read_flags(struct cmd_context *ctx, struct breakeven_flags *out, struct err *err)
{
	const char *api = opt_text(ctx, "api");

	*out = (struct breakeven_flags){0};
	if ((api && read_api(api, &out->api, err) < 0) ||
	    (opt_has(ctx, "spot") && read_spot(ctx, out, err) < 0) ||
	    read_owning(ctx, out, err) < 0 || read_rate(ctx, out, err) < 0)
		return -1;
	out->show.api = api ? &out->api : NULL;
	out->show.rate_from = out->rate_from;
	out->show.work_from = out->work_from;
	out->show.every_from = out->every_from;
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct breakeven_flags flags;

	if (read_flags(ctx, &flags, err) < 0)
		return -1;
	breakeven_print(&flags.show);
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "api", "NAME[=USD]",
	 "compare only with this API, at your own price per million characters", NULL, false},
	{0, "price", "USD", "price of a pod per hour (default: the newest run)", NULL, false},
	{0, "chars-per-hour", "N", "characters rendered per compute hour (default: the newest run)",
	 NULL, false},
	{0, "duty", "SHARE",
	 "share of billed time that computes, 60% or 0.6 (default: the newest run)", NULL, false},
	{0, "own", "COST", "your own card: purchase price and running cost, like 18750+2000/y",
	 NULL, false},
	{0, "years", "N", "for --own: how long the card lasts (default 3)", NULL, false},
	{0, "reserved", "PERCENT", "a reservation with this saving, 40% or 0.4", NULL, false},
	{0, "spot", NULL, "spot pods, with their interruptions", NULL, false},
	{0, "work", "TIME", "for --spot: compute time of a run (default: the newest run)", NULL,
	 false},
	{0, "cold", "TIME", "for --spot: time until a pod computes (default: the newest run)", NULL,
	 false},
	{0, "interrupted", "TIME",
	 "for --spot: mean time between interruptions (default: from the ledger)", NULL, false},
	{0, "checkpoint", "TIME", "for --spot: time between fetched files (default 0)", NULL,
	 false},
	{0},
};

const struct cmd cmd_breakeven = {
	.name = "breakeven",
	.summary = "compare renting with APIs, owning and reserving",
	.details = "Takes characters per hour, price and utilization from the newest run in the "
		   "ledger that rendered speech at a price. API prices are list prices with "
		   "their date. \"Renting pays from\" is the share of billed time that must "
		   "compute.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
