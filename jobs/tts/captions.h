/* captions.h - what is read while a text is heard: at most 2 lines of 42 characters, on screen for
 * a second at least. Pure. */
#ifndef BURST_JOBS_TTS_CAPTIONS_H
#define BURST_JOBS_TTS_CAPTIONS_H

#include <stdint.h>

#include "split.h"

/* What is heard from sample `begin` to sample `end` of the joined track. */
struct cue {
	const char *text;
	int64_t begin, end;
	/* The middles of its pauses, in order: where a long text may be cut. NULL: not known.
	 * Borrowed. */
	const int64_t *pauses;
	size_t pause_count;
};

#define CAPTION_WIDTH 42
#define CAPTION_LINES 2

struct caption {
	char *text;
	int64_t begin, end; /* samples */
};

/* A text of more than 2 lines becomes several captions of like length. They follow each other at a
 * pause of the voice where one is near, else by their lengths. One that would be shorter than a
 * second is shown with its neighbour, if both fit and half a second at most is between them, else
 * it stays until the next one begins. The count; *out is to be freed with captions_free(). */
size_t captions_make(struct caption **out, const struct cue *cues, size_t count, int rate);
void captions_free(struct caption *captions, size_t count);

/* How many captions a text becomes before short ones are merged. */
size_t captions_needed(const char *text);

/* Lines as full as they get; a word longer than a line stands alone on its own. *out is to be
 * freed; its texts are the text's. */
size_t captions_wrap(const char *text, struct piece **out);

#endif
