/* lexicon.h - replaces words by their spoken form, from a file of "word<TAB>spoken as" lines.
 *
 * The replacement happens before a long text is cut. Subtitles and manifest show the words of the
 * script. Pure. */
#ifndef BURST_JOBS_TTS_LEXICON_H
#define BURST_JOBS_TTS_LEXICON_H

#include "base/err.h"
#include "base/str.h"

struct lexicon;

/* Reads the file's bytes; name is for messages. ERR_CONFIG names file and line. Free with
 * lexicon_free(). */
int lexicon_read(struct lexicon **out, const char *name, const char *bytes, size_t len,
		 struct err *err);
void lexicon_free(struct lexicon *lexicon);

/* A word of the script and its replacement, as byte ranges. */
struct lexicon_swap {
	size_t spoken, spoken_len;
	size_t shown, shown_len;
};

struct lexicon_text {
	char *spoken;
	struct lexicon_swap *swaps; /* in order of the text */
	size_t count, cap;
};

/* Replaces the words of a normalised text; of several matches at one place, the longest. A match
 * that begins or ends with a letter or a digit must not touch another letter or digit there.
 * lexicon NULL: no change. Free with lexicon_text_free(). */
void lexicon_apply(const struct lexicon *lexicon, const char *text, size_t len,
		   struct lexicon_text *out);
/* The script's words that begin in this range of the spoken text. The caller frees them. */
char *lexicon_shown(const struct lexicon_text *t, const char *text, size_t from, size_t to);
void lexicon_text_free(struct lexicon_text *t);

static inline void lexicon_text_free_cleanup(struct lexicon_text *t)
{
	lexicon_text_free(t);
}

#endif
