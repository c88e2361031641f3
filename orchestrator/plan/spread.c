/* spread.c - computes the quantile of a sum of uncertain figures by its first three moments */
#include "spread.h"

#include <math.h>

#include "base/mem.h"

/* A median far below the 90th percentile, or 0, has no useful logarithm. */
#define LEAST_SHARE 0.05

static double normal_share(double z)
{
	return 0.5 * erfc(-z * M_SQRT1_2);
}

/* The mean of x^power for a lognormal x that is cut off at `most`. */
static double moment_of(double mu, double sigma, double most, int power)
{
	double at = (log(most) - mu) / sigma;

	return exp(power * mu + power * power * sigma * sigma / 2) *
		       normal_share(at - power * sigma) +
	       pow(most, power) * normal_share(-at);
}

struct spread spread_of(double p50, double p90)
{
	if (p90 <= p50 || p90 <= 0)
		return (struct spread){.mean = p50};
	double middle = MAX(p50, p90 * LEAST_SHARE), mu = log(middle),
	       sigma = log(p90 / middle) / SPREAD_Z90, most = p90 * SPREAD_GIVE_UP;
	double one = moment_of(mu, sigma, most, 1), two = moment_of(mu, sigma, most, 2),
	       three = moment_of(mu, sigma, most, 3);
	return (struct spread){.mean = one,
			       .variance = two - one * one,
			       .third = three - 3 * one * two + 2 * one * one * one};
}

struct spread spread_of_factor(double sigma)
{
	return spread_of(1, exp(SPREAD_Z90 * sigma));
}

void spread_add(struct spread *sum, const struct spread *part)
{
	sum->mean += part->mean;
	sum->variance += part->variance;
	sum->third += part->third;
}

struct spread spread_scale(const struct spread *s, double factor)
{
	return (struct spread){s->mean * factor, s->variance * factor * factor,
			       s->third * factor * factor * factor};
}

struct spread spread_repeat(const struct spread *s, int times)
{
	return (struct spread){s->mean * times, s->variance * times, s->third * times};
}

struct spread spread_times(const struct spread *a, const struct spread *b)
{
	double a2 = a->variance + a->mean * a->mean, b2 = b->variance + b->mean * b->mean,
	       a3 = a->third + 3 * a->mean * a2 - 2 * a->mean * a->mean * a->mean,
	       b3 = b->third + 3 * b->mean * b2 - 2 * b->mean * b->mean * b->mean,
	       mean = a->mean * b->mean, two = a2 * b2;

	return (struct spread){mean, two - mean * mean,
			       a3 * b3 - 3 * mean * two + 2 * mean * mean * mean};
}

double spread_quantile(const struct spread *s, double z)
{
	if (s->variance <= 1e-12)
		return s->mean;
	double deviation = sqrt(s->variance), skew = s->third / (s->variance * deviation);
	if (skew <= 1e-6)
		return s->mean + z * deviation;
	/* a lognormal's coefficient of variation c has the skewness c^3 + 3 c */
	double c = 2 * sinh(asinh(skew / 2) / 3), sigma = sqrt(log1p(c * c)),
	       above_shift = deviation / c;
	return s->mean - above_shift + above_shift * exp(sigma * (z - sigma / 2));
}

double spread_p10(double p50, double p90)
{
	return p90 > p50 && p50 > 0 ? p50 * p50 / p90 : p50;
}

/* ---- learning ---- */

/* Student's t: the 90th percentile. Right to .001 from five degrees of freedom on. */
static double student_90(double freedom)
{
	return SPREAD_Z90 + 0.85 / freedom + 0.6 / (freedom * freedom);
}

/* Times below this are a matter of the clock and the scheduler. */
#define LEAST_SAMPLE 0.1

double spread_learn(const double *samples, size_t count, double few_sigma)
{
	double mean = 0, squares = SPREAD_FEW * few_sigma * few_sigma;

	if (!count)
		return few_sigma;
	for (size_t i = 0; i < count; i++)
		mean += log(MAX(samples[i], LEAST_SAMPLE)) / (double)count;
	for (size_t i = 0; i < count; i++) {
		double off = log(MAX(samples[i], LEAST_SAMPLE)) - mean;
		squares += off * off;
	}
	double n = (double)count, freedom = SPREAD_FEW + n - 1;
	return sqrt(squares / freedom * (1 + 1 / n)) * student_90(freedom) / SPREAD_Z90;
}
