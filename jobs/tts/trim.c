/* trim.c - finds the silence and the stray sounds at the ends of a speech file */
#include "wav.h"

#include <stdlib.h>

#include "base/mem.h"

/* A window is silent below this share of the file's peak (-40 dB), or below LEAST. */
#define SILENT 0.01
#define LEAST  0.0003

/* In windows of WAV_LEVEL_S. A sound this short and this far from the rest is no speech: the last
 * letters of a word follow closer, and a word lasts longer. */
enum { STRAY_MOST = 8, STRAY_APART = 25, BRIDGE = 5 };
#define STRAY_SHARE 0.1 /* of all sound */

/* A stretch of sound, in windows. */
struct run {
	size_t from, to;
};

struct runs {
	struct run *list;
	size_t count, cap, sound; /* sound: windows in all */
};

/* Lists the stretches of sound; short silences within belong to them. */
static struct runs find_runs(const float *levels, size_t count)
{
	struct runs runs = {0};
	float peak = 0, least;

	for (size_t i = 0; i < count; i++)
		peak = levels[i] > peak ? levels[i] : peak;
	least = (float)(peak * SILENT > LEAST ? peak * SILENT : LEAST);
	for (size_t i = 0; i < count; i++) {
		struct run *last = runs.count ? &runs.list[runs.count - 1] : NULL;
		if (levels[i] < least)
			continue;
		runs.sound++;
		if (last && i - last->to <= BRIDGE) {
			last->to = i + 1;
			continue;
		}
		GROW(runs.list, runs.count, runs.cap);
		runs.list[runs.count++] = (struct run){i, i + 1};
	}
	return runs;
}

/* Returns whether a stretch at one of the ends is a stray sound. apart: windows to the next one. */
static bool is_stray(const struct runs *runs, const struct run *run, size_t apart)
{
	size_t len = run->to - run->from;

	return len <= STRAY_MOST && apart >= STRAY_APART &&
	       (double)len <= (double)runs->sound * STRAY_SHARE;
}

int wav_trim(FILE *f, const struct wav_info *info, struct wav_trim *out, struct err *err)
{
	float *levels;
	size_t count;

	if (wav_levels(f, info, &levels, &count, err) < 0)
		return -1;
	struct runs runs = find_runs(levels, count);
	const int64_t window = wav_level_frames(info);
	size_t first = 0, last = runs.count;

	*out = (struct wav_trim){.end = info->frames, .most = info->frames};
	while (last - first > 1 &&
	       is_stray(&runs, &runs.list[first], runs.list[first + 1].from - runs.list[first].to))
		first++;
	while (last - first > 1 && is_stray(&runs, &runs.list[last - 1],
					    runs.list[last - 1].from - runs.list[last - 2].to))
		last--;
	if (runs.count) {
		out->begin = (int64_t)runs.list[first].from * window;
		out->end = MIN((int64_t)runs.list[last - 1].to * window, info->frames);
		out->strays = runs.count - (last - first);
		/* what may be kept around it ends where a stray sound begins */
		out->least = first ? (int64_t)runs.list[first - 1].to * window : 0;
		out->most =
			last < runs.count ? (int64_t)runs.list[last].from * window : info->frames;
	}
	free(runs.list);
	free(levels);
	return 0;
}
