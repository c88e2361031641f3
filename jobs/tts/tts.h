/* tts.h - jobs of type "tts": a script in, one verified WAV file a segment out, joined at the end.
 */
#ifndef BURST_JOBS_TTS_H
#define BURST_JOBS_TTS_H

#include "job.h"

extern const struct job_ops job_tts;

#endif
