/* deliver.h - the step after a render: one command on a pod without a GPU, beside the same volume.
 */
#ifndef BURST_CMD_LAUNCH_DELIVER_H
#define BURST_CMD_LAUNCH_DELIVER_H

#include "launch.h"

/* Notes why the delivery that the config asks for cannot be, before anything is rented. */
void deliver_check(const struct config *c, struct mistakes *m);
/* ERR_CONFIG that names a file of the output folder that `deliver.outputs` would write over and
 * that no run has made, unless it was asked for (--force). l's job is loaded. */
int deliver_check_output(const struct launch *l, struct err *err);
/* Runs `deliver.run` on a pod without a GPU on the run's volume, as a run of its own, unless
 * nothing changed since it last went well. All segments must be safe and l's output folder is given
 * free. l->run.id may be empty: nothing was rendered. *object gets what --json says of it, or NULL
 * when there was nothing to do. Returns the exit status; not 0 with *err. */
int deliver(struct launch *l, json_t **object, struct err *err);

#endif
