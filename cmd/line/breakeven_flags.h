/* breakeven_flags.h - what the flags of `burst breakeven` compare. */
#ifndef BURST_CMD_LINE_BREAKEVEN_FLAGS_H
#define BURST_CMD_LINE_BREAKEVEN_FLAGS_H

#include "cmd/cmd.h"
#include "cmd/launch/extras.h"
#include "cmd/show/breakeven_show.h"

/* The rest is what show points to: it must not be copied. */
struct breakeven_flags {
	struct breakeven show;
	struct breakeven_api api;
	struct breakeven_own own;
	struct breakeven_spot spot;
	char rate_from[64], work_from[64], every_from[EXTRAS_FROM];
};

/* Reads the flags; what they leave open comes from the ledger's newest runs. */
int breakeven_flags_read(struct cmd_context *ctx, struct breakeven_flags *out, struct err *err);

#endif
