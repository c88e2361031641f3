/* markup.c - removes HTML's tags, comments and character references from a text. */
#include "markup.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

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
