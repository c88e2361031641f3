/* decide.h - decides before renting what the config leaves open. */
#ifndef BURST_CMD_LAUNCH_DECIDE_H
#define BURST_CMD_LAUNCH_DECIDE_H

#include "estimate.h"

/* Fetches offers, plans, and reports the plan in one line. Sets the number of pods if the config
 * has none, and the order of GPUs if the config has none and the job needs one. Records the plan in
 * the run's row. ERR_CAP: no plan can keep the config's deadline, so nothing is rented. Keeps the
 * config's values if offers or estimates are missing. */
int launch_decide(struct launch *l, struct err *err);

#endif
