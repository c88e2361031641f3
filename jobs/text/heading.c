/* heading.c - knows the lines of a plain text that begin a chapter: "# One", "CHAPTER ONE",
 * "2. Kapitel", "Prologue" */
#include "script.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { LINE_MOST = 100 }; /* characters of a heading */

/* By language: en, de, fr, es, pt, it, nl, sv/da/no, pl, cs, fi, hu, ro, tr, ru, uk. Lower case. */
static const char *const divisions[] = {
	"chapter",   "part",     "book",   "volume",   "kapitel",   "teil",     "buch",
	"band",      "chapitre", "partie", "livre",    "tome",      "capítulo", "capitulo",
	"parte",     "libro",    "livro",  "capitolo", "hoofdstuk", "deel",     "boek",
	"del",       "rozdział", "część",  "kapitola", "část",      "luku",     "fejezet",
	"capitolul", "bölüm",    "глава",  "часть",    "книга",     "розділ",   "частина"};

/* Headings without a number. */
static const char *const lone[] = {
	"prologue", "epilogue", "foreword", "preface",    "introduction", "afterword", "prolog",
	"epilog",   "vorwort",  "nachwort", "prélude",    "avant-propos", "préface",   "épilogue",
	"prólogo",  "epílogo",  "prologo",  "epilogo",    "prefazione",   "proloog",   "epiloog",
	"пролог",   "эпилог",   "епілог",   "предисловие"};

static const char *const numbers[] = {
	"one",       "two",       "three",     "four",      "five",     "six",      "seven",
	"eight",     "nine",      "ten",       "eleven",    "twelve",   "thirteen", "fourteen",
	"fifteen",   "sixteen",   "seventeen", "eighteen",  "nineteen", "twenty",   "thirty",
	"forty",     "fifty",     "sixty",     "seventy",   "eighty",   "ninety",   "hundred",
	"first",     "second",    "third",     "fourth",    "fifth",    "sixth",    "seventh",
	"eighth",    "ninth",     "tenth",     "last",      "eins",     "zwei",     "drei",
	"vier",      "fünf",      "sechs",     "sieben",    "acht",     "neun",     "zehn",
	"elf",       "zwölf",     "dreizehn",  "vierzehn",  "fünfzehn", "sechzehn", "siebzehn",
	"achtzehn",  "neunzehn",  "zwanzig",   "erstes",    "zweites",  "drittes",  "viertes",
	"fünftes",   "sechstes",  "siebtes",   "siebentes", "achtes",   "neuntes",  "zehntes",
	"elftes",    "zwölftes",  "erster",    "zweiter",   "dritter",  "vierter",  "fünfter",
	"letztes",   "un",        "deux",      "trois",     "quatre",   "cinq",     "sept",
	"huit",      "neuf",      "dix",       "onze",      "douze",    "treize",   "quatorze",
	"quinze",    "seize",     "vingt",     "premier",   "première", "deuxième", "seconde",
	"troisième", "quatrième", "cinquième", "sixième",   "septième", "huitième", "neuvième",
	"dixième",   "dernier",   "uno",       "dos",       "tres",     "cuatro",   "cinco",
	"seis",      "siete",     "ocho",      "nueve",     "diez",     "once",     "doce",
	"trece",     "catorce",   "quince",    "veinte",    "primero",  "primera",  "segundo",
	"segunda",   "tercero",   "tercera",   "cuarto",    "cuarta",   "quinto",   "quinta",
	"sexto",     "sexta",     "séptimo",   "octavo",    "noveno",   "décimo",   "um",
	"dois",      "três",      "quatro",    "sete",      "oito",     "nove",     "dez",
	"doze",      "primeiro",  "primeira",  "terceiro",  "quarto",   "due",      "tre",
	"quattro",   "cinque",    "sei",       "sette",     "otto",     "dieci",    "undici",
	"dodici",    "primo",     "prima",     "secondo",   "seconda",  "terzo",    "terza",
	"sesto",     "settimo",   "ottavo",    "nono",      "decimo",   "een",      "twee",
	"drie",      "vijf",      "zes",       "zeven",     "negen",    "tien",     "twaalf",
	"eerste",    "tweede",    "derde",     "vierde",    "vijfde",   "первая",   "вторая",
	"третья",    "четвёртая", "четвертая", "пятая",     "шестая",   "седьмая",  "восьмая",
	"девятая",   "десятая",   "первый",    "второй"};

/* ---- words ---- */

/* Skips blanks, then returns the length of the word at *at: up to a blank or a sign. */
static size_t word_at(const char **at)
{
	size_t len = 0;

	*at += strspn(*at, " ");
	while ((*at)[len] && !strchr(" .:,;!?()[]-\"", (*at)[len]) &&
	       strncmp(*at + len, "\u2013", 3) && strncmp(*at + len, "\u2014", 3))
		len++;
	return len;
}

static bool is_among(const char *word, size_t len, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == len && !memcmp(list[i], word, len))
			return true;
	return false;
}

static bool is_number(const char *word, size_t len)
{
	return len && (strspn(word, "0123456789") >= len || strspn(word, "ivxlc") >= len) &&
	       len < 8;
}

/* Skips "12", "iv", "twenty-one". Returns false if no number is at *at. */
static bool skip_number(const char **at)
{
	const char *p = *at;
	size_t len = word_at(&p);

	if (is_number(p, len)) {
		*at = p + len;
		return true;
	}
	if (!is_among(p, len, numbers, ARRAY_LEN(numbers)))
		return false;
	do {
		*at = p + len;
		p = *at + (**at == '-');
		len = word_at(&p);
	} while (is_among(p, len, numbers, ARRAY_LEN(numbers)));
	return true;
}

static bool skip_word(const char **at, const char *const *list, size_t count)
{
	const char *p = *at;
	size_t len = word_at(&p);

	if (!is_among(p, len, list, count))
		return false;
	*at = p + len;
	return true;
}

/* "第3章", "第十二回" */
static bool is_east_asian(const char *p)
{
	static const char *const digits[] = {"一", "二", "三", "四", "五", "六", "七",
					     "八", "九", "十", "百", "零", "〇", "两"};
	static const char *const names[] = {"章", "部", "卷", "巻", "回", "话",
					    "話", "節", "节", "篇", "幕"};
	size_t count = 0;

	if (strncmp(p, "第", 3))
		return false;
	for (p += 3;; count++) {
		size_t len = isdigit((unsigned char)*p) ? 1
			     : is_among(p, MIN(strlen(p), (size_t)3), digits, ARRAY_LEN(digits))
				     ? 3
				     : 0;
		if (!len)
			break;
		p += len;
	}
	return count && strlen(p) >= 3 && is_among(p, 3, names, ARRAY_LEN(names));
}

/* Returns whether what follows the number can be a title, or nothing does. */
static bool is_title(const char *raw)
{
	size_t blanks = strspn(raw, " ");
	const char *p = raw + blanks;

	if (!*p)
		return true;
	if (strchr(".:-", *p) || !strncmp(p, "\u2013", 3) || !strncmp(p, "\u2014", 3))
		return true;
	const char *from = p;
	uint32_t first = utf8_next(&p);
	return blanks && heading_fold(first) != first &&
	       split_end(from, strlen(from)) == SPLIT_WORD;
}

/* Returns whether a folded line begins like a chapter; *behind: what follows. */
static bool begins_chapter(const char *line, const char **behind)
{
	static const char *const the[] = {"the"};
	const char *p = line;

	if (skip_word(&p, divisions, ARRAY_LEN(divisions))) {
		skip_word(&p, the, 1);
		*behind = p;
		return skip_number(behind);
	}
	*behind = p;
	if (skip_word(behind, lone, ARRAY_LEN(lone)))
		return true;
	if (!skip_number(behind))
		return false;
	*behind += **behind == '.';
	return skip_word(behind, divisions, ARRAY_LEN(divisions));
}

/* Returns whether a line begins like a chapter; *behind: what follows. */
static bool is_division(const char *line, const char **behind)
{
	CLEANUP(str_free) struct str folded = STR_INIT;

	for (const char *p = line; *p;)
		str_add_utf8(&folded, heading_fold(utf8_next(&p)));
	/* folding keeps the number of bytes of each character */
	if (folded.len != strlen(line) || !begins_chapter(str_text(&folded), behind))
		return false;
	*behind = line + (*behind - str_text(&folded));
	return true;
}

bool heading_is(const char *line)
{
	size_t marks = strspn(line, "#");
	const char *behind;

	if (marks)
		return marks <= 6 && line[marks] == ' ';
	if (split_chars(line, strlen(line)) > LINE_MOST)
		return false;
	if (is_east_asian(line))
		return split_end(line, strlen(line)) == SPLIT_WORD;
	return is_division(line, &behind) && is_title(behind);
}

bool heading_is_bare(const char *text, size_t len)
{
	CLEANUP(free_text) char *line = xstrndup(text, len);
	const char *behind;

	return is_division(line, &behind) && !behind[strspn(behind, " .:")];
}
