/* handed.h - finds out that another run took a pod. */
#ifndef BURST_ENGINE_HANDED_H
#define BURST_ENGINE_HANDED_H

#include "provider.h"
#include "store/store.h"

struct engine;

/* A pod between runs, as its row has it, and what this run knows of that. The state only grows but
 * for an offer that is withdrawn, or that the ledger did not take. Only handed.c writes it. */
struct holding {
	enum hold_state {
		HOLD_OURS,
		HOLD_OFFERED, /* another run may have taken it */
		HOLD_TAKEN /* another run has it: from here on our row covers a part of its time */
	} state;
	int64_t kept_ms, kept_until_ms; /* wall clock; 0: not kept */
	char pool[96];                  /* what it is good for (kept.h); "": it is not on offer */
	char handed_from[24], handed_to[24]; /* runs; "": none */
	int holds;                           /* runs that held it before */
};

/* Puts the pod on offer in the row that journal_pod() writes next. handed_offered() must follow. */
void handed_offer(struct engine *e, int pod, int64_t until_ms);
/* Whether that row was written: without it no run can take the pod. */
void handed_offered(struct engine *e, int pod, bool written);
/* Of a pod of an earlier client or of another run: what its row has. */
void handed_adopt(struct engine *e, int pod, const struct pod_row *row);

/* Withdraws the offer of a pod. Returns true if another run already has it; the core then gets an
 * event. */
bool handed_over(struct engine *e, int pod);
/* Writes the pod's row; *result as of store_put_pod(). Returns true if another run has the pod; the
 * row was not written. */
bool handed_put(struct engine *e, int pod, const struct pod_row *row, struct err *err, int *result);
/* Call it several times a second: finds out that another run took a pod. */
void handed_watch(struct engine *e);
/* Drops from a list the pods with our marker that were handed on; returns how many are left. */
size_t handed_drop(struct engine *e, struct pod_view *views, size_t count);

#endif
