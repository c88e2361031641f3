/* speed.c - predicts the time of a batch, from measured batches, another GPU or an engine's own
 * figures. */
#include "speed.h"

#include <math.h>

#include "base/mem.h"
#include "spread.h"

const char *plan_source_name(enum plan_source source)
{
	switch (source) {
	case PLAN_PRIOR: return "prior";
	case PLAN_CARRIED: return "carried over";
	case PLAN_MEASURED: return "measured";
	}
	return "";
}

double speed_batch_s(const struct speed *s, double longest, double sum)
{
	return s->once_s + s->longest_s * longest + s->each_s * sum;
}

double speed_gain(const struct speed *s, double length, double b)
{
	double one = speed_batch_s(s, length, length), all = speed_batch_s(s, length, length * b);

	return all > 0 ? b * one / all : 1;
}

/* ---- learning ---- */

void speed_add(struct speed_sums *s, double longest, double sum, double seconds)
{
	s->n += 1;
	s->longest += longest;
	s->sum += sum;
	s->longest2 += longest * longest;
	s->longest_sum += longest * sum;
	s->sum2 += sum * sum;
	s->t += seconds;
	s->longest_t += longest * seconds;
	s->sum_t += sum * seconds;
	s->batches += 1;
}

void speed_add_share(struct speed_sums *s, double sum, double seconds)
{
	speed_add(s, 0, sum, seconds);
	/* no work takes no time: else what is alike in all of them would seem to be the price of a
	 * batch */
	s->n += 1;
}

void speed_decay(struct speed_sums *s, double factor)
{
	s->n *= factor;
	s->longest *= factor;
	s->sum *= factor;
	s->longest2 *= factor;
	s->longest_sum *= factor;
	s->sum2 *= factor;
	s->t *= factor;
	s->longest_t *= factor;
	s->sum_t *= factor;
}

enum { PARTS = 3 };
/* Below this angle between two columns, noise exceeds what distinguishes them. */
#define COLLINEAR 1e-3

/* Solves the normal equations for the parts in `use` (bits), the others 0. False: these batches do
 * not tell them apart. */
static bool solve(double x[PARTS], const double m[PARTS][PARTS], const double y[PARTS],
		  unsigned use)
{
	int part[PARTS], n = 0;
	double a[PARTS][PARTS + 1];

	for (int i = 0; i < PARTS; i++) {
		x[i] = 0;
		if (use & 1u << i)
			part[n++] = i;
	}
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++)
			a[i][j] = m[part[i]][part[j]];
		a[i][n] = y[part[i]];
	}
	for (int i = 0; i < n; i++) {
		/* what the parts before it do not explain */
		if (a[i][i] <= m[part[i]][part[i]] * COLLINEAR)
			return false;
		for (int row = i + 1; row < n; row++) {
			double factor = a[row][i] / a[i][i];
			for (int column = i; column <= n; column++)
				a[row][column] -= factor * a[i][column];
		}
	}
	for (int i = n - 1; i >= 0; i--) {
		double left = a[i][n];
		for (int j = i + 1; j < n; j++)
			left -= a[i][j] * x[part[j]];
		x[part[i]] = left / a[i][i];
	}
	return true;
}

static double squared_error(const double x[PARTS], const double m[PARTS][PARTS],
			    const double y[PARTS])
{
	double error = 0; /* without the constant sum of t^2 */

	for (int i = 0; i < PARTS; i++) {
		error -= 2 * x[i] * y[i];
		for (int j = 0; j < PARTS; j++)
			error += x[i] * x[j] * m[i][j];
	}
	return error;
}

/* One part for "longest" and "each" together, in the ratio that `like` has. For batches of one
 * size, which cannot tell them apart. */
static bool fit_in_ratio(struct speed *out, const struct speed_sums *s, const struct speed *like)
{
	double p = like->longest_s, q = like->each_s;
	double z = p * s->longest + q * s->sum, z_t = p * s->longest_t + q * s->sum_t;
	double z2 = p * p * s->longest2 + 2 * p * q * s->longest_sum + q * q * s->sum2;
	double spread = s->n * z2 - z * z;

	if (spread <= s->n * z2 * COLLINEAR)
		return false;
	double scale = (s->n * z_t - z * s->t) / spread;
	double once = (s->t - scale * z) / s->n;
	if (once < 0) {
		once = 0;
		scale = z_t / z2;
	}
	if (scale < 0)
		return false;
	*out = (struct speed){once, p * scale, q * scale};
	return true;
}

static const struct speed each_alone = {.each_s = 1};

bool speed_shows_growth(const struct speed_sums *s)
{
	const double spread = s->n * s->sum2 - s->sum * s->sum;
	struct speed fit;

	return spread > s->n * s->sum2 * COLLINEAR && s->n * s->sum_t > s->sum * s->t &&
	       speed_fit(&fit, s, NULL) && fit.each_s > 0;
}

bool speed_fit(struct speed *out, const struct speed_sums *s, const struct speed *like)
{
	const double m[PARTS][PARTS] = {
		{s->n, s->longest, s->sum},
		{s->longest, s->longest2, s->longest_sum},
		{s->sum, s->longest_sum, s->sum2},
	};
	const double y[PARTS] = {s->t, s->longest_t, s->sum_t};
	double best = INFINITY, x[PARTS];

	if (s->n <= 0 || s->t <= 0)
		return false;
	if (!like || like->longest_s + like->each_s <= 0 || s->longest <= 0)
		like = &each_alone;
	if (!solve(x, m, y, (1u << PARTS) - 1)) {
		if (!fit_in_ratio(out, s, like))
			*out = speed_scale(like, s->t / (like->once_s * s->n +
							 like->longest_s * s->longest +
							 like->each_s * s->sum));
		return true;
	}
	/* With three parts, trying every subset is the whole of non-negative least squares. */
	for (unsigned use = 1; use < 1u << PARTS; use++) {
		if (!solve(x, m, y, use) || x[0] < 0 || x[1] < 0 || x[2] < 0)
			continue;
		double error = squared_error(x, m, y);
		if (error < best) {
			best = error;
			*out = (struct speed){x[0], x[1], x[2]};
		}
	}
	return true;
}

/* ---- how far it may be off ---- */

double speed_learn_sigma(const struct speed *fit, const struct speed_sums *runs, size_t count)
{
	double off[SPEED_RUNS_MOST] = {1}; /* at least the run that the fit is from */

	count = MIN(count, SPEED_RUNS_MOST);
	for (size_t i = 0; i < count; i++) {
		double expected_s = fit->once_s * runs[i].n + fit->longest_s * runs[i].longest +
				    fit->each_s * runs[i].sum;
		off[i] = expected_s > 0 ? runs[i].t / expected_s : 1;
	}
	return spread_learn(off, MAX(count, 1), SPEED_SIGMA_RUNS);
}

/* ---- other GPUs ---- */

struct speed speed_scale(const struct speed *s, double factor)
{
	return (struct speed){s->once_s * factor, s->longest_s * factor, s->each_s * factor};
}

struct speed speed_carry(const struct speed *measured, const struct gpu *from, const struct gpu *to,
			 double host_share)
{
	double shared = (double)from->bandwidth_gb_s / to->bandwidth_gb_s,
	       compute = from->tflops / to->tflops;

	if (host_share >= 1)
		return *measured;
	return (struct speed){
		.once_s = measured->once_s,
		.longest_s = measured->longest_s * MAX(host_share, shared),
		.each_s = measured->each_s * MAX(host_share, compute),
	};
}
