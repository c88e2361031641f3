/* html_element.c - how the elements of HTML are read, by their names, types and classes */
#include "html.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"

static const struct {
	enum element element;
	const char *names; /* with a blank around each */
} elements[] = {
	{ELEMENT_INLINE,
	 " abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark output q "
	 "ruby rb s samp small span strike strong sub time tt u var wbr "},
	{ELEMENT_BLOCK, " address article aside blockquote body caption center col colgroup dd "
			"details div dt fieldset "
			"figcaption figure footer form header html legend main p section "
			"summary tbody tfoot thead "},
	{ELEMENT_LINK, " a "},
	{ELEMENT_RAISED, " sup "},
	{ELEMENT_BREAK, " br "},
	{ELEMENT_HEADING, " h1 h2 h3 h4 h5 h6 "},
	{ELEMENT_LIST, " ul dl menu "},
	{ELEMENT_ORDERED, " ol "},
	{ELEMENT_ITEM, " li "},
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

enum element html_element_named(const char *name)
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

const char *html_attribute(const unsigned char **attributes, const char *name)
{
	for (; attributes && *attributes; attributes += 2)
		if (!strcasecmp((const char *)attributes[0], name))
			return attributes[1] ? (const char *)attributes[1] : "";
	return NULL;
}

/* Returns whether a style has "display: none". */
static bool is_hidden(const char *style)
{
	const char *p = style ? strcasestr(style, "display") : NULL;

	if (!p)
		return false;
	p += strlen("display");
	p += strspn(p, " \t:");
	return !strncasecmp(p, "none", 4);
}

enum element html_element_of(enum element element, const unsigned char **attributes)
{
	const char *type = html_attribute(attributes, "epub:type"),
		   *role = html_attribute(attributes, "role"),
		   *class = html_attribute(attributes, "class");

	if (html_attribute(attributes, "hidden") || is_hidden(html_attribute(attributes, "style")))
		return ELEMENT_SILENT;
	for (size_t i = 0; (type || role || class) && i < ARRAY_LEN(types); i++)
		if (has_word(type, types[i].types) || has_word(role, types[i].types) ||
		    has_word(class, types[i].classes))
			return types[i].element;
	return element;
}

bool html_knows(const char *name)
{
	enum element element;

	return find_element(name, &element);
}
