/* plan_figures.h - what a plan was made from: each figure with its interval and its source */
#ifndef BURST_CMD_SHOW_PLAN_FIGURES_H
#define BURST_CMD_SHOW_PLAN_FIGURES_H

#include "plan/cost.h"
#include "plan_show.h"

enum { PLAN_FIGURES = COLD_PHASES + 3 };

struct plan_figure {
	const char *name;     /* "price", "speed", a phase of a cold start, "interruptions" */
	const char *unit;     /* "usd_hour", "s"; "factor": of all batch times */
	const char *source;   /* "prior", "carried over", "measured"; of prices: "quote", ... */
	double p10, p50, p90; /* one time in ten it is less, or more; INFINITY: not known */
	int samples;          /* runs, pods, looks or interruptions that it is from; 0: none here */
	bool moves;           /* a price that earlier looks found at other values */
	char from[EXTRAS_FROM];
};

/* All figures of the machine that the plan is for. Returns how many. */
size_t plan_figures(struct plan_figure out[PLAN_FIGURES], const struct estimate *e,
		    const struct plan *pick);
/* NULL: there is none of this name. */
const struct plan_figure *plan_figure_find(const struct plan_figure *list, size_t count,
					   const char *name);

#endif
