/* size.c - `burst size`: sizes a pool of pods for requests that keep arriving. */
#include "cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "plan/cost.h"
#include "runs/estimate.h"
#include "runs/usage.h"

enum { ROWS_BELOW = 7, ROWS_ABOVE = 3 }; /* rows of the table, around the recommended size */

struct pool {
	double per_s, service_s, load;
	double price_h; /* of a pod; 0: unknown */
	char price_from[64];
	struct day_goal goal;
	bool has_day; /* the rate is a day's mean, and changes by the hour: */
	double curve[DAY_HOURS];
	bool has_ledger; /* what follows is from past runs */
	struct usage_demand past;
	bool segments;      /* requests are segments of these runs, not runs */
	bool own_load;      /* --rate or --service replaces theirs */
	double busiest_day; /* its rate, of the mean day's */
	bool has_cold;
	struct cold cold;
};

/* "20/min" as requests a second. */
static int read_rate(struct pool *p, const char *text, struct err *err)
{
	static const struct {
		const char *unit;
		double s;
	} units[] = {{"s", 1}, {"min", 60}, {"m", 60}, {"h", 3600}, {"d", 86400}};
	size_t digits = strspn(text, "0123456789.");
	char *end;
	double count = number_parse(text, &end);

	if (end == text + digits && *end == '/' && count > 0 && count <= 1e9)
		for (size_t i = 0; i < ARRAY_LEN(units); i++)
			if (!strcmp(end + 1, units[i].unit)) {
				p->per_s = count / units[i].s;
				return 0;
			}
	return err_set(err, ERR_USAGE,
		       "--rate: \"%.40s\" must be requests in a time: 1/s, 20/min, 50/h or 300/d",
		       text);
}

/* "p95=2s" or "mean=500ms". A mean of 0 is rejected, since no number of pods reaches it. */
static int read_goal(struct pool *p, const char *text, struct err *err)
{
	const char *equals = strchr(text, '=');
	bool mean = starts_with(text, "mean=");
	double percent = 0;
	int64_t ms;
	char *end = NULL;

	if (equals && *text == 'p' &&
	    strspn(text + 1, "0123456789.") == (size_t)(equals - text) - 1)
		percent = number_parse(text + 1, &end);
	bool is_valid = mean || (end == equals && percent > 0 && percent < 100);
	if (!equals || !is_valid || duration_parse(equals + 1, &ms, NULL) < 0 || (mean && !ms))
		return err_set(err, ERR_USAGE,
			       "--wait: \"%.40s\" must be a percentile or mean, and the longest "
			       "wait, like p95=2s or mean=500ms",
			       text);
	p->goal =
		(struct day_goal){.set = true, .share = percent / 100, .wait_s = (double)ms / 1000};
	return 0;
}

/* 24 numbers. Returns false if there are more or fewer, or they are no rates. */
static bool parse_rates(struct pool *p, const char *text)
{
	double rates[DAY_HOURS];
	char *end;

	for (int h = 0; h < DAY_HOURS; h++, text = end + 1) {
		rates[h] = number_parse(text, &end);
		if (end == text || *end != (h + 1 < DAY_HOURS ? ',' : '\0'))
			return false;
	}
	return day_from_rates(p->curve, rates);
}

/* "50%", "0.5,20" (the amplitude, and the hour of the peak) or a rate for each hour. */
static int read_day(struct pool *p, const char *text, struct err *err)
{
	double amplitude;
	long peak = 14;
	const char *rest = share_parse(text, &amplitude);
	char *end = NULL;

	p->has_day = true;
	if (rest && *rest == ',' && rest[1] >= '0' && rest[1] <= '9') {
		peak = strtol(rest + 1, &end, 10);
		rest = end;
	}
	if (rest && !*rest && peak < DAY_HOURS) {
		day_sine(p->curve, amplitude, (int)peak);
		return 0;
	}
	if (parse_rates(p, text))
		return 0;
	return err_set(
		err, ERR_USAGE,
		"--day-curve: \"%.60s\" must be how far the rate rises above its mean, above "
		"0 and at most 100%%, with the hour of the peak (0 to 23): 50%%,14; or 24 "
		"rates, one for each hour from 00:00 on: 1,1,1,2,...",
		text);
}

/* Sets the pool's price to the lowest list price of this GPU. */
static int read_list_price(struct pool *p, const char *name, struct err *err)
{
	const struct gpu *gpu = gpu_find(name);
	const char *seen;

	if (!gpu)
		return err_set(err, ERR_USAGE,
			       "--gpu: no GPU is called \"%.40s\"; `burst gpus` lists them", name);
	for (int m = MARKET_SECURE; m < MARKETS; m++) {
		double listed = prior_list_price(gpu->name, (enum market)m, &seen);
		if (listed <= 0 || (p->price_h > 0 && p->price_h <= listed))
			continue;
		p->price_h = listed;
		snprintf(p->price_from, sizeof(p->price_from), "%s, list price of %s, %s",
			 gpu->name, market_names[m], seen);
	}
	if (p->price_h <= 0)
		return err_set(err, ERR_USAGE,
			       "--gpu: no list price of %s is known: give --price USD", gpu->name);
	return 0;
}

/* ---- from past runs ---- */

/* What --from-ledger calls the pool's requests: one, or several. */
static const char *request_word(const struct pool *p, bool one)
{
	return p->segments ? one ? "segment" : "segments" : one ? "run" : "runs";
}

static int report_too_few(const struct pool *p, const char *job, struct err *err)
{
	return err_set(
		err, ERR_USAGE,
		"--from-ledger: \"%.60s\" has %zu run%s that computed, in %.1f days: %d in %d "
		"days are needed: give --rate and --service",
		p->past.job[0] ? p->past.job : job, p->past.of.arrivals,
		p->past.of.arrivals == 1 ? "" : "s", p->past.of.days, FORECAST_ARRIVALS_LEAST,
		7 * FORECAST_WEEKS_LEAST);
}

/* The price and the cold start of the job's last pod. */
static int read_last_pod(const struct cmd_context *ctx, struct pool *p, struct err *err)
{
	struct pod_row pod;

	if (!usage_last_pod(&pod, ctx->store, p->past.config))
		return 0;
	if (pod.price_microusd_h > 0) {
		p->price_h = (double)pod.price_microusd_h / 1e6;
		snprintf(p->price_from, sizeof(p->price_from), "its last pod, %s at %s",
			 gpu_is_none(pod.gpu) ? "no GPU" : pod.gpu, pod.provider);
	}
	p->has_cold = true;
	return usage_cold_start(&p->cold, ctx->store, &pod, err);
}

/* Sets rate, service, curve, price and cold start to those of the job's past runs. */
static int read_ledger(const struct cmd_context *ctx, struct pool *p, struct err *err)
{
	CLEANUP(free_text) char *config = NULL;
	const char *job = opt_text(ctx, "job"), *per = opt_text(ctx, "per");

	if (per && strcmp(per, "run") != 0 && strcmp(per, "segment") != 0)
		return err_set(err, ERR_USAGE, "--per %.40s: must be run or segment", per);
	if (!opt_has(ctx, "from-ledger"))
		return job || per ? err_set(err, ERR_USAGE, "--%s: give --from-ledger, too",
					    job ? "job" : "per")
				  : 0;
	int found = job ? 0 : config_find(NULL, &config, err);
	if (found < 0)
		return -1;
	if (!job && !found)
		return err_set(err, ERR_USAGE,
			       "--from-ledger: no burst.cfg in this folder: give --job NAME, as "
			       "`burst ledger` lists it");
	p->has_ledger = true;
	p->own_load = opt_has(ctx, "rate") || opt_has(ctx, "service");
	p->segments = per && !strcmp(per, "segment");
	if (usage_demand(&p->past, ctx->store, config, job, p->segments, clock_wall_ms(), err) < 0)
		return -1;
	if (!p->past.enough)
		return report_too_few(p, job ? job : path_base(config), err);
	const struct forecast_demand *f = &p->past.of;
	p->service_s = f->service_s.mean;
	p->per_s = f->load.mean / p->service_s;
	p->busiest_day = 1;
	for (int d = 0; d < FORECAST_WEEK_DAYS; d++)
		p->busiest_day = MAX(p->busiest_day, f->by_day[d]);
	p->per_s *= p->busiest_day;
	p->has_day = f->hours_differ;
	memcpy(p->curve, f->by_hour, sizeof(p->curve));
	return read_last_pod(ctx, p, err);
}

/* ---- the pool ---- */

/* Reads the pool from the ledger, if that is wanted, then from the flags, which replace it.
 * ERR_USAGE: a flag is missing, wrong, or too large. */
static int read_pool(const struct cmd_context *ctx, struct pool *p, struct err *err)
{
	const char *rate = opt_text(ctx, "rate"), *goal = opt_text(ctx, "wait"),
		   *gpu = opt_text(ctx, "gpu"), *day = opt_text(ctx, "day-curve");

	*p = (struct pool){.price_from = "as given"};
	if (read_ledger(ctx, p, err) < 0)
		return -1;
	if (!p->has_ledger && (!rate || !opt_has(ctx, "service")))
		return err_set(err, ERR_USAGE,
			       "give --rate (how many requests arrive) and --service (the time of "
			       "one), like --rate 1/s --service 10s, or --from-ledger");
	if (opt_has(ctx, "price") || gpu) {
		p->price_h = 0;
		COPY_TEXT(p->price_from, "as given");
	}
	if ((rate && read_rate(p, rate, err) < 0) ||
	    opt_seconds(ctx, "service", &p->service_s, err) < 0 ||
	    (goal && read_goal(p, goal, err) < 0) || (day && read_day(p, day, err) < 0) ||
	    opt_number(ctx, "price", &p->price_h, err) < 0 ||
	    (gpu && p->price_h <= 0 && read_list_price(p, gpu, err) < 0))
		return -1;
	if (p->service_s <= 0)
		return err_set(err, ERR_USAGE, "--service: it must be longer than 0");
	p->load = p->per_s * p->service_s;
	double most = p->load;
	for (int h = 0; h < DAY_HOURS; h++)
		most = MAX(most, p->load * p->curve[h]);
	if (most > DEMAND_LOAD_MOST)
		return err_set(
			err, ERR_USAGE,
			"%g requests a second of %g s keep %.0f pods busy: the limit is %.0f",
			p->per_s, p->service_s, most, DEMAND_LOAD_MOST);
	return 0;
}

/* Sets *day to the day of the pool, and returns the pool at its peak. */
static struct pool find_peak(const struct pool *p, struct day *day)
{
	struct pool peak = *p;

	day_size(day, p->curve, p->load, p->service_s, &p->goal);
	peak.per_s *= p->curve[day->peak];
	peak.load *= p->curve[day->peak];
	return peak;
}

/* Each column of the table is a member of the JSON objects, too. */
static const struct {
	const char *title, *key, *unit; /* unit "s": as short as it can be */
	int digits, spare;
	double scale;
	bool dollars; /* unknown without a price */
} columns[] = {
	{"USED", "used", "%", 1, TABLE_WHOLE, 100, false},
	{"WAIT AT ALL", "waits", "%", 2, TABLE_WHOLE, 100, false},
	{"MEAN WAIT", "mean_wait_s", "s", 1, TABLE_WHOLE, 1, false},
	{"P50", "p50_s", "s", 1, 3, 1, false},
	{"P95", "p95_s", "s", 1, TABLE_WHOLE, 1, false},
	{"P99", "p99_s", "s", 1, 2, 1, false},
	{"$/H", "usd_hour", "", 2, TABLE_WHOLE, 1, true},
	{"$/1000 REQUESTS", "usd_per_thousand", "", 4, 1, 1, true},
};

/* A value for each column, for a pool of this many pods. */
static void column_values(double to[ARRAY_LEN(columns)], const struct pool *p, int pods)
{
	const struct demand_size s = demand_size(pods, p->load, p->service_s);
	const double usd_h = pods * p->price_h;
	const double all[] = {s.used,  s.waits, s.mean_s, s.p50_s,
			      s.p95_s, s.p99_s, usd_h,    usd_h / 3600 / p->per_s * 1000};

	memcpy(to, all, sizeof(all));
}

/* The number of pods in the table's first row: fewer than that cannot keep up. */
static int fewest_shown(const struct pool *p, int chosen)
{
	return MAX((int)floor(p->load) + 1, chosen - ROWS_BELOW);
}

static void add_value_cell(struct table *t, size_t column, double value)
{
	bool seconds = !strcmp(columns[column].unit, "s");

	if (seconds && value > 0 && value < 0.001)
		table_cell(t, "<1ms");
	else if (seconds && value > 0 && value < 1)
		table_cell(t, "%.0fms", value * 1000);
	else
		table_cell(t, "%.*f%s", seconds && value >= 100 ? 0 : columns[column].digits,
			   columns[column].scale * value, columns[column].unit);
}

static void print_sizes(const struct pool *p, int chosen)
{
	CLEANUP(table_free) struct table *t = table_new();
	double values[ARRAY_LEN(columns)];

	table_column(t, "PODS", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		if (!columns[i].dollars || p->price_h > 0)
			table_column(t, columns[i].title, TABLE_RIGHT, columns[i].spare);
	table_column(t, "", TABLE_LEFT, TABLE_WHOLE);
	for (int pods = fewest_shown(p, chosen); pods <= chosen + ROWS_ABOVE; pods++) {
		column_values(values, p, pods);
		table_cell(t, "%d", pods);
		for (size_t i = 0; i < ARRAY_LEN(columns); i++)
			if (!columns[i].dollars || p->price_h > 0)
				add_value_cell(t, i, values[i]);
		table_cell(t, "%s", pods == chosen ? "<" : "");
	}
	table_print(t, stdout, terminal_width(stdout));
}

static void print_rate(const struct pool *p)
{
	char hour[32], each[32], busy[32];

	printf("%s requests an hour of %s s keep %s pods busy",
	       number_show(hour, p->per_s * 3600, 6), number_show(each, p->service_s, 6),
	       number_show(busy, p->load, 4));
}

static void print_goal(const struct pool *p, int chosen)
{
	printf("\n%d pod%s%s: ", chosen, chosen == 1 ? "" : "s", p->has_day ? " at the peak" : "");
	if (p->goal.share > 0)
		printf("the fewest with which %g%% of the requests wait at most %g s\n",
		       100 * p->goal.share, p->goal.wait_s);
	else if (p->goal.set)
		printf("the fewest with which the mean wait is at most %g s\n", p->goal.wait_s);
	else
		printf("about one request in ten waits; --wait p95=2s sizes for your own limit\n");
}

/* "50.4% used, $347.76 a day" */
static void print_day_use(const struct pool *p, double pods, double used)
{
	printf("%.1f%% used", 100 * used);
	if (p->price_h > 0)
		printf(", $%.2f a day", pods * DAY_HOURS * p->price_h);
	printf("\n");
}

static void print_day(const struct pool *p, const struct day *day)
{
	printf("that many all day: ");
	print_day_use(p, day->pods[day->peak], day->fixed_used);
	printf("a pool that follows the curve (%d to %d pods, %.1f on average): ",
	       day->pods[day->trough], day->pods[day->peak], day->mean_pods);
	print_day_use(p, day->mean_pods, day->following_used);
	printf("its pods from 00:00 on, hour by hour:");
	for (int h = 0; h < DAY_HOURS; h++)
		printf(" %d", day->pods[h]);
	printf("\n");
}

/* "8.5 a week (90% interval 6.1 to 10.9)": what the past runs show, a line for each. */
static void print_past(const struct pool *p)
{
	const struct forecast_demand *f = &p->past.of;
	char text[3][32];

	printf("%s: %zu run%s in the last %d weeks: %s %s a week (90%% interval %s to %s)\n",
	       p->past.job, f->arrivals, f->arrivals == 1 ? "" : "s", f->weeks,
	       number_show(text[0], f->per_week.mean, 3), request_word(p, false),
	       number_show(text[1], f->per_week.least, 3),
	       number_show(text[2], f->per_week.most, 3));
	printf("each %s computed for %s s on a pod (90%% interval %s to %s)\n",
	       request_word(p, true), number_show(text[0], f->service_s.mean, 3),
	       number_show(text[1], f->service_s.least, 3),
	       number_show(text[2], f->service_s.most, 3));
}

/* The busiest day of the week, if days differ. */
static int find_busiest_day(const struct forecast_demand *f)
{
	int best = 0;

	for (int d = 1; d < FORECAST_WEEK_DAYS; d++)
		if (f->by_day[d] > f->by_day[best])
			best = d;
	return best;
}

static void print_differences(const struct pool *p)
{
	static const char *const days[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
					   "Friday", "Saturday", "Sunday"};
	const struct forecast_demand *f = &p->past.of;
	char much[32];

	if (f->days_differ)
		printf("days of the week differ: sized for a %s, which has %s times the mean\n",
		       days[find_busiest_day(f)], number_show(much, p->busiest_day, 2));
	if (!f->hours_differ)
		printf("hours of the day differ by no more than chance: sized for the mean\n");
	if (p->segments)
		printf("segments of a run come at once, and wait longer than the table says\n");
}

/* The pods for both ends of the load's interval. */
static void size_interval(const struct pool *p, double peak_load, int *least, int *most)
{
	const struct forecast_mean *load = &p->past.of.load;

	*least = day_pods(&p->goal, peak_load * load->least / load->mean, p->service_s);
	*most = day_pods(&p->goal, MIN(peak_load * load->most / load->mean, DEMAND_LOAD_MOST),
			 p->service_s);
}

static void print_pool(const struct pool *p)
{
	struct day day;
	struct pool shown = *p;
	char low[32], high[32], price[32], slow[32];
	int least, most;

	if (p->has_ledger)
		print_past(p);
	print_rate(p);
	if (p->has_day) {
		shown = find_peak(p, &day);
		printf(" on average, %s from %02d:00 and %s from %02d:00 on",
		       number_show(low, day.load[day.trough], 4), day.trough,
		       number_show(high, shown.load, 4), day.peak);
	}
	printf("\n\n");
	int chosen = day_pods(&p->goal, shown.load, p->service_s);
	print_sizes(&shown, chosen);
	print_goal(p, chosen);
	if (p->has_ledger && !p->own_load) {
		size_interval(p, shown.load, &least, &most);
		printf("for the 90%% interval of the load: %d to %d pods\n", least, most);
		print_differences(p);
	}
	if (p->has_day)
		print_day(p, &day);
	if (p->price_h > 0)
		printf("price: $%s an hour and pod (%s), also while it is idle\n",
		       number_show(price, p->price_h, 6), p->price_from);
	else
		printf("no cost shown: give --price USD (an hour and pod) or --gpu GPU\n");
	if (p->has_cold)
		printf("cold start: a further pod works after %s s, one in ten later than %s s "
		       "(%s)\n",
		       number_show(low, cold_p50_s(&p->cold), 3),
		       number_show(slow, cold_p90_s(&p->cold), 3),
		       plan_source_name(cold_source(&p->cold)));
}

static json_t *sizes_json(const struct pool *p, int chosen)
{
	json_t *sizes = json_array();
	double values[ARRAY_LEN(columns)];

	for (int pods = fewest_shown(p, chosen); pods <= chosen + ROWS_ABOVE; pods++) {
		json_t *size = json_pack("{s:i}", "pods", pods);
		column_values(values, p, pods);
		for (size_t i = 0; i < ARRAY_LEN(columns); i++)
			json_object_set_new(size, columns[i].key,
					    columns[i].dollars && p->price_h <= 0
						    ? json_null()
						    : json_real(values[i]));
		json_array_append_new(sizes, size);
	}
	return sizes;
}

static json_t *day_json(const struct day *day)
{
	json_t *hours = json_array();

	for (int h = 0; h < DAY_HOURS; h++)
		json_array_append_new(
			hours, json_pack("{s:f,s:i}", "load", day->load[h], "pods", day->pods[h]));
	return json_pack("{s:i,s:f,s:f,s:f,s:o}", "peak_hour", day->peak, "used", day->fixed_used,
			 "mean_pods", day->mean_pods, "used_following", day->following_used,
			 "hours", hours);
}

static json_t *mean_json(const struct forecast_mean *m)
{
	return json_pack("{s:f,s:f,s:f}", "mean", m->mean, "least", m->least, "most", m->most);
}

static json_t *past_json(const struct pool *p, double peak_load)
{
	const struct forecast_demand *f = &p->past.of;
	json_t *hours = json_array();
	int least = 0, most = 0;

	for (int i = 0; i < FORECAST_HOURS; i++)
		json_array_append_new(hours, json_real(f->requests[i]));
	if (!p->own_load)
		size_interval(p, peak_load, &least, &most);
	return json_pack("{s:s,s:s,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:f,s:o,s:o}", "job",
			 p->past.job, "requests_are", request_word(p, false), "runs",
			 (int)f->arrivals, "weeks", f->weeks, "requests_per_week",
			 mean_json(&f->per_week), "service_s", mean_json(&f->service_s), "load",
			 mean_json(&f->load), "pods_least",
			 least ? json_integer(least) : json_null(), "pods_most",
			 most ? json_integer(most) : json_null(), "hours_differ", f->hours_differ,
			 "days_differ", f->days_differ, "busiest_day", p->busiest_day,
			 "by_hour_of_week", hours, "cold_start",
			 p->has_cold ? json_pack("{s:f,s:f,s:s}", "p50_s", cold_p50_s(&p->cold),
						 "p90_s", cold_p90_s(&p->cold), "source",
						 plan_source_name(cold_source(&p->cold)))
				     : json_null());
}

static json_t *pool_json(const struct pool *p)
{
	struct day day;
	struct pool shown = p->has_day ? find_peak(p, &day) : *p;
	int chosen = day_pods(&p->goal, shown.load, p->service_s);

	return json_pack("{s:f,s:f,s:f,s:i,s:o,s:o,s:o}", "requests_per_s", p->per_s, "service_s",
			 p->service_s, "load", p->load, "pods", chosen, "sizes",
			 sizes_json(&shown, chosen), "day",
			 p->has_day ? day_json(&day) : json_null(), "ledger",
			 p->has_ledger ? past_json(p, shown.load) : json_null());
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct pool p;

	if (read_pool(ctx, &p, err) < 0)
		return -1;
	if (ctx->json)
		output_json(pool_json(&p));
	else
		print_pool(&p);
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "rate", "RATE", "how many requests arrive: 1/s, 20/min, 50/h, 300/d"},
	{0, "service", "TIME", "mean time of one request on a pod"},
	{0, "wait", "GOAL", "size for this wait: p95=2s, p99=10s, mean=500ms"},
	{0, "day-curve", "SHARE[,HOUR]",
	 "the rate is a day's mean, and rises by this share at its peak (14:00): 50% or 50%,20; or "
	 "24 rates"},
	{0, "from-ledger", NULL,
	 "take rate, time of a request, day curve, price and cold start from past runs of this "
	 "folder's job; the other flags replace them"},
	{0, "job", "NAME", "for --from-ledger: runs of this job"},
	{0, "per", "run|segment", "for --from-ledger: what a request is (default: run)"},
	{0, "price", "USD", "price of a pod per hour"},
	{0, "gpu", "GPU", "take the lowest list price of this GPU"},
	{0},
};

const struct cmd cmd_size = {
	.name = "size",
	.summary = "size a pool of pods for requests that keep arriving",
	.details =
		"Prints the Erlang C table: for each number of pods, how much of their time they "
		"are used, how many requests wait and how long, and what the pool costs. Requests "
		"arrive at random (Poisson) and take exponentially distributed times; if all take "
		"the same time, the mean wait is about half. Needs no account and no config.\n\n"
		"With --day-curve the table is for the peak, and two lines compare a pool of that "
		"size with one that follows the curve hour by hour.\n\n"
		"--from-ledger looks at the whole ones of the last eight weeks, at least two, with "
		"ten runs that computed. A run counts at the hour of its start, and keeps a pod "
		"busy for its compute time. Hours, and days of the week, count only where they "
		"differ by more than chance.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.json = true,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
