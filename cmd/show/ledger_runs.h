/* ledger_runs.h - prints runs of `burst ledger` on stdout: a list, or one in full. */
#ifndef BURST_CMD_SHOW_LEDGER_RUNS_H
#define BURST_CMD_SHOW_LEDGER_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/cmd.h"

/* Whether its client died, so that its pods bill until their leases end. */
bool ledger_has_no_client(const struct cmd_context *ctx, const struct run_row *run);
void ledger_runs_json(const struct run_row *runs, size_t count);
void ledger_runs_print(const struct cmd_context *ctx, const struct run_row *runs, size_t count);

/* Prints the run with its pods; with --json one object. Returns -1 with *err if the run is unknown
 * or the ledger unreadable. */
int ledger_run_print(struct cmd_context *ctx, const char *id, struct err *err);

#endif
