/* stage_plan.c - says for `burst plan` what each stage would rent, and what it took before. */
#include <stdlib.h>

#include "base/clock.h"
#include "stages.h"
#include "wanted.h"

/* The cheapest offer of the first provider that has one. Reports no error: a stage is planned long
 * before it rents. */
static bool find_offer(struct launch *own, struct offer *out)
{
	bool found = false;

	for (int i = 0; i < own->run.setup.provider_count && !found; i++) {
		CLEANUP(wanted_free) struct wanted w = {0};
		struct op_result result = {0};
		struct err ignored = {0};
		if (launch_fetch_offers(own, i, false, LAUNCH_ASK_MS, &result, &ignored) < 0)
			continue;
		wanted_add(own, &w, result.offers, result.offer_count);
		wanted_end(&w);
		for (size_t k = 0; k < w.count; k++)
			if (!found || w.list[k].price_microusd_h < out->price_microusd_h) {
				*out = w.list[k];
				found = true;
			}
		op_result_free(&result);
	}
	return found;
}

static void plan_stage(struct plan_stage *to, struct launch *l, const struct stage *s)
{
	struct engine_setup *setup;
	struct launch own;
	struct run_row run;
	char day[32];

	*to = (struct plan_stage){.name = s->name, .pods = s->pods};
	launch_within(&own, l);
	stage_shape(&own.order, s);
	own.order.spot = false;
	setup = &own.run.setup;
	memcpy(setup->providers, l->run.setup.providers, sizeof(setup->providers));
	setup->provider_count = l->run.setup.provider_count;
	to->offered = find_offer(&own, &to->offer);
	setup->provider_count = 0; /* they are the other run's */
	launch_free(&own);
	if (stage_newest(&l->ctx->runs, l->order.config, l->order.job, s->name, true, &run, NULL) <=
		    0 ||
	    run.ended_ms <= run.started_ms)
		return;
	to->took_ms = run.ended_ms - run.started_ms;
	to->cost_microusd = run.cost_microusd;
	snprintf(to->from, sizeof(to->from), "as run %s took on %.10s", run.id,
		 clock_rfc3339(day, sizeof(day), run.started_ms));
}

size_t stages_plan(struct launch *l, struct plan_stage **out)
{
	struct stages stages;

	stages_read(&stages, l->ctx->config);
	*out = xcalloc(stages.count + 1, sizeof(**out));
	for (size_t i = 0; i < stages.count; i++)
		plan_stage(&(*out)[i], l, &stages.list[i]);
	free(stages.list);
	return stages.count;
}
