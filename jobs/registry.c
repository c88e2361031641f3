/* registry.c - lists the job types. To add one, add a folder and a line here. */
#include "jobs/command/command.h"
#include "jobs/tts/tts.h"

const struct job_ops *const job_registry[] = {
	&job_tts,
	&job_command,
	NULL,
};
