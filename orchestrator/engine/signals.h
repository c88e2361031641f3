/* signals.h - the user's signals become events. */
#ifndef BURST_ENGINE_SIGNALS_H
#define BURST_ENGINE_SIGNALS_H

#include <stdbool.h>

struct engine;

/* From here on signals become events (engine_hold_signals() held them). */
void signals_take(struct engine *e);
/* Posts an event for each signal that came since. */
void signals_look(struct engine *e);
/* for_good: a further signal is ignored. */
void signals_give_back(const struct engine *e, bool for_good);
/* Raises a signal that came since the core has ended: it stops what would come now. */
void signals_pass_on(void);

/* From here on SIGINT, SIGTERM and SIGHUP wait for engine_run(), which hears of those that came. */
void engine_hold_signals(void);
/* What was held comes now: also after an engine_run() with more to come, which holds them at its
 * end. */
void engine_let_signals_in(void);
/* While they are held: takes one that came, and gives its number; 0: none came. */
int engine_held_signal(void);

#endif
