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

/* ---- elements ---- */

/* How an element is read. */
enum element {
	ELEMENT_BLOCK, /* and every unknown one: it separates texts */
	ELEMENT_INLINE,
	ELEMENT_BREAK,
	ELEMENT_HEADING,
	ELEMENT_LIST,
	ELEMENT_TABLE,
	ELEMENT_ROW,
	ELEMENT_CELL,
	ELEMENT_RULE,
	ELEMENT_LINK,
	ELEMENT_RAISED, /* as the number of a footnote is */
	ELEMENT_TITLE,
	ELEMENT_META,
	/* the content of the others is not spoken */
	ELEMENT_SILENT,
	ELEMENT_IMAGE,
	ELEMENT_CODE,
	ELEMENT_FORMULA,
	ELEMENT_NAVIGATION,
	/* by their type or class */
	ELEMENT_NOTE,
	ELEMENT_NOTES,
	ELEMENT_NOTE_NUMBER,
	ELEMENT_PAGE_NUMBER,
};

static const struct {
	enum element element;
	const char *names; /* with a blank around each */
} elements[] = {
	{ELEMENT_INLINE,
	 " abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark output q "
	 "ruby rb s samp small span strike strong sub time tt u var wbr "},
	{ELEMENT_BLOCK, " address article aside blockquote body caption center col colgroup dd "
			"details div dt fieldset "
			"figcaption figure footer form header html legend li main p section "
			"summary tbody tfoot thead "},
	{ELEMENT_LINK, " a "},
	{ELEMENT_RAISED, " sup "},
	{ELEMENT_BREAK, " br "},
	{ELEMENT_HEADING, " h1 h2 h3 h4 h5 h6 "},
	{ELEMENT_LIST, " ul ol dl menu "},
	{ELEMENT_TABLE, " table "},
	{ELEMENT_ROW, " tr "},
	{ELEMENT_CELL, " td th "},
	{ELEMENT_RULE, " hr "},
	{ELEMENT_TITLE, " title "},
	{ELEMENT_META, " meta "},
	{ELEMENT_IMAGE, " img svg "},
	{ELEMENT_CODE, " pre "},
	{ELEMENT_FORMULA, " math "},
	{ELEMENT_NAVIGATION, " nav "},
	{ELEMENT_SILENT, " script style template textarea select button object audio video iframe "
			 "canvas map rt rp noscript "},
};

static bool is_among(const char *words, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = words; len && (at = strcasestr(at, name)); at++)
		if (at > words && at[-1] == ' ' && at[len] == ' ')
			return true;
	return false;
}

/* Returns false for an unknown name. */
static bool find_element(const char *name, enum element *out)
{
	for (size_t i = 0; i < ARRAY_LEN(elements); i++)
		if (is_among(elements[i].names, name)) {
			*out = elements[i].element;
			return true;
		}
	return false;
}

static enum element element_of_name(const char *name)
{
	enum element element = ELEMENT_BLOCK;

	(void)find_element(name, &element);
	return element;
}

/* ---- types ----
 * The structural types of EPUB (https://www.w3.org/TR/epub-ssv-11/), the same as roles of DPUB-ARIA
 * (https://www.w3.org/TR/dpub-aria-1.1/), and the classes that Project Gutenberg and pandoc use. */

static const struct {
	enum element element;
	const char *types, *classes; /* with a blank around each */
} types[] = {
	{ELEMENT_NOTE, " footnote endnote rearnote doc-footnote doc-endnote ",
	 " footnote endnote "},
	{ELEMENT_NOTES, " footnotes endnotes rearnotes doc-endnotes ", " footnotes endnotes "},
	{ELEMENT_NOTE_NUMBER, " noteref doc-noteref doc-backlink ",
	 " noteref footnote-ref footnote-back fnanchor "},
	{ELEMENT_PAGE_NUMBER, " pagebreak doc-pagebreak ", " pagenum pagebreak pageno "},
	{ELEMENT_NAVIGATION, " toc landmarks page-list loi lot doc-toc doc-pagelist ", " "},
};

/* Returns whether one of the words of an attribute is among these. */
static bool has_word(const char *attribute, const char *words)
{
	while (attribute && *attribute) {
		char word[32];
		size_t len = strcspn(attribute, " \t\r\n");
		if (len && len < sizeof(word)) {
			memcpy(word, attribute, len);
			word[len] = '\0';
			if (is_among(words, word))
				return true;
		}
		attribute += len;
		attribute += strspn(attribute, " \t\r\n");
	}
	return false;
}

static const char *attribute_of(const xmlChar **attributes, const char *name)
{
	for (; attributes && *attributes; attributes += 2)
		if (!strcasecmp((const char *)attributes[0], name))
			return attributes[1] ? (const char *)attributes[1] : "";
	return NULL;
}

/* What the attributes make of an element. */
static enum element element_of_type(enum element element, const xmlChar **attributes)
{
	const char *type = attribute_of(attributes, "epub:type"),
		   *role = attribute_of(attributes, "role"),
		   *class = attribute_of(attributes, "class");

	if (attribute_of(attributes, "hidden"))
		return ELEMENT_SILENT;
	for (size_t i = 0; (type || role || class) && i < ARRAY_LEN(types); i++)
		if (has_word(type, types[i].types) || has_word(role, types[i].types) ||
		    has_word(class, types[i].classes))
			return types[i].element;
	return element;
}

/* ---- reader ---- */

struct reader {
	const struct xml_library *xml;
	htmlParserCtxtPtr parser;
	struct script *script;
	const struct html_document *document;
	struct str *piece; /* gets the text of a piece; NULL: it is a document, which has items */
	json_t *marks;     /* id -> index, of the chapters that have not begun */

	struct str text; /* of the current item */
	size_t began;    /* line of the item; 0: it has no text yet */
	bool heading;
	size_t lists;    /* enclosing levels */
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
	struct {
		size_t at; /* where the text of the link began */
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

static void flush_item(struct reader *r)
{
	CLEANUP(str_free) struct str text = STR_INIT;
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
	str_reset(&r->text);
	if (!split_has_words(str_text(&text))) {
		if (text.len && pause_is_scene_break(str_text(&text)))
			script_border(r->script, BORDER_SCENE);
		return;
	}
	r->list_began = item.listed;
	if (r->heading && d->headings_begin_chapters)
		*d->chapter = script_add_chapter(r->script, str_text(&text));
	item.chapter = *d->chapter;
	script_add(r->script, &item, str_text(&text), text.len);
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
	const struct html_document *d = r->document;
	json_t *index = id && r->marks ? json_object_get(r->marks, id) : NULL;

	if (!index)
		return;
	flush_item(r);
	*d->chapter = script_add_chapter(r->script, d->marks[json_integer_value(index)].title);
	json_object_del(r->marks, id);
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

static void begin_spoken(struct reader *r, enum element element, const xmlChar **attributes)
{
	const char *href;

	switch (element) {
	case ELEMENT_BREAK: add_text(r, " ", 1); break;
	case ELEMENT_HEADING:
		separate(r);
		r->heading = true;
		break;
	case ELEMENT_LIST:
		separate(r);
		r->lists++;
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
		href = attribute_of(attributes, "href");
		r->link.open = true;
		r->link.at = r->text.len;
		r->link.inward = href && strchr(href, '#');
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
		separate(r);
		r->lists -= r->lists > 0;
		r->list_began &= r->lists > 0;
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

/* ---- libxml2's events ---- */

static bool is_block(enum element element)
{
	return element == ELEMENT_BLOCK || element == ELEMENT_CODE || element == ELEMENT_NAVIGATION;
}

static void on_start(void *ctx, const xmlChar *name, const xmlChar **attributes)
{
	struct reader *r = ctx;
	enum element element = element_of_type(element_of_name((const char *)name), attributes);

	if (++r->depth > DEPTH_MOST) {
		script_complain(r->script, r->document->source,
				(size_t)MAX(r->parser->input->line, 1),
				"more than %d elements are nested: is it HTML?", DEPTH_MOST);
		r->xml->xmlStopParser(r->parser);
		return;
	}
	if (!r->silent.depth && r->marks) {
		begin_chapter(r, attribute_of(attributes, "id"));
		begin_chapter(r, element == ELEMENT_LINK ? attribute_of(attributes, "name") : NULL);
	}
	if (r->silent.depth) {
		r->script->silent.footnotes +=
			r->silent.notes &&
			(element == ELEMENT_NOTE || !strcmp((const char *)name, "li"));
	} else if (element == ELEMENT_TITLE) {
		r->in_title = true;
	} else if (element >= ELEMENT_SILENT) {
		if (is_block(element_of_name((const char *)name)))
			separate(r);
		begin_silence(r, element);
	} else {
		begin_spoken(r, element, attributes);
	}
}

static void on_end(void *ctx, const xmlChar *name)
{
	struct reader *r = ctx;

	if (r->silent.depth && r->silent.depth == r->depth)
		end_silence(r);
	else if (!r->silent.depth)
		end_spoken(r, element_of_name((const char *)name));
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

/* Begins the chapter at the document's beginning, and makes the index of the others. */
static void begin_marks(struct reader *r)
{
	const struct html_document *d = r->document;

	for (size_t i = 0; i < d->mark_count; i++) {
		if (!d->marks[i].id[0])
			*d->chapter = script_add_chapter(r->script, d->marks[i].title);
		else if (!r->marks)
			r->marks = json_object();
		if (d->marks[i].id[0])
			json_object_set_new_nocheck(r->marks, d->marks[i].id,
						    json_integer((json_int_t)i));
	}
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

/* Parses the document of the reader and frees what that takes. */
static void parse(struct reader *r, const char *charset)
{
	const struct html_document *d = r->document;

	r->parser = r->xml->htmlNewParserCtxt();
	*r->parser->sax = (xmlSAXHandler){.startElement = on_start,
					  .endElement = on_end,
					  .characters = on_text,
					  .ignorableWhitespace = on_text};
	r->parser->userData = r;
	r->xml->htmlCtxtReadMemory(r->parser, d->bytes, (int)d->len, NULL, charset,
				   HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
					   HTML_PARSE_NONET | HTML_PARSE_NOIMPLIED);
	flush_item(r);
	r->xml->htmlFreeParserCtxt(r->parser);
	if (d->is_whole)
		take_metadata(r);
	json_decref(r->marks);
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
	begin_marks(&r);
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

/* ---- HTML in other texts ---- */

/* The length of a tag of HTML at p, with a known name and no attributes but name="value"; 0: what
 * stands there is text, such as "a < b" or "<name>". */
static size_t tag_length(const char *p)
{
	const char *from = p + 1 + (p[1] == '/'), *end = strpbrk(from, "<>");
	enum element element;
	char name[16] = "";
	size_t len = 0;

	while (len + 1 < sizeof(name) && isalnum((unsigned char)from[len])) {
		name[len] = from[len];
		len++;
	}
	if (!len || !end || *end != '>' || !find_element(name, &element))
		return 0;
	const char *rest = from + len + strspn(from + len, " \t\n\r/");
	if (rest == from + len && rest != end)
		return 0;
	return rest == end || memchr(rest, '=', (size_t)(end - rest)) ? (size_t)(end + 1 - p) : 0;
}

/* The length of a character's name at p, as "&amp;" or "&#39;"; 0: there is none. */
static size_t entity_length(const struct xml_library *xml, const char *p)
{
	char name[32] = "";
	size_t len = 1 + strcspn(p + 1, ";& <\n");

	if (p[len] != ';' || len < 3 || len >= sizeof(name))
		return 0;
	memcpy(name, p + 1, len - 1);
	if (name[0] == '#')
		return isdigit((unsigned char)p[2]) || p[2] == 'x' || p[2] == 'X' ? len + 1 : 0;
	return xml->htmlEntityLookup((const xmlChar *)name) ? len + 1 : 0;
}

/* Copies the text with what is no HTML escaped. Counts tags and names of characters. Returns
 * whether there are any. */
static bool escape_text(const struct xml_library *xml, struct script_silent *silent,
			const char *text, struct str *to)
{
	size_t tags = 0, entities = 0;

	for (const char *p = text; *p;) {
		size_t tag = *p == '<' ? tag_length(p) : 0;
		size_t entity = *p == '&' ? entity_length(xml, p) : 0;
		tags += tag > 0;
		entities += entity > 0;
		if (tag || entity) {
			str_addn(to, p, tag + entity);
			p += tag + entity;
			continue;
		}
		str_add(to, *p == '<' ? "&lt;" : *p == '&' ? "&amp;" : (char[]){*p, '\0'});
		p++;
	}
	silent->tags += tags;
	silent->entities += entities;
	return tags || entities;
}

void script_add_marked(struct script *s, struct script_item *item, const char *raw, size_t len)
{
	CLEANUP(str_free) struct str html = STR_INIT;
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *copy = NULL;
	const struct xml_library *xml;
	struct err why = {0};

	if ((!memchr(raw, '<', len) && !memchr(raw, '&', len)) || memchr(raw, '\0', len) ||
	    !utf8_valid(raw, len)) {
		script_add(s, item, raw, len);
		return;
	}
	copy = xstrndup(raw, len);
	if (xml_library_load(&xml, &why) < 0) {
		script_complain(s, item->source, item->line, "%s", why.msg);
		return;
	}
	if (!escape_text(xml, &s->silent, copy, &html)) {
		script_add(s, item, raw, len);
		return;
	}
	html_read_piece(s, item->source, str_text(&html), &text);
	script_add(s, item, str_text(&text), text.len);
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
