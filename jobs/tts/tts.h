/* tts.h - jobs of type "tts": render a script to one verified WAV file a segment, and join them at
 * the end. */
#ifndef BURST_JOBS_TTS_H
#define BURST_JOBS_TTS_H

#include "job.h"

extern const struct job_ops job_tts;

#endif
