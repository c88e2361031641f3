/* terms.h - weights whose licence forbids some use need the user's word first. */
#ifndef BURST_JOBS_TTS_TERMS_H
#define BURST_JOBS_TTS_TERMS_H

#include "engines.h"

/* Names, on stderr, the terms of what is called so ("voice en_US-ryan-high"; NULL: it has none)
 * that forbid some use. ERR_CONFIG unless job.accept_license is true; it begins with the place that
 * asks for it. */
int terms_check(const char *what, const struct engine_terms *terms, const struct section *conf,
		const char *place, struct err *err);

#endif
