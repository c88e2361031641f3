/* caps.h - caps over runs as the config sets them: what is left of one becomes the max_cost of the
 * order. */
#ifndef BURST_CMD_LAUNCH_CAPS_H
#define BURST_CMD_LAUNCH_CAPS_H

#include "launch.h"
#include "runs/caps.h"

/* As in runs/caps.h, with the caps of the config. What is left of a cap over runs becomes the
 * order's max_cost, which the plan, the stages and the check of the balance then use. */
int caps_fit(struct launch *l, struct err *err);
int caps_plan(struct caps *out, struct launch *l, bool renders, struct err *err);
int caps_refuse(const struct caps *caps, const struct launch *l, struct err *err);
int caps_begin(struct launch *l, struct err *err);
int caps_go_on(struct launch *l, struct err *err);
/* Adds the cap to the error of a run that ended at a lowered max_cost. */
void caps_explain(const struct launch *l, struct err *err);

#endif
