/* outputs.h - finds the outputs of a command while it runs and after it has exited. */
#ifndef BURST_JOBS_AGENT_OUTPUTS_H
#define BURST_JOBS_AGENT_OUTPUTS_H

#include <stdbool.h>

#include "agent.h"

/* Returns whether anything in this folder ("" is the root) or below it could match. Compares with
 * the plain start of each pattern. */
bool may_hold_output(const struct agent *a, const char *dir);

/* Removes the file from the reported outputs. */
void output_forget(struct command *c, const char *name);

/* Scans everything below `folder` ("" is the root). Reports matching files if `offer`; adds watches
 * if the pod has inotify. */
void scan_folder(struct agent *a, struct command *c, const char *folder, bool offer);
void command_watched(struct agent *a, struct command *c);

/* Watches the command's folder as soon as the copy has made it. The scan at the exit finds files
 * renamed before that. */
void command_watch(struct agent *a, struct command *c);

#endif
