/* piper.h - the engine `piper`: its voices and their files. */
#ifndef BURST_JOBS_TTS_PIPER_H
#define BURST_JOBS_TTS_PIPER_H

#include "engines.h"

/* a Python package contains it, so it needs no other server */
#define PIPER_VOICE "en_US-joe-medium"

extern const struct engine_voices piper_voices;

/* ERR_CONFIG names the nearest existing voice. */
int piper_check_voice(const char *voice, struct err *err);

#endif
