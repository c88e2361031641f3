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

#endif
