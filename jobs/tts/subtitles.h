/* subtitles.h - SRT, VTT and FFMETADATA chapters from times in samples. Pure. */
#ifndef BURST_JOBS_TTS_SUBTITLES_H
#define BURST_JOBS_TTS_SUBTITLES_H

#include <stdint.h>

#include "base/str.h"

/* What is heard from sample `begin` to sample `end` of the joined track. */
struct cue {
	const char *text;
	int64_t begin, end;
};

#define SUBTITLE_WIDTH 42
#define SUBTITLE_LINES 2

/* A text of more than 2 lines of 42 becomes several captions that share its time by their lengths.
 */
void subtitles_srt(struct str *to, const struct cue *cues, size_t count, int rate);
void subtitles_vtt(struct str *to, const struct cue *cues, size_t count, int rate);
/* As `ffmpeg -i audio -i FILE -map_chapters 1` takes them. Chapters without a sound in them (begin
 * == end) are left out. */
void subtitles_chapters(struct str *to, const struct cue *chapters, size_t count, int rate);

#endif
