/* render.h - a new run of the config's job, from reading it to its last file. */
#ifndef BURST_CMD_LAUNCH_RENDER_H
#define BURST_CMD_LAUNCH_RENDER_H

#include "launch.h"

/* Rents nothing if all is rendered already. detached: the pods finish without this client. Returns
 * the exit status, or -1 with *err. */
int render(struct launch *l, bool detached, struct err *err);
/* Shows what that would rent, render and pay. Returns likewise. */
int render_plan(struct launch *l, struct err *err);

#endif
