/* timeline.h - the phases of a run's pods as lines of its log: when each ended, what it took and
 * what the pod had cost by then. */
#ifndef BURST_CMD_SHOW_TIMELINE_H
#define BURST_CMD_SHOW_TIMELINE_H

#include "store/store.h"

struct timeline;

struct timeline *timeline_new(void);
void timeline_free(struct timeline *t); /* NULL is fine */
/* Reads what the ledger knows by now. */
int timeline_read(struct timeline *t, struct store *s, const char *run, struct err *err);
/* Prints to stdout what ended by this second ("2026-11-25T17:05:48Z"; NULL: all that has ended) and
 * was not printed yet. */
void timeline_print(struct timeline *t, const char *until);

#endif
