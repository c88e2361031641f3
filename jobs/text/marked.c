/* marked.c - texts of other formats that may hold tags and entities of HTML, as programs export
 * them */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "html.h"
#include "xml_library.h"

/* The length of a tag of HTML at p, with a known name and no attributes but name="value"; 0: what
 * stands there is text, such as "a < b" or "<name>". */
static size_t tag_length(const char *p)
{
	const char *from = p + 1 + (p[1] == '/'), *end = strpbrk(from, "<>");
	char name[16] = "";
	size_t len = 0;

	while (len + 1 < sizeof(name) && isalnum((unsigned char)from[len])) {
		name[len] = from[len];
		len++;
	}
	if (!len || !end || *end != '>' || !html_knows(name))
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

/* Stands for a line break in HTML, which has only blanks: the label of a speaker may follow. */
#define LINE_BREAK "\u2028"

static bool is_break(const char *tag)
{
	return !strncasecmp(tag, "<br", 3) && strchr(" \t\n/>", tag[3]);
}

/* Copies the text with what is no HTML escaped, and line breaks as LINE_BREAK. Counts tags and
 * names of characters. Returns whether there are any. */
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
			if (tag && is_break(p))
				str_add(to, LINE_BREAK);
			else
				str_addn(to, p, tag + entity);
			p += tag + entity;
			continue;
		}
		str_add(to, *p == '<'    ? "&lt;"
			    : *p == '&'  ? "&amp;"
			    : *p == '\n' ? LINE_BREAK
					 : (char[]){*p, '\0'});
		p++;
	}
	silent->tags += tags;
	silent->entities += entities;
	return tags || entities;
}

/* Makes newlines of LINE_BREAK. */
static void restore_breaks(char *text)
{
	char *to = text;

	for (const char *p = text; *p;) {
		bool line_break = starts_with(p, LINE_BREAK);
		*to++ = line_break ? '\n' : *p;
		p += line_break ? strlen(LINE_BREAK) : 1;
	}
	*to = '\0';
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
	str_addc(&text, '\n');
	restore_breaks(text.s);
	script_add(s, item, text.s, strlen(text.s));
}
