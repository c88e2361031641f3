/* render.h - a new run of the config's job, from reading it to its last file. */
#ifndef BURST_CMD_LAUNCH_RENDER_H
#define BURST_CMD_LAUNCH_RENDER_H

#include "launch.h"

/* Rents nothing where all is rendered already. detached: the pods finish without this client. The
 * exit status; -1 with *err. */
int render(struct launch *l, bool detached, struct err *err);
/* What that would rent, render and pay; likewise. */
int render_plan(struct launch *l, struct err *err);

#endif
