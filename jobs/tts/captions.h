/* captions.h - the captions of a spoken text: at most 2 lines of 42 characters, on screen for at
 * least a second. Pure. */
#ifndef BURST_JOBS_TTS_CAPTIONS_H
#define BURST_JOBS_TTS_CAPTIONS_H

#include <stdint.h>

#include "split.h"

/* The text that is heard from sample `begin` to sample `end` of the joined track. */
struct cue {
	const char *text;
	int64_t begin, end;
	/* The middles of its pauses, in order: places where a long text may be cut. NULL: not
	 * known. Borrowed. */
	const int64_t *pauses;
	size_t pause_count;
};

#define CAPTION_WIDTH 42 /* a character of Chinese, Japanese or Korean counts as two */
#define CAPTION_LINES 2

struct caption {
	char *text;
	int64_t begin, end; /* samples */
};

/* Each cue becomes one caption, or several if it needs more than two lines: they end behind a
 * sentence, a comma or a word, and at a pause of the voice if one is near. Where one would be
 * shorter than a second, it shares a caption with its neighbours: cues are joined and cut
 * elsewhere. A caption stays until the next one begins if it takes that to last a second; the last
 * one outlasts the track if it must. Only speech of more than 84 characters in a second breaks that
 * rule. Returns the count; *out is to be freed with captions_free(). */
size_t captions_make(struct caption **out, const struct cue *cues, size_t count, int rate);
void captions_free(struct caption *captions, size_t count);

/* Cuts a text into lines: two of like length if that is enough, else full ones. A word longer than
 * a line is cut. *out is to be freed; its texts are the text's. Returns the count. */
size_t captions_wrap(const char *text, struct piece **out);

#endif
