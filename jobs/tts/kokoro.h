/* kokoro.h - the engine `kokoro`: small, with voices of its own. */
#ifndef BURST_JOBS_TTS_KOKORO_H
#define BURST_JOBS_TTS_KOKORO_H

#include "engines.h"

#define KOKORO_VOICE "af_heart" /* American English */

extern const struct engine_weight kokoro_weights[];
extern const struct engine_option kokoro_options[];

/* ERR_CONFIG names the nearest existing voice, or says that burst does not support its language. */
/* enum letters: the script of this voice's language. */
unsigned kokoro_letters(const char *voice);
int kokoro_check_voice(const char *voice, struct err *err);

#endif
