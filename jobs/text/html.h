/* html.h - reads HTML for a voice: documents, and pieces inside other texts. Private to jobs/text/
 */
#ifndef BURST_JOBS_TTS_HTML_H
#define BURST_JOBS_TTS_HTML_H

#include "script.h"

/* A chapter that begins at an element of a document. */
struct html_mark {
	const char *id;      /* of the element; "": at the document's beginning */
	const char *written; /* the same as the link has it, percents not decoded */
	const char *title;
};

struct html_document {
	const char *source; /* the script's own copy of its name */
	const char *bytes;
	size_t len;
	const struct html_mark *marks; /* of a book's table of contents */
	size_t mark_count;
	bool headings_begin_chapters; /* there is no table of contents */
	bool is_whole;                /* its title and author are those of the script */
	int *chapter;                 /* the one that it begins in, and then ends in; -1: none */
};

/* Adds the items of a document to the script; counts in the script what is not spoken. Complains if
 * the document cannot be read. */
void html_read_document(struct script *s, const struct html_document *document);
/* Appends the spoken text of a piece of HTML, which is valid UTF-8, with a newline behind each
 * block. Counts in the script what is left out. source: the script's own copy of its name. */
void html_read_piece(struct script *s, const char *source, const char *html, struct str *to);
/* ---- elements ---- */

/* How an element is read. */
enum element {
	ELEMENT_BLOCK, /* and every unknown one: it separates texts */
	ELEMENT_INLINE,
	ELEMENT_BREAK,
	ELEMENT_HEADING,
	ELEMENT_LIST,
	ELEMENT_ORDERED,
	ELEMENT_ITEM,
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

/* How an element of this name is read. */
enum element html_element_named(const char *name);
/* The same with what its attributes make of it. attributes: name and value in turn, as libxml2 has
 * them; NULL: none. */
enum element html_element_of(enum element element, const unsigned char **attributes);
/* The value of an attribute; NULL: there is none. */
const char *html_attribute(const unsigned char **attributes, const char *name);
/* Returns whether this is the name of an element that is read in a way of its own. */
bool html_knows(const char *name);

#endif
