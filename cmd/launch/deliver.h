/* deliver.h - the step after a render: one command on a pod without a GPU, with the same volume. */
#ifndef BURST_CMD_LAUNCH_DELIVER_H
#define BURST_CMD_LAUNCH_DELIVER_H

#include "launch.h"

/* Notes why the config's delivery cannot work, before anything is rented. */
void deliver_check(const struct config *c, struct mistakes *m);
/* ERR_CONFIG names a file of the output folder that `deliver.outputs` would overwrite and no run
 * has made, unless the user passed --force. l's job is loaded. */
int deliver_check_output(const struct launch *l, struct err *err);
/* Runs `deliver.run` on a pod without a GPU with the run's volume, as a run of its own, unless
 * nothing has changed since the last success. All segments must be local or durable, and l's output
 * folder is lent to it. l->run.id may be empty: nothing was rendered. *object gets the part for
 * --json, or NULL if there was nothing to do. Returns the exit status; *err is set if it is not 0.
 */
int deliver(struct launch *l, json_t **object, struct err *err);

#endif
