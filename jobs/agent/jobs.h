/* jobs.h - slow work on files: one job at a time, one slice a turn. */
#ifndef BURST_JOBS_AGENT_JOBS_H
#define BURST_JOBS_AGENT_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent.h"

/* Reads length in seconds and rate from the contents of a RIFF/WAVE file. Returns false for other
 * files. */
bool wav_measure(int fd, int64_t file_bytes, double *seconds, int *rate);
void jobs_step(struct agent *a);

#endif
