/* letters.c - finds which scripts a text is written in. */
#include "letters.h"

#include "base/mem.h"
#include "base/str.h"

/* Ranges of letters, by script. Signs and digits in blocks of their own are left out. */
static const struct {
	uint32_t first, last;
	enum letters letters;
} ranges[] = {
	{'A', 'Z', LETTERS_LATIN},          {'a', 'z', LETTERS_LATIN},
	{0xc0, 0x24f, LETTERS_LATIN},       {0x370, 0x3ff, LETTERS_GREEK},
	{0x400, 0x52f, LETTERS_CYRILLIC},   {0x531, 0x587, LETTERS_ARMENIAN},
	{0x5d0, 0x5f2, LETTERS_HEBREW},     {0x620, 0x64a, LETTERS_ARABIC},
	{0x66e, 0x6d3, LETTERS_ARABIC},     {0x750, 0x77f, LETTERS_ARABIC},
	{0x904, 0x963, LETTERS_DEVANAGARI}, {0x971, 0x97f, LETTERS_DEVANAGARI},
	{0x980, 0xdf3, LETTERS_INDIC},      {0xe01, 0xe4e, LETTERS_THAI},
	{0x10a0, 0x10ff, LETTERS_GEORGIAN}, {0x1100, 0x11ff, LETTERS_HANGUL},
	{0x1e00, 0x1eff, LETTERS_LATIN},    {0x1f00, 0x1fff, LETTERS_GREEK},
	{0x3041, 0x30ff, LETTERS_KANA},     {0x3131, 0x318e, LETTERS_HANGUL},
	{0x3400, 0x4dbf, LETTERS_HAN},      {0x4e00, 0x9fff, LETTERS_HAN},
	{0xac00, 0xd7a3, LETTERS_HANGUL},   {0xff21, 0xff5a, LETTERS_LATIN},
	{0x20000, 0x323af, LETTERS_HAN},
};

static const char *const names[] = {"Latin",  "Greek",      "Cyrillic", "Armenian", "Hebrew",
				    "Arabic", "Devanagari", "Indic",    "Thai",     "Georgian",
				    "Hangul", "kana",       "Chinese"};

static uint32_t code_point(const unsigned char *p, size_t len)
{
	uint32_t c = len == 1 ? p[0] : p[0] & (0x7f >> len);

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static unsigned script_of(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return ranges[i].letters;
	return 0;
}

const char *letters_foreign(const char *text, unsigned known)
{
	size_t counts[ARRAY_LEN(names)] = {0}, read = 0, foreign = 0, most = 0, len;
	const unsigned char *p = (const unsigned char *)text;

	for (size_t left = strlen(text); known && left && (len = utf8_sequence(p, left));
	     p += len, left -= len) {
		unsigned script = script_of(code_point(p, len));
		if (!script)
			continue;
		read += (script & known) != 0;
		foreign += !(script & known);
		counts[__builtin_ctz(script)]++;
	}
	if (foreign <= read)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!(known & 1u << i) && (counts[i] > counts[most] || known & 1u << most))
			most = i;
	return names[most];
}
