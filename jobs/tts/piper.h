/* piper.h - the engine `piper`: its voices, and how a pod is given them. */
#ifndef BURST_JOBS_TTS_PIPER_H
#define BURST_JOBS_TTS_PIPER_H

#include "base/err.h"

#define PIPER_VOICE "en_US-joe-medium" /* a Python package carries it: it needs no other server */
#define PIPER_VERSION "1.8.0"
#define PIPER_ONNXRUNTIME "1.23.2"
#define PIPER_VOICES_REVISION "v1.0.0"
#define PIPER_PINNED " --pin piper-tts==" PIPER_VERSION " --pin onnxruntime==" PIPER_ONNXRUNTIME

/* ERR_CONFIG names the nearest voice that there is. */
int piper_check_voice(const char *voice, struct err *err);
/* Shell text that makes $BURST_ENV with these voices (NULL-terminated, all checked). The caller frees it. */
char *piper_setup(const char *const *voices);

#endif
