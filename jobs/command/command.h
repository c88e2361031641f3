/* command.h - jobs of type "command": run a shell command once on each pod, in a private copy of
 * the synced tree. */
#ifndef BURST_JOBS_COMMAND_H
#define BURST_JOBS_COMMAND_H

#include "job.h"

extern const struct job_ops job_command;

/* What a command job is made of. All is copied. */
struct command_want {
	const char *output; /* absolute */
	const char *run;
	const struct section *outputs, *env; /* sections that have the keys of these names */
	const char *also;                    /* one more pattern of outputs; NULL: none */
	int pods;
	const char *commit; /* NULL: the working tree */
};
/* Free with job_command.free(). */
struct job *command_make(const struct command_want *want);

#endif
