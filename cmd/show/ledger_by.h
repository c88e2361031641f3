/* ledger_by.h - `burst ledger --by` and `--csv`. */
#ifndef BURST_CMD_SHOW_LEDGER_BY_H
#define BURST_CMD_SHOW_LEDGER_BY_H

#include "cmd/cmd.h"
#include "store/store.h"

int ledger_by(struct cmd_context *ctx, const char *word, bool csv, struct err *err);
void ledger_runs_csv(const struct run_row *runs, size_t count);

#endif
