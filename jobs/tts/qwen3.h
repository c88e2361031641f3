/* qwen3.h - the engines `qwen3` and `qwen3-1.7b`, which have nine voices, and their -clone
 * variants, which imitate a sample. */
#ifndef BURST_JOBS_TTS_QWEN3_H
#define BURST_JOBS_TTS_QWEN3_H

#include "engines.h"

#define QWEN3_VOICE "ryan" /* a named voice: English */

/* for named voices */
extern const struct engine_weight qwen3_weights[], qwen3_large_weights[];
/* for samples */
extern const struct engine_weight qwen3_clone_weights[], qwen3_large_clone_weights[];
extern const struct engine_option qwen3_options[];
/* with `instruct`, which the small model lacks */
extern const struct engine_option qwen3_large_options[];

/* ERR_CONFIG names the nearest existing voice. */
int qwen3_check_voice(const char *voice, struct err *err);

#endif
