/* batches.h - records what a run measures, for later plans. */
#ifndef BURST_ENGINE_BATCHES_H
#define BURST_ENGINE_BATCHES_H

#include <jansson.h>

#include "core/core.h"
#include "store/store.h"

struct engine;

/* Samples of one pod's GPUs while its workers rendered. Only batches.c writes it. */
struct gpu_use {
	int samples, at[101]; /* at[x]: the number of samples with x percent busy */
	int64_t memory_peak_mib;
	/* from an earlier client; kept until we have more samples */
	int earlier_samples, earlier_p50, earlier_p95;
};

/* Agents report these times. They are bounded, and decide nothing but later plans. */
/* From the ledger, for this pod's GPU and its worker's version; all 0: unknown. */
struct batch_speed batches_speed(const struct engine *e, int pod);
/* For batches of this client; others are ignored. */
void batches_begun(struct engine *e, int pod, uint32_t batch);
/* The batch continues earlier work: its time is not that of one batch. */
void batches_continued(struct engine *e, uint32_t batch);
/* Records it once, unless it began more than once: then its time is not that of one batch. */
void batches_done(struct engine *e, int pod, uint32_t batch, int64_t busy_ms);
/* The agent's event "usage", every 2 s: a sample of how busy the GPUs are, and the peak of their
 * memory (MiB, though the event says memory_mb). */
void batches_usage(struct engine *e, int pod, const json_t *event);
void batches_use_of(const struct gpu_use *u, struct pod_row *row);
/* Of a pod of an earlier client: what its row has. */
void batches_adopt(struct engine *e, int pod, const struct pod_row *row);
void batches_flush(struct engine *e); /* to the ledger */

struct batches *batches_new(void);
void batches_free(struct batches *b);

#endif
