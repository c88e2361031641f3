/* size.c - `burst size`: computes how many pods a stream of requests needs for short waits, and
 * their cost. */
#include "cmd.h"

#include "base/clock.h"
#include "base/gpus.h"
#include "cmd/show/output.h"
#include "cmd/show/sizing.h"
#include "plan/demand.h"
#include "plan/cost.h"

static int read_price(const struct cmd_context *ctx, struct size_request *r, struct err *err)
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

static int read_request(const struct cmd_context *ctx, struct size_request *r, struct err *err)
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

static int recommend(const struct size_request *r)
{
	if (!r->has_goal)
		return demand_pods_rule(r->load);
	return r->goal.share > 0
		       ? demand_pods_for_wait(r->load, r->service_s, r->goal.share, r->goal.wait_s)
		       : demand_pods_for_mean(r->load, r->service_s, r->goal.wait_s);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct size_request r = {0};

	if (read_request(ctx, &r, err) < 0)
		return -1;
	int pods = recommend(&r);
	if (ctx->json)
		output_json(size_table_json(&r, pods));
	else
		size_table_print(&r, pods);
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
