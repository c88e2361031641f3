/* breakeven_flags.h - reads what `burst breakeven` compares. */
#ifndef BURST_CMD_LINE_BREAKEVEN_FLAGS_H
#define BURST_CMD_LINE_BREAKEVEN_FLAGS_H

#include "cmd/cmd.h"
#include "runs/extras.h"
#include "cmd/show/breakeven_show.h"

/* `show` points into the other fields: do not copy the struct. */
struct breakeven_flags {
	struct breakeven show;
	struct breakeven_api api;
	struct breakeven_own own;
	struct breakeven_spot spot;
	char rate_from[64], work_from[64], every_from[EXTRAS_FROM];
};

/* Reads the flags, and the rest from the ledger's newest runs. */
int breakeven_flags_read(struct cmd_context *ctx, struct breakeven_flags *out, struct err *err);

#endif
