/* estimate.c - estimates for what the config wishes of a plan. */
#include "estimate.h"

#include "base/clock.h"
#include "wish.h"

static int plan_wishes(struct launch *l, struct plan_wish *wish, struct err *err)
{
	const struct choice_row *row = &l->choice.row;

	if (wish_read(l, err) < 0 || wish_in_time(l, err) < 0)
		return -1;
	plan_goal_find(row->goal, &wish->goal);
	wish->value_of_time_h = (double)row->value_of_time_microusd / 1e6;
	wish->budget_usd = (double)l->order.max_cost_microusd / 1e6;
	/* no pod outlives it */
	wish->deadline_s = (double)l->order.max_duration_ms / 1000;
	wish->staged = wish->goal == PLAN_COST && !row->deadline_ms;
	wish->pods = row->pods_open ? 0 : row->pods;
	if (row->deadline_ms) {
		double left_s = (double)(row->deadline_ms - clock_wall_ms()) / 1000;
		wish->deadline_s = wish->deadline_s > 0 ? MIN(wish->deadline_s, left_s) : left_s;
	}
	return 0;
}

/* A provider may have the key; most charge nothing. It need not be open. */
static bool egress_price(void *ctx, const char *provider, double *usd_gb)
{
	const struct launch *l = ctx;
	const struct provider_ops *ops = provider_find(provider);
	const struct section *conf = ops ? config_provider(l->ctx->config, provider) : NULL;
	const struct option_spec *o = conf ? ops->options : NULL;

	while (o && o->key && strcmp(o->key, "egress_price") != 0)
		o++;
	if (!o || !o->key)
		return false;
	*usd_gb = (double)section_int(conf, "egress_price") / 1e6;
	return section_has(conf, "egress_price");
}

int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count,
		  struct err *err)
{
	const struct order *o = &l->order;
	struct estimate_of of = {
		.run = &l->run,
		.config = o->config,
		.job = o->job,
		.image = o->image,
		.volume = o->volume,
		.volume_gb = o->volume_gb,
		.stages = o->stages,
		.gpus_named = o->gpus != NULL,
		.egress_price = egress_price,
		.ctx = l,
	};

	*out = (struct estimate){0};
	if (plan_wishes(l, &of.wish, err) < 0)
		return -1;
	estimate_fill(out, &of, offers, count);
	return 0;
}
