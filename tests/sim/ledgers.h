/* ledgers.h - the ledgers of simulated machines, in memory. */
#ifndef BURST_SIM_LEDGERS_H
#define BURST_SIM_LEDGERS_H

#include "store/store.h"

/* An empty one. ledger_give() takes it back, and accepts NULL. */
struct store *ledger_take(void);
void ledger_give(struct store *s);

#endif
