/* pause.h - cuts a text at its pauses: "[pause 0.5s]" inside a text, or alone on its line. Pure. */
#ifndef BURST_JOBS_TTS_PAUSE_H
#define BURST_JOBS_TTS_PAUSE_H

#include <stddef.h>

#include "base/str.h"

#define PAUSE_MOST_S 60.0

/* The text between two pauses. */
struct pause_part {
	const char *text; /* points into the text; not terminated; no blanks at its ends; may be
			     empty */
	size_t len;       /* in bytes */
	double before_s;  /* sum of the pauses directly before it; 0: none */
};

/* Cuts a text at its pauses and returns the number of parts: one more than pauses. The caller frees
 * *out. *bad is NULL, or points at the first invalid pause (*bad_len bytes of the text). */
size_t pause_parts(const char *text, struct pause_part **out, const char **bad, size_t *bad_len);

#endif
