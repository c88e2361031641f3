/* outputs.h - finds the outputs of a command while it runs and after it has exited. */
#ifndef BURST_JOBS_AGENT_OUTPUTS_H
#define BURST_JOBS_AGENT_OUTPUTS_H

#include <stdbool.h>

#include "agent.h"

/* Could anything in this folder ("" is the root), or below it, match? Compares with the plain
 * beginning of each pattern. */
bool may_hold_output(const struct agent *a, const char *dir);

/* Forgets that the file was seen. */
void output_forget(struct command *c, const char *name);

/* Scans everything below `folder` ("" is the root): offered if `offer`, watched if the pod can
 * watch. */
void scan_folder(struct agent *a, struct command *c, const char *folder, bool offer);
void command_watched(struct agent *a, struct command *c);

/* Its folder appears while the copy is made: watches from that moment. A file renamed before is not
 * lost, since the scan at the exit finds it. */
void command_watch(struct agent *a, struct command *c);

#endif
