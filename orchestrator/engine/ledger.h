/* ledger.h - what one run writes to the ledger, for itself and for other runs. */
#ifndef BURST_ENGINE_LEDGER_H
#define BURST_ENGINE_LEDGER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "provider.h"
#include "store/store.h"

struct engine;

/* ---- batches ----
 * Records what a run measures, for later plans. */

/* Samples of one pod's GPUs while its workers rendered. Only learn.c writes it. */
struct gpu_use {
	int samples, at[101]; /* at[x]: the number of samples with x percent busy */
	int64_t memory_peak_mib;
	/* from an earlier client; kept until we have more samples */
	int earlier_samples, earlier_p50, earlier_p95;
};

/* Agents report the times. They are bounded, and decide nothing but later plans. */

/* The measured speed of its worker on this pod's GPU, from the ledger; all 0: unknown. */
struct batch_speed batches_speed(const struct engine *e, int pod);
/* A batch of this client began on the pod; others are ignored. */
void batches_begun(struct engine *e, int pod, uint32_t batch);
/* The batch continues earlier work: its time is not recorded. */
void batches_continued(struct engine *e, uint32_t batch);
/* A batch of this client took busy_ms: records that once, unless it began more than once. */
void batches_done(struct engine *e, int pod, uint32_t batch, int64_t busy_ms);
/* Takes a pod's event "usage", which comes every 2 s: a sample of how busy the GPUs are, and the
 * peak of their memory (MiB, though the event says memory_mb). */
void batches_usage(struct engine *e, int pod, const json_t *event);
/* Fills in the GPU use of a pod's row. */
void batches_put_use(const struct gpu_use *u, struct pod_row *row);
/* Reads the GPU use of a pod of an earlier client from its row. */
void batches_adopt(struct engine *e, int pod, const struct pod_row *row);
/* Writes the recorded batches to the ledger. A failure loses them. */
void batches_flush(struct engine *e);

struct batches *batches_new(void);
void batches_free(struct batches *b);

/* ---- pod rows ----
 * Converts between a pod of the core and its row in the ledger. */

/* Reads a pod of an earlier client or another run from its row. out->provider is -1 if this run
 * does not use its provider. */
void core_pod_of_row(const struct engine *e, const struct pod_row *row, struct core_pod *out);

/* ---- pooled ----
 * Offers this run's pods to other runs in the ledger, and finds out that one took a pod. */

/* A pod between runs, as its row has it, and what this run knows of that. The state only grows but
 * for an offer that is withdrawn, or that the ledger did not take. Only journal.c writes it. */
struct pooled {
	enum pooled_state {
		POOLED_OURS,
		POOLED_OFFERED, /* another run may have taken it */
		POOLED_TAKEN /* another run has it: from here on our row covers a part of its time
			      */
	} state;
	int64_t kept_ms, kept_until_ms; /* wall clock; 0: not kept */
	char pool[96];                  /* what it is good for (pooled.h); "": it is not on offer */
	char from_run[24], to_run[24];  /* which had it before, and which took it; "": none */
	int holds;                      /* runs that had it before */
};

/* Puts the pod on offer until then (wall clock) in its row, and writes that. Returns false if the
 * ledger could not be written: no run can take the pod then. */
bool pooled_offer(struct engine *e, int pod, int64_t until_ms);
/* Reads from the row of a pod of an earlier client or of another run whether it is on offer, and
 * who had it. */
void pooled_adopt(struct engine *e, int pod, const struct pod_row *row);

/* Withdraws the pod's offer, if there is one. Returns false if another run already has the pod;
 * EV_TAKEN follows then. */
bool pooled_withdraw(struct engine *e, int pod);
/* Call it several times a second: finds out that another run took a pod. EV_TAKEN follows. */
void pooled_watch(struct engine *e);
/* Drops from a list the pods with our marker that other runs took; returns how many are left. */
size_t pooled_drop_taken(struct engine *e, struct pod_view *views, size_t count);

/* ---- journal ----
 * Writes to the ledger what a run does. */

/* Whether the ledger has one pod's row as it was last to be written. Only journal.c writes it. */
struct saving {
	bool failed;                  /* the last write failed: nothing is rented then */
	char logged_name[POD_ID_MAX]; /* under which the missing row was last logged; "": never */
};

/* Writes the pod's row; saving.failed says whether that failed, and EV_FAULT follows then. Writes
 * nothing in a sweep, nor once another run has the pod. */
void journal_pod(struct engine *e, int pod);
/* Writes the run's row. A failure is logged. */
void journal_run(struct engine *e);
/* Adds this client's replans that the ledger does not have to the run's row. */
void journal_replans(struct engine *e); /* of this client, that the ledger does not have */
/* Records for later runs that a pod of its offer was bad, or that one works. */
void journal_bad_host(struct engine *e, int pod, const char *why);
void journal_good_host(struct engine *e, int pod);
/* Notes that the segment's files have their final names. EV_LOCAL follows with journal_flush(). */
void journal_safe(struct engine *e, uint32_t segment, bool suspect);
/* Writes the rows of such segments. They reach the disk before the core gets its events. */
void journal_flush(struct engine *e);

struct journal *journal_new(void);
void journal_free(struct journal *j);

/* ---- gaps ----
 * Records how long pods without work have waited for the next run, as facts in the ledger. pool:
 * what the pods are good for (pooled.h); only its environment counts. Times are wall clock ms. A
 * failed read or write changes nothing else. Exported for tests. */

/* A pod has no work left. */
void gaps_note_free(struct store *store, const char *pool, int64_t now_ms);
/* A run begins that could take such a pod. */
void gaps_note_start(struct store *store, const char *pool, int64_t now_ms);
/* How long to keep a pod whose cold start took cold_ms, in ms; 0: not at all. */
int64_t gaps_keep_ms(struct store *store, const char *pool, int64_t cold_ms);

/* ---- keep ----
 * Offers pods of this run to other runs, and takes over those that they offer. */

/* Answers ACT_OFFER: offers a pod to a run that waits, and to the client that keeps pods. keep_ms:
 * how long to keep it for the next run; 0: not at all. EV_TAKEN follows if a run takes it;
 * EV_NOT_WANTED, if none would or the ledger could not be written. */
void keep_offer(struct engine *e, int pod, int64_t keep_ms);
/* Whether a pod is on offer: the loop turns more often then. */
bool keep_has_offer(const struct engine *e);
/* Answers ACT_SEEK: takes over up to `wanted` pods that other runs offer; EV_ADOPTED follows for
 * each, then EV_SOUGHT. While the core waits, the run's row says which pods it wants. */
void keep_seek(struct engine *e, int wanted);
/* In each turn of the loop: clears the run's wants from its row when it no longer waits. */
void keep_clear_wants(struct engine *e);

#endif
