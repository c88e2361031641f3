/* view_ledger.h - fills a view from the ledger. */
#ifndef BURST_CMD_SHOW_VIEW_LEDGER_H
#define BURST_CMD_SHOW_VIEW_LEDGER_H

#include "view.h"

/* Fills *v and reuses its array. What only the client knows (the time left, details of phases)
 * stays unknown. Returns false if the ledger has no such run or cannot be read; *v is then
 * unchanged. */
bool view_of_ledger(struct view *v, const struct cmd_context *ctx, const char *run);

#endif
