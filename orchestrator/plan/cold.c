/* cold.c - learns how long pods take to come up. */
#include "cold.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

const char *cold_phase_name(enum cold_phase phase)
{
	static const char *const names[] = {"queue", "boot",    "connect", "sync",
					    "setup", "unpack",  "import",  "read",
					    "build", "warm-up", "probe",   "load"};

	return phase < COLD_PHASES ? names[phase] : "";
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Between two samples, a straight line. */
static double quantile(const double *sorted, size_t count, double q)
{
	double at = q * (double)(count - 1);
	size_t below = (size_t)at;
	double part = at - (double)below;

	return below + 1 < count ? sorted[below] * (1 - part) + sorted[below + 1] * part
				 : sorted[below];
}

struct cold_time cold_learn(double *list, size_t count, struct cold_time prior)
{
	struct cold_time t = prior;

	if (count == 0)
		return t;
	qsort(list, count, sizeof(*list), by_size);
	t.samples = (int)count;
	t.p50_s = quantile(list, count, 0.5);
	t.p90_s = quantile(list, count, 0.9);
	if (count < 3)
		t.p90_s = MAX(t.p90_s, t.p50_s + (prior.p90_s - prior.p50_s));
	return t;
}

double cold_p50_s(const struct cold *c)
{
	double sum = 0;

	for (int i = 0; i < COLD_PHASES; i++)
		sum += c->phase[i].p50_s;
	return sum;
}

double cold_setup_s(const struct cold *c)
{
	return c->phase[COLD_SETUP].p50_s;
}

double cold_p90_s(const struct cold *c)
{
	double squares = 0;

	for (int i = 0; i < COLD_PHASES; i++) {
		double beyond = MAX(c->phase[i].p90_s - c->phase[i].p50_s, 0.0);
		squares += beyond * beyond;
	}
	return cold_p50_s(c) + sqrt(squares);
}

double cold_billed_p50_s(const struct cold *c)
{
	return cold_p50_s(c) - (c->queue_is_free ? c->phase[COLD_QUEUE].p50_s : 0);
}

enum cold_phase cold_longest(const struct cold *c)
{
	int longest = 0;

	for (int i = 1; i < COLD_PHASES; i++)
		if (c->phase[i].p50_s > c->phase[longest].p50_s)
			longest = i;
	return (enum cold_phase)longest;
}

enum plan_source cold_source(const struct cold *c)
{
	for (int i = 0; i < COLD_PHASES; i++)
		if (!c->phase[i].samples && c->phase[i].p90_s > 0)
			return PLAN_PRIOR;
	return PLAN_MEASURED;
}
