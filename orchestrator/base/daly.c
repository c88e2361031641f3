/* daly.c - how often to save work that may be cut off. */
#include "daly.h"

/* The agent is linked without the library of mathematics. */
static double root(double x)
{
	double r = x > 1 ? x : 1;

	for (int i = 0; i < 200; i++)
		r = (r + x / r) / 2;
	return r;
}

static double daly_every_s(double save_s, double between_s)
{
	if (save_s <= 0 || between_s <= 0)
		return 0;
	if (save_s >= 2 * between_s)
		return between_s;
	double young = root(2 * save_s * between_s);

	return young * (1 + root(save_s / (2 * between_s)) / 3 + save_s / (18 * between_s)) -
	       save_s;
}

double checkpoint_every_s(double save_s, double between_s)
{
	enum { LEAST_S = 10, MOST_S = 1800 };
	double every_s = daly_every_s(save_s, between_s);

	return every_s <= 0 ? 0 : every_s < LEAST_S ? LEAST_S : every_s > MOST_S ? MOST_S : every_s;
}
