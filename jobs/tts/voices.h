/* voices.h - checks the voices of espeak-ng, so that a misspelt one is found before a pod is
 * rented. */
#ifndef BURST_JOBS_TTS_VOICES_H
#define BURST_JOBS_TTS_VOICES_H

#include "base/err.h"

/* Accepts "en", "en-us", "de+f3": a language of espeak-ng 1.51, with or without a variant.
 * ERR_CONFIG names the nearest. */
int voices_check_espeak(const char *voice, struct err *err);

#endif
