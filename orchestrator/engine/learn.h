/* learn.h - what the ledger's runs have taught: how fast an engine is on a GPU, and how long pods
 * take to come up.
 *
 * Each finished batch becomes a row of the ledger and is added to the sums of its key, from which
 * speed_fit() takes an estimate. The sums of earlier runs count SPEED_DECAY less with each run. */
#ifndef BURST_ENGINE_LEARN_H
#define BURST_ENGINE_LEARN_H

#include "plan/cold.h"
#include "plan/speed.h"
#include "store/store.h"

enum { LEARN_KEY = 160, LEARN_FROM = 128 };

/* What the speed of a batch depends on. `options`: of the engine, as job_needs.speed_options has
 * them. */
struct learn_what {
	const char *engine, *options, *gpu, *provider;
	const char *version; /* of the engine, as its worker says; NULL or "": not known yet */
	/* of its batch time that no GPU shortens; 1: all GPUs are alike. Not part of the key */
	double host_share;
};
/* "engine|options|gpu|provider|version": each part printable and cut, so that every key is whole.
 */
void learn_key(const struct learn_what *what, char key[LEARN_KEY]);

/* Adds batches to the sums of their keys; sorts them by key. `fade`: these are the first of a run,
 * earlier ones count less. */
int learn_fold(struct store *store, struct batch_row *list, size_t count, bool fade,
	       int64_t wall_ms, struct err *err);

struct speed_sums learn_sums(const struct speed_row *row);
/* The fit of the batches of exactly this key; false: there are too few, or the ledger cannot be
 * read. */
bool learn_fit(struct speed *out, struct store *store, const char *key);

struct learned_speed {
	struct speed speed;
	enum plan_source source;
	char from[LEARN_FROM]; /* "RTX 4090 at runpod, 40 batches, 2026-11-24"; "": the prior */
	int64_t batches;       /* that it was taken from; 0: the prior */
	int batch_max;         /* as its worker said; 0: not known */
	bool padded;           /* it renders all of a batch at once */
};
/* The best estimate there is. Measured: at least SPEED_MEASURED_MIN batches on this GPU (of this
 * provider, else of another one). Carried over: the same of another GPU, by the roofline model.
 * Else `prior`, unchanged; where that is empty, fewer batches count as well. */
void learn_speed(struct store *store, const struct learn_what *what, const struct speed *prior,
		 struct learned_speed *out);

/* Mean time between interruptions: what these spot pods (else: the others) lived, over how many of
 * them their provider took back. `guess_s`, where it is above 0, counts as one more pod that was
 * taken after this time. 0: none was ever taken. */
double learn_interrupted_s(const struct pod_row *rows, size_t count, bool spot, double guess_s,
			   int *taken, double *lived_s);

/* What the cold start of a pod depends on, beside its provider. */
struct cold_what {
	const char *gpu, *image; /* image NULL: the provider's own */
	const char *setup;       /* as pod_row.setup has it; NULL: none */
	bool volume_ready;       /* its volume has what it needs: nothing is sent to it */
};
/* Of pods that were reached over SSH, this provider's newest first: those that are like this one;
 * where those are fewer than three, of any GPU, then of any image. Phases that the ledger does not
 * know keep their prior. */
void learn_cold(const struct pod_row *rows, size_t count, const struct cold_what *what,
		struct cold *inout);
/* Of the same pods: seconds from the last batch to the last file that is here, and from then to the
 * accepted release. */
void learn_tail(const struct pod_row *rows, size_t count, struct cold_time *fetch,
		struct cold_time *release);

#endif
