/* jobs.h - slow work on files, one piece after the other, a slice at a time. */
#ifndef BURST_JOBS_AGENT_JOBS_H
#define BURST_JOBS_AGENT_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent.h"

/* Seconds and rate of a RIFF/WAVE file, from its contents; false: it is not one. */
bool wav_measure(int fd, int64_t file_bytes, double *seconds, int *rate);
void jobs_step(struct agent *a);

#endif
