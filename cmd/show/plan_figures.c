/* plan_figures.c - what a plan was made from: each figure with its interval and its source. */
#include "plan_figures.h"

#include <math.h>

#include "base/clock.h"
#include "plan/cost.h"

static void fill_price(struct plan_figure *f, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	const struct forecast_prices *seen = &e->extras[pick->machine].prices;
	double least = (double)seen->least / 1e6, most = (double)seen->most / 1e6;
	char low[32], high[32];

	*f = (struct plan_figure){.name = "price",
				  .unit = "usd_hour",
				  .source = e->price_source,
				  .p10 = m->price_h,
				  .p50 = m->price_h,
				  .p90 = m->price_h,
				  .samples = seen->looks};
	if (seen->looks) {
		f->p10 = MIN(least, m->price_h);
		f->p90 = MAX(most, m->price_h);
	}
	f->moves = f->p90 > f->p10;
	if (f->moves)
		format_text(f->from, sizeof(f->from),
			    "%s; %s to %s in eight looks of ten, %d in %d day%s", e->price_from,
			    plan_dollars(low, f->p10), plan_dollars(high, f->p90), seen->looks,
			    seen->days, seen->days == 1 ? "" : "s");
	else if (seen->looks > 1)
		format_text(f->from, sizeof(f->from), "%s; the same in %d looks in %d day%s",
			    e->price_from, seen->looks, seen->days, seen->days == 1 ? "" : "s");
	else
		copy_text(f->from, sizeof(f->from), e->price_from);
}

static void fill_speed(struct plan_figure *f, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	double factor = plan_speed_factor(m);

	*f = (struct plan_figure){.name = "speed",
				  .unit = "factor",
				  .source = plan_source_name(m->speed_source),
				  .p10 = 1 / factor,
				  .p50 = 1,
				  .p90 = factor,
				  .samples = m->speed_runs};
	copy_text(f->from, sizeof(f->from), e->speed_from[pick->machine]);
}

static void fill_phase(struct plan_figure *f, const struct estimate *e, const struct plan *pick,
		       enum cold_phase phase)
{
	const struct cold *cold = &e->machines[pick->machine].cold;
	const struct cold_time *t = &cold->phase[phase];
	const struct extras *x = &e->extras[pick->machine];
	bool told = x->boot_delay_s > 0 && phase == (cold->queue_is_free ? COLD_BOOT : COLD_QUEUE);
	char delay[24];

	*f = (struct plan_figure){.name = cold_phase_name(phase),
				  .unit = "s",
				  .source =
					  plan_source_name(t->samples ? PLAN_MEASURED : PLAN_PRIOR),
				  .p10 = spread_p10(t->p50_s, t->p90_s),
				  .p50 = t->p50_s,
				  .p90 = t->p90_s,
				  .samples = t->samples};
	if (t->samples)
		format_text(f->from, sizeof(f->from), "%d pod%s, %s", t->samples,
			    t->samples == 1 ? "" : "s", x->pods_seen);
	else
		format_text(f->from, sizeof(f->from), "%s%s%s",
			    prior_of_provider(e->offers[pick->machine].provider)->seen,
			    told ? ", and a boot_delay of " : "",
			    told ? plan_seconds(delay, x->boot_delay_s) : "");
}

/* The guess is as good as one interruption in that time. */
static void fill_interruptions(struct plan_figure *f, const struct estimate *e,
			       const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	const struct extras *x = &e->extras[pick->machine];
	int events = x->interrupted.measured ? m->interruptions : 1;
	struct between_limits limits =
		cost_between_limits(events, x->interrupted.value * MAX(events, 1), .1);

	*f = (struct plan_figure){
		.name = "interruptions",
		.unit = "s",
		.source = plan_source_name(x->interrupted.measured ? PLAN_MEASURED : PLAN_PRIOR),
		.p10 = limits.low_s,
		.p50 = x->interrupted.value,
		.p90 = limits.high_s,
		.samples = m->interruptions};
	copy_text(f->from, sizeof(f->from), x->interrupted.from);
}

size_t plan_figures(struct plan_figure out[PLAN_FIGURES], const struct estimate *e,
		    const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	size_t count = 0;

	if (!plan_is_unpriced(e, pick->machine))
		fill_price(&out[count++], e, pick);
	fill_speed(&out[count++], e, pick);
	for (int i = 0; i < COLD_PHASES; i++)
		if (m->cold.phase[i].p90_s > 0)
			fill_phase(&out[count++], e, pick, (enum cold_phase)i);
	if (e->extras[pick->machine].interrupted.value > 0)
		fill_interruptions(&out[count++], e, pick);
	return count;
}

const struct plan_figure *plan_figure_find(const struct plan_figure *list, size_t count,
					   const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}
