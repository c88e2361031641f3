/* piper.h - the engine `piper`: its voices, and how a pod gets them. */
#ifndef BURST_JOBS_TTS_PIPER_H
#define BURST_JOBS_TTS_PIPER_H

#include "engines.h"

/* a Python package contains it, so it needs no other server */
#define PIPER_VOICE "en_US-joe-medium"

extern const struct engine_voices piper_voices;

/* ERR_CONFIG names the nearest voice that there is. */
int piper_check_voice(const char *voice, struct err *err);

#endif
