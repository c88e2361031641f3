/* voices.h - the voices of espeak-ng, so that a misspelt one is found before anything is rented. */
#ifndef BURST_JOBS_TTS_VOICES_H
#define BURST_JOBS_TTS_VOICES_H

#include "base/err.h"

/* "en", "en-us", "de+f3": a language that espeak-ng 1.51 has, with or without a variant. ERR_CONFIG
 * with the nearest. */
int voices_check_espeak(const char *voice, struct err *err);

#endif
