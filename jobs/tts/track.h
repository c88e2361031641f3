/* track.h - a track while it is joined. Private to join.c, encode.c and track.c */
#ifndef BURST_JOBS_TTS_TRACK_H
#define BURST_JOBS_TTS_TRACK_H

#include <stdio.h>

#include "join.h"
#include "wav.h"

struct track {
	const char *dir;
	const struct join_options *options;
	const char *name; /* of its files, without their endings */
	const char *job;
	const char *part_of_name; /* "partial.": segments are missing; "" */
	struct made *made;        /* the files that are complete */
	bool lacks;               /* a file could not be made */
	int out, work;            /* descriptors, so that each path is looked up once */
	FILE *f;
	struct wav_format format;
	int64_t frames;
	int64_t tail;  /* of the frames: silence of the last piece that was kept */
	size_t strays; /* pieces with stray sounds */
	struct str stray_files;
	size_t fitted, overdue; /* cues with times; those that end after theirs */
	struct str overdue_files;
	int64_t latest;   /* the largest delay of a cue's begin, in frames */
	int64_t synced;   /* bytes of samples */
	bool long_header; /* RF64 */
	struct cue *cues; /* one per piece; the cues own their words and pauses */
	size_t cue_count;
	struct cue *chapters; /* one per title */
	size_t chapter_count;
	size_t heard;            /* chapters with sound */
	struct str chapter_list; /* FFMETADATA; empty if no chapter has sound */
};

/* ---- track.c ---- */

/* Appends bytes to the file of the track. */
int track_write(struct track *t, const void *bytes, size_t len, struct err *err);
/* Opens a plain file below the folder without following a link. The caller closes *out. */
int track_open_wav(int dir, const char *name, FILE **out, struct wav_info *info, struct err *err);
/* Writes the header at the file's current position. */
int track_write_header(struct track *t, struct err *err);
int track_copy_samples(struct track *t, FILE *from, const struct wav_info *info, struct err *err);
/* "joined.srt", or "joined.partial.srt": a track that lacks segments must not replace a whole one.
 * The caller frees it. */
char *track_file_name(const struct track *t, const char *stem, const char *ending);
/* Gives a finished file its name, in burst's own folder until all are finished. */
int track_put(const struct track *t, const char *from, const char *to, struct err *err);
int track_put_text(const struct track *t, const char *stem, const char *ending,
		   const struct str *text, struct err *err);

/* ---- encode.c ---- */

/* Makes joined.m4b and the like from the finished track. If a format fails, adds a note: the track
 * exists, so the run has not failed. */
int track_encode(struct track *t, const struct join_piece *pieces, struct str *notes,
		 struct err *err);
/* Makes the files of each chapter: the pieces between two borders of chapters. A track that lacks
 * segments gets none, since a chapter might be missing. */
int track_make_chapters(struct track *t, const struct join_piece *pieces, struct str *notes,
			struct err *err);

#endif
