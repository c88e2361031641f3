/* plan_offers.h - plans for offers, and prints the plan. */
#ifndef BURST_CMD_LAUNCH_PLAN_OFFERS_H
#define BURST_CMD_LAUNCH_PLAN_OFFERS_H

#include "caps.h"
#include "cmd/show/plan_show.h"
#include "launch.h"

/* Prints the planner's choice among these offers. caps: over runs; NULL: offers that are only
 * compared. Returns the exit status. */
int plan_offers(struct launch *l, const struct offer *offers, size_t count,
		const struct plan_words *words, const struct caps *caps, struct err *err);
/* plan_saved.c: the same for offers that `burst offers --json` wrote, or for list prices. */
int plan_from_file(struct launch *l, const char *path, struct plan_words *words, struct err *err);
int plan_from_lists(struct launch *l, struct plan_words *words, struct err *err);

#endif
