/* letters.h - finds which scripts a text is written in, so that no engine renders letters that it
 * cannot read. */
#ifndef BURST_JOBS_TTS_LETTERS_H
#define BURST_JOBS_TTS_LETTERS_H

enum letters {
	LETTERS_LATIN = 1 << 0,
	LETTERS_GREEK = 1 << 1,
	LETTERS_CYRILLIC = 1 << 2,
	LETTERS_ARMENIAN = 1 << 3,
	LETTERS_HEBREW = 1 << 4,
	LETTERS_ARABIC = 1 << 5,
	LETTERS_DEVANAGARI = 1 << 6,
	LETTERS_INDIC = 1 << 7, /* the other scripts of India and Sri Lanka */
	LETTERS_THAI = 1 << 8,
	LETTERS_GEORGIAN = 1 << 9,
	LETTERS_HANGUL = 1 << 10,
	LETTERS_KANA = 1 << 11,
	LETTERS_HAN = 1 << 12,
};

/* Returns NULL if at least half of the text's letters are of KNOWN (a set of the above; 0: all), or
 * if it has none. Else returns the name of the most frequent other script. The text must be valid
 * UTF-8. Letters of scripts that are not listed do not count. */
const char *letters_foreign(const char *text, unsigned known);

#endif
