/* text.c - from what is written to what is spoken: markup, scripts of letters, pieces and pauses
 */
#include "script.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- letters ----
 * Finds which scripts a text is written in. */

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

/* ---- markup ----
 * Removes HTML's tags, comments and character references from a text. */

#define ENTITY_MAX_BYTES 32

/* The named characters of HTML 4, and XML's apostrophe; sorted by name. */
static const struct entity {
	const char *name;
	uint32_t code;
} entities[] = {
	{"AElig", 198},    {"Aacute", 193},  {"Acirc", 194},   {"Agrave", 192},  {"Alpha", 913},
	{"Aring", 197},    {"Atilde", 195},  {"Auml", 196},    {"Beta", 914},    {"Ccedil", 199},
	{"Chi", 935},      {"Dagger", 8225}, {"Delta", 916},   {"ETH", 208},     {"Eacute", 201},
	{"Ecirc", 202},    {"Egrave", 200},  {"Epsilon", 917}, {"Eta", 919},     {"Euml", 203},
	{"Gamma", 915},    {"Iacute", 205},  {"Icirc", 206},   {"Igrave", 204},  {"Iota", 921},
	{"Iuml", 207},     {"Kappa", 922},   {"Lambda", 923},  {"Mu", 924},      {"Ntilde", 209},
	{"Nu", 925},       {"OElig", 338},   {"Oacute", 211},  {"Ocirc", 212},   {"Ograve", 210},
	{"Omega", 937},    {"Omicron", 927}, {"Oslash", 216},  {"Otilde", 213},  {"Ouml", 214},
	{"Phi", 934},      {"Pi", 928},      {"Prime", 8243},  {"Psi", 936},     {"Rho", 929},
	{"Scaron", 352},   {"Sigma", 931},   {"THORN", 222},   {"Tau", 932},     {"Theta", 920},
	{"Uacute", 218},   {"Ucirc", 219},   {"Ugrave", 217},  {"Upsilon", 933}, {"Uuml", 220},
	{"Xi", 926},       {"Yacute", 221},  {"Yuml", 376},    {"Zeta", 918},    {"aacute", 225},
	{"acirc", 226},    {"acute", 180},   {"aelig", 230},   {"agrave", 224},  {"alefsym", 8501},
	{"alpha", 945},    {"amp", 38},      {"and", 8743},    {"ang", 8736},    {"apos", 39},
	{"aring", 229},    {"asymp", 8776},  {"atilde", 227},  {"auml", 228},    {"bdquo", 8222},
	{"beta", 946},     {"brvbar", 166},  {"bull", 8226},   {"cap", 8745},    {"ccedil", 231},
	{"cedil", 184},    {"cent", 162},    {"chi", 967},     {"circ", 710},    {"clubs", 9827},
	{"cong", 8773},    {"copy", 169},    {"crarr", 8629},  {"cup", 8746},    {"curren", 164},
	{"dArr", 8659},    {"dagger", 8224}, {"darr", 8595},   {"deg", 176},     {"delta", 948},
	{"diams", 9830},   {"divide", 247},  {"eacute", 233},  {"ecirc", 234},   {"egrave", 232},
	{"empty", 8709},   {"emsp", 8195},   {"ensp", 8194},   {"epsilon", 949}, {"equiv", 8801},
	{"eta", 951},      {"eth", 240},     {"euml", 235},    {"euro", 8364},   {"exist", 8707},
	{"fnof", 402},     {"forall", 8704}, {"frac12", 189},  {"frac14", 188},  {"frac34", 190},
	{"frasl", 8260},   {"gamma", 947},   {"ge", 8805},     {"gt", 62},       {"hArr", 8660},
	{"harr", 8596},    {"hearts", 9829}, {"hellip", 8230}, {"iacute", 237},  {"icirc", 238},
	{"iexcl", 161},    {"igrave", 236},  {"image", 8465},  {"infin", 8734},  {"int", 8747},
	{"iota", 953},     {"iquest", 191},  {"isin", 8712},   {"iuml", 239},    {"kappa", 954},
	{"lArr", 8656},    {"lambda", 955},  {"lang", 9001},   {"laquo", 171},   {"larr", 8592},
	{"lceil", 8968},   {"ldquo", 8220},  {"le", 8804},     {"lfloor", 8970}, {"lowast", 8727},
	{"loz", 9674},     {"lrm", 8206},    {"lsaquo", 8249}, {"lsquo", 8216},  {"lt", 60},
	{"macr", 175},     {"mdash", 8212},  {"micro", 181},   {"middot", 183},  {"minus", 8722},
	{"mu", 956},       {"nabla", 8711},  {"nbsp", 160},    {"ndash", 8211},  {"ne", 8800},
	{"ni", 8715},      {"not", 172},     {"notin", 8713},  {"nsub", 8836},   {"ntilde", 241},
	{"nu", 957},       {"oacute", 243},  {"ocirc", 244},   {"oelig", 339},   {"ograve", 242},
	{"oline", 8254},   {"omega", 969},   {"omicron", 959}, {"oplus", 8853},  {"or", 8744},
	{"ordf", 170},     {"ordm", 186},    {"oslash", 248},  {"otilde", 245},  {"otimes", 8855},
	{"ouml", 246},     {"para", 182},    {"part", 8706},   {"permil", 8240}, {"perp", 8869},
	{"phi", 966},      {"pi", 960},      {"piv", 982},     {"plusmn", 177},  {"pound", 163},
	{"prime", 8242},   {"prod", 8719},   {"prop", 8733},   {"psi", 968},     {"quot", 34},
	{"rArr", 8658},    {"radic", 8730},  {"rang", 9002},   {"raquo", 187},   {"rarr", 8594},
	{"rceil", 8969},   {"rdquo", 8221},  {"real", 8476},   {"reg", 174},     {"rfloor", 8971},
	{"rho", 961},      {"rlm", 8207},    {"rsaquo", 8250}, {"rsquo", 8217},  {"sbquo", 8218},
	{"scaron", 353},   {"sdot", 8901},   {"sect", 167},    {"shy", 173},     {"sigma", 963},
	{"sigmaf", 962},   {"sim", 8764},    {"spades", 9824}, {"sub", 8834},    {"sube", 8838},
	{"sum", 8721},     {"sup", 8835},    {"sup1", 185},    {"sup2", 178},    {"sup3", 179},
	{"supe", 8839},    {"szlig", 223},   {"tau", 964},     {"there4", 8756}, {"theta", 952},
	{"thetasym", 977}, {"thinsp", 8201}, {"thorn", 254},   {"tilde", 732},   {"times", 215},
	{"trade", 8482},   {"uArr", 8657},   {"uacute", 250},  {"uarr", 8593},   {"ucirc", 251},
	{"ugrave", 249},   {"uml", 168},     {"upsih", 978},   {"upsilon", 965}, {"uuml", 252},
	{"weierp", 8472},  {"xi", 958},      {"yacute", 253},  {"yen", 165},     {"yuml", 255},
	{"zeta", 950},     {"zwj", 8205},    {"zwnj", 8204},
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entity *)a)->name, ((const struct entity *)b)->name);
}

/* Adds a character. An invalid number becomes the replacement character. */
static void add_code_point(struct str *to, unsigned long c)
{
	bool known = c > 0 && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);

	str_add_utf8(to, known ? (uint32_t)c : 0xfffd);
}

void markup_add_entity(struct str *to, const char *entity, size_t len)
{
	char name[ENTITY_MAX_BYTES];

	if (len < 3 || len - 2 >= sizeof(name)) {
		str_addn(to, entity, len);
		return;
	}
	memcpy(name, entity + 1, len - 2);
	name[len - 2] = '\0';
	if (name[0] == '#') {
		bool hex = name[1] == 'x' || name[1] == 'X';
		add_code_point(to, strtoul(name + 1 + hex, NULL, hex ? 16 : 10));
		return;
	}
	const struct entity wanted = {.name = name};
	const struct entity *found =
		bsearch(&wanted, entities, ARRAY_LEN(entities), sizeof(entities[0]), by_name);
	if (found)
		add_code_point(to, found->code);
	else
		str_addn(to, entity, len);
}

/* The length of the character reference at p, or 0. */
static size_t entity_length(const char *p, const char *end)
{
	size_t n = 1;

	if (p + n < end && p[n] == '#')
		n++;
	while (p + n < end && n < ENTITY_MAX_BYTES && isalnum((unsigned char)p[n]))
		n++;
	return n > 1 && p + n < end && p[n] == ';' ? n + 1 : 0;
}

/* Returns the place behind `what`, or the end. */
static const char *skip_past(const char *p, const char *end, const char *what)
{
	const char *found = memmem(p, (size_t)(end - p), what, strlen(what));

	return found ? found + strlen(what) : end;
}

/* Returns the '>' that ends a tag, but not one in an attribute's quotes; the end if there is none.
 */
static const char *end_of_tag(const char *p, const char *end)
{
	char quote = 0;

	for (; p < end; p++) {
		if (quote)
			quote = *p == quote ? 0 : quote;
		else if (*p == '"' || *p == '\'')
			quote = *p;
		else if (*p == '>')
			return p;
	}
	return end;
}

static bool is_among(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcasecmp(name, *list))
			return true;
	return false;
}

/* Skips a tag whose content is not spoken, up to its end tag. */
static const char *skip_element(const char *p, const char *end, const char *name)
{
	size_t len = strlen(name);

	for (; (p = memchr(p, '<', (size_t)(end - p))); p++)
		if ((size_t)(end - p) > len + 2 && p[1] == '/' && !strncasecmp(p + 2, name, len))
			return p;
	return end;
}

/* p points at the '<' of a tag. Returns where the text continues. */
static const char *read_tag(struct str *to, const char *p, const char *end,
			    struct markup_silent *silent)
{
	static const char *const within_text[] = {
		"a",      "abbr", "acronym", "b",    "bdi",  "bdo",  "big",   "cite", "code",
		"data",   "del",  "dfn",     "em",   "font", "i",    "img",   "ins",  "kbd",
		"label",  "mark", "q",       "ruby", "s",    "samp", "small", "span", "strike",
		"strong", "sub",  "sup",     "time", "tt",   "u",    "var",   "wbr",  NULL};
	static const char *const unspoken[] = {"head", "pre",      "script",   "style",
					       "svg",  "template", "textarea", NULL};
	char name[16] = "";
	bool closes = p[1] == '/';
	const char *from = p + 1 + closes;

	for (size_t i = 0; i + 1 < sizeof(name) && from + i < end; i++) {
		if (!isalnum((unsigned char)from[i]))
			break;
		name[i] = from[i];
	}
	const char *stop = end_of_tag(from, end);
	p = stop < end ? stop + 1 : end;
	if (!is_among(name, within_text))
		str_addc(to, strcasecmp(name, "br") ? '\n' : ' ');
	if (closes)
		return p;
	silent->images += !strcasecmp(name, "img");
	silent->code_blocks += !strcasecmp(name, "pre");
	return is_among(name, unspoken) ? skip_element(p, end, name) : p;
}

void markup_text(struct str *to, const char *html, size_t len, struct markup_silent *silent)
{
	for (const char *p = html, *end = html + len; p < end;) {
		char next = p + 1 < end ? p[1] : 0;
		size_t entity = *p == '&' ? entity_length(p, end) : 0;
		if (entity) {
			markup_add_entity(to, p, entity);
			p += entity;
		} else if (*p == '<' && end - p >= 4 && !memcmp(p, "<!--", 4)) {
			p = skip_past(p + 4, end, "-->");
		} else if (*p == '<' && (next == '!' || next == '?')) {
			p = skip_past(p, end, ">");
		} else if (*p == '<' && (next == '/' || isalpha((unsigned char)next))) {
			p = read_tag(to, p, end, silent);
		} else {
			str_addc(to, isspace((unsigned char)*p) ? ' ' : *p);
			p++;
		}
	}
}

/* ---- split ----
 * Cuts a text into pieces that an engine can speak at once. */

static bool is_space(uint32_t c)
{
	return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
	       c == 0x205f || c == 0x3000;
}

static bool is_unseen(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x200b || c == 0xfeff ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
	       c == 0x200f;
}

/* The character belongs to the one before it. */
static bool is_joined(uint32_t c)
{
	return (c >= 0x300 && c <= 0x36f) || c == 0x200d || (c >= 0xfe00 && c <= 0xfe0f) ||
	       (c >= 0x1f3fb && c <= 0x1f3ff) || (c >= 0x20d0 && c <= 0x20ff);
}

static bool is_closing(uint32_t c)
{
	return c == '"' || c == '\'' || c == ')' || c == ']' || c == '}' || c == 0xbb ||
	       c == 0x2019 || c == 0x201d || c == 0x300d || c == 0x300f || c == 0xff09;
}

static bool is_wide_stop(uint32_t c)
{
	return c == 0x3002 || c == 0xff01 || c == 0xff1f || c == 0xff61;
}

static bool is_stop(uint32_t c)
{
	return c == '.' || c == '!' || c == '?' || c == 0x2026 || c == 0x964 || c == 0x6d4 ||
	       c == 0x61f || is_wide_stop(c);
}

static bool is_wide_comma(uint32_t c)
{
	return c == 0x3001 || c == 0xff0c || c == 0xff1b || c == 0xff1a;
}

static bool is_comma(uint32_t c)
{
	return c == ',' || c == ';' || c == ':' || c == 0x60c || c == 0x61b || c == 0x2014 ||
	       c == 0x2013 || is_wide_comma(c);
}

void split_normalise(struct str *to, const char *text, size_t len)
{
	bool blank = false;
	size_t begin = to->len;

	for (const char *p = text, *end = text + len; p < end;) {
		const char *from = p;
		uint32_t c = utf8_next(&p);
		if (is_space(c)) {
			blank = true;
			continue;
		}
		if (is_unseen(c))
			continue;
		if (blank && to->len > begin)
			str_addc(to, ' ');
		blank = false;
		str_addn(to, from, (size_t)(p - from));
	}
}

bool split_has_words(const char *text)
{
	for (const char *p = text; *p;) {
		uint32_t c = utf8_next(&p);
		if (c < 0x80 ? isalnum((int)c) || strchr("%&+=@$#", (int)c)
			     : c >= 0xa2 && !is_space(c) && !is_unseen(c) && !is_joined(c) &&
				       !is_stop(c) && !is_comma(c) && !is_closing(c) &&
				       !(c >= 0x2010 && c <= 0x205e) &&
				       !(c >= 0x3000 && c <= 0x3020) && c != 0xab && c != 0xbf)
			return true;
	}
	return false;
}

enum split_end split_end(const char *text, size_t len)
{
	enum split_end found = SPLIT_WORD;

	for (const char *end = text + len; text < end;) {
		uint32_t c = utf8_next(&text);
		if (!is_closing(c))
			found = is_stop(c) ? SPLIT_STOP : is_comma(c) ? SPLIT_COMMA : SPLIT_WORD;
	}
	return found;
}

size_t split_chars(const char *text, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/* Returns whether the stop before `end` belongs to "Dr.", "e.g." or "J. Smith", not to a sentence.
 */
static bool is_abbreviation(const char *text, const char *end)
{
	static const char *const known[] = {
		"mr",  "mrs", "ms", "dr",  "st",  "prof", "sr", "jr",  "vs",  "no",  "nr",
		"fig", "vol", "ca", "gen", "col", "capt", "lt", "rev", "hon", "bzw", "z.b"};
	char word[8];
	size_t n = 0;

	if (end == text || end[-1] != '.')
		return false;
	const char *from = end - 1;
	while (from > text && from[-1] != ' ' && from[-1] != '(' && from[-1] != '"')
		from--;
	n = (size_t)(end - 1 - from);
	if (n == 1 || (n > 1 && n < 6 && memchr(from, '.', n))) /* "J.", "e.g.", "U.S." */
		return isalpha((unsigned char)from[0]);
	if (n == 0 || n >= sizeof(word))
		return false;
	for (size_t i = 0; i < n; i++)
		word[i] = (char)tolower((unsigned char)from[i]);
	word[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(word, known[i]))
			return true;
	return false;
}

/* The best places to cut within a window, as byte pointers; NULL: none. A piece ends there. */
struct cuts {
	const char *sentence, *clause, *word, *hard;
};

static void note_cut(struct cuts *cuts, const char *text, const char *at, uint32_t last,
		     bool after_stop)
{
	bool blank = *at == ' ';

	cuts->hard = at;
	if (blank)
		cuts->word = at;
	if (is_wide_stop(last) ||
	    (after_stop && blank && !is_abbreviation(text, at) && !islower((unsigned char)at[1])))
		cuts->sentence = at;
	else if (is_wide_comma(last) || (blank && is_comma(last)))
		cuts->clause = at;
}

static struct cuts find_cuts(const char *text, size_t window, size_t min)
{
	struct cuts cuts = {0};
	const char *p = text;
	bool after_stop = false;

	for (size_t n = 0; n < window && *p; n++) {
		uint32_t c = utf8_next(&p);
		const char *ahead = p;
		after_stop = is_stop(c) || (after_stop && is_closing(c));
		if (n + 1 < min || !*p || is_joined(utf8_next(&ahead)) || c == 0x200d)
			continue;
		note_cut(&cuts, text, p, c, after_stop);
	}
	if (!cuts.hard) /* only combining marks */
		cuts.hard = p;
	return cuts;
}

static void add_piece(struct piece **list, size_t *count, size_t *cap, const char *from,
		      const char *to)
{
	while (to > from && to[-1] == ' ')
		to--;
	GROW(*list, *count, *cap);
	(*list)[(*count)++] = (struct piece){from, (size_t)(to - from)};
}

size_t split_text(const char *text, const struct split_limits *limits, struct piece **out)
{
	struct piece *list = NULL;
	size_t count = 0, cap = 0, left = split_chars(text, strlen(text));

	assert(limits->max_chars >= 2 && limits->max_chars >= 2 * limits->min_chars);
	while (left > limits->max_chars) {
		/* the rest behind the cut and its blank must not be too short */
		size_t window =
			MIN(limits->max_chars, left - limits->min_chars - (limits->min_chars > 0));
		struct cuts cuts = find_cuts(text, MAX(window, (size_t)1), limits->min_chars);
		const char *at = cuts.sentence ? cuts.sentence
				 : cuts.clause ? cuts.clause
				 : cuts.word   ? cuts.word
					       : cuts.hard;
		add_piece(&list, &count, &cap, text, at);
		const char *next = at + (*at == ' ');
		left -= split_chars(text, (size_t)(next - text));
		text = next;
	}
	if (*text)
		add_piece(&list, &count, &cap, text, text + strlen(text));
	*out = list;
	return count;
}

/* ---- pause ----
 * Finds "[pause 0.5s]" in a text and cuts the text there. */

#define WORD "[pause"

/* Finds the next pause at or after p, or NULL. *end: behind its bracket. "[pauses]" is text. */
static const char *find_pause_mark(const char *p, const char **end)
{
	for (; (p = strstr(p, WORD)); p++) {
		const char *after = p + strlen(WORD);
		const char *close = strchr(after, ']');
		if (close && (*after == ' ' || *after == ']')) {
			*end = close + 1;
			return p;
		}
	}
	return NULL;
}

/* Seconds of "[pause 0.5s]" or "[pause 500ms]"; negative if invalid. */
static double read_pause_mark(const char *mark, const char *end)
{
	const char *p = mark + strlen(WORD);
	char number[16], *rest;
	size_t len = 0;

	while (*p == ' ')
		p++;
	while ((isdigit((unsigned char)p[len]) || p[len] == '.') && len < sizeof(number) - 1)
		len++;
	memcpy(number, p, len);
	number[len] = '\0';
	double value = strtod(number, &rest);
	if (!len || *rest)
		return -1;
	p += len;
	while (*p == ' ')
		p++;
	double unit = !strncmp(p, "ms", 2) ? 0.001 : *p == 's' ? 1 : -1;
	p += unit == 1 ? 1 : 2;
	while (unit > 0 && p < end && *p == ' ')
		p++;
	return unit > 0 && p == end - 1 && value * unit <= PAUSE_MOST_S ? value * unit : -1;
}

static struct pause_part part_of(const char *from, const char *to, double before_s)
{
	while (from < to && *from == ' ')
		from++;
	while (to > from && to[-1] == ' ')
		to--;
	return (struct pause_part){from, (size_t)(to - from), before_s};
}

size_t pause_parts(const char *text, struct pause_part **out, const char **bad, size_t *bad_len)
{
	struct pause_part *list = NULL;
	size_t count = 0, cap = 0;
	const char *mark, *end;
	double before_s = 0;

	*bad = NULL;
	while ((mark = find_pause_mark(text, &end))) {
		double seconds = read_pause_mark(mark, end);
		if (seconds < 0 && !*bad) {
			*bad = mark;
			*bad_len = (size_t)(end - mark);
		}
		GROW(list, count, cap);
		list[count++] = part_of(text, mark, before_s);
		before_s = MAX(seconds, 0);
		text = end;
	}
	GROW(list, count, cap);
	list[count++] = part_of(text, text + strlen(text), before_s);
	*out = list;
	return count;
}
