/* outputs.h - finds the outputs of a command, while it runs and when it has exited. */
#ifndef BURST_JOBS_AGENT_OUTPUTS_H
#define BURST_JOBS_AGENT_OUTPUTS_H

#include <stdbool.h>

#include "agent.h"

/* Could anything in this folder ("" is the root), or below it, match? Compares with the plain
 * beginning of each pattern. */
bool may_hold_output(const struct agent *a, const char *dir);

/* As if it had not been seen yet. */
void output_forget(struct command *c, const char *name);

/* Everything below `folder` ("" is the root): offered when `offer`, watched when there is something
 * to watch with. */
void scan_folder(struct agent *a, struct command *c, const char *folder, bool offer);
void command_watched(struct agent *a, struct command *c);

/* Its folder appears while the copy is made: watch from the moment it is there. Nothing renamed
 * before that is lost, since the exit looks at everything. */
void command_watch(struct agent *a, struct command *c);

#endif
