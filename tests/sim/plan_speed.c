/* plan_speed.c - runs whose speeds and prices are not as planned. */
#include <stdlib.h>

#include "pool.h"

void plan_planned(struct plan *p, uint64_t seed)
{
	uint64_t state = seed * 0x9fb21c651e98df25ull + 0x6a09e667f3bcc909ull, *r = &state;

	for (int i = 0; i < p->client_count; i++) {
		p->jobs[i].conf.at_once = roll_chance(r, 10);
		p->jobs[i].padded = !p->jobs[i].conf.command && roll_chance(r, 20);
	}
	for (int i = 0; i < p->client_count; i++)
		p->jobs[i].continuous =
			!p->jobs[i].conf.command && !p->jobs[i].padded && roll_chance(r, 25);
}

/* Work for several pods that boot soon, so that a plan has something to change. */
static void make_long(struct plan *p, struct job_plan *job, uint64_t *r)
{
	free(job->segments);
	p->ms_per_weight = MAX(p->ms_per_weight, roll_in(r, 1000, 20000));
	job->count = (size_t)roll_in(r, 30, 90);
	job->segments = xcalloc(job->count, sizeof(*job->segments));
	for (size_t i = 0; i < job->count; i++) {
		double weight = (double)roll_in(r, 1, 10);
		job->segments[i] =
			(struct core_segment){.weight = weight,
					      .est_s = weight * (double)p->ms_per_weight / 1000,
					      .group = (uint32_t)i % 2};
	}
	job->conf.max_batch = job->conf.command ? 1 : (int)roll_in(r, 1, 4);
	job->conf.max_duration_ms = job->conf.max_duration_ms ? 3 * (int64_t)HOUR_MS : 0;
	job->conf.at_once = roll_chance(r, 50);
	job->conf.plan.deadline_ms = roll_chance(r, 60) ? roll_in(r, 5 * 60000, HOUR_MS) : 0;
	p->prepare_ms = MIN(p->prepare_ms, 20000);
	/* late pods are released if the others are faster than planned */
	if (roll_chance(r, 40)) {
		job->conf.at_once = job->conf.plan.pods_open = true;
		job->conf.pods = (int)roll_in(r, 2, 4);
		job->conf.plan.pods_most = 8;
		job->conf.plan.goal = PLAN_COST;
		job->conf.plan.deadline_ms = 0;
		job->conf.boot_limit_ms = 600000;
		job->off_percent = (int)roll_in(r, 20, 45);
		for (int i = (int)roll_in(r, 1, LATE_BOOTS_MAX); i > 0; i--)
			plan_add_leftover(p, F_BOOT_SLOW, i, roll_in(r, 60000, 600000), 0);
	}
	for (int v = 0; v < p->vendors_made; v++)
		p->vendors[v].capacity[0] = MAX(p->vendors[v].capacity[0], 4);
}

static void make_forecast(struct plan *p, struct job_plan *job, uint64_t *r)
{
	struct core_plan *plan = &job->conf.plan;

	job->planned = true;
	job->off_percent = (int)(roll_chance(r, 50) ? roll_in(r, 100, 800) : roll_in(r, 20, 200));
	plan->goal = (enum plan_goal)roll_in(r, PLAN_COST, PLAN_BALANCED);
	plan->value_of_time_h = (double)roll_in(r, 1, 20);
	plan->deadline_ms = roll_chance(r, 40) ? roll_spread(r, 60000, 2 * HOUR_MS) : 0;
	plan->pods_open = roll_chance(r, 70);
	plan->pods_most = plan->pods_open ? (int)roll_in(r, job->conf.pods, 8) : job->conf.pods;
	plan->gpus_open = roll_chance(r, 70);
	plan->cost_microusd = roll_in(r, 0, 100000);
	for (int v = 0; v < p->vendors_made; v++)
		for (int i = 0; i < p->vendors[v].offer_count; i++) {
			struct core_forecast *f = &job->forecasts[plan->forecast_count++];
			COPY_TEXT(f->provider, p->vendors[v].offers[i].provider);
			COPY_TEXT(f->gpu, p->vendors[v].offers[i].gpu);
			f->measured = roll_chance(r, 30);
			f->batch_max = job->conf.max_batch;
			f->cold_p50_s =
				(double)(p->vendors[v].boot_ms + p->prepare_ms + p->load_ms) / 1000;
			f->cold_p90_s = f->cold_p50_s * (double)roll_in(r, 100, 300) / 100;
		}
}

void plan_replans(struct plan *p, uint64_t seed)
{
	uint64_t state = seed * 0xd1342543de82ef95ull + 0x3c6ef372fe94f82bull, *r = &state;

	if (!roll_chance(r, 15))
		return;
	for (int i = 0; i < p->client_count; i++)
		if (!p->jobs[i].conf.detached && (i == 0 || roll_chance(r, 50)))
			make_forecast(p, &p->jobs[i], r);
	for (int v = 0; v < p->vendors_made; v++)
		for (int i = 0; i < p->vendors[v].offer_count; i++)
			p->vendors[v].slow[i] = roll_chance(r, 50) ? 0 : (int)roll_in(r, 20, 400);
	for (int i = (int)roll_in(r, 0, PRICES_MAX); i-- > 0;)
		plan_add_leftover(p, F_PRICE_MOVES, 0, roll_spread(r, 10000, HOUR_MS),
				  (int)roll_in(r, 0, 1 << 20));
	if (roll_chance(r, 60) && p->jobs[0].planned)
		make_long(p, &p->jobs[0], r);
}

void plan_measuring(struct plan *p, uint64_t seed)
{
	static const int sizes[] = {1, 1, 2, 4, 8};
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 0x51ed270b27b4f3cdull, *r = &state;

	for (int i = 0; i < p->client_count; i++) {
		struct core_conf *c = &p->jobs[i].conf;
		if (!roll_chance(r, 4) || c->detached || c->command)
			continue;
		c->canary = false;
		c->batch_sizes = sizes;
		c->batch_size_count = ARRAY_LEN(sizes);
	}
}
