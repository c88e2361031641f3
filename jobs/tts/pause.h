/* pause.h - pauses that a script asks for: "[pause 0.5s]" inside a text, or alone on its line.
 * Pure. */
#ifndef BURST_JOBS_TTS_PAUSE_H
#define BURST_JOBS_TTS_PAUSE_H

#include <stddef.h>

#include "base/str.h"

#define PAUSE_MOST_S 60.0

/* The text that is spoken between two pauses. */
struct pause_part {
	const char *text; /* into the text; not terminated; no blanks at its ends; may be empty */
	size_t len;       /* bytes */
	double before_s;  /* the pauses right before it; 0: none */
};

/* Cuts a text at its pauses; there is always one part more than pauses. *out is to be freed. *bad
 * is NULL if all pauses are understood, else the first one that is not (into the text; *bad_len
 * bytes). Returns the number of parts. */
size_t pause_parts(const char *text, struct pause_part **out, const char **bad, size_t *bad_len);

#endif
