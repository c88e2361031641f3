/* join_bed.h - a track that is joined. */
#ifndef BURST_TESTS_JOIN_BED_H
#define BURST_TESTS_JOIN_BED_H

#include "tts_helpers.h"

#include "jobs/tts/join.h"

/* The silence between pieces whose border is a line's. */
#define PAUSES(s) .pauses_s = {[BORDER_LINE] = (s)}

static inline int join(const struct join_piece *pieces, size_t count,
		       const struct join_options *options, struct str *notes, struct err *err)
{
	static const char *const chapters[] = {"One", "Two = 2; #\\"};

	return join_pieces(folder, pieces, count, chapters, 2, options, notes, err);
}

#endif
