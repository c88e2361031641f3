/* pooled.h - passes pods from run to run. A pod that may bill has exactly one row with its attempt,
 * and that row names the run that holds it. pooled_take() moves it in one transaction, so a client
 * killed at any moment leaves a pod with one owner; if the owner dies, the next run or `burst reap`
 * settles it. A run that has offered a pod writes its row and releases it only through
 * pooled_put_row(). Times are wall clock ms. */
#ifndef BURST_ENGINE_KEPT_H
#define BURST_ENGINE_KEPT_H

#include "engine.h"

/* The type of the run of a client that keeps pods for others. It has no job and no files. */
#define KEEP_RUN "keep"

enum { POOLED_HOLDS_MOST = 98 }; /* the most runs that may have held a pod before */

/* Describes a run's pool, which is both what its pods are good for and what it needs: a hash of
 * their environment, then whether any GPU is enough, cores, memory and disk. Pods of commands, and
 * pods whose workers are root, pass on within their job alone: what ran there may have changed the
 * pod. */
void pooled_describe(const struct engine_setup *setup, char pool[96]);
/* Whether a pod of the pool `has` can do what the pool `wanted` needs (pooled_describe()). */
bool pooled_serves(const char *has, const char *wanted);
/* Whether another run may take the pod now. */
bool pooled_is_offered(const struct pod_row *row, int64_t now_ms);

/* Describes which pods of other runs a run would take, as run_row.wants has it: pool, GPUs,
 * accounts, spot; how long a pod must last, until when, and what it may cost. left_microusd: of the
 * run's cap; INT64_MAX without one. The caller frees it with json_decref(). */
json_t *pooled_want(const struct engine_setup *setup, int64_t left_microusd);
/* Whether the pod is on offer and is what the run wants. want NULL: no run wants it. */
bool pooled_fits(const json_t *want, const struct pod_row *row, int64_t now_ms);

/* Moves a pod from the run that offers it to the run `to`, and writes both rows of the pod, and
 * `run` if that is not NULL, in one transaction. *pod: the row as read, then the new one. kept: the
 * pod stays on offer, and its time counts as kept. ERR_NOT_FOUND: it is no longer on offer. */
int pooled_take(struct store *store, const char *to, const struct run_row *run, bool kept,
		int64_t now_ms, struct pod_row *pod, struct err *err);
/* Writes the row of a pod that its run has offered. If another run has taken the pod, writes
 * nothing, and sets *taken_ms to the time of that (else 0). -1: the ledger could not be written. */
int pooled_put_row(struct store *store, const struct pod_row *row, int64_t *taken_ms,
		   struct err *err);
/* Since when another run than this one has had the pod; 0: none has. */
int64_t pooled_taken_ms(struct store *store, const char *attempt, const char *run);
/* Names the row of a pod's time with an earlier run: ATTEMPT-NN. holds: how many had it before. */
void pooled_part_name(const char *attempt, int holds, char part[ATTEMPT_MAX]);

#endif
