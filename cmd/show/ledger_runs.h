/* ledger_runs.h - runs as burst ledger prints them on stdout: a list, or one whole. */
#ifndef BURST_CMD_SHOW_LEDGER_RUNS_H
#define BURST_CMD_SHOW_LEDGER_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/cmd.h"

/* Its client died: its pods have no client and bill until their leases end. */
bool ledger_has_no_client(const struct cmd_context *ctx, const struct run_row *run);
void ledger_runs_json(const struct run_row *runs, size_t count);
void ledger_runs_print(const struct cmd_context *ctx, const struct run_row *runs, size_t count);

/* The run that id names, with its pods; with --json one object. -1 and *err where it is unknown or
 * the ledger unreadable. */
int ledger_run_print(struct cmd_context *ctx, const char *id, struct err *err);

#endif
