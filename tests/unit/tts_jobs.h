/* tts_jobs.h - a tts job from a config. */
#ifndef BURST_TESTS_TTS_JOBS_H
#define BURST_TESTS_TTS_JOBS_H

#include "tts_helpers.h"

#include "jobs/tts/tts.h"

struct setting {
	const char *key, *text;
};

/* A tts job whose script is this file of the folder; NULL if it has a mistake. */
struct job *load_job(const char *input, const struct setting *settings, size_t count,
		     struct err *err);
/* Whether its pods get a file of this name, not empty. */
bool has_file(const struct job_needs *needs, const char *name);

#endif
