/* decide.h - what a run decides before it rents, where its config leaves it open. */
#ifndef BURST_CMD_LAUNCH_DECIDE_H
#define BURST_CMD_LAUNCH_DECIDE_H

#include "estimate.h"

/* Asks the providers for their offers, plans, and says so in one line. Sets the number of pods
 * where the config names none, and the order of GPUs where it names none and the job needs one.
 * Notes in the run's row what is planned. ERR_CAP: no plan can keep the deadline that the config
 * names; nothing is rented. What cannot be asked or estimated is left as the config has it. */
int launch_decide(struct launch *l, struct err *err);
/* GPUs by what the job would cost on them, the cheapest first: NULL-terminated; free each and the
 * list. NULL: the order is the config's, or the job needs none, or fits none. */
char **decide_gpu_order(const struct section *top, bool needs_gpu, const struct estimate *e);

#endif
