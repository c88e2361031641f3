/* lexicon.h - how words are to be spoken: a file of "word<TAB>spoken as" lines, and the texts that
 * it changes. Words are replaced as they are written, before a long text is cut. What is shown
 * (subtitles, manifest) keeps the words of the script. Pure. */
#ifndef BURST_JOBS_TTS_LEXICON_H
#define BURST_JOBS_TTS_LEXICON_H

#include "base/err.h"
#include "base/str.h"

struct lexicon;

/* Reads the file's bytes; name is how messages call it. ERR_CONFIG names file and line. Free with
 * lexicon_free(). */
int lexicon_read(struct lexicon **out, const char *name, const char *bytes, size_t len,
		 struct err *err);
void lexicon_free(struct lexicon *lexicon);

/* A word of the script that is spoken as another text, as byte ranges. */
struct lexicon_swap {
	size_t spoken, spoken_len;
	size_t shown, shown_len;
};

struct lexicon_text {
	char *spoken;
	struct lexicon_swap *swaps; /* in order */
	size_t count, cap;
};

/* Replaces the words of a normalised text; of several that begin at one place, the longest. A word
 * that begins (ends) with a letter or a digit does not match behind (in front of) a letter or a
 * digit. lexicon NULL: the text is unchanged. Free with lexicon_text_free(). */
void lexicon_apply(const struct lexicon *lexicon, const char *text, size_t len,
		   struct lexicon_text *out);
/* The script's own words for a range of the spoken text: those that begin in it. To be freed. */
char *lexicon_shown(const struct lexicon_text *t, const char *text, size_t from, size_t to);
void lexicon_text_free(struct lexicon_text *t);

static inline void lexicon_text_free_cleanup(struct lexicon_text *t)
{
	lexicon_text_free(t);
}

#endif
