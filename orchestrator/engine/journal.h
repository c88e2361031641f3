/* journal.h - writes to the ledger what a run does. */
#ifndef BURST_ENGINE_JOURNAL_H
#define BURST_ENGINE_JOURNAL_H

#include "store/store.h"

struct engine;

void journal_pod(struct engine *e, int pod);
void journal_run(struct engine *e);
void journal_replans(struct engine *e); /* of this client, that the ledger does not have */
/* Of its offer, for later runs. */
void journal_bad_host(struct engine *e, int pod, const char *why);
void journal_good_host(struct engine *e, int pod);
void journal_safe(struct engine *e, uint32_t segment, bool suspect);
void journal_flush(struct engine *e); /* rows of fetched segments reach the disk before the core
					 gets their events */

/* The rows that the ledger lacks because it could not be written. The caller frees the list. */
size_t engine_unsaved_pods(const struct engine *e, struct pod_row **out);

struct journal *journal_new(void);
void journal_free(struct journal *j);

#endif
