/* breakeven.c - burst breakeven: what a million characters cost on a rented GPU, against APIs,
 * owning and reserving. */
#include "cmd.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cmd/launch/extras.h"
#include "cmd/show/output.h"
#include "cmd/show/table.h"
#include "engine/learn.h"
#include "plan/cost.h"
#include "plan/demand.h"
#include "plan/prior.h"

struct api {
	const char *name;
	double usd; /* per million characters */
	const char *seen;
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

/* What this ledger knows of one engine on one GPU. */
struct source {
	double price_h, chars_per_hour;
	char what[160];
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

/* "18750+2000/y": a card of one's own. */
static int read_own(const char *text, double *capex, double *opex, struct err *err)
{
	int used = 0;

	if (sscanf(text, "%lf+%lf/y%n", capex, opex, &used) == 2 && !text[used] && *capex > 0 &&
	    *opex >= 0)
		return 0;
	return err_set(err, ERR_USAGE,
		       "--own: \"%.40s\" must be the purchase price and the running cost in "
		       "dollars, like 18750+2000/y",
		       text);
}

static int read_percent(const char *text, double *out, struct err *err)
{
	char *end;

	*out = strtod(text, &end) / 100;
	if (*end == '%')
		end++;
	if (*end || !(*out > 0 && *out < 1))
		return err_set(err, ERR_USAGE,
			       "--reserved: \"%.40s\" must be the saving in percent, like 40%%",
			       text);
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
		double chars = 0, busy_s = (double)runs[i].compute_ms / 1000;
		if (store_batches(ctx->store, runs[i].id, &batches, &n, NULL) < 0)
			continue;
		for (size_t k = 0; k < n; k++)
			chars += batches[k].sum;
		found = busy_s > 0 && chars > 0 && runs[i].billed_ms > 0 &&
			runs[i].cost_microusd > 0 && !strcmp(runs[i].type, "tts");
		if (found) {
			out->chars_per_hour = chars / busy_s * 3600;
			out->price_h = (double)runs[i].cost_microusd / 1e6 /
				       ((double)runs[i].billed_ms / 3600000);
			*duty = MIN((double)runs[i].compute_ms / (double)runs[i].billed_ms, 1.0);
			snprintf(out->what, sizeof(out->what), "run %s in this ledger", runs[i].id);
		}
		free(batches);
	}
	free(runs);
	return found;
}

static void add_api(struct table *t, const struct api *api, const struct source *s, double duty)
{
	double usd = demand_usd_per_million(s->price_h, s->chars_per_hour, duty),
	       from = demand_api_duty(s->price_h, s->chars_per_hour, api->usd);

	table_cell(t, "%s", api->name);
	table_cell(t, "%.2f", api->usd);
	table_cell(t, "%s", api->seen);
	if (from > 1)
		table_cell(t, "never");
	else
		table_cell(t, "%.2g%% used", 100 * from);
	table_cell(t, "%s %.1fx", usd < api->usd ? "renting is cheaper," : "the API is cheaper,",
		   usd < api->usd ? api->usd / usd : usd / api->usd);
}

/* only: the one that the user names, NULL: all. */
static void print_apis(const struct source *s, double duty, const struct api *only)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "API", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "$/M CHARS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "SEEN", TABLE_LEFT, 2);
	table_column(t, "RENTING PAYS FROM", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "NOW", TABLE_LEFT, 1);
	if (only)
		add_api(t, only, s, duty);
	for (size_t i = 0; i < ARRAY_LEN(apis) && !only; i++)
		add_api(t, &apis[i], s, duty);
	table_print(t, stdout, terminal_width(stdout));
}

/* "openai-tts-1", or "openai-tts-1=12" and any other name with a price of one's own. */
static int read_api(const char *text, struct api *out, char name[48], struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	const char *equals = strchr(text, '=');
	char *end;

	if (equals) {
		snprintf(name, 48, "%.*s", (int)MIN(equals - text, (ptrdiff_t)47), text);
		*out = (struct api){name, strtod(equals + 1, &end), "as given"};
		if (*end || end == equals + 1 || !name[0] || !(out->usd > 0 && out->usd < 1e9))
			return err_set(err, ERR_USAGE,
				       "--api: \"%.60s\" must be a name and dollars per million "
				       "characters, like openai-tts-1=15",
				       text);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
		if (!strcmp(text, apis[i].name)) {
			*out = apis[i];
			return 0;
		}
		str_addf(&all, "%s%s", i ? ", " : "", apis[i].name);
	}
	return err_set(err, ERR_USAGE,
		       "--api: no known price for \"%.40s\" (write %.40s=15 to give one); "
		       "known: %s",
		       text, text, str_text(&all));
}

/* ---- spot ---- */

struct spot {
	double work_s, cold_s, every_s, checkpoint_s; /* every_s: between interruptions */
	char work_from[64], every_from[EXTRAS_FROM];
};

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

/* Of the newest run that computed: its work on one pod, and what a pod of it took to come up. */
static void spot_from_ledger(struct cmd_context *ctx, struct spot *s)
{
	struct run_row *runs = NULL;
	struct pod_row *pods = NULL;
	size_t count = 0, pod_count = 0;

	if (store_runs(ctx->store, NULL, false, 50, &runs, &count, NULL) == 0)
		for (size_t i = 0; i < count && s->work_s <= 0; i++) {
			if (runs[i].compute_ms <= 0 ||
			    store_pods(ctx->store, runs[i].id, false, &pods, &pod_count, NULL) < 0)
				continue;
			s->work_s = (double)runs[i].compute_ms / 1000;
			snprintf(s->work_from, sizeof(s->work_from), "run %s", runs[i].id);
			for (size_t k = 0; k < pod_count; k++)
				if (pods[k].ready_ms > pods[k].create_ms && pods[k].create_ms > 0 &&
				    !pods[k].handed_from[0])
					s->cold_s = (double)(pods[k].ready_ms - pods[k].create_ms) /
						    1000;
			if (pod_count) {
				struct extra e =
					extras_interrupted(pods[0].provider, true, pods, pod_count);
				s->every_s = e.value;
				COPY_TEXT(s->every_from, e.from);
			}
			free(TAKE(pods));
		}
	free(runs);
}

static int read_spot(struct cmd_context *ctx, struct spot *s, struct err *err)
{
	*s = (struct spot){.checkpoint_s = 0};
	spot_from_ledger(ctx, s);
	if (opt_has(ctx, "work") || opt_has(ctx, "interrupted"))
		*s = (struct spot){.cold_s = s->cold_s,
				   .every_s = s->every_s,
				   .work_s = s->work_s,
				   .work_from = "as given"};
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
	return 0;
}

static void print_spot(const struct spot *s)
{
	static const double off[] = {0.3, 0.5, 0.6, 0.7, 0.9};
	double billed_s = cost_spot_billed_s(s->work_s, s->cold_s, 0, s->checkpoint_s, s->every_s),
	       sure_s = s->work_s + s->cold_s;
	char work[24], cold[24], every[24];

	printf("\nspot: %s of work (%s), cold start %s, interrupted every %s%s%s%s\n",
	       duration_show(work, sizeof(work), (int64_t)(s->work_s * 1000)), s->work_from,
	       duration_show(cold, sizeof(cold), (int64_t)(s->cold_s * 1000)),
	       duration_show(every, sizeof(every), (int64_t)(s->every_s * 1000)),
	       s->every_from[0] ? " (" : "", s->every_from, s->every_from[0] ? ")" : "");
	printf("spot pays when it costs at least %.2g%% less:",
	       100 * cost_spot_worth(s->work_s, s->cold_s, 0, s->checkpoint_s, s->every_s));
	for (size_t i = 0; i < ARRAY_LEN(off); i++)
		printf("%s %.0f%% off saves %.1f%%", i ? "," : "", 100 * off[i],
		       100 * (1 - (1 - off[i]) * billed_s / sure_s));
	putchar('\n');
}

static int run(struct cmd_context *ctx, struct err *err)
{
	const char *api = opt_text(ctx, "api"), *own = opt_text(ctx, "own"),
		   *reserved = opt_text(ctx, "reserved");
	double capex = 0, opex = 0, saving = 0, years = 3, duty = 1, chars = 0, price = 0,
	       given_duty = 0;
	struct source s = {.what = "as given"};
	struct api only;
	struct spot spot = {0};
	char name[48];

	if ((api && read_api(api, &only, name, err) < 0) ||
	    (opt_has(ctx, "spot") && read_spot(ctx, &spot, err) < 0) ||
	    read_number(ctx, "price", &price, err) < 0 ||
	    read_number(ctx, "chars-per-hour", &chars, err) < 0 ||
	    read_number(ctx, "duty", &given_duty, err) < 0 ||
	    read_number(ctx, "years", &years, err) < 0 ||
	    (own && read_own(own, &capex, &opex, err) < 0) ||
	    (reserved && read_percent(reserved, &saving, err) < 0))
		return -1;
	if ((!chars || !price) && !from_ledger(ctx, &s, &duty) && !chars)
		return err_set(err, ERR_USAGE,
			       "no run in this ledger has rendered speech at a price yet: give "
			       "--price USD (per hour) and --chars-per-hour N");
	s.chars_per_hour = chars > 0 ? chars : s.chars_per_hour;
	s.price_h = price > 0 ? price : s.price_h;
	duty = given_duty > 0 ? MIN(given_duty > 1 ? given_duty / 100 : given_duty, 1.0) : duty;
	if (s.price_h <= 0)
		return err_set(err, ERR_USAGE,
			       "the pods in this ledger cost nothing: give --price USD (per "
			       "hour)");
	printf("renting: $%.4f an hour, %.0f characters an hour of computing, %.0f%% of billed "
	       "time used (%s)\n",
	       s.price_h, s.chars_per_hour, 100 * duty, s.what);
	printf("a million characters: $%.3f; at full use $%.3f\n\n",
	       demand_usd_per_million(s.price_h, s.chars_per_hour, duty),
	       demand_usd_per_million(s.price_h, s.chars_per_hour, 1));
	print_apis(&s, duty, api ? &only : NULL);
	double own_duty = own ? demand_own_duty(capex, opex, years, s.price_h) : 0;
	if (own_duty > 1)
		printf("\nowning for $%.0f and $%.0f a year: never cheaper than renting at this "
		       "price, over %g years\n",
		       capex, opex, years);
	else if (own)
		printf("\nowning for $%.0f and $%.0f a year: cheaper than renting above %.1f%% of "
		       "all hours, over %g years\n",
		       capex, opex, 100 * own_duty, years);
	if (reserved)
		printf("\nreserving at %.0f%% off: cheaper than renting above %.0f%% of all "
		       "hours\n",
		       100 * saving, 100 * demand_reserved_duty(saving));
	if (opt_has(ctx, "spot"))
		print_spot(&spot);
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "api", "NAME[=USD]",
	 "compare only with this API, at your own price per million characters", NULL, false},
	{0, "price", "USD", "price of a pod per hour (default: the newest run)", NULL, false},
	{0, "chars-per-hour", "N", "characters rendered per compute hour (default: the newest run)",
	 NULL, false},
	{0, "duty", "SHARE",
	 "share of billed time that computes, 0.6 or 60 (default: the newest run)", NULL, false},
	{0, "own", "COST", "your own card: purchase price and running cost, like 18750+2000/y",
	 NULL, false},
	{0, "years", "N", "for --own: how long the card lasts (default 3)", NULL, false},
	{0, "reserved", "PERCENT", "a reservation with this saving", NULL, false},
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
