/* chatterbox.h - the weights of Chatterbox and Chatterbox-Turbo. */
#ifndef BURST_JOBS_TTS_CHATTERBOX_H
#define BURST_JOBS_TTS_CHATTERBOX_H

#include "engines.h"

extern const struct engine_weight chatterbox_weights[], chatterbox_turbo_weights[];

#endif
