/* markdown.c - reads Markdown for a voice */
#include "script.h"

#include <ctype.h>
#include <md4c.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/guard.h"
#include "html.h"

/* ---- markdown prepare ----
 * Rewrites Markdown so that md4c reads it as GitHub does: footnotes, and tables directly below a
 * paragraph. */

/* Two bytes that the text cannot contain; they are removed from it first and never spoken.
 * NOTE_MARK replaces the colon of "[^name]:", because md4c has no footnotes and would drop the
 * line. A paragraph of END_MARK follows the text: if a block swallows it, that block was not
 * closed. */
#define NOTE_MARK '\x02'
#define END_MARK  '\x03'

/* The length of "[^name]", a reference to a footnote, at p; 0: there is none. */
static size_t note_length(const char *p, const char *end)
{
	size_t n = 2;

	if (end - p < 4 || p[0] != '[' || p[1] != '^')
		return 0;
	while (p + n < end && !strchr(" \t\r\n[]", p[n]))
		n++;
	return n > 2 && p + n < end && p[n] == ']' ? n + 1 : 0;
}

/* Returns the colon behind the name of a footnote that begins in this line, or NULL. */
static const char *colon_of_note(const char *line, const char *end)
{
	const char *p = unspoken_skip_containers(line);
	size_t len = p < end ? note_length(p, end) : 0;

	return len && p[len] == ':' ? p + len : NULL;
}

/* Returns whether the line is like "|---|:-:|". */
static bool is_rule_of_table(const char *line, const char *end)
{
	size_t len = (size_t)(end - line);

	return strspn(line, " |:-\t\r") >= len && memchr(line, '-', len) &&
	       memchr(line, '|', len) && !starts_with(line, "- "); /* an item of a list */
}

/* Writes a table rule with three dashes a column: md4c requires them, GitHub one. */
static void add_rule_of_table(struct str *to, const char *line, const char *end)
{
	for (const char *p = line; p < end; p++)
		str_add(to, *p != '-'                  ? (char[]){*p, '\0'}
			    : p > line && p[-1] == '-' ? "-"
						       : "---");
}

/* State of the lines since the last blank one. */
struct lines {
	bool blank;     /* the previous line was blank */
	bool paragraph; /* in the text itself: not in a quote, list, HTML or footnote */
	bool html;
	bool comment;      /* inside a comment */
	bool comment_over; /* it ended in the previous line */
	bool in_note;      /* no other text since the footnote began */
	bool note_code;    /* indented lines of a footnote, which md4c would read as code */
};

/* Returns whether a block begins here that needs a blank line above it in md4c but not on GitHub: a
 * footnote, a table, or indented code below a comment. */
static bool needs_blank_line(const struct lines *above, const char *line, const char *end)
{
	const char *next = end + (*end == '\n');

	if (above->comment_over && !above->blank)
		return true;
	if (above->blank || above->html)
		return false;
	if (*line == '[')
		return colon_of_note(line, end) != NULL;
	return above->paragraph && memchr(line, '|', (size_t)(end - line)) &&
	       is_rule_of_table(next, strchrnul(next, '\n'));
}

/* Returns whether this line may continue a paragraph. Also refuses some lines that only look like a
 * block's start. */
static bool may_continue_paragraph(const char *line)
{
	return !strchr("#>-+*`~|<[=:_0123456789 \t\r\n", *line);
}

static void follow_comment(struct lines *l, const char *from, const char *end)
{
	l->comment |= starts_with(from, "<!--");
	l->comment_over = l->comment && memmem(from, (size_t)(end - from), "-->", 3);
	l->comment &= !l->comment_over;
}

/* Updates the state by the next line. */
static void follow_line(struct lines *l, const char *line, const char *end)
{
	size_t indent = strspn(line, " "), len = (size_t)(end - line);
	bool begins = l->blank;

	l->blank = strspn(line, " \t\r") >= len;
	follow_comment(l, line + MIN(indent, len), end);
	if (l->blank) {
		l->paragraph = l->html = l->note_code = false;
		return;
	}
	bool indented = indent >= 4 || line[indent] == '\t',
	     note = colon_of_note(line, end) != NULL;
	bool plain = line[indent] != '<' && unspoken_skip_containers(line) == line + indent;
	l->html |= begins && line[indent] == '<';
	l->paragraph = plain && !note && (begins ? !indented : l->paragraph);
	l->in_note = note || (l->in_note && (!begins || indented));
	l->note_code = begins ? l->in_note && indented
			      : l->note_code && (indented || may_continue_paragraph(line));
}

/* Appends the text for md4c. Keeps the lines of `text`, counted by LF: a blank line that only md4c
 * needs ends with CR. Changes `text`. */
static void markdown_prepare(struct str *to, char *text)
{
	struct lines above = {.blank = true};
	size_t len;

	for (char *p = text; (p = strpbrk(p, (char[]){NOTE_MARK, END_MARK, '\0'})); p++)
		*p = ' ';
	for (const char *at = text, *line; (line = str_next_line(&at, &len));) {
		const char *end = line + len;
		const char *colon = colon_of_note(line, end);
		if (needs_blank_line(&above, line, end))
			str_addc(to, '\r');
		else if (above.note_code && may_continue_paragraph(line))
			str_add(to, "    "); /* the footnote's paragraph continues */
		follow_line(&above, line, end);
		size_t begin = to->len;
		if (is_rule_of_table(line, end))
			add_rule_of_table(to, line, end);
		else
			str_addn(to, line, (size_t)(end - line));
		if (colon)
			to->s[begin + (size_t)(colon - line)] = NOTE_MARK;
		str_addc(to, '\n');
	}
	str_addf(to, "\n\n%c\n", END_MARK);
}

/* ---- markdown ----
 * Reads Markdown for a voice.
 *
 * md4c parses it (CommonMark, GitHub's tables, strikethrough and task lists); this file decides
 * which parts are spoken. Headings become chapters. Paragraphs, list items and table rows become
 * items. Code, images and footnotes are left out and counted. */

#define LEVELS_NUMBERED  16 /* deeper lists are spoken without numbers */
#define LINKS_MOST_BYTES ((size_t)16 << 20)

struct reader {
	struct script *script;
	const char *source;
	const char *begin, *end; /* the text that md4c parses */
	const char *at;          /* the place whose line number is `line` */
	size_t line;

	struct str text; /* text of the current item */
	bool markup;     /* the text is HTML: it has tags, entities, or what would look like them */
	size_t began;    /* line of the item; 0: it has no text yet */
	int chapter;
	bool in_row, pending_comma; /* in a table row; a comma is due before the next cell */
	size_t lists;               /* number of enclosing levels */
	/* of each level one more than the number of its next item; 0: it has none */
	unsigned numbers[LEVELS_NUMBERED];
	unsigned pending_number; /* likewise, due before the next text */
	bool list_began;         /* the item before is of the same list or table */
	size_t images;           /* enclosing levels whose text is not spoken */
	size_t images_before;    /* this block */
	enum { BLOCK_TEXT, BLOCK_HTML, BLOCK_CODE } block;
	size_t block_line; /* line of the current HTML or code; 0: unknown */
	/* Footnotes. NOTE_TEXT: the rest of this block is one. NOTE_AFTER: an indented block still
	 * belongs to it. */
	enum { NOTE_NONE, NOTE_TEXT, NOTE_AFTER } note;
	size_t link_bytes;
};

/* ---- the line of a place ---- */

/* Returns false for text that md4c makes itself, such as a newline. */
static bool has_place(const struct reader *r, const char *p)
{
	return p >= r->begin && p < r->end;
}

/* The line of p, in the user's file; of the last known place if p has none. */
static size_t line_at(struct reader *r, const char *p)
{
	for (; has_place(r, p) && r->at < p; r->at++)
		r->line += *r->at == '\n';
	return r->line;
}

/* The line of the fence above a code block's first non-blank line. */
static size_t line_of_fence(struct reader *r, const char *p)
{
	size_t line = line_at(r, p);
	bool blank = true;

	while (p > r->begin && p[-1] != '\n')
		p--;
	while (p > r->begin && blank) {
		for (p--, line--; p > r->begin && p[-1] != '\n'; p--)
			blank &= isspace((unsigned char)p[-1]) != 0;
	}
	return line;
}

/* ---- items ---- */

/* Finds "[ ] ": md4c does not report a task's box if the item before it has a quote. */
static bool is_task(const char *text)
{
	return text[0] == '[' && text[1] && strchr(" xX", text[1]) && text[2] == ']' &&
	       text[3] == ' ';
}

/* Drops "{#name .class}" behind a heading, which is for links and style sheets. */
static void drop_attributes(struct str *heading)
{
	const char *from = strrchr(str_text(heading), '{');

	if (from && from > heading->s && from[-1] == ' ' && (from[1] == '#' || from[1] == '.') &&
	    ends_with(from, "}")) {
		heading->len = (size_t)(from - heading->s) - 1;
		heading->s[heading->len] = '\0';
	}
}

enum part { PART_TEXT, PART_HEADING };

static void add_item(struct reader *r, const char *bytes, size_t len, size_t line, enum part part)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	bool listed = r->lists || r->in_row;
	struct script_item item = {.source = r->source,
				   .line = line,
				   .heading = part == PART_HEADING,
				   .listed = listed,
				   .border = r->list_began ? BORDER_LINE : BORDER_PARAGRAPH};

	split_normalise(&text, bytes, len);
	if (r->lists && is_task(str_text(&text)))
		str_drop(&text, strlen("[ ] "));
	if (item.heading)
		drop_attributes(&text);
	if (!text.len)
		return; /* only an image or a tag */
	if (pause_is_scene_break(str_text(&text))) {
		script_border(r->script, BORDER_SCENE);
		return;
	}
	if (item.heading)
		r->chapter = script_add_chapter(r->script, str_text(&text));
	item.chapter = r->chapter;
	r->list_began = listed;
	CLEANUP(free_text)
	char *numbered = r->pending_number
				 ? xasprintf("%u. %s", r->pending_number - 1, str_text(&text))
				 : NULL;
	r->pending_number = 0;
	const char *spoken = numbered ? numbered : str_text(&text);
	script_add(r->script, &item, spoken, strlen(spoken));
}

/* Adds a text as one item, or one for each speaker: the label of a speaker begins a line. */
static void add_speech(struct reader *r, const char *bytes, size_t len, enum part part)
{
	const char *end = bytes + len, *next;
	size_t line = r->began;

	while (part == PART_TEXT &&
	       (next = speakers_next(r->script->speakers, bytes, (size_t)(end - bytes)))) {
		add_item(r, bytes, (size_t)(next - bytes), line, part);
		for (; bytes < next; bytes++)
			line += *bytes == '\n';
	}
	add_item(r, bytes, (size_t)(end - bytes), line, part);
}

static void add_escaped(struct str *to, const char *p, size_t len)
{
	for (const char *end = p + len; p < end; p++)
		str_add(to, *p == '<' ? "&lt;" : *p == '&' ? "&amp;" : (char[]){*p, '\0'});
}

/* From now on the text of the item is HTML: what was added before is escaped. */
static void make_html(struct reader *r)
{
	struct str plain = r->text;

	if (r->markup)
		return;
	r->text = STR_INIT;
	add_escaped(&r->text, str_text(&plain), plain.len);
	str_free(&plain);
	r->markup = true;
}

/* Replaces the HTML of the item by its text. */
static void text_of_html(struct reader *r)
{
	struct str html = r->text;

	r->text = STR_INIT;
	html_read_piece(r->script, r->source, str_text(&html), &r->text);
	str_free(&html);
}

/* Ends the current item and adds it. */
static void flush_item(struct reader *r, enum part part)
{
	if (r->markup)
		text_of_html(r);
	r->markup = false;
	add_speech(r, str_text(&r->text), r->text.len, part);
	str_reset(&r->text);
	r->began = 0;
	r->pending_comma = false;
}

/* Adds each line of the block's HTML text as an item. */
static void flush_html(struct reader *r)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *line;
	size_t len;

	html_read_piece(r->script, r->source, str_text(&r->text), &text);
	for (const char *at = str_text(&text), *end = at + text.len;
	     next_line(&at, end, &line, &len);)
		add_item(r, line, len, r->block_line, PART_TEXT);
	str_reset(&r->text);
}

/* ---- text ---- */

/* Call before adding text to an item that begins at p: notes its line, adds a due comma. */
static void begin_text(struct reader *r, const char *p)
{
	if (!r->began)
		r->began = line_at(r, p);
	if (r->pending_comma)
		str_add(&r->text, ", ");
	r->pending_comma = false;
}

static void add_text(struct reader *r, const char *p, size_t len)
{
	if (!len)
		return;
	begin_text(r, p);
	if (r->markup)
		add_escaped(&r->text, p, len);
	else
		str_addn(&r->text, p, len);
}

/* Adds text without references to footnotes, and without a footnote's text. */
static void add_plain(struct reader *r, const char *p, size_t len)
{
	const char *end = p + len, *from = p;

	for (; p < end; p++) {
		size_t note = note_length(p, end); /* md4c delivers "\\[" apart from the rest */
		if (!note)
			continue;
		if (r->note != NOTE_TEXT)
			add_text(r, from, (size_t)(p - from));
		if (p + note < end && p[note] == NOTE_MARK) {
			flush_item(r, PART_TEXT);
			r->note = NOTE_TEXT;
			r->script->silent.footnotes++;
		}
		from = p + note;
		p = from - 1;
	}
	if (r->note != NOTE_TEXT)
		add_text(r, from, (size_t)(end - from));
}

/* Adds code; in a table its bars are escaped. */
static void add_code(struct reader *r, const char *p, size_t len)
{
	const char *end = p + len, *bar;

	while (r->in_row && (bar = memmem(p, (size_t)(end - p), "\\|", 2))) {
		add_text(r, p, (size_t)(bar - p));
		p = bar + 1;
	}
	add_text(r, p, (size_t)(end - p));
}

/* Reads a line of a code block or of HTML. */
static void read_raw(struct reader *r, const char *p, size_t len)
{
	if (!r->block_line && has_place(r, p))
		r->block_line = r->block == BLOCK_CODE ? line_of_fence(r, p) : line_at(r, p);
	if (memchr(p, END_MARK, len))
		script_complain(r->script, r->source, r->block_line, "this %s is never closed",
				r->block == BLOCK_CODE ? "code block" : "piece of HTML");
	else if (r->block == BLOCK_HTML)
		str_addn(&r->text, p, len);
}

/* This and the other callbacks return 0; another value ends md4c. */
static int on_text(MD_TEXTTYPE type, const MD_CHAR *p, MD_SIZE len, void *ctx)
{
	struct reader *r = ctx;

	if (r->block != BLOCK_TEXT) {
		read_raw(r, p, len);
		return 0;
	}
	if (r->images || (r->note == NOTE_TEXT && type != MD_TEXT_NORMAL))
		return 0;
	switch (type) {
	case MD_TEXT_NORMAL: add_plain(r, p, len); break;
	case MD_TEXT_LATEXMATH:
	case MD_TEXT_CODE: add_code(r, p, len); break;
	case MD_TEXT_ENTITY:
		begin_text(r, p);
		make_html(r);
		str_addn(&r->text, p, len);
		break;
	case MD_TEXT_HTML:
		make_html(r);
		str_addn(&r->text, p, len);
		break;
	case MD_TEXT_NULLCHAR: str_addc(&r->text, ' '); break;
	case MD_TEXT_BR:
	case MD_TEXT_SOFTBR: str_addc(&r->text, '\n'); break;
	}
	return 0;
}

/* ---- structure ---- */

/* Counts the code block, unless it is an indented paragraph of the footnote above. */
static void enter_code(struct reader *r, const MD_BLOCK_CODE_DETAIL *code)
{
	bool of_note = r->note == NOTE_AFTER && !code->fence_char;

	r->block = BLOCK_CODE;
	r->block_line = 0;
	r->script->silent.code_blocks += !of_note;
	if (!of_note)
		r->note = NOTE_NONE;
}

/* Follows the numbers of ordered lists. */
static void enter_list(struct reader *r, MD_BLOCKTYPE type, const MD_BLOCK_OL_DETAIL *ordered)
{
	if (type == MD_BLOCK_OL || type == MD_BLOCK_UL) {
		if (r->lists < LEVELS_NUMBERED)
			r->numbers[r->lists] = type == MD_BLOCK_OL ? ordered->start + 1 : 0;
		r->lists++;
		return;
	}
	bool counts = r->script->list_numbers && r->lists && r->lists <= LEVELS_NUMBERED;
	unsigned *next = counts ? &r->numbers[r->lists - 1] : NULL;
	r->pending_number = next && *next ? (*next)++ : 0;
}

static int on_enter_block(MD_BLOCKTYPE type, void *detail, void *ctx)
{
	struct reader *r = ctx;

	if (type == MD_BLOCK_TH || type == MD_BLOCK_TD) {
		r->pending_comma = r->text.len > 0;
		return 0;
	}
	flush_item(r, PART_TEXT);
	if (type == MD_BLOCK_HR)
		script_border(r->script, BORDER_SCENE);
	r->images_before = r->script->silent.images;
	if (type == MD_BLOCK_CODE) {
		enter_code(r, detail);
		return 0;
	}
	r->note = NOTE_NONE;
	if (type == MD_BLOCK_UL || type == MD_BLOCK_OL || type == MD_BLOCK_LI)
		enter_list(r, type, detail);
	r->in_row = type == MD_BLOCK_TR;
	if (type == MD_BLOCK_HTML) {
		r->block = BLOCK_HTML;
		r->block_line = 0;
	}
	return 0;
}

static int on_leave_block(MD_BLOCKTYPE type, void *detail, void *ctx)
{
	struct reader *r = ctx;

	(void)detail;
	if (type == MD_BLOCK_TH || type == MD_BLOCK_TD)
		return 0;
	if (type == MD_BLOCK_H && !r->text.len && r->images_before == r->script->silent.images)
		script_border(r->script, BORDER_SCENE); /* "#" alone */
	if (type == MD_BLOCK_HTML)
		flush_html(r);
	else
		flush_item(r, type == MD_BLOCK_H ? PART_HEADING : PART_TEXT);
	r->lists -= type == MD_BLOCK_UL || type == MD_BLOCK_OL;
	if (type == MD_BLOCK_LI)
		r->pending_number = 0;
	if (type == MD_BLOCK_TABLE || !r->lists)
		r->list_began &=
			type == MD_BLOCK_TR || type == MD_BLOCK_THEAD || type == MD_BLOCK_TBODY;
	r->in_row = false;
	r->block = BLOCK_TEXT;
	if (r->note == NOTE_TEXT)
		r->note = NOTE_AFTER;
	return 0;
}

/* Limits links: md4c copies the target of each, so many links to one long target take quadratic
 * time. Returns 1, which ends md4c, after a complaint. */
static int count_link(struct reader *r, const MD_ATTRIBUTE *target, const MD_ATTRIBUTE *title)
{
	r->link_bytes += target->size + title->size;
	if (r->link_bytes <= LINKS_MOST_BYTES)
		return 0;
	script_complain(r->script, r->source, r->line,
			"all links together name more than 16 MiB: shorten what they point to");
	return 1;
}

static int on_enter_span(MD_SPANTYPE type, void *detail, void *ctx)
{
	struct reader *r = ctx;

	if (type == MD_SPAN_A) {
		const MD_SPAN_A_DETAIL *link = detail;
		return count_link(r, &link->href, &link->title);
	}
	if (type != MD_SPAN_IMG)
		return 0;
	const MD_SPAN_IMG_DETAIL *image = detail;
	r->images++;
	r->script->silent.images += r->note != NOTE_TEXT;
	return count_link(r, &image->src, &image->title);
}

static int on_leave_span(MD_SPANTYPE type, void *detail, void *ctx)
{
	struct reader *r = ctx;

	(void)detail;
	r->images -= type == MD_SPAN_IMG;
	return 0;
}

/* ---- before md4c ---- */

/* Reports each line that is not UTF-8. Returns whether there is none. */
static bool check_utf8(struct script *s, const char *source, const char *at, const char *end)
{
	const char *line;
	size_t len, number = 0, before = s->complaints;

	while (next_line(&at, end, &line, &len)) {
		number++;
		if (!utf8_valid(line, len))
			script_complain(s, source, number, "the text is not valid UTF-8");
	}
	return s->complaints == before;
}

/* Parses the text from r->at to its end. Loads md4c at the first use. Frees the reader's texts. */
static void run_md4c(struct reader *r)
{
	const MD_PARSER parser = {
		.flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS,
		.enter_block = on_enter_block,
		.leave_block = on_leave_block,
		.enter_span = on_enter_span,
		.leave_span = on_leave_span,
		.text = on_text,
	};

	static __typeof__(md_parse) *parse_with_md4c;
	const struct late_function functions[] = {{"md_parse", &parse_with_md4c}};
	struct err why = {0};

	if (!parse_with_md4c && late_load("libmd4c.so.0", "libmd4c0", functions, 1, &why) < 0)
		script_complain(r->script, r->source, 0, "%s", why.msg);
	else if (parse_with_md4c(r->at, (MD_SIZE)(r->end - r->at), &parser, r) < 0)
		script_complain(r->script, r->source, 0, "it cannot be parsed: out of memory");
	str_free(&r->text);
}

/* CRLF becomes LF. */
static void drop_carriage_returns(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++)
		if (p[0] != '\r' || p[1] != '\n')
			*to++ = *p;
	*to = '\0';
}

void input_read_markdown(struct script *s, const char *source, const char *bytes, size_t len)
{
	CLEANUP(free_text)
	char *copy = xstrndup(bytes, len); /* up to the first NUL byte */
	CLEANUP(str_free) struct str text = STR_INIT, spoken = STR_INIT;
	struct reader r = {.script = s, .source = source, .chapter = -1, .line = 1};
	const char *end = copy + strlen(copy), *at = front_matter_read(&s->book, copy, end);

	if (end != copy + len)
		script_complain(s, source, 0, "there are NUL bytes in it: is it text?");
	if (!check_utf8(s, source, copy, end))
		return;
	for (const char *p = copy; p < at; p++)
		r.line += *p == '\n';
	drop_carriage_returns(copy + (at - copy));
	unspoken_mask(&spoken, at, &s->silent);
	if (spoken.len)
		markdown_prepare(&text, spoken.s);
	r.begin = r.at = str_text(&text);
	r.end = r.begin + text.len;
	run_md4c(&r);
}
