/* learn.h - estimates from the ledger's runs: how fast an engine is on a GPU, and how long pods
 * take to come up. Each finished batch becomes a row of the ledger and is added to the sums of its
 * key, from which speed_fit() takes an estimate. Each run multiplies the weight of the sums before
 * it by SPEED_DECAY. */
#ifndef BURST_ENGINE_LEARN_H
#define BURST_ENGINE_LEARN_H

#include "plan/cost.h"
#include "plan/speed.h"
#include "store/store.h"

enum { LEARN_KEY = 160, LEARN_FROM = 128 };

/* What the speed of a batch depends on. `options`: of the engine (job_needs.speed_options). */
struct learn_what {
	const char *engine, *options, *gpu, *provider;
	const char *version; /* of the engine, as its worker reports; NULL or "": not known yet */
	/* the part of its batch time that no GPU shortens; 1: all GPUs are alike. Not part of the
	 * key */
	double host_share;
};
/* "engine|options|gpu|provider|version": each part printable and cut, so that no key is cut.
 * Exported for tests. */
void learn_key(const struct learn_what *what, char key[LEARN_KEY]);

/* Adds batches to the sums of their keys; sorts them by key. `fade`: these are the first of a run,
 * so earlier ones lose weight. Exported for tests. */
int learn_fold(struct store *store, struct batch_row *list, size_t count, bool fade,
	       int64_t wall_ms, struct err *err);

/* The fit of the batches of exactly this key; false: too few, or the ledger cannot be read. */
bool learn_fit(struct speed *out, struct store *store, const char *key);

/* Throughput of batches with `mean` segments of this length, as a share of that of full ones. 0:
 * unknown. Batches of one size, or larger ones that took no longer, do not show it. */
double learn_seats(struct store *store, const char *key, double length, double mean, int full);

struct learned_speed {
	struct speed speed;
	double sigma; /* how far it may be off (plan/speed.h) */
	enum plan_source source;
	char from[LEARN_FROM]; /* "RTX 4090 at runpod, 40 batches, 2026-11-24"; "": the prior */
	int runs;              /* measured: that had these batches */
	int64_t batches;       /* that the estimate is from; 0: the prior */
	int batch_max;         /* as its worker reported; 0: unknown */
	bool padded;           /* it renders all segments of a batch at once */
	/* nothing shows what larger batches gain: neither these batches nor the prior */
	bool gain_unknown;
};
/* The best available estimate. Measured: at least SPEED_MEASURED_MIN batches on this GPU (of this
 * provider, else of another one). Carried over: the same from another GPU, by the roofline model.
 * Else `prior`, unchanged; if that is empty, fewer batches count as well. */
void learn_speed(struct store *store, const struct learn_what *what, const struct speed *prior,
		 struct learned_speed *out);

/* Mean time between interruptions: the total life of these spot pods (spot false: of the others),
 * divided by how many of them their provider reclaimed (*taken). If it reclaimed none, the larger
 * of guess_s and their life; 0: guess_s is 0. */
double learn_interrupted_s(const struct pod_row *rows, size_t count, bool spot, double guess_s,
			   int *taken, double *lived_s);

/* What the cold start of a pod depends on, beside its provider. */
struct cold_what {
	const char *gpu, *image; /* image NULL: the provider's own */
	const char *setup;       /* as pod_row.setup has it; NULL: none */
	bool volume_ready;       /* its volume has what it needs: nothing is sent to it */
};
/* Estimates the phases of a cold start from this provider's pods that were reached over SSH, newest
 * first: those that are like this one; if there are fewer than three, of any GPU, then of any
 * image. Phases that the ledger does not know keep their prior. */
void learn_cold(const struct pod_row *rows, size_t count, const struct cold_what *what,
		struct cold *inout);
/* Estimates from the same pods: seconds from the last batch (worked_ms) to the last fetched file
 * (safe_ms), and from the later of both to the accepted release. Both are inout: the prior. */
void learn_tail(const struct pod_row *rows, size_t count, struct cold_time *fetch,
		struct cold_time *release);

#endif
