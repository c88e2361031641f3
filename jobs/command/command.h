/* command.h - jobs of type "command": run a shell command once on each pod, in a private copy of
 * the synced tree. */
#ifndef BURST_JOBS_COMMAND_H
#define BURST_JOBS_COMMAND_H

#include "job.h"

extern const struct job_ops job_command;

#endif
