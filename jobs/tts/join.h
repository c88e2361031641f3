/* join.h - joins the finished segments of a script into one track, with sample-exact subtitles and
 * chapters. */
#ifndef BURST_JOBS_TTS_JOIN_H
#define BURST_JOBS_TTS_JOIN_H

#include "base/err.h"
#include "base/str.h"

#define JOIN_FORMATS_MOST 4

/* What a join that lacks segments may write. */
#define JOIN_PARTIAL_NAMES                                                                         \
	"joined.partial.wav", "joined.partial.srt", "joined.partial.vtt", "chapters.partial.txt",  \
		"joined.partial.m4b", "joined.partial.mp3", "joined.partial.opus",                 \
		"joined.partial.flac"

struct ffmpeg_format;
struct join_meter;

struct join_piece {
	const char *file; /* relative to the folder */
	const char *text;
	size_t item; /* index; pieces of one item are separated by the short gap */
	int chapter; /* index; -1: none */
	/* the script's pause before it, in seconds; replaces the gap if it is longer */
	double before_s;
	double seconds; /* its length; 0: unknown */
};

struct join_options {
	double gap_s, piece_gap_s;
	bool normalise;
	double lufs;
	bool subtitles;
	bool partial; /* segments are missing */
	/* bytes of samples above which the track is written as RF64; 0: WAV_MOST_BYTES */
	int64_t plain_bytes;
	/* joined.m4b and the like; ends with NULL if shorter */
	const struct ffmpeg_format *formats[JOIN_FORMATS_MOST];
	struct join_meter *meter; /* measures how far the join is; NULL: not needed */
};

/* What a join takes for a second of sound on an idle machine (join_meter.h). */
double join_ms_per_s(const struct join_options *options);

/* Writes dir/joined.wav and, if requested, joined.srt, joined.vtt and chapters.txt (if there are
 * chapter titles). Uses constant memory and renames each complete file into place. The first piece
 * decides the format; ffmpeg converts the others. A track that is too long for a WAV file is RF64.
 * If segments are missing (options->partial) the names are joined.partial.wav and the like, so that
 * an earlier whole track stays; a whole one removes those. Without ffmpeg the loudness is
 * unchanged. A note reports that, and each of `formats` that failed.
 */
int join_pieces(const char *dir, const struct join_piece *pieces, size_t count,
		const char *const *chapters, size_t chapter_count,
		const struct join_options *options, struct str *notes, struct err *err);

#endif
