/* view_ledger.h - a view as far as the ledger knows a run. */
#ifndef BURST_CMD_SHOW_VIEW_LEDGER_H
#define BURST_CMD_SHOW_VIEW_LEDGER_H

#include "view.h"

/* Fills *v, whose array is reused. What only the client knows (the time left, details of phases)
 * stays unknown. False: the ledger has no such run, or cannot be read; *v is then unchanged. */
bool view_of_ledger(struct view *v, const struct cmd_context *ctx, const char *run);

#endif
