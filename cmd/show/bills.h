/* bills.h - prints the vendors' bills beside our count. */
#ifndef BURST_CMD_SHOW_BILLS_H
#define BURST_CMD_SHOW_BILLS_H

#include "runs/reconcile.h"

/* Prints a table of the pods on stdout, then why the counts differ. */
void bills_print(const struct reconciliation *r);
/* Prints a list on stdout, with an object for each pod and run. */
void bills_print_json(const struct reconciliation *r);

#endif
