/* breakeven.c - `burst breakeven`: compares the cost of a million characters on a rented GPU with
 * APIs, owning and reserving. */
#include "cmd/line/breakeven_flags.h"

static int run(struct cmd_context *ctx, struct err *err)
{
	struct breakeven_flags flags;

	if (breakeven_flags_read(ctx, &flags, err) < 0)
		return -1;
	breakeven_print(&flags.show);
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "api", "NAME[=USD]",
	 "compare only with this API, at your own price per million characters", NULL, false},
	{0, "price", "USD", "price of a pod per hour (default: the newest run)", NULL, false},
	{0, "chars-per-hour", "N", "characters rendered per compute hour (default: the newest run)",
	 NULL, false},
	{0, "duty", "SHARE",
	 "share of billed time that computes, 60% or 0.6 (default: the newest run)", NULL, false},
	{0, "own", "COST", "your own card: purchase price and running cost, like 18750+2000/y",
	 NULL, false},
	{0, "years", "N", "for --own: how long the card lasts (default 3)", NULL, false},
	{0, "reserved", "PERCENT", "a reservation with this saving, 40% or 0.4", NULL, false},
	{0, "spot", NULL, "spot pods, with their interruptions", NULL, false},
	{0, "work", "TIME", "for --spot: compute time of a run (default: the newest run)", NULL,
	 false},
	{0, "cold", "TIME", "for --spot: time until a pod computes (default: the newest run)", NULL,
	 false},
	{0, "interrupted", "TIME",
	 "for --spot: mean time between interruptions (default: from the ledger)", NULL, false},
	{0, "checkpoint", "TIME", "for --spot: time between fetched files (default 0)", NULL,
	 false},
	{0},
};

const struct cmd cmd_breakeven = {
	.name = "breakeven",
	.summary = "compare renting with APIs, owning and reserving",
	.details = "Takes characters per hour, price and utilization from the newest run in the "
		   "ledger that rendered speech at a price. API prices are list prices with "
		   "their date. \"Renting pays from\" is the share of billed time that must "
		   "compute.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
