/* timeline.h - the phases of a run's pods as lines of its log: each one's end and length, and the
 * pod's cost so far. */
#ifndef BURST_CMD_SHOW_TIMELINE_H
#define BURST_CMD_SHOW_TIMELINE_H

#include "store/store.h"

struct timeline;

struct timeline *timeline_new(void);
void timeline_free(struct timeline *t); /* Accepts NULL. */
/* Reads the current ledger. */
int timeline_read(struct timeline *t, struct store *s, const char *run, struct err *err);
/* Prints to stdout what ended by this second ("2026-11-25T17:05:48Z"; NULL: everything) and is not
 * printed yet. */
void timeline_print(struct timeline *t, const char *until);

#endif
