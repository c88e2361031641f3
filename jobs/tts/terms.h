/* terms.h - weights whose licence forbids some use need the user's consent first. */
#ifndef BURST_JOBS_TTS_TERMS_H
#define BURST_JOBS_TTS_TERMS_H

#include "engines.h"

/* Names on stderr the terms of `what` ("voice en_US-ryan-high") that forbid some use; NULL: it has
 * none. ERR_CONFIG unless job.accept_license is true; it begins with the place that asks for it. */
int terms_check(const char *what, const struct engine_terms *terms, const struct section *conf,
		const char *place, struct err *err);

#endif
