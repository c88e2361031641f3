/* spread.h - how far an estimate may be off, and the quantile of a sum of estimates. Pure.
 *
 * Each part of a sum (a phase of a cold start, the work, interruptions) is taken as independent of
 * the others. Means, variances and third central moments of independent parts add up. The sum is
 * then taken as a shifted lognormal distribution with these three moments. */
#ifndef BURST_PLAN_SPREAD_H
#define BURST_PLAN_SPREAD_H

#include <stddef.h>

struct spread {
	double mean, variance, third; /* third: central moment */
};

/* Standard deviations from the median to the 90th percentile of a normal distribution. */
#define SPREAD_Z90 1.2815515655446004

/* A figure with this median and 90th percentile: lognormal, but never above SPREAD_GIVE_UP times
 * the 90th percentile, where a slow pod is given up or a user ends the run. p90 at most p50: it is
 * exact. */
#define SPREAD_GIVE_UP 3.0
struct spread spread_of(double p50, double p90);
/* A factor with the median 1: exp() of a normal distribution with this standard deviation. */
struct spread spread_of_factor(double sigma);
void spread_add(struct spread *sum, const struct spread *part);
struct spread spread_scale(const struct spread *s, double factor);
/* The product of two independent ones. */
struct spread spread_times(const struct spread *a, const struct spread *b);
/* The sum of so many independent ones that are alike. */
struct spread spread_repeat(const struct spread *s, int times);
/* The sum's value so many standard deviations from its median: 0 is the median, SPREAD_Z90 the 90th
 * percentile. */
double spread_quantile(const struct spread *s, double z);

/* The 10th percentile of a figure with this median and 90th percentile. */
double spread_p10(double p50, double p90);

/* ---- learning ---- */

/* How far the next one of n samples may be off: the standard deviation of its logarithm, such that
 * the factor to its 90th percentile is exp(SPREAD_Z90 * sigma). few_sigma counts as SPREAD_FEW more
 * samples, so that two samples that happen to be alike promise nothing. Uses Student's t, since the
 * spread itself is an estimate, and the error of the mean of n samples. */
#define SPREAD_FEW 5
double spread_learn(const double *samples, size_t count, double few_sigma);

#endif
