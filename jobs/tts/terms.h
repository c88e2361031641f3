/* terms.h - requires the user's consent to weights whose licence forbids some use. */
#ifndef BURST_JOBS_TTS_TERMS_H
#define BURST_JOBS_TTS_TERMS_H

#include "engines.h"

/* Prints on stderr the terms of `what` ("voice en_US-ryan-high") that forbid some use; terms NULL:
 * there are none. ERR_CONFIG unless job.accept_license is true; the message begins with the place
 * that names `what`. */
int terms_check(const char *what, const struct engine_terms *terms, const struct section *conf,
		const char *place, struct err *err);

#endif
