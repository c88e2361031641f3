/* registry.c - adding a type of job is one folder and one line here. */
#include "jobs/command/command.h"
#include "jobs/tts/tts.h"

const struct job_ops *const job_registry[] = {
	&job_tts,
	&job_command,
	NULL,
};
