/* subtitles.h - SRT, VTT and FFMETADATA chapters from times in samples. Pure. */
#ifndef BURST_JOBS_TTS_SUBTITLES_H
#define BURST_JOBS_TTS_SUBTITLES_H

#include <stdint.h>

#include "base/str.h"
#include "captions.h"

void subtitles_srt(struct str *to, const struct cue *cues, size_t count, int rate);
void subtitles_vtt(struct str *to, const struct cue *cues, size_t count, int rate);
/* Writes chapters for `ffmpeg -i audio -i FILE -map_chapters 1`. Leaves out chapters without sound
 * (begin == end). */
void subtitles_chapters(struct str *to, const struct cue *chapters, size_t count, int rate);

#endif
