/* breakeven.c - burst breakeven: what a million characters cost on a rented GPU, against APIs, owning and reserving. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cmd.h"
#include "engine/learn.h"
#include "output.h"
#include "plan/cost.h"
#include "plan/demand.h"
#include "table.h"

/* Dollars per million characters, as published or reported on the day. */
static const struct api {
	const char *name;
	double usd;
	const char *seen;
} apis[] = {
	{"polly-standard", 4, "2026-10"},   {"xai", 4.20, "2026-04"},	   {"unreal", 8, "2026-11"},	   {"openai-tts-1", 15, "2026-11"},
	{"polly-neural", 16, "2026-10"},    {"google-wavenet", 16, "2024-06"}, {"voxtral", 16, "2026-07"},	   {"openai-tts-1-hd", 30, "2026-11"},
	{"polly-generative", 30, "2026-10"}, {"elevenlabs-flash", 50, "2026-06"}, {"venice", 50, "2026-11"}, {"elevenlabs", 100, "2026-06"},
};

/* What this ledger knows of one engine on one GPU. */
struct source {
	double price_h, chars_per_hour;
	char what[160];
};

static int read_number(const struct cmd_context *ctx, const char *flag, double *out, struct err *err)
{
	const char *text = opt_text(ctx, flag);
	char *end;

	if (!text)
		return 0;
	*out = strtod(text, &end);
	if (*end || end == text || !(*out > 0 && *out < 1e12))
		return err_set(err, ERR_USAGE, "--%s: \"%.40s\" must be a number above 0", flag, text);
	return 0;
}

/* "18750+2000/y": a card of one's own. */
static int read_own(const char *text, double *capex, double *opex, struct err *err)
{
	int used = 0;

	if (sscanf(text, "%lf+%lf/y%n", capex, opex, &used) == 2 && !text[used] && *capex > 0 && *opex >= 0)
		return 0;
	return err_set(err, ERR_USAGE, "--own: \"%.40s\" must be what it costs to buy and to run, in dollars: 18750+2000/y", text);
}

static int read_percent(const char *text, double *out, struct err *err)
{
	char *end;

	*out = strtod(text, &end) / 100;
	if (*end == '%')
		end++;
	if (*end || !(*out > 0 && *out < 1))
		return err_set(err, ERR_USAGE, "--reserved: \"%.40s\" must be the saving in percent: 40%%", text);
	return 0;
}

/* The newest run with rendered speech: characters of its batches over the hours of its pods. */
static bool from_ledger(struct cmd_context *ctx, struct source *out, double *duty)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	bool found = false;

	if (store_runs(ctx->store, NULL, false, 50, &runs, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !found; i++) {
		struct batch_row *batches = NULL;
		size_t n = 0;
		double chars = 0, busy_s = 0;
		if (store_batches(ctx->store, runs[i].id, &batches, &n, NULL) < 0)
			continue;
		for (size_t k = 0; k < n; k++) {
			chars += batches[k].sum;
			busy_s += (double)batches[k].took_ms / 1000;
		}
		found = busy_s > 0 && runs[i].billed_ms > 0 && runs[i].cost_microusd > 0 && !strcmp(runs[i].type, "tts");
		if (found) {
			out->chars_per_hour = chars / busy_s * 3600;
			out->price_h = (double)runs[i].cost_microusd / 1e6 / ((double)runs[i].billed_ms / 3600000);
			*duty = MIN((double)runs[i].compute_ms / (double)runs[i].billed_ms, 1.0);
			snprintf(out->what, sizeof(out->what), "run %s of this ledger", runs[i].id);
		}
		free(batches);
	}
	free(runs);
	return found;
}

static void print_apis(const struct source *s, double duty, const char *only)
{
	CLEANUP(table_free) struct table *t = table_new();
	double usd = demand_usd_per_million(s->price_h, s->chars_per_hour, duty);

	table_column(t, "API", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "$/M CHARS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "SEEN", TABLE_LEFT, 2);
	table_column(t, "RENTING PAYS FROM", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "NOW", TABLE_LEFT, 1);
	for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
		double from = demand_api_duty(s->price_h, s->chars_per_hour, apis[i].usd);
		if (only && strcmp(only, apis[i].name) != 0)
			continue;
		table_cell(t, "%s", apis[i].name);
		table_cell(t, "%.2f", apis[i].usd);
		table_cell(t, "%s", apis[i].seen);
		if (from > 1)
			table_cell(t, "never");
		else
			table_cell(t, "%.2g%% used", 100 * from);
		table_cell(t, "%s %.1fx", usd < apis[i].usd ? "renting is cheaper," : "the API is cheaper,",
			   usd < apis[i].usd ? apis[i].usd / usd : usd / apis[i].usd);
	}
	table_print(t, stdout, terminal_width(stdout));
}

static int check_api(const char *name, struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
		if (!name || !strcmp(name, apis[i].name))
			return 0;
		str_addf(&all, "%s%s", i ? ", " : "", apis[i].name);
	}
	return err_set(err, ERR_USAGE, "--api: no price is known of \"%.40s\"; known: %s", name, str_text(&all));
}

static int run(struct cmd_context *ctx, struct err *err)
{
	const char *api = opt_text(ctx, "api"), *own = opt_text(ctx, "own"), *reserved = opt_text(ctx, "reserved");
	double capex = 0, opex = 0, saving = 0, years = 3, duty = 1, chars = 0, price = 0, given_duty = 0;
	struct source s = {.what = "what you gave"};

	if (check_api(api, err) < 0 || read_number(ctx, "price", &price, err) < 0 || read_number(ctx, "chars-per-hour", &chars, err) < 0 ||
	    read_number(ctx, "duty", &given_duty, err) < 0 || read_number(ctx, "years", &years, err) < 0 ||
	    (own && read_own(own, &capex, &opex, err) < 0) || (reserved && read_percent(reserved, &saving, err) < 0))
		return -1;
	if ((!chars || !price) && !from_ledger(ctx, &s, &duty) && !chars)
		return err_set(err, ERR_USAGE, "no run of this ledger has rendered speech at a price yet: give --price USD (an hour) and --chars-per-hour N");
	s.chars_per_hour = chars > 0 ? chars : s.chars_per_hour;
	s.price_h = price > 0 ? price : s.price_h;
	duty = given_duty > 0 ? MIN(given_duty > 1 ? given_duty / 100 : given_duty, 1.0) : duty;
	if (s.price_h <= 0)
		return err_set(err, ERR_USAGE, "the pods of this ledger cost nothing: give --price USD (an hour)");
	printf("renting: $%.4f an hour, %.0f characters an hour of computing, %.0f%% of billed time used (%s)\n", s.price_h, s.chars_per_hour, 100 * duty, s.what);
	printf("a million characters: $%.3f; at full use $%.3f\n\n", demand_usd_per_million(s.price_h, s.chars_per_hour, duty),
	       demand_usd_per_million(s.price_h, s.chars_per_hour, 1));
	print_apis(&s, duty, api);
	double own_duty = own ? demand_own_duty(capex, opex, years, s.price_h) : 0;
	if (own_duty > 1)
		printf("\nowning for $%.0f and $%.0f a year: never cheaper than renting at this price, over %g years\n", capex, opex, years);
	else if (own)
		printf("\nowning for $%.0f and $%.0f a year: cheaper than renting above %.1f%% of all hours, over %g years\n", capex, opex, 100 * own_duty, years);
	if (reserved)
		printf("\nreserving at %.0f%% off: cheaper than renting above %.0f%% of all hours\n", 100 * saving, 100 * demand_reserved_duty(saving));
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "api", "NAME", "compare with this API alone", NULL, false},
	{0, "price", "USD", "of a pod, an hour; of the newest run when left out", NULL, false},
	{0, "chars-per-hour", "N", "that it renders while it computes; of the newest run when left out", NULL, false},
	{0, "duty", "SHARE", "of billed time that computes, 0.6 or 60; of the newest run when left out", NULL, false},
	{0, "own", "COST", "a card of your own: to buy and to run, as 18750+2000/y", NULL, false},
	{0, "years", "N", "for --own: how long it lasts; 3 when left out", NULL, false},
	{0, "reserved", "PERCENT", "a reservation with this saving", NULL, false},
	{0},
};

const struct cmd cmd_breakeven = {
	.name = "breakeven",
	.summary = "compare renting with APIs, owning and reserving",
	.details = "Takes characters an hour, price and use from the newest run of this ledger that rendered speech at a price. API prices are dated list "
		   "prices. \"Renting pays from\" is the share of billed time that must compute.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
