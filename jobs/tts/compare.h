/* compare.h - compares a text with the transcript of its file, word by word */
#ifndef BURST_JOBS_TTS_COMPARE_H
#define BURST_JOBS_TTS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

/* What differs between a text and what was heard. Words are compared in lower case, without
 * punctuation; English numbers by their digits. */
struct comparison {
	size_t words;     /* of the text */
	size_t heard;     /* of the transcript */
	size_t differing; /* words that differ, without other spellings of the same letters */
	size_t run;       /* the longest run of such words */
	bool suspect;     /* the run is too long for a mistake of the transcriber */
	char said[80];    /* that run in the text, and what was heard in its place; valid UTF-8 */
	char got[80];
};

/* Both texts are valid UTF-8. language: of the text, as in "en" or "de_DE"; NULL: unknown. Pure. */
void compare_texts(const char *text, const char *transcript, const char *language,
		   struct comparison *out);

#endif
