/* subtitles.h - SRT, VTT and FFMETADATA chapters from times in samples. Pure. */
#ifndef BURST_JOBS_TTS_SUBTITLES_H
#define BURST_JOBS_TTS_SUBTITLES_H

#include <stdint.h>

#include "base/str.h"
#include "captions.h"

void subtitles_srt(struct str *to, const struct cue *cues, size_t count, int rate);
void subtitles_vtt(struct str *to, const struct cue *cues, size_t count, int rate);
/* As `ffmpeg -i audio -i FILE -map_chapters 1` takes them. Chapters without a sound in them (begin
 * == end) are left out. */
void subtitles_chapters(struct str *to, const struct cue *chapters, size_t count, int rate);

#endif
