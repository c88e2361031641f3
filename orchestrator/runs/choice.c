/* choice.c - turns a plan into what its run starts with, and into what it may change later. */
#include "choice.h"

#include <math.h>
#include <stdlib.h>

#include "base/files.h"

enum { PODS_MOST = 64 }; /* to which a run may widen by itself */

/* The cheapest plan of each GPU, the cheapest GPU first. `best` has room for one plan of each
 * offer. Returns the count. */
static size_t rank_gpus(struct plan *best, const struct estimate *e)
{
	size_t count = 0;

	for (size_t i = 0; i < e->count; i++) {
		struct plan p;
		size_t at = 0;
		if (plan_choose(&p, &e->work, &e->machines[i], 1, &e->wish) == PLAN_NOTHING_FITS)
			continue;
		p.machine = (int)i;
		while (at < count && strcmp(e->offers[best[at].machine].gpu, e->offers[i].gpu) != 0)
			at++;
		if (at < count && best[at].cost_usd <= p.cost_usd)
			continue;
		count += at == count; /* at changes below */
		for (; at > 0 && best[at - 1].cost_usd > p.cost_usd; at--)
			best[at] = best[at - 1];
		best[at] = p;
	}
	return count;
}

static char **order_gpus(const struct estimate *e)
{
	struct plan *best = xcalloc(e->count + 1, sizeof(*best));
	size_t count = rank_gpus(best, e);
	char **order = count ? xcalloc(count + 1, sizeof(*order)) : NULL;

	for (size_t i = 0; i < count; i++)
		order[i] = xstrdup(e->offers[best[i].machine].gpu);
	free(best);
	return order;
}

/* Makes a forecast for each GPU of a provider. */
static void forecast(struct run_choice *c, const struct estimate *e)
{
	size_t n, *count = &c->plan.forecast_count;

	c->forecasts = xcalloc(e->count + 1, sizeof(*c->forecasts));
	for (size_t i = 0; i < e->count; i++) {
		const struct plan_machine *m = &e->machines[i];
		const struct offer *o = &e->offers[i];
		for (n = 0; n < *count; n++)
			if (!strcmp(c->forecasts[n].provider, o->provider) &&
			    !strcmp(c->forecasts[n].gpu, o->gpu))
				break;
		if (n < *count || m->batch_max <= 0)
			continue;
		struct core_forecast *f = &c->forecasts[(*count)++];
		*f = (struct core_forecast){.speed = m->speed,
					    .measured = m->speed_source == PLAN_MEASURED,
					    .host_share = m->host_share,
					    .batch_max = m->batch_max,
					    .cold_p50_s = cold_p50_s(&m->cold),
					    .cold_p90_s = cold_p90_s(&m->cold)};
		COPY_TEXT(f->provider, o->provider);
		COPY_TEXT(f->gpu, o->gpu);
	}
	c->plan.forecasts = c->forecasts;
}

/* How many pods the run may widen to. */
static int widest(const struct estimate *e, const struct plan *pick)
{
	int most = MIN(MIN((int)MIN(e->open, (size_t)PODS_MOST),
			   engine_pods_fit(files_raise(), files_open())),
		       PODS_MOST);
	int helpful = e->machines[pick->machine].pods_max;

	return helpful > 0 ? MIN(most, helpful) : most;
}

void run_choose(struct run_choice *out, const struct estimate *e, const struct plan *pick,
		const struct job_needs *needs, const struct run_open *open)
{
	bool pods_open = open->pods && !needs->command;

	*out = (struct run_choice){
		.pods = pods_open ? pick->pods : 0,
		.at_once = pick->pods > 1 && !e->wish.staged,
		.gpus = open->gpus && needs->gpu ? order_gpus(e) : NULL,
		.plan = {.goal = e->wish.goal,
			 .value_of_time_h = e->wish.value_of_time_h,
			 .cost_microusd = (int64_t)llround(pick->pods_usd * 1e6),
			 .deadline_ms = open->deadline_ms,
			 .pods_open = pods_open,
			 .pods_most = pods_open ? widest(e, pick) : 0,
			 .gpus_open = open->gpus},
	};
	forecast(out, e);
}

void run_choice_free(struct run_choice *c)
{
	for (char **gpu = c->gpus; gpu && *gpu; gpu++)
		free(*gpu);
	free(c->gpus);
	free(c->forecasts);
	*c = (struct run_choice){0};
}
