/* outputs.h - finds the outputs of a command while it runs and after it has ended. */
#ifndef BURST_JOBS_AGENT_OUTPUTS_H
#define BURST_JOBS_AGENT_OUTPUTS_H

#include <stdbool.h>

#include "agent.h"

/* Returns whether anything in this folder ("" is the root) or below it could match. Compares with
 * the plain start of each pattern. */
bool may_hold_output(const struct agent *a, const char *dir);

/* It could not be kept: it is reported again when it is found again. */
void output_forget(struct command *c, const char *name);

enum look {
	LOOK_WATCH, /* for folders to watch */
	LOOK_OFFER  /* reports matching files, too */
};

/* Scans everything below `folder` ("" is the root); adds watches if the pod has inotify. Once the
 * command has exited, reports finished files only. */
void scan_folder(struct agent *a, struct command *c, const char *folder, enum look look);
/* Handles what has happened in its folder so far. pid: its first process; 0: that has ended. */
void command_watched(struct agent *a, struct command *c, pid_t pid);

/* Watches the command's folder as soon as the copy has made it. The scan at the exit finds files
 * renamed before that. */
void command_watch(struct agent *a, struct command *c);

#endif
