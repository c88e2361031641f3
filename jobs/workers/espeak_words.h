/* espeak_words.h - the words that espeak-ng reports while it speaks, as chunks of a WAV file
 * (jobs/PROTOCOL.md) */
#ifndef BURST_JOBS_WORKERS_ESPEAK_WORDS_H
#define BURST_JOBS_WORKERS_ESPEAK_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* A word as the library reports it. */
struct espeak_word {
	size_t at;          /* its first character in the text */
	int64_t begin, end; /* in samples; equal: unknown */
};

/* Appends a `cue ` and a LIST chunk for the words of the text, which must be valid UTF-8. Leaves
 * out words that are reported twice or lie inside another. frames: samples of the file. Appends
 * nothing if no word is left. */
void espeak_words_chunks(struct str *to, const char *text, const struct espeak_word *words,
			 size_t count, int64_t frames);

#endif
