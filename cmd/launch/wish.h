/* wish.h - what the config wishes of a run: goal, deadline, pods, GPUs. */
#ifndef BURST_CMD_LAUNCH_WISH_H
#define BURST_CMD_LAUNCH_WISH_H

#include "launch.h"

/* Reads the wishes into l->choice, once: later calls change nothing. A deadline counts from the
 * start of the command. ERR_CONFIG: a value is invalid; ERR_CAP: the deadline has passed. */
int wish_read(struct launch *l, struct err *err);
/* Pods and GPUs that the order names replace those that were decided. */
void wish_name(struct choice_row *row, const struct order *o);
/* For a resumed run: a deadline that its user changed since counts from the start of this command.
 */
int wish_renew(struct launch *l, bool given, struct err *err);
/* Notes invalid values of goal, value_of_time and deadline. */
void wish_check(const struct section *top, struct mistakes *m);
/* ERR_CAP if the deadline has passed. */
int wish_in_time(const struct launch *l, struct err *err);

#endif
