/* join.h - the finished segments of a script as one track, with subtitles and chapters that fit it
 * to the sample. */
#ifndef BURST_JOBS_TTS_JOIN_H
#define BURST_JOBS_TTS_JOIN_H

#include "base/err.h"
#include "base/str.h"

#define JOIN_FORMATS_MOST 4

struct ffmpeg_format;

struct join_piece {
	const char *file; /* below the folder */
	const char *text;
	size_t item; /* pieces of one item follow each other with the short gap */
	int chapter; /* index, -1: none */
	/* the script's own pause before it: longer than the gap, it takes its place */
	double before_s;
};

struct join_options {
	double gap_s, piece_gap_s;
	bool normalise;
	double lufs;
	bool subtitles;
	/* joined.m4b and the like; NULL ends them when there are fewer */
	const struct ffmpeg_format *formats[JOIN_FORMATS_MOST];
};

/* Writes dir/joined.wav and, if wanted, joined.srt, joined.vtt, chapters.txt (if there are chapter
 * titles). Constant memory; each file is renamed into place once it is whole. The format is that of
 * the first piece; ffmpeg converts the others. Without ffmpeg the loudness is unchanged, and a note
 * says so, as for each of `formats` that could not be made. */
int join_pieces(const char *dir, const struct join_piece *pieces, size_t count,
		const char *const *chapters, size_t chapter_count,
		const struct join_options *options, struct str *notes, struct err *err);

#endif
