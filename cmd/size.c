/* size.c - burst size: how many pods a stream of requests needs so that they do not wait long, and
 * what those cost. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "cmd.h"
#include "cmd/show/output.h"
#include "plan/demand.h"
#include "plan/prior.h"
#include "cmd/show/table.h"

enum { ROWS_BELOW = 7, ROWS_ABOVE = 3 }; /* of the table, around the size that is recommended */

struct request {
	double per_s, service_s, load;
	double price_h; /* of a pod; 0: not known */
	char price_from[64];
	bool has_goal;
	struct demand_goal goal;
};

static int read_price(const struct cmd_context *ctx, struct request *r, struct err *err)
{
	const char *price = opt_text(ctx, "price"), *name = opt_text(ctx, "gpu"), *seen = NULL;
	int64_t microusd = 0;

	if (price) {
		if (money_parse(price, &microusd, err) < 0)
			return err_wrap(err, "--price");
		r->price_h = (double)microusd / 1e6;
		COPY_TEXT(r->price_from, "as given");
		return 0;
	}
	if (!name)
		return 0;
	const struct gpu *gpu = gpu_find(name);
	if (!gpu)
		return err_set(err, ERR_USAGE,
			       "--gpu: no GPU is called \"%.40s\"; `burst gpus` lists them", name);
	for (int m = MARKET_SECURE; m < MARKETS; m++) {
		double listed = prior_list_price(gpu->name, (enum market)m, &seen);
		if (listed <= 0 || (r->price_h > 0 && r->price_h <= listed))
			continue;
		r->price_h = listed;
		snprintf(r->price_from, sizeof(r->price_from), "%s, list price of %s, %s",
			 gpu->name, market_names[m], seen);
	}
	if (r->price_h <= 0)
		return err_set(err, ERR_USAGE,
			       "--gpu: no list price of %s is known: give --price USD", gpu->name);
	return 0;
}

static int read_request(const struct cmd_context *ctx, struct request *r, struct err *err)
{
	const char *rate = opt_text(ctx, "rate"), *wait = opt_text(ctx, "wait");
	int64_t service_ms = 0;

	if (!rate || !opt_has(ctx, "service"))
		return err_set(err, ERR_USAGE,
			       "give --rate (how many requests arrive) and --service (the time "
			       "of one), like --rate 1/s --service 10s");
	if (!demand_read_rate(rate, &r->per_s))
		return err_set(
			err, ERR_USAGE,
			"--rate: \"%.40s\" must be requests in a time: 1/s, 20/min, 50/h or 300/d",
			rate);
	if (opt_duration(ctx, "service", &service_ms, err) < 0)
		return -1;
	if (service_ms == 0)
		return err_set(err, ERR_USAGE, "--service: it must be longer than 0");
	r->service_s = (double)service_ms / 1000;
	r->load = r->per_s * r->service_s;
	if (r->load > DEMAND_LOAD_MOST)
		return err_set(err, ERR_USAGE,
			       "--rate %s with --service %gs keeps %.0f pods busy: the limit is "
			       "%.0f",
			       rate, r->service_s, r->load, DEMAND_LOAD_MOST);
	r->has_goal = wait != NULL;
	if (wait && !demand_read_goal(wait, &r->goal))
		return err_set(err, ERR_USAGE,
			       "--wait: \"%.40s\" must be a percentile or mean, and the longest "
			       "wait, like p95=2s or mean=500ms",
			       wait);
	return read_price(ctx, r, err);
}

static int recommend(const struct request *r)
{
	if (!r->has_goal)
		return demand_pods_rule(r->load);
	return r->goal.share > 0
		       ? demand_pods_for_wait(r->load, r->service_s, r->goal.share, r->goal.wait_s)
		       : demand_pods_for_mean(r->load, r->service_s, r->goal.wait_s);
}

static int first_row(const struct request *r, int pods)
{
	return MAX((int)floor(r->load) + 1, pods - ROWS_BELOW);
}

static double usd_per_thousand(const struct request *r, int pods)
{
	return pods * r->price_h / 3600 / r->per_s * 1000;
}

static void cell_seconds(struct table *t, double s)
{
	if (s > 0 && s < 0.001)
		table_cell(t, "<1ms");
	else if (s > 0 && s < 1)
		table_cell(t, "%.0fms", s * 1000);
	else
		table_cell(t, s < 100 ? "%.1fs" : "%.0fs", s);
}

static void print_table(const struct request *r, int pods)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "PODS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "USED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "WAIT AT ALL", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "MEAN WAIT", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "P50", TABLE_RIGHT, 3);
	table_column(t, "P95", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "P99", TABLE_RIGHT, 2);
	if (r->price_h > 0) {
		table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
		table_column(t, "$/1000 REQUESTS", TABLE_RIGHT, 1);
	}
	table_column(t, "", TABLE_LEFT, TABLE_WHOLE);
	for (int n = first_row(r, pods); n <= pods + ROWS_ABOVE; n++) {
		struct demand_size s = demand_size(n, r->load, r->service_s);
		table_cell(t, "%d", n);
		table_cell(t, "%.1f%%", 100 * s.used);
		table_cell(t, "%.2f%%", 100 * s.waits);
		cell_seconds(t, s.mean_s);
		cell_seconds(t, s.p50_s);
		cell_seconds(t, s.p95_s);
		cell_seconds(t, s.p99_s);
		if (r->price_h > 0) {
			table_cell(t, "%.2f", n * r->price_h);
			table_cell(t, "%.4f", usd_per_thousand(r, n));
		}
		table_cell(t, "%s", n == pods ? "<" : "");
	}
	table_print(t, stdout, terminal_width(stdout));
}

static void print_all(const struct request *r, int pods)
{
	printf("%g requests an hour of %g s keep %.4g pods busy\n\n", r->per_s * 3600, r->service_s,
	       r->load);
	print_table(r, pods);
	printf("\n%d pod%s: ", pods, pods == 1 ? "" : "s");
	if (r->has_goal && r->goal.share > 0)
		printf("the fewest with which %g%% of the requests wait at most %g s\n",
		       100 * r->goal.share, r->goal.wait_s);
	else if (r->has_goal)
		printf("the fewest with which the mean wait is at most %g s\n", r->goal.wait_s);
	else
		printf("about one request in ten waits; --wait p95=2s sizes for your own limit\n");
	if (r->price_h > 0)
		printf("price: $%g an hour and pod (%s), paid while pods are idle, too\n",
		       r->price_h, r->price_from);
	else
		printf("no cost shown: give --price USD (an hour and pod) or --gpu GPU\n");
}

static json_t *all_json(const struct request *r, int chosen)
{
	json_t *sizes = json_array();

	for (int n = first_row(r, chosen); n <= chosen + ROWS_ABOVE; n++) {
		struct demand_size s = demand_size(n, r->load, r->service_s);
		json_t *o = json_pack("{s:i,s:f,s:f,s:f,s:f,s:f,s:f}", "pods", n, "used", s.used,
				      "waits", s.waits, "mean_wait_s", s.mean_s, "p50_s", s.p50_s,
				      "p95_s", s.p95_s, "p99_s", s.p99_s);
		json_object_set_new(o, "usd_hour",
				    r->price_h > 0 ? json_real(n * r->price_h) : json_null());
		json_object_set_new(o, "usd_per_thousand",
				    r->price_h > 0 ? json_real(usd_per_thousand(r, n))
						   : json_null());
		json_array_append_new(sizes, o);
	}
	return json_pack("{s:f,s:f,s:f,s:i,s:o}", "requests_per_s", r->per_s, "service_s",
			 r->service_s, "load", r->load, "pods", chosen, "sizes", sizes);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct request r = {0};

	if (read_request(ctx, &r, err) < 0)
		return -1;
	int pods = recommend(&r);
	if (ctx->json)
		output_json(all_json(&r, pods));
	else
		print_all(&r, pods);
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "rate", "RATE", "how many requests arrive: 1/s, 20/min, 50/h, 300/d", NULL, false},
	{0, "service", "TIME", "mean time of one request on a pod", NULL, false},
	{0, "wait", "GOAL", "size for this wait: p95=2s, p99=10s, mean=500ms", NULL, false},
	{0, "price", "USD", "price of a pod per hour", NULL, false},
	{0, "gpu", "GPU", "take the lowest list price of this GPU", NULL, false},
	{0},
};

const struct cmd cmd_size = {
	.name = "size",
	.summary = "size a pool of pods for requests that keep arriving",
	.details = "Prints the Erlang C table: for each number of pods, how much of their time "
		   "they are used, how many requests wait and how long, and what the "
		   "pool costs. Requests arrive at random (Poisson) and take exponentially "
		   "distributed times; if all take the same time, the mean wait is about "
		   "half. Needs no account and no config.",
	.opts = opts,
	.json = true,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
