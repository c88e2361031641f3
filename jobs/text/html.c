/* html.c - reads HTML for a voice. libxml2 parses it; this file decides which parts are spoken.
 *
 * Headings, paragraphs, items of lists and rows of tables become items. Code, images, formulas,
 * footnotes, page numbers and navigation are left out and counted. */
#include "html.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "xml_library.h"

/* ---- libxml2 ---- */

#ifdef __APPLE__
#define XML_LIBRARY "libxml2.2.dylib"
#else
#define XML_LIBRARY "libxml2.so.2"
#endif

static struct xml_library lib;
static struct err lib_error; /* why it is not loaded */

static void load_library_once(void)
{
#define ROW(name) LATE_ROW(lib, , name)
	static const struct late_function functions[] = {XML_FUNCTIONS(ROW)};
#undef ROW

	late_load(XML_LIBRARY, "libxml2", functions, ARRAY_LEN(functions), &lib_error);
}

int xml_library_load(const struct xml_library **out, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_library_once);
	if (lib_error.kind)
		return err_set(err, lib_error.kind, "%s", lib_error.msg);
	*out = &lib;
	return 0;
}

#define DEPTH_MOST 1000 /* of nested elements: libxml2 searches all that are open */

/* ---- survey ----
 * What must be known of a document before it is read: which of its chapters have a place, and how
 * many items its reversed lists have. */

#define LEVELS_NUMBERED 16 /* deeper lists are spoken without numbers */

struct survey {
	json_t *ids;      /* id -> true, of all elements that have one; NULL: not asked for */
	size_t *reversed; /* items of each reversed list, in order of their begin */
	size_t count, cap;
	/* of each open level the index of its list in `reversed` + 1; 0: it is not reversed */
	size_t open[LEVELS_NUMBERED];
	size_t levels;
};

static void note_id(struct survey *s, const char *id)
{
	if (s->ids && id && *id)
		json_object_set_new_nocheck(s->ids, id, json_true());
}

static void survey_start(void *ctx, const xmlChar *name, const xmlChar **attributes)
{
	struct survey *s = ctx;
	enum element element = html_element_named((const char *)name);
	size_t *level = s->levels && s->levels <= LEVELS_NUMBERED ? &s->open[s->levels - 1] : NULL;

	note_id(s, html_attribute(attributes, "id"));
	note_id(s, html_attribute(attributes, "xml:id"));
	note_id(s, element == ELEMENT_LINK ? html_attribute(attributes, "name") : NULL);
	if (element == ELEMENT_ITEM && level && *level)
		s->reversed[*level - 1]++;
	if (element != ELEMENT_LIST && element != ELEMENT_ORDERED)
		return;
	size_t own = 0;
	if (element == ELEMENT_ORDERED && html_attribute(attributes, "reversed")) {
		GROW(s->reversed, s->count, s->cap);
		s->reversed[s->count++] = 0;
		own = s->count;
	}
	if (s->levels < LEVELS_NUMBERED)
		s->open[s->levels] = own;
	s->levels++;
}

static void survey_end(void *ctx, const xmlChar *name)
{
	struct survey *s = ctx;
	enum element element = html_element_named((const char *)name);

	s->levels -= s->levels && (element == ELEMENT_LIST || element == ELEMENT_ORDERED);
}

/* ---- reader ---- */

/* A level of lists. */
struct list {
	bool ordered, letters;
	long next; /* number of its next item */
	int step;  /* 1, or -1 if it is reversed */
};

struct reader {
	const struct xml_library *xml;
	htmlParserCtxtPtr parser;
	struct script *script;
	const struct html_document *document;
	struct str *piece; /* gets the text of a piece; NULL: it is a document, which has items */
	json_t *marks;     /* id -> title, of the chapters that have not begun */
	struct survey survey;
	size_t reversed; /* lists so far */

	struct str text; /* of the current item */
	size_t began;    /* line of the item; 0: it has no text yet */
	bool heading;
	size_t lists; /* enclosing levels */
	struct list levels[LEVELS_NUMBERED];
	char number[24]; /* of the item of a list, due before its text; "": none */
	bool list_began; /* the item before is of the same list or table */
	bool in_row, pending_comma;
	size_t depth;
	struct {
		size_t depth; /* of the element whose content is not spoken; 0: none */
		bool notes;   /* it holds footnotes, which are counted by their items */
		size_t before;
	} silent;
	struct str title;
	bool in_title;
	const char *mark; /* title of the chapter that has just begun; NULL: none */
	bool is_note;     /* the current item is a footnote */
	struct {
		size_t at;   /* where the text of the link began */
		char to[64]; /* the name of the element that it leads to; "": none, or too long */
		bool open, inward,
			raised; /* it leads into a document; it is or has a number on top */
	} link;
	size_t raised; /* enclosing levels */
};

/* ---- items ---- */

/* The length of a footnote's number at the text: "12", "iv", "b", "*", "†"; 0: there is none. */
static size_t note_number(const char *text)
{
	static const char *const signs[] = {"†", "‡", "§", "¶"};
	size_t digits = strspn(text, "0123456789"), letters = strspn(text, "ivxlabcdefgh"),
	       stars = strspn(text, "*");

	for (size_t i = 0; i < ARRAY_LEN(signs); i++)
		if (starts_with(text, signs[i]))
			return strlen(signs[i]);
	return digits ? digits : letters ? letters : stars;
}

/* Returns whether the text of a link is the number of a footnote. raised: it is on top; else it
 * must have brackets. */
static bool is_note_number(const char *text, bool raised)
{
	bool in_brackets = *text == '[' || *text == '(';
	size_t len;

	text += in_brackets;
	len = note_number(text);
	text += len;
	if (in_brackets && *text != ']' && *text != ')')
		return false;
	return len && len <= 5 && !text[in_brackets] && (raised || in_brackets);
}

/* Returns whether the first text of a chapter is its title: all of it, or the part before a sign as
 * in "Chapter 1: The sea". */
static bool begins_title(const char *text, const char *title)
{
	const char *from = text;

	while (*text) {
		if (!*title)
			return false;
		if (heading_fold(utf8_next(&text)) != heading_fold(utf8_next(&title)))
			return false;
	}
	return !*title || (text - from >= 3 && strchr(" .:-", *title) &&
			   !isalnum((unsigned char)title[strspn(title, " ")]));
}

/* Returns whether a paragraph holds nothing but blanks that do not break. */
static bool is_blank_paragraph(const struct str *text)
{
	return text->len && memmem(text->s, text->len, "\xc2\xa0", 2);
}

static void flush_item(struct reader *r)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str lines = STR_INIT;
	const struct html_document *d = r->document;
	struct script_item item = {.source = d->source,
				   .line = MAX(r->began, (size_t)1),
				   .heading = r->heading,
				   .listed = r->lists || r->in_row,
				   .border = r->list_began ? BORDER_LINE : BORDER_PARAGRAPH};

	r->began = 0;
	r->pending_comma = false;
	r->link.open = false;
	if (r->piece) {
		str_addn(r->piece, str_text(&r->text), r->text.len);
		str_addc(r->piece, '\n');
		str_reset(&r->text);
		return;
	}
	split_normalise(&text, str_text(&r->text), r->text.len);
	r->script->blank |= !text.len && is_blank_paragraph(&r->text);
	if (r->number[0] && split_has_words(str_text(&text)))
		str_addf(&lines, "%s. ", r->number);
	str_addn(&lines, str_text(&r->text), r->text.len);
	str_reset(&r->text);
	bool note = r->is_note;
	r->is_note = false;
	if (note && text.len) {
		r->script->silent.footnotes++;
		return;
	}
	if (!split_has_words(str_text(&text))) {
		if (text.len && pause_is_scene_break(str_text(&text)))
			script_border(r->script, BORDER_SCENE);
		return;
	}
	r->list_began = item.listed;
	r->number[0] = '\0';
	item.heading |= r->mark && begins_title(str_text(&text), r->mark);
	r->mark = NULL;
	if (r->heading && d->headings_begin_chapters)
		*d->chapter = script_add_chapter(r->script, str_text(&text));
	item.chapter = *d->chapter;
	script_add(r->script, &item, str_text(&lines), lines.len);
}

static void add_text(struct reader *r, const char *text, size_t len)
{
	size_t blank = 0;

	while (blank < len && isspace((unsigned char)text[blank]))
		blank++;
	if (blank == len) {
		if (r->text.len)
			str_addc(&r->text, ' ');
		return;
	}
	if (!r->began)
		r->began = (size_t)MAX(r->parser->input ? r->parser->input->line : 1, 1);
	if (r->pending_comma) {
		while (r->text.len && r->text.s[r->text.len - 1] == ' ')
			r->text.len--;
		str_add(&r->text, ", ");
	}
	r->pending_comma = false;
	for (size_t i = 0; i < len; i++) /* a newline separates the blocks of a piece */
		str_addc(&r->text, isspace((unsigned char)text[i]) ? ' ' : text[i]);
}

/* Begins the chapter whose mark is at this id. */
static void begin_chapter(struct reader *r, const char *id)
{
	json_t *title = id && r->marks ? json_object_get(r->marks, id) : NULL;

	if (!title)
		return;
	flush_item(r);
	int chapter = script_add_chapter(r->script, json_string_value(title));
	*r->document->chapter = chapter;
	r->mark = r->script->chapters[chapter];
	json_object_del(r->marks, id);
}

/* ---- lists ---- */

/* Returns false unless the attribute is a whole number of at most nine digits. */
static bool number_of(const xmlChar **attributes, const char *name, long *out)
{
	const char *text = html_attribute(attributes, name);
	char *end;

	if (!text || strlen(text) > 10)
		return false;
	*out = strtol(text, &end, 10);
	return end > text && !*end;
}

static void begin_ordered(struct reader *r, const xmlChar **attributes, struct list *list)
{
	const char *type = html_attribute(attributes, "type");
	bool reversed = html_attribute(attributes, "reversed");

	*list = (struct list){true, type && !strcasecmp(type, "a"), 1, reversed ? -1 : 1};
	if (reversed && r->reversed <= r->survey.count)
		list->next = (long)r->survey.reversed[r->reversed - 1];
	(void)number_of(attributes, "start", &list->next);
}

/* Begins a level of lists. */
static void begin_list(struct reader *r, enum element element, const xmlChar **attributes)
{
	if (r->lists < LEVELS_NUMBERED)
		r->levels[r->lists] = (struct list){0};
	if (r->lists < LEVELS_NUMBERED && element == ELEMENT_ORDERED)
		begin_ordered(r, attributes, &r->levels[r->lists]);
	r->lists++;
}

/* Writes 3 as "C", 28 as "AB": a voice reads capitals by their names. */
static void write_letters(char to[24], long number)
{
	char letters[12];
	size_t count = 0;

	for (; number > 0 && count < sizeof(letters); number = (number - 1) / 26)
		letters[count++] = (char)('A' + (number - 1) % 26);
	for (size_t i = 0; i < count; i++)
		to[i] = letters[count - 1 - i];
	to[count] = '\0';
}

/* Sets the number of the item that begins. Roman numbers are spoken as numbers. */
static void begin_list_item(struct reader *r, const xmlChar **attributes)
{
	struct list *list =
		r->lists && r->lists <= LEVELS_NUMBERED ? &r->levels[r->lists - 1] : NULL;

	r->number[0] = '\0';
	if (!r->script->list_numbers || !list || !list->ordered)
		return;
	(void)number_of(attributes, "value", &list->next);
	if (list->letters && list->next > 0)
		write_letters(r->number, list->next);
	else
		snprintf(r->number, sizeof(r->number), "%ld", list->next);
	list->next += list->step;
}

/* ---- elements ---- */

/* Skips the content of the element that begins, and counts it. */
static void begin_silence(struct reader *r, enum element element)
{
	struct script_silent *silent = &r->script->silent;

	r->silent.depth = r->depth;
	r->silent.notes = element == ELEMENT_NOTES;
	r->silent.before = silent->footnotes;
	silent->code_blocks += element == ELEMENT_CODE;
	silent->images += element == ELEMENT_IMAGE;
	silent->footnotes += element == ELEMENT_NOTE;
	silent->formulas += element == ELEMENT_FORMULA;
	silent->navigation += element == ELEMENT_NAVIGATION;
	silent->page_numbers += element == ELEMENT_PAGE_NUMBER;
}

static void end_silence(struct reader *r)
{
	struct script_silent *silent = &r->script->silent;

	if (r->silent.notes && silent->footnotes == r->silent.before)
		silent->footnotes++;
	r->silent.depth = 0;
}

/* Separates the texts around a block; within a row of a table, by a blank. */
static void separate(struct reader *r)
{
	if (r->in_row)
		add_text(r, " ", 1);
	else
		flush_item(r);
}

/* A line break is a blank, but behind one the label of another speaker may stand. The newlines of a
 * piece separate its blocks. */
static void add_break(struct reader *r)
{
	if (r->piece || r->heading || r->in_row)
		add_text(r, " ", 1);
	else if (r->text.len)
		str_addc(&r->text, '\n');
}

static void begin_spoken(struct reader *r, enum element element, const xmlChar **attributes)
{
	const char *href;

	switch (element) {
	case ELEMENT_BREAK: add_break(r); break;
	case ELEMENT_HEADING:
		separate(r);
		r->heading = true;
		break;
	case ELEMENT_LIST:
	case ELEMENT_ORDERED:
		separate(r);
		begin_list(r, element, attributes);
		break;
	case ELEMENT_ITEM:
		separate(r);
		begin_list_item(r, attributes);
		break;
	case ELEMENT_TABLE:
		flush_item(r);
		r->in_row = false;
		break;
	case ELEMENT_ROW:
		flush_item(r);
		r->in_row = true;
		break;
	case ELEMENT_CELL: r->pending_comma = r->text.len > 0; break;
	case ELEMENT_RULE:
		flush_item(r);
		if (!r->piece)
			script_border(r->script, BORDER_SCENE);
		break;
	case ELEMENT_LINK:
		href = html_attribute(attributes, "href");
		r->link.open = true;
		r->link.at = r->text.len;
		r->link.inward = href && strchr(href, '#');
		snprintf(r->link.to, sizeof(r->link.to), "%s",
			 r->link.inward && strlen(strchr(href, '#')) < sizeof(r->link.to)
				 ? strchr(href, '#') + 1
				 : "");
		r->link.raised = r->raised;
		break;
	case ELEMENT_RAISED:
		r->raised++;
		r->link.raised = true;
		break;
	case ELEMENT_BLOCK: separate(r); break;
	default: break;
	}
}

/* Drops the text of a link if it is the number of a footnote. */
static void end_link(struct reader *r)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (!r->link.open || !r->link.inward || r->link.at > r->text.len)
		return;
	split_normalise(&text, str_text(&r->text) + r->link.at, r->text.len - r->link.at);
	if (is_note_number(str_text(&text), r->link.raised)) {
		r->text.len = r->link.at;
		r->text.s[r->text.len] = '\0';
		if (!r->script->notes)
			r->script->notes = json_object();
		if (r->link.to[0] && utf8_valid(r->link.to, strlen(r->link.to)))
			json_object_set_new_nocheck(r->script->notes, r->link.to, json_true());
	}
	r->link.open = false;
}

static void end_spoken(struct reader *r, enum element element)
{
	switch (element) {
	case ELEMENT_HEADING:
		separate(r);
		r->heading = false;
		break;
	case ELEMENT_LIST:
	case ELEMENT_ORDERED:
		separate(r);
		r->lists -= r->lists > 0;
		r->list_began &= r->lists > 0;
		break;
	case ELEMENT_ITEM:
		separate(r);
		r->number[0] = '\0';
		break;
	case ELEMENT_TABLE:
	case ELEMENT_ROW:
		flush_item(r);
		r->in_row = false;
		r->list_began &= element == ELEMENT_ROW;
		break;
	case ELEMENT_BLOCK: separate(r); break;
	case ELEMENT_LINK: end_link(r); break;
	case ELEMENT_RAISED: r->raised -= r->raised > 0; break;
	default: break;
	}
}

/* Returns whether the number of a footnote has led to this element. */
static bool is_note_target(const struct reader *r, const xmlChar **attributes)
{
	const char *id = html_attribute(attributes, "id");

	return id && r->script->notes && json_object_get(r->script->notes, id);
}

/* What a page says of itself: <meta name="author" content="Ann">. */
static void take_meta(struct reader *r, const xmlChar **attributes)
{
	const char *name = html_attribute(attributes, "name"),
		   *content = html_attribute(attributes, "content");
	CLEANUP(str_free) struct str line = STR_INIT;

	if (!name || !content || !r->document->is_whole)
		return;
	str_addf(&line, "%s: %s", strncasecmp(name, "dcterms.", 8) ? name : name + 8, content);
	book_read_line(&r->script->book, str_text(&line), line.len);
}

static void take_language(struct reader *r, const xmlChar **attributes)
{
	const char *language = html_attribute(attributes, "lang");

	if (r->document->is_whole && language && !r->script->book.language)
		r->script->book.language = xstrdup(language);
}

/* ---- libxml2's events ---- */

static bool is_block(enum element element)
{
	return element == ELEMENT_BLOCK || element == ELEMENT_ITEM || element == ELEMENT_CODE ||
	       element == ELEMENT_NAVIGATION;
}

static void on_start(void *ctx, const xmlChar *name, const xmlChar **attributes)
{
	struct reader *r = ctx;
	enum element element = html_element_of(html_element_named((const char *)name), attributes);

	if (++r->depth > DEPTH_MOST) {
		script_complain(r->script, r->document->source,
				(size_t)MAX(r->parser->input->line, 1),
				"more than %d elements are nested: is it HTML?", DEPTH_MOST);
		r->xml->xmlStopParser(r->parser);
		return;
	}
	if (r->marks) {
		begin_chapter(r, html_attribute(attributes, "id"));
		begin_chapter(r, html_attribute(attributes, "xml:id"));
		begin_chapter(r, !strcasecmp((const char *)name, "a")
					 ? html_attribute(attributes, "name")
					 : NULL);
	}
	r->reversed +=
		!strcasecmp((const char *)name, "ol") && html_attribute(attributes, "reversed");
	if (r->silent.depth) {
		r->script->silent.footnotes +=
			r->silent.notes &&
			(element == ELEMENT_NOTE || !strcmp((const char *)name, "li"));
	} else if (element == ELEMENT_TITLE) {
		r->in_title = true;
	} else if (element == ELEMENT_META) {
		take_meta(r, attributes);
	} else if (is_note_target(r, attributes) &&
		   (is_block(element) || element == ELEMENT_ITEM)) {
		separate(r);
		begin_silence(r, ELEMENT_NOTE);
	} else if (element >= ELEMENT_SILENT) {
		if (is_block(html_element_named((const char *)name)))
			separate(r);
		begin_silence(r, element);
	} else {
		/* a name at the beginning of a paragraph marks all of it */
		bool begins = !r->text.len && !r->piece;
		begin_spoken(r, element, attributes);
		r->is_note |= begins && is_note_target(r, attributes);
		if (element == ELEMENT_BLOCK && !strcmp((const char *)name, "html"))
			take_language(r, attributes);
	}
}

static void on_end(void *ctx, const xmlChar *name)
{
	struct reader *r = ctx;

	if (r->silent.depth && r->silent.depth == r->depth)
		end_silence(r);
	else if (!r->silent.depth)
		end_spoken(r, html_element_named((const char *)name));
	r->in_title = false;
	r->depth -= r->depth > 0;
}

static void on_text(void *ctx, const xmlChar *text, int len)
{
	struct reader *r = ctx;

	if (r->in_title)
		str_addn(&r->title, text, (size_t)len);
	else if (!r->silent.depth)
		add_text(r, (const char *)text, (size_t)len);
}

/* ---- documents ---- */

/* The place of a mark in the document: an id that is there, or "", its beginning; NULL: it has
 * none, since its id is not there. */
static const char *place_of(const struct reader *r, const struct html_mark *mark)
{
	if (!mark->id[0] || json_object_get(r->survey.ids, mark->id))
		return mark->id;
	return json_object_get(r->survey.ids, mark->written) ? mark->written : NULL;
}

#define TITLE_MOST_BYTES 200 /* of several entries that lead to one place */

/* Adds a title to those of the chapter at this place: "Part One: Chapter 1". */
static void add_title(json_t *titles, const char *place, const char *title)
{
	const char *before = json_string_value(json_object_get(titles, place));
	CLEANUP(free_text) char *both = before ? xasprintf("%s: %s", before, title) : NULL;

	if (before && (!strcmp(before, title) || strlen(both) > TITLE_MOST_BYTES))
		return;
	json_object_set_new_nocheck(titles, place, json_string_nocheck(both ? both : title));
}

/* Begins the chapter at the document's beginning, and makes the index of the others. A chapter
 * whose id is not there begins with the document, unless another one does. */
static void begin_marks(struct reader *r)
{
	const struct html_document *d = r->document;
	const struct html_mark *first_lost = NULL;
	size_t lost = 0;

	r->marks = d->mark_count ? json_object() : NULL;
	for (size_t i = 0; i < d->mark_count; i++) {
		const char *place = place_of(r, &d->marks[i]);
		if (place)
			add_title(r->marks, place, d->marks[i].title);
		first_lost = place || first_lost ? first_lost : &d->marks[i];
		lost += !place;
	}
	if (lost && !json_object_get(r->marks, "")) {
		add_title(r->marks, "", first_lost->title);
		lost--;
	}
	r->script->silent.lost_chapters += lost;
	begin_chapter(r, "");
}

/* The charset to read by: UTF-8 if the bytes are that, whatever the document says; NULL: as the
 * document says. */
static const char *charset_of(const struct html_document *d)
{
	return utf8_valid(d->bytes, d->len) ? "UTF-8" : NULL;
}

/* Sets the book's title by the page's. */
static void take_metadata(struct reader *r)
{
	CLEANUP(str_free) struct str title = STR_INIT;

	split_normalise(&title, str_text(&r->title), r->title.len);
	if (title.len && !r->script->book.title)
		r->script->book.title = str_detach(&title);
}

/* Sends the document's elements to the handlers. The caller frees r->parser. */
static void send_events(struct reader *r, const xmlSAXHandler *handlers, void *ctx,
			const char *charset)
{
	const struct html_document *d = r->document;

	r->parser = r->xml->htmlNewParserCtxt();
	*r->parser->sax = *handlers;
	r->parser->userData = ctx;
	r->xml->htmlCtxtReadMemory(r->parser, d->bytes, (int)d->len, NULL, charset,
				   HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
					   HTML_PARSE_NONET | HTML_PARSE_NOIMPLIED);
}

/* Surveys the document if it has marks at ids, or reversed lists whose numbers are spoken. */
static void survey(struct reader *r, const char *charset)
{
	static const xmlSAXHandler handlers = {.startElement = survey_start,
					       .endElement = survey_end};
	const struct html_document *d = r->document;
	bool ids = false;

	for (size_t i = 0; i < d->mark_count; i++)
		ids |= d->marks[i].id[0] != '\0';
	if (!ids && !r->script->list_numbers)
		return;
	r->survey.ids = ids ? json_object() : NULL;
	send_events(r, &handlers, &r->survey, charset);
	r->xml->htmlFreeParserCtxt(r->parser);
}

/* Parses the document of the reader and frees what that takes. */
static void parse(struct reader *r, const char *charset)
{
	static const xmlSAXHandler handlers = {.startElement = on_start,
					       .endElement = on_end,
					       .characters = on_text,
					       .ignorableWhitespace = on_text};
	const struct html_document *d = r->document;

	survey(r, charset);
	begin_marks(r);
	send_events(r, &handlers, r, charset);
	flush_item(r);
	r->xml->htmlFreeParserCtxt(r->parser);
	if (d->is_whole)
		take_metadata(r);
	json_decref(r->marks);
	json_decref(r->survey.ids);
	free(r->survey.reversed);
	str_free(&r->text);
	str_free(&r->title);
}

void html_read_document(struct script *s, const struct html_document *document)
{
	struct reader r = {.script = s, .document = document};
	struct err why = {0};

	if (xml_library_load(&r.xml, &why) < 0) {
		script_complain(s, document->source, 0, "%s", why.msg);
		return;
	}
	parse(&r, charset_of(document));
}

/* ---- pieces ---- */

/* Copies HTML so that a pause, which may be written as a tag, stays text. */
static void keep_pauses(struct str *to, const char *html)
{
	double seconds;

	for (const char *p = html; *p; p++)
		if (*p == '<' && pause_tag(p, &seconds))
			str_add(to, "&lt;");
		else
			str_addc(to, *p);
}

void html_read_piece(struct script *s, const char *source, const char *html, struct str *to)
{
	CLEANUP(str_free) struct str kept = STR_INIT;
	struct html_document document = {.source = source};
	struct reader r = {.script = s, .document = &document, .piece = to};
	struct err why = {0};

	str_add(&kept, "<div>"); /* else libxml2 begins a paragraph at each text */
	keep_pauses(&kept, html);
	document.bytes = str_text(&kept);
	document.len = kept.len;
	if (xml_library_load(&r.xml, &why) < 0)
		script_complain(s, source, 0, "%s", why.msg);
	else
		parse(&r, "UTF-8");
}

void input_read_html(struct script *s, const char *source, const char *bytes, size_t len)
{
	int chapter = -1;

	html_read_document(s, &(struct html_document){.source = source,
						      .bytes = bytes,
						      .len = len,
						      .headings_begin_chapters = true,
						      .is_whole = true,
						      .chapter = &chapter});
}
