/* readalong.h - an EPUB 3 whose text is marked while it is heard. */
#ifndef BURST_JOBS_TTS_READALONG_H
#define BURST_JOBS_TTS_READALONG_H

#include "join.h"

struct readalong_chapter {
	const char *title;  /* never empty */
	bool named;         /* it is the chapter's own */
	size_t from, count; /* its pieces */
	int64_t begin, end; /* samples of the track that its sound has */
	char *audio;        /* AAC in an MP4 file of the folder */
};

struct readalong {
	int dir;                        /* an open folder, where only burst may write */
	const char *name;               /* of a book without a title */
	const struct script_book *book; /* NULL: nothing is known */
	const struct join_piece *pieces;
	const struct cue *cues; /* of each piece */
	int rate;               /* samples a second */
	const struct readalong_chapter *chapters;
	size_t count;
	int64_t now_s; /* since the epoch */
};

/* Writes the book into the folder. ERR_JOB: it would be too large; ERR_LOCAL. */
int readalong_write(const struct readalong *r, const char *to, struct err *err);

#endif
