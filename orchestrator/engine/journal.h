/* journal.h - writes to the ledger what a run does. */
#ifndef BURST_ENGINE_JOURNAL_H
#define BURST_ENGINE_JOURNAL_H

#include <stdbool.h>

#include "provider.h"
#include "store/store.h"

struct engine;

/* Whether the ledger has one pod's row as it was last to be written. Only journal.c writes it. */
struct saving {
	bool failed;                  /* the last write failed: nothing is rented then */
	char logged_name[POD_ID_MAX]; /* under which the missing row was last logged; "": never */
};

/* Writes the pod's row; saving.failed says whether that failed, and EV_FAULT follows then. Writes
 * nothing in a sweep, nor once another run has the pod. */
void journal_pod(struct engine *e, int pod);
void journal_run(struct engine *e);
void journal_replans(struct engine *e); /* of this client, that the ledger does not have */
/* Of its offer, for later runs. */
void journal_bad_host(struct engine *e, int pod, const char *why);
void journal_good_host(struct engine *e, int pod);
/* The segment's files have their final names. EV_LOCAL follows with journal_flush(). */
void journal_safe(struct engine *e, uint32_t segment, bool suspect);
/* Rows of such segments reach the disk before the core gets their events. */
void journal_flush(struct engine *e);

/* The rows that the ledger lacks because it could not be written. The caller frees the list. */
size_t engine_unsaved_pods(const struct engine *e, struct pod_row **out);

struct journal *journal_new(void);
void journal_free(struct journal *j);

#endif
