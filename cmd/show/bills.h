/* bills.h - what the vendors billed beside our count. */
#ifndef BURST_CMD_SHOW_BILLS_H
#define BURST_CMD_SHOW_BILLS_H

#include "runs/reconcile.h"

/* To stdout: a table of the pods, then why the counts differ. */
void bills_print(const struct reconciliation *r);
/* To stdout: a list with an object for each pod and run. */
void bills_print_json(const struct reconciliation *r);

#endif
