/* plain.c - reads plain text: lines, paragraphs, wrapped lines, chapters and scene breaks */
#include "script.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- lines ---- */

enum kind { LINE_BLANK, LINE_TEXT, LINE_SCENE, LINE_HEADING };

struct line {
	const char *text; /* without blanks at its ends */
	size_t len, number, indent;
	bool valid; /* UTF-8, not empty */
	bool bare;  /* a heading with no title of its own */
	enum kind kind;
	size_t chars;
	enum split_end end;
};

struct lines {
	struct line *list;
	size_t count, cap;
	size_t width;    /* characters of the longest */
	bool structured; /* blank lines separate texts */
	bool wrapped;    /* most lines are full, and many go on in the next one */
};

/* A line that is full could not have held the next word. Below this width that says nothing. */
enum { WIDTH_LEAST = 30, WIDTH_MOST = 130 };

static uint32_t first_char(const struct line *l)
{
	const char *p = l->text;

	return l->valid ? utf8_next(&p) : 0;
}

static uint32_t last_char(const struct line *l)
{
	const char *p = l->text + l->len;

	if (!l->valid)
		return 0;
	for (p--; p > l->text && ((unsigned char)*p & 0xc0) == 0x80; p--)
		;
	return utf8_next(&p);
}

/* "Anna:", "- ", "3. ": what begins a line of a dialogue or a list. */
static bool begins_alone(const struct line *l)
{
	const char *p = l->text, *end = p + l->len;
	uint32_t c = first_char(l);
	size_t digits = 0, label = 0;

	if (c == 0x2014 || c == 0x2013 || c == 0x2015 || c == 0x2022 ||
	    (c < 0x80 && strchr("-*+", (int)c) && l->len > 1 && p[1] == ' '))
		return true;
	while (p + digits < end && isdigit((unsigned char)p[digits]))
		digits++;
	if (digits && p + digits + 1 < end && strchr(".)", p[digits]) && p[digits + 1] == ' ')
		return true;
	while (p + label < end && label < 30 && !strchr(":.,;!?", p[label]))
		label++;
	return !islower((unsigned char)*p) && label > 0 && p + label < end && p[label] == ':' &&
	       (p + label + 1 == end || p[label + 1] == ' ');
}

static bool begins_with_quote(const struct line *l)
{
	uint32_t c = first_char(l);

	return c == '"' || c == '\'' || c == 0xab || c == 0xbb || c == 0x2018 || c == 0x201c ||
	       c == 0x201e || c == 0x300c;
}

static bool is_full(const struct lines *of, const struct line *l, const struct line *next)
{
	size_t word = 0;

	if (of->width < WIDTH_LEAST || of->width > WIDTH_MOST)
		return false;
	while (word < next->len && next->text[word] != ' ')
		word++;
	return l->chars + 1 + split_chars(next->text, word) > of->width;
}

static bool begins_upper(const struct line *l)
{
	return heading_fold(first_char(l)) != first_char(l);
}

/* Returns whether a reader goes on from one line to the next without a pause: it was wrapped. */
static bool goes_on(const struct lines *of, const struct line *l, const struct line *next)
{
	if (begins_alone(next) || next->indent > l->indent + 1)
		return false;
	if (l->end != SPLIT_STOP)
		return (of->wrapped && is_full(of, l, next)) ||
		       (of->structured && !begins_upper(next));
	return of->wrapped && is_full(of, l, next) && (of->structured || !begins_with_quote(next));
}

/* Returns whether a sentence ends in the line or at its end. */
static bool has_stop(const struct line *l)
{
	const char *end = l->text + l->len;

	if (l->end == SPLIT_STOP)
		return true;
	for (const char *p = l->text; p + 1 < end; p++)
		if (strchr(".!?", *p) && p[1] == ' ')
			return true;
	return false;
}

/* Finds how the text is laid out. */
static void measure(struct lines *of)
{
	size_t inner = 0, full = 0, open = 0, blocks = 0;
	bool stops = false;
	enum kind last = LINE_BLANK;

	for (size_t i = 0; i < of->count; i++) {
		const struct line *l = &of->list[i];
		if (l->kind == LINE_TEXT)
			of->width = MAX(of->width, l->chars);
		stops |= l->kind == LINE_TEXT && has_stop(l);
		blocks += (l->kind == LINE_TEXT || l->kind == LINE_HEADING) && last == LINE_BLANK;
		last = l->kind;
	}
	of->structured = blocks > 1;
	for (size_t i = 1; i < of->count; i++) {
		const struct line *l = &of->list[i - 1], *next = l + 1;
		if (l->kind != LINE_TEXT || next->kind != LINE_TEXT)
			continue;
		inner++;
		full += is_full(of, l, next);
		open += l->end != SPLIT_STOP && !begins_upper(next); /* lines of verse do not */
	}
	/* without any stop, lines of like length are a list, not sentences */
	of->wrapped = stops && full * 2 > inner && open * 3 > inner;
}

static enum kind kind_of(const struct line *l)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (!l->len)
		return LINE_BLANK;
	if (!l->valid)
		return LINE_TEXT; /* script_add() complains */
	split_normalise(&text, l->text, l->len);
	if (!text.len)
		return LINE_BLANK;
	if (pause_is_scene_break(str_text(&text)))
		return LINE_SCENE;
	return heading_is(str_text(&text)) ? LINE_HEADING : LINE_TEXT;
}

static void add_line(struct lines *to, const char *line, size_t len, size_t number)
{
	struct line l = {.text = line, .len = len, .number = number};

	while (l.len && (*l.text == ' ' || *l.text == '\t')) {
		l.indent += *l.text == '\t' ? 8 : 1;
		l.text++;
		l.len--;
	}
	while (l.len && strchr(" \t", l.text[l.len - 1]))
		l.len--;
	l.valid = l.len && utf8_valid(l.text, l.len);
	l.kind = kind_of(&l);
	l.bare = l.kind == LINE_HEADING && heading_is_bare(l.text, l.len);
	l.chars = split_chars(l.text, l.len);
	if (l.valid)
		l.end = split_end(l.text, l.len);
	GROW(to->list, to->count, to->cap);
	to->list[to->count++] = l;
}

/* ---- headings ---- */

static enum kind kind_at(const struct lines *of, size_t i)
{
	return i < of->count ? of->list[i].kind : LINE_BLANK;
}

/* "Chapter 1" is no heading in a table of contents, nor in the middle of a paragraph. */
static void drop_false_headings(struct lines *of)
{
	for (size_t i = 0; i < of->count;) {
		size_t run = 0;
		while (kind_at(of, i + run) == LINE_HEADING && of->list[i + run].text[0] != '#')
			run++;
		bool inside = run && i && kind_at(of, i - 1) == LINE_TEXT &&
			      of->list[i - 1].end != SPLIT_STOP;
		for (size_t k = i; (run > 2 || inside) && k < i + run; k++)
			of->list[k].kind = LINE_TEXT;
		i += MAX(run, (size_t)1);
	}
}

/* Returns whether a line of "=" below this line makes it a heading. */
static bool is_underlined(const struct lines *of, size_t i)
{
	return kind_at(of, i) == LINE_TEXT && kind_at(of, i + 1) == LINE_SCENE &&
	       of->list[i + 1].len >= 3 && of->list[i + 1].text[0] == '=' &&
	       (i == 0 || kind_at(of, i - 1) != LINE_TEXT);
}

/* The lines between a heading at line i and the title below it, plus one; 0: it has no title there.
 * Right below "Chapter 1" any short line is one; apart from it only a line that begins with a
 * capital. */
static size_t title_below(const struct lines *of, size_t i)
{
	size_t at = i + 1;

	if (kind_at(of, at) == LINE_BLANK && of->list[i].bare && at + 1 < of->count)
		at++;
	const struct line *l = &of->list[at < of->count ? at : i];
	if (kind_at(of, at) != LINE_TEXT || kind_at(of, at + 1) != LINE_BLANK || l->chars > 60 ||
	    l->end != SPLIT_WORD || *l->text == '[' || (at > i + 1 && !begins_upper(l)))
		return 0;
	return at - i;
}

/* ---- chapters that have only a number ---- */

static int roman_digit(char c)
{
	static const char digits[] = "IVXLC";
	static const int values[] = {1, 5, 10, 50, 100};
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? values[at - digits] : 0;
}

/* Reads "12", "IV", "IV." or "IV. A title". Returns the number; 0: there is none. *bare: no title
 * follows. */
static int leading_number(const struct line *l, bool *bare)
{
	const char *p = l->text, *end = p + l->len;
	int number = 0, last = 0;

	for (; p < end && isdigit((unsigned char)*p) && number < 1000; p++)
		number = number * 10 + (*p - '0');
	bool roman = p == l->text;
	for (; roman && p < end && roman_digit(*p); p++) {
		int digit = roman_digit(*p);
		number += digit - (last < digit ? 2 * last : 0);
		last = digit;
	}
	bool stop = p < end && (*p == '.' || *p == ':');
	p += stop;
	*bare = p == end;
	if (*bare)
		return number;
	struct line title = *l;
	title.text = p + 1;
	title.len = (size_t)(end - p) - (p < end);
	return stop && *p == ' ' && begins_upper(&title) && l->end == SPLIT_WORD && l->chars <= 60
		       ? number
		       : 0;
}

static bool stands_alone(const struct lines *of, size_t i)
{
	return kind_at(of, i) == LINE_TEXT && (i == 0 || kind_at(of, i - 1) == LINE_BLANK) &&
	       kind_at(of, i + 1) == LINE_BLANK;
}

/* The number of line i, if it can begin a chapter; 0: it cannot. A number without a title may also
 * stand right above the text. */
static int chapter_number(const struct lines *of, size_t i)
{
	bool bare, above = kind_at(of, i + 1) == LINE_TEXT;

	if (kind_at(of, i) != LINE_TEXT || (i && kind_at(of, i - 1) == LINE_TEXT) ||
	    (!above && !stands_alone(of, i)))
		return 0;
	int number = leading_number(&of->list[i], &bare);
	return above && !bare ? 0 : number;
}

/* Makes headings of the lines of a sequence of numbers. */
static void make_headings(struct lines *of, const size_t *found, size_t count)
{
	for (size_t k = 0; count > 1 && k < count; k++) {
		struct line *l = &of->list[found[k]];
		l->kind = LINE_HEADING;
		(void)leading_number(l, &l->bare);
	}
}

/* Numbers that stand alone and count from 1 begin chapters if prose lies between them; in a further
 * part they may begin anew. A page number stands in the middle of a sentence. */
static void find_numbered_headings(struct lines *of)
{
	size_t *found = xcalloc(of->count + 1, sizeof(*found));
	size_t count = 0;
	bool prose = false, open = false;

	for (size_t i = 0; i < of->count; i++) {
		const struct line *l = &of->list[i];
		int number = chapter_number(of, i);
		if (number == 1 && !(count && open)) {
			make_headings(of, found, prose ? count : 0);
			found[0] = i;
			count = 1;
			prose = false;
		} else if (count && number == (int)count + 1 && prose && !open) {
			found[count++] = i;
			prose = false;
		} else if (l->kind == LINE_TEXT) {
			prose |= has_stop(l);
			open = !stands_alone(of, i) && l->end != SPLIT_STOP;
		}
	}
	make_headings(of, found, count);
	free(found);
}

/* ---- tables of contents ---- */

static bool is_contents_title(const struct line *l)
{
	static const char *const titles[] = {"contents",
					     "table of contents",
					     "inhalt",
					     "inhaltsverzeichnis",
					     "table des matières",
					     "sommaire",
					     "índice",
					     "indice",
					     "índice de contenidos",
					     "inhoud",
					     "spis treści"};
	CLEANUP(str_free) struct str folded = STR_INIT;

	for (const char *p = l->text, *end = p + l->len; l->valid && p < end;)
		str_add_utf8(&folded, heading_fold(utf8_next(&p)));
	if (ends_with(str_text(&folded), ".") || ends_with(str_text(&folded), ":"))
		folded.s[--folded.len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(titles); i++)
		if (!strcmp(str_text(&folded), titles[i]))
			return true;
	return false;
}

static bool is_same_line(const struct line *a, const struct line *b)
{
	return a->len == b->len && !strncasecmp(a->text, b->text, a->len);
}

/* The line behind the table of contents whose title is line i: behind two blank lines, or at a line
 * that the table has already. i: there is none. */
static size_t end_of_contents(const struct lines *of, size_t i)
{
	size_t first = i + 1, entries = 0, blanks = 0;

	while (kind_at(of, first) == LINE_BLANK && first < of->count)
		first++;
	for (size_t k = first; k < of->count; k++) {
		const struct line *l = &of->list[k];
		if (l->kind == LINE_BLANK) {
			if (++blanks == 2)
				return entries > 1 ? k : i;
			continue;
		}
		blanks = 0;
		for (size_t j = first; j < k; j++)
			if (of->list[j].kind != LINE_BLANK && is_same_line(&of->list[j], l))
				return entries > 1 ? k : i;
		if (l->chars > 90 || (l->end == SPLIT_STOP && l->chars > 40) || ++entries > 300)
			return i;
	}
	return i;
}

static void drop_contents(struct script *s, struct lines *of)
{
	for (size_t i = 0; i < of->count; i++) {
		if (kind_at(of, i) != LINE_TEXT || !stands_alone(of, i) ||
		    !is_contents_title(&of->list[i]))
			continue;
		size_t end = end_of_contents(of, i);
		for (size_t k = i; k < end; k++)
			of->list[k].kind = LINE_BLANK;
		s->silent.contents += end > i;
	}
}

/* ---- from lines to items ---- */

struct writer {
	struct script *script;
	const char *source;
	enum input_mode mode;
	struct lines lines;
	struct str text; /* of the open item */
	size_t began;    /* its line */
	enum border border;
};

static void add_item(struct writer *w, bool heading)
{
	struct script_item item = {
		.source = w->source, .line = w->began, .heading = heading, .border = w->border};

	if (!plain_clean(w->script, &w->text))
		str_reset(&w->text);
	if (!w->text.len)
		return;
	if (heading) {
		CLEANUP(str_free) struct str title = STR_INIT;
		split_normalise(&title, str_text(&w->text), w->text.len);
		script_add_chapter(w->script, str_text(&title));
	}
	item.chapter = (int)w->script->chapter_count - 1;
	size_t before = w->script->count;
	script_add_marked(w->script, &item, str_text(&w->text), w->text.len);
	if (w->script->count > before && !heading) {
		w->script->plain.lines += w->border == BORDER_LINE;
		w->script->plain.paragraphs += w->border == BORDER_PARAGRAPH;
	}
	str_reset(&w->text);
}

/* Letters of Chinese and Japanese, which are written without blanks. */
static bool needs_no_blank(uint32_t c)
{
	return (c >= 0x2e80 && c < 0xa4d0) || (c >= 0xf900 && c <= 0xfaff) ||
	       (c >= 0xff00 && c <= 0xffef) || (c >= 0x20000 && c <= 0x3fffd);
}

/* Appends a line to the open item. */
static void continue_item(struct writer *w, const struct line *before, const struct line *l)
{
	uint32_t last = last_char(before);
	bool hyphen = last == '-' && before->len > 1 &&
		      isalpha((unsigned char)before->text[before->len - 2]) && !begins_upper(l);

	if (!hyphen && last != 0xad && !(needs_no_blank(last) && needs_no_blank(first_char(l))))
		str_addc(&w->text, ' ');
	str_addn(&w->text, l->text, l->len);
	w->script->plain.joined++;
}

static void begin_item(struct writer *w, const struct line *l, enum border border)
{
	add_item(w, false);
	w->began = l->number;
	w->border = border;
	str_addn(&w->text, l->text, l->len);
}

/* Adds the heading at line i, with the title below it. Returns the number of its lines. */
static size_t add_heading(struct writer *w, size_t i)
{
	const struct line *l = &w->lines.list[i];
	struct line text = *l;
	bool underlined = l->kind == LINE_TEXT;

	while (text.len && *text.text == '#') {
		text.text++;
		text.len--;
	}
	while (text.len > 1 && text.text[text.len - 1] == '#')
		text.len--;
	begin_item(w, &text, BORDER_PARAGRAPH);
	size_t title = !underlined && l->text[0] != '#' ? title_below(&w->lines, i) : 0;
	if (title) {
		str_add(&w->text, split_end(l->text, l->len) == SPLIT_WORD ? ". " : " ");
		str_addn(&w->text, l[title].text, l[title].len);
	}
	add_item(w, true);
	return 1 + (underlined ? 1 : title);
}

/* Returns whether a line begins like a speaker's label, in a script that has speakers. */
static bool begins_speech(const struct script *s, const char *line, size_t len)
{
	const struct speaker *who;
	const char *name;
	size_t name_len;

	return s->speakers && s->speakers->count &&
	       (speakers_label(s->speakers, line, len, &who) ||
		speakers_guess(line, len, &name, &name_len));
}

/* Returns whether line i continues the line before. */
static bool continues(const struct writer *w, size_t i)
{
	const struct line *l = &w->lines.list[i];

	if (!w->text.len || w->mode == INPUT_LINES || l[-1].kind != LINE_TEXT ||
	    begins_speech(w->script, l->text, l->len))
		return false;
	return w->mode == INPUT_PARAGRAPHS || goes_on(&w->lines, l - 1, l);
}

/* Adds line i. Returns how many lines it took. */
static size_t add_text(struct writer *w, size_t i)
{
	const struct line *l = &w->lines.list[i];

	if (is_underlined(&w->lines, i))
		return add_heading(w, i);
	if (continues(w, i)) {
		continue_item(w, l - 1, l);
		return 1;
	}
	bool adjacent = i && l[-1].kind == LINE_TEXT && l->indent <= l[-1].indent + 1;
	begin_item(w, l, adjacent ? BORDER_LINE : BORDER_PARAGRAPH);
	return 1;
}

void input_read_text(struct script *s, const char *source, const char *bytes, size_t len,
		     enum input_mode mode)
{
	struct writer w = {.script = s, .source = source, .mode = mode};
	struct plain_book book = plain_book(s, bytes, len);
	CLEANUP(str_free) struct str speeches = STR_INIT;
	const char *line;
	size_t n, number = book.line;

	if (dialogue_rewrite(s, book.begin, (size_t)(book.end - book.begin), &speeches)) {
		book.begin = str_text(&speeches);
		book.end = book.begin + speeches.len;
		w.mode = INPUT_LINES;
	}
	for (const char *at = book.begin; next_line(&at, book.end, &line, &n);)
		add_line(&w.lines, line, n, ++number);
	drop_contents(s, &w.lines);
	drop_false_headings(&w.lines);
	find_numbered_headings(&w.lines);
	measure(&w.lines);
	for (size_t i = 0; i < w.lines.count;) {
		enum kind kind = w.lines.list[i].kind;
		if (kind == LINE_TEXT) {
			i += add_text(&w, i);
			continue;
		}
		add_item(&w, false);
		if (kind == LINE_SCENE)
			script_border(s, BORDER_SCENE);
		i += kind == LINE_HEADING ? add_heading(&w, i) : 1;
	}
	add_item(&w, false);
	str_free(&w.text);
	free(w.lines.list);
}
