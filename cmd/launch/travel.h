/* travel.h - what of the code goes to the pods. */
#ifndef BURST_CMD_LAUNCH_TRAVEL_H
#define BURST_CMD_LAUNCH_TRAVEL_H

#include "launch.h"

/* Lists the code folder, so that what cannot be read there is an error before anything is rented.
 * Tells how many files travel, the largest, and names that look like secrets: always, or before the
 * job's first run. Call with the job loaded. */
int travel_check(struct launch *l, bool always, struct err *err);

#endif
