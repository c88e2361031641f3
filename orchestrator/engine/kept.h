/* kept.h - passes pods from run to run. A pod that may bill has exactly one row with its attempt,
 * and that row names the run that holds it. kept_take() moves it in one transaction, so a client
 * killed at any moment leaves a pod with one owner; if the owner dies, the next run or `burst reap`
 * settles it. A run that has offered a pod writes its row and releases it only through
 * kept_claim(). Times are wall clock ms. */
#ifndef BURST_ENGINE_KEPT_H
#define BURST_ENGINE_KEPT_H

#include "engine.h"

/* The type of the run of a client that keeps pods for others. It has no job and no files. */
#define KEEP_RUN "keep"

enum { KEPT_HOLDS_MOST = 98 }; /* the most runs that may have held a pod before */

/* What a run's pods are good for, and what it needs: a hash of their environment, then whether any
 * GPU is enough, cores, memory and disk. Pods of commands, and pods whose workers are root, are
 * handed on within their job alone: what ran there may have changed the pod. */
void kept_describe(const struct engine_setup *setup, char pool[96]);
/* A pod offered as `has` can do what `wanted` needs. */
bool kept_serves(const char *has, const char *wanted);
/* Another run may take it now. */
bool kept_is_offered(const struct pod_row *row, int64_t now_ms);

/* Which pods of other runs a run would take, as run_row.wants has it: its pool, GPUs, accounts and
 * spot; how long a pod must last, until when, and what it may cost. left_microusd: of its cap;
 * INT64_MAX without one. The caller frees it with json_decref(). */
json_t *kept_want(const struct engine_setup *setup, int64_t left_microusd);
/* The pod is on offer and is what the run wants. want NULL: no run wants it. */
bool kept_fits(const json_t *want, const struct pod_row *row, int64_t now_ms);

/* Moves the pod from the run that offers it to this one, whose row is written with it if run is not
 * NULL. *pod: its row as read, then its new one. kept: it stays on offer, and its time counts as
 * kept. ERR_NOT_FOUND: it is no longer on offer. */
int kept_take(struct store *store, const char *to, const struct run_row *run, bool kept,
	      int64_t now_ms, struct pod_row *pod, struct err *err);
/* Writes the row of a pod that was offered, unless another run has it: then *taken_ms is since when
 * (0: it is still ours). */
int kept_claim(struct store *store, const struct pod_row *row, int64_t *taken_ms, struct err *err);
/* Since when another run has the pod; 0: none has. */
int64_t kept_taken_ms(struct store *store, const char *attempt, const char *run);
/* The attempt under which the time is kept that a pod spent with an earlier run. */
void kept_part(const char *attempt, int holds, char part[ATTEMPT_MAX]);

#endif
