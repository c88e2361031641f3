/* earlier.h - what earlier runs of a job left for a new one. */
#ifndef BURST_CMD_LAUNCH_EARLIER_H
#define BURST_CMD_LAUNCH_EARLIER_H

#include "launch.h"

/* For a job with nothing left to render: rents no pod, but releases a dead client's pods and does
 * the steps after rendering. */
int earlier_rendered_all(struct launch *l, struct err *err);
/* Names the run to resume: a new run would render, and pay for, segments that are finished but not
 * local. */
void earlier_name_resume(struct launch *l);

#endif
