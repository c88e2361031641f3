/* breakeven.c - `burst breakeven`: when renting is cheaper than APIs, owning, reserving and pods on
 * demand. */
#include "cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/show/output.h"
#include "plan/cost.h"
#include "plan/forecast.h"
#include "runs/estimate.h"
#include "runs/measured.h"
#include "runs/usage.h"

/* ---- flags; all keep *out if the flag is not given ---- */

/* Dollars that may be none. */
static int read_dollars(const struct cmd_context *ctx, const char *flag, double *out,
			struct err *err)
{
	const char *text = opt_text(ctx, flag);
	char *end;

	if (!text)
		return 0;
	*out = number_parse(text, &end);
	if (*end || end == text || !(*out >= 0 && *out < 1e12))
		return err_set(err, ERR_USAGE, "--%s: \"%.40s\" must be dollars, 0 or more", flag,
			       text);
	return 0;
}

static int read_share(const struct cmd_context *ctx, const char *flag, double *out, struct err *err)
{
	const char *text = opt_text(ctx, flag);
	double share;

	if (!text)
		return 0;
	const char *rest = share_parse(text, &share);
	if (!rest || *rest)
		return err_set(
			err, ERR_USAGE,
			"--%s: \"%.40s\" must be above 0 and at most 100%%, like 40, 40%% or 0.4",
			flag, text);
	*out = share;
	return 0;
}

/* ---- APIs, owning, reserving and spot pods ---- */

/* An API that speaks text. */
struct api {
	const char *name;
	double usd;       /* per million characters */
	const char *seen; /* month of the list price, or "as given" */
};

/* As published or reported on the day. */
static const struct api apis[] = {
	{"polly-standard", 4, "2026-10"},
	{"xai", 4.20, "2026-04"},
	{"unreal", 8, "2026-11"},
	{"openai-tts-1", 15, "2026-11"},
	{"polly-neural", 16, "2026-10"},
	{"google-wavenet", 16, "2024-06"},
	{"voxtral", 16, "2026-07"},
	{"openai-tts-1-hd", 30, "2026-11"},
	{"polly-generative", 30, "2026-10"},
	{"elevenlabs-flash", 50, "2026-06"},
	{"venice", 50, "2026-11"},
	{"elevenlabs", 100, "2026-06"},
};

/* Reads --api: "openai-tts-1", or any name with the user's own price, "openai-tts-1=12". Then
 * out->name points to name. */
static int read_api(const char *text, struct api *out, char name[48], struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	const char *equals = strchr(text, '=');
	char *end;

	if (equals) {
		snprintf(name, 48, "%.*s", (int)MIN(equals - text, 47), text);
		*out = (struct api){name, number_parse(equals + 1, &end), "as given"};
		if (!*end && end != equals + 1 && name[0] && out->usd > 0 && out->usd < 1e9)
			return 0;
		return err_set(err, ERR_USAGE,
			       "--api: \"%.60s\" must be a name and dollars per million "
			       "characters, like openai-tts-1=15",
			       text);
	}
	for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
		*out = apis[i];
		if (!strcmp(text, apis[i].name))
			return 0;
		str_addf(&all, "%s%s", i ? ", " : "", apis[i].name);
	}
	return err_set(
		err, ERR_USAGE,
		"--api: no known price for \"%.40s\" (write %.40s=15 to give one); known: %s", text,
		text, str_text(&all));
}

static void add_api_row(struct table *t, const struct api *api, const struct measured_rate *r)
{
	char share[32];
	double usd = demand_usd_per_million(r->price_h, r->chars_per_hour, r->duty),
	       from = demand_api_duty(r->price_h, r->chars_per_hour, api->usd);

	table_cell(t, "%s", api->name);
	table_cell(t, "%.2f", api->usd);
	table_cell(t, "%s", api->seen);
	if (from > 1)
		table_cell(t, "never");
	else
		table_cell(t, "%s%% used", number_show(share, 100 * from, 2));
	if (fabs(usd - api->usd) < 0.005 * api->usd)
		table_cell(t, "both cost the same");
	else
		table_cell(t, "%s %.1fx",
			   usd < api->usd ? "renting is cheaper," : "the API is cheaper,",
			   usd < api->usd ? api->usd / usd : usd / api->usd);
}

/* The append_ functions read their flags, and add a paragraph to the answer if it is wanted. */
static int append_apis(struct str *to, const struct cmd_context *ctx, const struct measured_rate *r,
		       struct err *err)
{
	CLEANUP(table_free) struct table *t = table_new();
	const char *named = opt_text(ctx, "api");
	struct api one;
	char name[48];

	if (named && read_api(named, &one, name, err) < 0)
		return -1;
	table_column(t, "API", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "$/M CHARS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "SEEN", TABLE_LEFT, 2);
	table_column(t, "RENTING PAYS FROM", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "NOW", TABLE_LEFT, 1);
	for (size_t i = 0; i < (named ? 1 : ARRAY_LEN(apis)); i++)
		add_api_row(t, named ? &one : &apis[i], r);
	table_add(t, to, terminal_width(stdout), true);
	return 0;
}

#define USE_MS (30 * 86400 * INT64_C(1000))

/* Adds a line that compares the hours in which pods ran with the share of all hours from which
 * `what` pays. With --duty the user has given the use. */
static int append_use(struct str *to, const struct cmd_context *ctx, const char *what, double from,
		      struct err *err)
{
	static const char *const answers[] = {"no", "yes", "not clear yet"};
	char days[32], used[32], pods[48] = "", shares[3][32];
	struct forecast f;
	int64_t now_ms = clock_wall_ms();

	if (opt_has(ctx, "duty"))
		return 0;
	if (usage_forecast(&f, ctx->store, now_ms - USE_MS, now_ms, true, err) < 0)
		return -1;
	number_show(days, f.days, 2);
	number_show(used, f.used_h, 3);
	if (f.pod_h > 1.01 * f.used_h)
		snprintf(pods, sizeof(pods), " (%.1f pod hours)", f.pod_h);
	if (!forecast_is_enough(&f)) {
		str_addf(to,
			 "pods ran %s h%s in %s days: too little to tell whether %s pays (%d "
			 "days are needed)\n",
			 used, pods, days, what, 7 * FORECAST_WEEKS_LEAST);
		return 0;
	}
	str_addf(to,
		 "pods ran %s h%s in %s days, %s%% of all hours (90%% interval %s%% to %s%%): %s "
		 "pays from %.1f%%: %s\n",
		 used, pods, days, number_show(shares[0], 100 * f.share, 2),
		 number_show(shares[1], 100 * f.least, 2), number_show(shares[2], 100 * f.most, 2),
		 what, 100 * from, answers[forecast_reaches(&f, from)]);
	return 0;
}

/* A card of one's own, in dollars. */
struct owning {
	double capex, opex_year, years;
	double repairs_year, resale;
	double watts, usd_kwh; /* drawn only while it is used; 0: part of opex_year */
};

/* Reads --own: "18750+2000/y", or the purchase price alone. ERR_USAGE. */
static int read_own(struct owning *o, const char *text, struct err *err)
{
	char *end;

	o->capex = number_parse(text, &end);
	bool whole = end != text && !*end;
	if (end != text && *end == '+') {
		const char *running = end + 1;
		o->opex_year = number_parse(running, &end);
		whole = end != running && !strcmp(end, "/y");
	}
	if (whole && o->capex > 0 && o->capex < 1e12 && o->opex_year >= 0 && o->opex_year < 1e12)
		return 0;
	return err_set(err, ERR_USAGE,
		       "--own: \"%.40s\" must be the purchase price and the running cost in "
		       "dollars, like 18750+2000/y",
		       text);
}

/* Reads the flags that go with --own; ERR_USAGE. */
static int read_owning(struct owning *o, const struct cmd_context *ctx, struct err *err)
{
	static const char *const with[] = {"watts", "price-per-kwh", "repairs", "resale"};
	const char *text = opt_text(ctx, "own");

	*o = (struct owning){.years = 3};
	for (size_t i = 0; !text && i < ARRAY_LEN(with); i++)
		if (opt_has(ctx, with[i]))
			return err_set(err, ERR_USAGE, "--%s: give --own COST, too", with[i]);
	if (opt_number(ctx, "years", &o->years, err) < 0 ||
	    read_dollars(ctx, "repairs", &o->repairs_year, err) < 0 ||
	    read_dollars(ctx, "resale", &o->resale, err) < 0 ||
	    opt_number(ctx, "watts", &o->watts, err) < 0 ||
	    opt_number(ctx, "price-per-kwh", &o->usd_kwh, err) < 0 ||
	    (text && read_own(o, text, err) < 0))
		return -1;
	if (!(o->watts > 0) != !(o->usd_kwh > 0))
		return err_set(err, ERR_USAGE,
			       "--watts and --price-per-kwh make the cost of power together: give "
			       "both");
	if (text && o->resale >= o->capex)
		return err_set(err, ERR_USAGE, "--resale: it must be below the purchase price");
	return 0;
}

/* Names the costs that are not in the answer. */
static void append_left_out(struct str *to, const struct cmd_context *ctx)
{
	bool running = strchr(opt_text(ctx, "own"), '+'), watts = opt_has(ctx, "watts");

	str_addf(to, "left out:%s%s%s%s%s your time, the room, power while it is idle\n",
		 running ? "" : " its running cost,",
		 watts     ? ""
		 : running ? " power beyond the running cost"
			   : " power",
		 watts ? "" : " (--watts, --price-per-kwh),",
		 opt_has(ctx, "repairs") ? "" : " repairs (--repairs),",
		 opt_has(ctx, "resale") ? "" : " its resale (--resale),");
}

static int append_owning(struct str *to, const struct cmd_context *ctx,
			 const struct measured_rate *r, struct err *err)
{
	struct owning o;

	if (read_owning(&o, ctx, err) < 0)
		return -1;
	if (!opt_has(ctx, "own"))
		return 0;
	const double power_h = o.watts / 1000 * o.usd_kwh, years = o.years;
	double duty = r->price_h > power_h
			      ? demand_own_duty(o.capex - o.resale, o.opex_year + o.repairs_year,
						years, r->price_h - power_h)
			      : INFINITY;
	str_addf(to, "\nowning for $%.0f and $%.0f a year", o.capex, o.opex_year);
	if (o.repairs_year > 0)
		str_addf(to, ", $%.0f a year for repairs", o.repairs_year);
	if (o.resale > 0)
		str_addf(to, ", $%.0f back at the end", o.resale);
	if (power_h > 0)
		str_addf(to, ", $%.3f of power for each hour used", power_h);
	str_add(to, ": ");
	if (duty > 1) {
		str_addf(to, "never cheaper than renting at this price, over %g years\n", years);
		append_left_out(to, ctx);
		return 0;
	}
	str_addf(to, "cheaper than renting above %.1f%% of all hours, over %g years\n", 100 * duty,
		 years);
	append_left_out(to, ctx);
	return append_use(to, ctx, "owning", duty, err);
}

static int append_reserving(struct str *to, const struct cmd_context *ctx, struct err *err)
{
	double saving = 0;

	if (read_share(ctx, "reserved", &saving, err) < 0)
		return -1;
	if (saving >= 1)
		return err_set(err, ERR_USAGE,
			       "--reserved: nothing is rented at a saving of 100%%");
	if (saving <= 0)
		return 0;
	str_addf(to, "\nreserving at %.0f%% off: cheaper than renting above %.0f%% of all hours\n",
		 100 * saving, 100 * (1 - saving));
	return append_use(to, ctx, "reserving", 1 - saving, err);
}

enum { PODS_LEARNED_FROM = 500 };

/* Work on one spot pod, interrupted every every_s on average; and where these come from. */
struct spot {
	double work_s, cold_s, every_s, checkpoint_s;
	char work_from[64], every_from[EXTRAS_FROM]; /* "": a prior */
};

/* From the provider's pods in the ledger. */
static void read_interruptions(struct spot *s, struct store *store, const char *provider)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int taken;

	if (store_pods_up(store, provider, PODS_LEARNED_FROM, &pods, &count, NULL) < 0)
		return;
	struct extra e = extras_interrupted(provider, true, pods, count, &taken);
	s->every_s = e.value > 0 ? e.value : s->every_s;
	COPY_TEXT(s->every_from, e.from);
	free(pods);
}

/* Reads the newest run of the ledger, then the flags, which replace its values. ERR_USAGE: neither
 * says how long the work takes. */
static int read_spot(const struct cmd_context *ctx, struct spot *s, struct err *err)
{
	struct measured_work work;

	*s = (struct spot){.every_s = prior_of_provider("")->interrupted_every_s};
	if (measured_work(ctx->store, &work)) {
		s->work_s = work.work_s;
		s->cold_s = work.cold_s;
		snprintf(s->work_from, sizeof(s->work_from), "run %s", work.run);
		if (work.pod_count)
			read_interruptions(s, ctx->store, work.pods[0].provider);
		free(work.pods);
	}
	if (opt_has(ctx, "work") || opt_has(ctx, "interrupted")) {
		COPY_TEXT(s->work_from, "as given");
		s->every_from[0] = '\0';
	}
	if (opt_seconds(ctx, "work", &s->work_s, err) < 0 ||
	    opt_seconds(ctx, "cold", &s->cold_s, err) < 0 ||
	    opt_seconds(ctx, "interrupted", &s->every_s, err) < 0 ||
	    opt_seconds(ctx, "checkpoint", &s->checkpoint_s, err) < 0)
		return -1;
	if (s->work_s <= 0)
		return err_set(err, ERR_USAGE,
			       "--spot: no run in this ledger has computed yet: give --work TIME "
			       "(the compute time of a run)");
	return 0;
}

static int append_spot(struct str *to, const struct cmd_context *ctx, struct err *err)
{
	static const double discounts[] = {0.3, 0.5, 0.6, 0.7, 0.9};
	struct spot s;
	char work[24], cold[24], every[24], worth[32];

	if (!opt_has(ctx, "spot"))
		return 0;
	if (read_spot(ctx, &s, err) < 0)
		return -1;
	const double uninterrupted_s = s.work_s + s.cold_s,
		     billed_s =
			     cost_spot_billed_s(s.work_s, s.cold_s, 0, s.checkpoint_s, s.every_s);
	str_addf(to, "\nspot: %s of work (%s), cold start %s, interrupted every %s%s%s%s\n",
		 duration_show(work, sizeof(work), (int64_t)(s.work_s * 1000)), s.work_from,
		 duration_show(cold, sizeof(cold), (int64_t)(s.cold_s * 1000)),
		 duration_show(every, sizeof(every), (int64_t)(s.every_s * 1000)),
		 s.every_from[0] ? " (" : "", s.every_from, s.every_from[0] ? ")" : "");
	str_addf(to, "spot pays when it costs at least %s%% less:",
		 number_show(worth, 100 * (1 - uninterrupted_s / billed_s), 2));
	for (size_t i = 0; i < ARRAY_LEN(discounts); i++)
		str_addf(to, "%s %.0f%% off saves %.1f%%", i ? "," : "", 100 * discounts[i],
			 100 * (1 - (1 - discounts[i]) * billed_s / uninterrupted_s));
	str_add(to, "\n");
	return 0;
}

/* The price, speed and use of a rented pod: from the flags, else from the newest run in the ledger
 * that rendered speech at a price. */
static int read_renting(const struct cmd_context *ctx, struct measured_rate *r, struct err *err)
{
	double chars = 0, price = 0, duty = 0;

	if (opt_number(ctx, "price", &price, err) < 0 ||
	    opt_number(ctx, "chars-per-hour", &chars, err) < 0 ||
	    read_share(ctx, "duty", &duty, err) < 0)
		return -1;
	*r = (struct measured_rate){.duty = 1};
	if ((!chars || !price) && !measured_rate(ctx->store, r) && !chars)
		return err_set(err, ERR_USAGE,
			       "no run in this ledger has rendered speech at a price yet: give "
			       "--price USD (per hour) and --chars-per-hour N");
	r->chars_per_hour = chars > 0 ? chars : r->chars_per_hour;
	r->price_h = price > 0 ? price : r->price_h;
	r->duty = duty > 0 ? duty : r->duty;
	if (r->price_h <= 0)
		return err_set(err, ERR_USAGE,
			       "the pods in this ledger cost nothing: give --price USD (per hour)");
	return 0;
}

static int run_breakeven(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct measured_rate r;

	if (read_renting(ctx, &r, err) < 0)
		return -1;
	str_addf(&text,
		 "renting: $%.4f an hour, %.0f characters an hour of computing, %.0f%% of billed "
		 "time used (%s%s%s)\n",
		 r.price_h, r.chars_per_hour, 100 * r.duty, r.run[0] ? "run " : "as given", r.run,
		 r.run[0] ? " in this ledger" : "");
	str_addf(&text, "a million characters: $%.3f; at full use $%.3f\n\n",
		 demand_usd_per_million(r.price_h, r.chars_per_hour, r.duty),
		 demand_usd_per_million(r.price_h, r.chars_per_hour, 1));
	if (append_apis(&text, ctx, &r, err) < 0 || append_owning(&text, ctx, &r, err) < 0 ||
	    append_reserving(&text, ctx, err) < 0 || append_spot(&text, ctx, err) < 0)
		return -1;
	fputs(str_text(&text), stdout);
	return cmd_flush(err);
}

static const struct opt breakeven_opts[] = {
	{0, "api", "NAME[=USD]",
	 "compare only with this API, at your own price per million characters"},
	{0, "price", "USD", "price of a pod per hour (default: the newest run)"},
	{0, "chars-per-hour", "N",
	 "characters rendered per compute hour (default: the newest run)"},
	{0, "duty", "SHARE",
	 "share of billed time that computes, 60% or 0.6 (default: the newest run)"},
	{0, "own", "COST", "your own card: purchase price and running cost, like 18750+2000/y"},
	{0, "years", "N", "for --own: how long the card lasts (default 3)"},
	{0, "watts", "W", "for --own: power that it draws while it is used"},
	{0, "price-per-kwh", "USD", "for --watts: price of a kilowatt-hour"},
	{0, "repairs", "USD", "for --own: what repairs cost a year"},
	{0, "resale", "USD", "for --own: what the card still sells for after --years"},
	{0, "reserved", "PERCENT", "a reservation with this saving, 40% or 0.4"},
	{0, "spot", NULL, "spot pods, with their interruptions"},
	{0, "work", "TIME", "for --spot: compute time of a run (default: the newest run)"},
	{0, "cold", "TIME", "for --spot: time until a pod computes (default: the newest run)"},
	{0, "interrupted", "TIME",
	 "for --spot: mean time between interruptions (default: from the ledger)"},
	{0, "checkpoint", "TIME", "for --spot: time between fetched files (default 0)"},
	{0},
};

const struct cmd cmd_breakeven = {
	.name = "breakeven",
	.summary = "compare renting with APIs, owning and reserving",
	.details = "Takes characters per hour, price and utilization from the newest run in the "
		   "ledger that rendered speech at a price. API prices are list prices with their "
		   "date. \"Renting pays from\" is the share of billed time that must compute.",
	.opts = breakeven_opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run_breakeven,
};
