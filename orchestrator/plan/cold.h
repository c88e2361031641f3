/* cold.h - the cold start of a pod, from the create call to its first batch, as a median and a 90th
 * percentile per phase. Pure. Plans use the median, promises of a deadline the 90th percentile. */
#ifndef BURST_PLAN_COLD_H
#define BURST_PLAN_COLD_H

#include <stddef.h>

#include "speed.h"

/* COLD_UNPACK: the environment, to the pod's disk. From COLD_IMPORT on: what workers do until
 * hello, where they tell it apart. COLD_LOAD is what is left of that time: all of it where they do
 * not. */
enum cold_phase {
	COLD_QUEUE,
	COLD_BOOT,
	COLD_CONNECT,
	COLD_SYNC,
	COLD_SETUP,
	COLD_UNPACK,
	COLD_IMPORT,
	COLD_READ,
	COLD_BUILD,
	COLD_WARM_UP,
	COLD_PROBE,
	COLD_LOAD,
	COLD_PHASES
};
const char *cold_phase_name(enum cold_phase phase); /* "queue", "boot", ... */

struct cold_time {
	double p50_s, p90_s;
	int samples; /* that it was learned from; 0: a prior */
};

struct cold {
	struct cold_time phase[COLD_PHASES];
	bool queue_is_free; /* the provider bills nothing before the container starts */
};

/* From seconds measured in earlier runs, in any order; `list` gets sorted. Fewer than three say
 * little about the slow tenth: then p90 keeps the distance that the prior has. */
struct cold_time cold_learn(double *list, size_t count, struct cold_time prior);

/* All phases. The p90 of a sum is less than the sum of the p90s: phases are taken as independent,
 * so what each may take beyond its median adds up as squares do. */
double cold_p50_s(const struct cold *c);   /* of a run's first pod, which sets up the environment */
double cold_setup_s(const struct cold *c); /* that part of it */
double cold_p90_s(const struct cold *c);
double cold_billed_p50_s(const struct cold *c);     /* without a queue that is free */
enum cold_phase cold_longest(const struct cold *c); /* by its median */
/* the weakest of the phases that take any time */
enum plan_source cold_source(const struct cold *c);

#endif
