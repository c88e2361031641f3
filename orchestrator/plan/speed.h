/* speed.h - how long an engine takes for a batch on a GPU, measured or carried over from another
 * one.
 *
 * Pure: no I/O, no clock. Lengths are in the unit of segment.weight (characters for speech), times
 * in seconds.
 *
 *     t(batch) = once_s + longest_s * (longest length) + each_s * (sum of all lengths)
 *
 * `once_s` is host work per batch. `longest_s` is the part that a batch shares: a step of the model
 * reads all weights once, however many segments are in the batch, and there are as many steps as
 * the longest segment needs. `each_s` grows with every segment. For segments of one length this is
 * the linear form t(b) = a + c b of published batch sweeps. */
#ifndef BURST_PLAN_SPEED_H
#define BURST_PLAN_SPEED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/gpus.h"

struct speed {
	double once_s;
	double longest_s; /* per unit of the longest segment */
	double each_s;    /* per unit of every segment */
};

/* Where a number comes from, from the weakest to the strongest. Printed beside each estimate. */
enum plan_source { PLAN_PRIOR, PLAN_CARRIED, PLAN_MEASURED };
const char *plan_source_name(enum plan_source source); /* "prior", "carried over", "measured" */

double speed_batch_s(const struct speed *s, double longest, double sum);
/* Throughput of a batch of b segments of this length, relative to b = 1: S(b) = b t(1) / t(b). */
double speed_gain(const struct speed *s, double length, double b);

/* ---- learning ---- */

/* Decayed sums over measured batches. A zeroed struct is empty. */
struct speed_sums {
	double n, longest, sum, longest2, longest_sum, sum2, t, longest_t, sum_t;
	double batches; /* not decayed */
};
#define SPEED_DECAY 0.9 /* the weight of an earlier run, per run */

void speed_add(struct speed_sums *s, double longest, double sum, double seconds);
/* Of an engine that renders batches side by side: the batch's share of the time, which depends on
 * its segments alone. */
void speed_add_share(struct speed_sums *s, double sum, double seconds);
void speed_decay(struct speed_sums *s, double factor);
/* Least squares with coefficients of at least 0. Batches of one size cannot tell the shared part
 * from that of each segment: then both keep the ratio that `like` has (NULL: nothing is shared, so
 * that no gain from larger batches is promised), and where they are all alike, `like` is scaled as
 * a whole. False: no batch yet. */
bool speed_fit(struct speed *out, const struct speed_sums *s, const struct speed *like);
/* Whether these batches show how their time grows with their segments. False: they are all alike,
 * or more work took no longer. speed_fit() then assumes that nothing is shared. */
bool speed_shows_growth(const struct speed_sums *s);
/* From this many batches on, a fit is used instead of an estimate. */
#define SPEED_MEASURED_MIN 3

/* ---- how far it may be off ----
 *
 * The standard deviation of its logarithm, as spread_of_factor() takes it. */

/* Carried over: of published runs of one engine on two cards, the second was 1.4 to 1.6 times off
 * what bandwidth and peak promise (Chatterbox on vLLM: READMEs of randombk/chatterbox-vllm and
 * Jransom33/Chatterbox-turbo-vllm; F5-TTS: SWivid/F5-TTS issue 713). */
#define SPEED_SIGMA_CARRIED 0.4
/* A prior for this very card: what people report of one engine on one card differs by up to 2.8
 * times (1 to 2.8 s a second of speech: resemble-ai/chatterbox issues 63, 71 and 127). */
#define SPEED_SIGMA_PRIOR 0.3
/* A prior that was carried over from the card of the engine's figures, or whose card is unknown:
 * both. */
#define SPEED_SIGMA_PRIOR_ELSEWHERE 0.5
/* Measured, before several runs show how much they differ: hosts with the same card do. */
#define SPEED_SIGMA_RUNS 0.15
/* Measured in this very run, on the pods that go on: cards reach 78 to 87 % of their peak. */
#define SPEED_SIGMA_HERE 0.05
/* Measured at another provider, whose hosts have other processors: one engine took 13 s on a
 * desktop and 32 s beside the faster card of a rented pod. */
#define SPEED_SIGMA_ELSEWHERE 0.25
#define SPEED_RUNS_MOST       20
/* Measured in these runs, the newest first; more than SPEED_RUNS_MOST do not count: by what each of
 * them took, as a multiple of what the fit expects. */
double speed_learn_sigma(const struct speed *fit, const struct speed_sums *runs, size_t count);

/* ---- other GPUs ---- */

/* The same engine and model on another GPU by the roofline model: the shared part follows memory
 * bandwidth, the part of each segment the peak of dense FP16 matmuls, both down to `host_share` of
 * it that no GPU shortens (launch latency, Python). Host work per batch stays as it is. host_share
 * 1: the host alone is the limit, so that all cards are alike. */
struct speed speed_carry(const struct speed *measured, const struct gpu *from, const struct gpu *to,
			 double host_share);
/* All parts times `factor`. */
struct speed speed_scale(const struct speed *s, double factor);

#endif
