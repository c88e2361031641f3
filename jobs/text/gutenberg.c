/* gutenberg.c - finds the book in a text file of Project Gutenberg, and takes the marks of those
 * who typed it out of a plain text: pictures, footnotes, _emphasis_ */
#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"

/* ---- the book ----
 * "*** START OF THE PROJECT GUTENBERG EBOOK NAME ***" ends the licence above it, and the same with
 * END begins the one below it. */

static bool line_begins(const char *line, size_t len, const char *with)
{
	return len >= strlen(with) && !strncasecmp(line, with, strlen(with));
}

/* Returns whether the line is a mark with this word behind its asterisks. */
static bool is_mark(const char *line, size_t len, const char *word)
{
	const char *end = line + len, *p = line;

	while (p < end && (*p == '*' || *p == ' '))
		p++;
	bool stars = p - line >= 3 && *line == '*';
	return stars && line_begins(p, (size_t)(end - p), word) &&
	       memmem(p, (size_t)(end - p), "PROJECT GUTENBERG", strlen("PROJECT GUTENBERG"));
}

/* Returns whether the licence below the book begins with this line. */
static bool ends_book(const char *line, size_t len)
{
	return is_mark(line, len, "END OF TH") ||
	       line_begins(line, len, "End of Project Gutenberg") ||
	       line_begins(line, len, "End of the Project Gutenberg");
}

/* Reads "Title: ..." of the lines above the book. Its languages are English words. */
static void read_header(struct script_book *book, const char *line, size_t len)
{
	static const char *const keys[] = {"Title:", "Author:", "Language:"};
	static const struct {
		const char *name, *code;
	} languages[] = {{"English", "en"}, {"German", "de"},    {"French", "fr"},
			 {"Spanish", "es"}, {"Italian", "it"},   {"Portuguese", "pt"},
			 {"Dutch", "nl"},   {"Polish", "pl"},    {"Finnish", "fi"},
			 {"Swedish", "sv"}, {"Danish", "da"},    {"Hungarian", "hu"},
			 {"Russian", "ru"}, {"Norwegian", "no"}, {"Greek", "el"},
			 {"Latin", "la"},   {"Esperanto", "eo"}, {"Czech", "cs"},
			 {"Chinese", "zh"}, {"Japanese", "ja"},  {"Catalan", "ca"}};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (line_begins(line, len, keys[i]))
			book_read_line(book, line, len);
	for (size_t i = 0; book->language && i < ARRAY_LEN(languages); i++)
		if (!strcmp(book->language, languages[i].name)) {
			free(book->language);
			book->language = xstrdup(languages[i].code);
		}
}

/* Who typed the book is said in the paragraph below the mark. */
static bool is_credit(const char *line, size_t len)
{
	static const char *const credits[] = {"Produced by",
					      "E-text prepared by",
					      "Etext prepared by",
					      "This eBook was produced by",
					      "This etext was produced by",
					      "This etext was prepared by"};

	for (size_t i = 0; i < ARRAY_LEN(credits); i++)
		if (line_begins(line, len, credits[i]))
			return true;
	return false;
}

/* Moves *book behind the blank lines at its start, and behind the credit. */
static void skip_credit(struct plain_book *book)
{
	const char *at = book->begin, *line;
	size_t len;
	bool credit = false;

	while (next_line(&at, book->end, &line, &len)) {
		bool blank = line_is_blank(line, len);
		if (!credit && !blank && !is_credit(line, len))
			return;
		credit |= !blank;
		book->begin = at;
		book->line++;
		if (credit && blank)
			return;
	}
}

struct plain_book plain_book(struct script *s, const char *bytes, size_t len)
{
	struct plain_book all = {bytes, bytes + len, 0}, book = all;
	const char *line, *at = bytes;
	size_t n, number = 0;
	bool found = false;

	while (next_line(&at, all.end, &line, &n)) {
		number++;
		if (!found && is_mark(line, n, "START OF TH")) {
			/* a long name of the book goes on in the next line */
			while (!(n >= 3 && !memcmp(line + n - 3, "***", 3)) &&
			       next_line(&at, all.end, &line, &n) && !line_is_blank(line, n))
				number++;
			book = (struct plain_book){at, all.end, number};
			found = true;
		} else if (found && ends_book(line, n)) {
			book.end = line;
			break;
		}
	}
	if (!found) {
		all.begin = front_matter_read(&s->book, bytes, all.end);
		for (at = bytes; at < all.begin && next_line(&at, all.begin, &line, &n);)
			all.line++;
		return all;
	}
	at = bytes;
	while (at < book.begin && next_line(&at, book.begin, &line, &n))
		read_header(&s->book, line, n);
	skip_credit(&book);
	s->silent.licences++;
	return book;
}

/* ---- the marks of typists ---- */

static bool is_letter(uint32_t c)
{
	return c >= 0x80 ? split_is_spoken(c) : isalnum((int)c) != 0;
}

static uint32_t char_before(const char *text, const char *at)
{
	if (at == text)
		return 0;
	do
		at--;
	while (at > text && ((unsigned char)*at & 0xc0) == 0x80);
	return utf8_next(&at);
}

static uint32_t char_behind(const char *at)
{
	return *at ? utf8_next(&at) : 0;
}

/* The end of a run of this mark. */
static const char *behind_marks(const char *p, char mark)
{
	while (*p == mark)
		p++;
	return p;
}

#define EMPHASIS_MOST 2000 /* bytes between its marks */

/* Finds the marks that close "_emphasis_" or "**emphasis**"; NULL: nothing closes it. */
static const char *close_of_emphasis(const char *text, const char *open, size_t marks)
{
	const char *p = open + marks;

	if (marks > 3 || is_letter(char_before(text, open)) || !*p || *p == ' ')
		return NULL;
	while ((p = strchr(p, *open)) && p - open < EMPHASIS_MOST) {
		const char *end = behind_marks(p, *open);
		if ((size_t)(end - p) == marks && p[-1] != ' ' && !is_letter(char_behind(end)))
			return p;
		p = end;
	}
	return NULL;
}

static void drop_emphasis(struct str *text, char mark)
{
	CLEANUP(str_free) struct str to = STR_INIT;
	const char *from = str_text(text), *close = NULL;

	if (!strchr(from, mark))
		return;
	for (const char *p = from; *p;) {
		size_t marks = (size_t)(behind_marks(p, mark) - p);
		if (!marks) {
			str_addc(&to, *p++);
			continue;
		}
		if (p == close)
			close = NULL;
		else if (close || !(close = close_of_emphasis(from, p, marks)))
			str_addn(&to, p, marks);
		p += marks;
	}
	str_reset(text);
	str_addn(text, str_text(&to), to.len);
}

/* The length of "[12]" or "[A]" at p; 0: there is none. */
static size_t note_length(const char *p)
{
	size_t n = *p == '[' ? 1 + strspn(p + 1, "0123456789") : 0;

	if (n == 1 && isupper((unsigned char)p[1]))
		n = 2;
	return n > 1 && n < 6 && p[n] == ']' ? n + 1 : 0;
}

/* Drops the numbers of footnotes, which touch the word or the sign before them. */
static void drop_note_numbers(struct script *s, struct str *text)
{
	CLEANUP(str_free) struct str to = STR_INIT;
	const char *from = str_text(text);

	if (!strchr(from, '['))
		return;
	for (const char *p = from; *p;) {
		size_t len = p > from && p[-1] != ' ' && p[-1] != '[' ? note_length(p) : 0;
		if (len && !is_letter(char_behind(p + len))) {
			s->plain.notes++;
			p += len;
		} else
			str_addc(&to, *p++);
	}
	str_reset(text);
	str_addn(text, str_text(&to), to.len);
}

/* Returns whether the paragraph is "[Illustration: ...]" or the like. */
static bool is_bracket_of(const struct str *text, const char *word)
{
	const char *p = str_text(text);
	size_t len = strlen(word);

	return *p == '[' && !strncasecmp(p + 1, word, len) && strchr(":] 0123456789", p[1 + len]) &&
	       text->s[text->len - 1] == ']';
}

bool plain_clean(struct script *s, struct str *text)
{
	if (!text->len)
		return true;
	if (is_bracket_of(text, "Illustration")) {
		s->silent.images++;
		return false;
	}
	bool note = is_bracket_of(text, "Footnote"), numbered = note_length(text->s) > 0;
	if (note || (numbered && s->plain.notes)) {
		s->silent.footnotes++;
		return false;
	}
	drop_note_numbers(s, text);
	drop_emphasis(text, '_');
	drop_emphasis(text, '*');
	return true;
}
