/* earlier.h - what earlier runs of a job have left to a new one. */
#ifndef BURST_CMD_LAUNCH_EARLIER_H
#define BURST_CMD_LAUNCH_EARLIER_H

#include "launch.h"

/* Nothing left to render: no pod is rented, but a dead client's are given back, and what follows
 * rendering is done. */
int earlier_rendered_all(struct launch *l, struct err *err);
/* A new run renders again, and pays again, what is finished and not home. */
void earlier_name_resume(struct launch *l);

#endif
