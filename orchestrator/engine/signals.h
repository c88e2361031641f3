/* signals.h - the user's signals become events. */
#ifndef BURST_ENGINE_SIGNALS_H
#define BURST_ENGINE_SIGNALS_H

#include <stdbool.h>

struct engine;

/* From here on signals become events (engine_hold_signals() held them). */
void signals_take(struct engine *e);
/* Posts an event for each signal since the last call. */
void signals_poll(struct engine *e);
/* for_good: a further signal is ignored. */
void signals_restore(const struct engine *e, bool for_good);
/* Raises a signal that arrived since the core's end, so that it stops what would follow. */
void signals_pass_on(void);

/* From here on SIGINT, SIGTERM and SIGHUP wait for engine_run(), which takes them. */
void engine_hold_signals(void);
/* Delivers the held signals: also after an engine_run() before a delivery, which holds them at its
 * end. */
void engine_unblock_signals(void);
/* While they are held: takes one, and returns its number; 0: none is pending. */
int engine_held_signal(void);

#endif
