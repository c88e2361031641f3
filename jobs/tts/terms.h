/* terms.h - weights whose licence forbids some use need the user's word first. */
#ifndef BURST_JOBS_TTS_TERMS_H
#define BURST_JOBS_TTS_TERMS_H

#include "engines.h"

/* Names, on stderr, the terms of an engine's weights and of these voices (NULL-terminated) that forbid some use. ERR_CONFIG unless
 * job.accept_license is true; it begins with the place in the config. */
int terms_check(const struct engine *engine, const char *const *voices, const struct section *conf, struct err *err);

#endif
