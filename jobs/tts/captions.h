/* captions.h - the captions of a spoken text: at most 2 lines of 42 characters, on screen for at
 * least a second. Pure. */
#ifndef BURST_JOBS_TTS_CAPTIONS_H
#define BURST_JOBS_TTS_CAPTIONS_H

#include <stdint.h>

#include "split.h"

/* Text that is spoken from sample `begin` to sample `end` of the joined track. */
struct cue {
	const char *text;
	int64_t begin, end;
	/* Middles of its pauses in order: places to cut a long text. NULL: unknown. Borrowed. */
	const int64_t *pauses;
	size_t pause_count;
};

#define CAPTION_WIDTH 42 /* in columns; a Chinese, Japanese or Korean character takes two */
#define CAPTION_LINES 2

struct caption {
	char *text;
	int64_t begin, end; /* in samples */
};

/* Makes one caption of each cue, or several if it needs more than two lines. A caption ends after a
 * sentence, a comma or a word, and at a pause of the voice if one is near. A cue too short for a
 * second on screen shares a caption with its neighbours. A caption stays until the next one begins
 * if it needs that to last a second; the last one may outlast the track. Only speech of more than
 * 84 characters a second breaks that rule. Returns the count; free *out with captions_free(). */
size_t captions_make(struct caption **out, const struct cue *cues, size_t count, int rate);
void captions_free(struct caption *captions, size_t count);

/* Cuts a text into lines: two of like length if two are enough, else full ones. Cuts a word longer
 * than a line. Returns the count. The caller frees *out; its texts point into `text`. */
size_t captions_wrap(const char *text, struct piece **out);

#endif
