/* epub.c - reads EPUB books: the order of their documents, table of contents, cover and metadata.
 *
 * EPUB 3.3 (https://www.w3.org/TR/epub-33/) and EPUB 2.0.1 (OPF 2.0.1, with its NCX). Nothing is
 * unpacked to a disk: paths of the book only name members of its zip file. */
#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "html.h"
#include "zip.h"
#include "xml_library.h"

#define MEMBER_MOST   ((size_t)16 << 20)
#define COVER_MOST    ((size_t)20 << 20)
#define BOOK_MOST     ((size_t)128 << 20) /* of all that is unpacked at once */
#define RATIO_MOST    200                 /* unpacked bytes for a byte of the book */
#define ENTRIES_MOST  5000                /* of the spine, and of the table of contents */
#define MANIFEST_MOST 50000

struct entry { /* of the manifest */
	char *id, *path, *type, *properties;
};

struct place { /* of the table of contents */
	char *path, *id, *written, *title;
};

struct book {
	const struct xml_library *xml;
	struct script *script;
	const char *source, *bytes;
	size_t len;
	char *package; /* path of the package document */
	struct entry *manifest;
	size_t manifest_count, manifest_cap;
	struct spine {
		const struct entry *entry;
		enum { PART_SPOKEN, PART_CONTENTS, PART_EXTRA } part;
	} * spine;
	size_t spine_count, spine_cap;
	const struct entry *nav, *ncx, *cover;
	struct place *places;
	size_t place_count, place_cap;
};

static void book_free_cleanup(struct book *b)
{
	for (size_t i = 0; i < b->manifest_count; i++) {
		free(b->manifest[i].id);
		free(b->manifest[i].path);
		free(b->manifest[i].type);
		free(b->manifest[i].properties);
	}
	for (size_t i = 0; i < b->place_count; i++) {
		free(b->places[i].path);
		free(b->places[i].id);
		free(b->places[i].written);
		free(b->places[i].title);
	}
	free(b->manifest);
	free(b->spine);
	free(b->places);
	free(b->package);
}

/* ---- the zip file ---- */

static int read_members(const struct book *b, struct zip_member *members, size_t count,
			struct err *err)
{
	size_t most = MIN(BOOK_MOST, MAX((size_t)1 << 20, b->len * RATIO_MOST));

	return zip_read(b->bytes, b->len, members, count, most, err);
}

/* ---- XML ----
 * Neither network nor DTD, and no entities of the document's own: the functions below pass over
 * references to them. */

/* Returns NULL with *err if the bytes are no XML. Free with b->xml->xmlFreeDoc(). */
static xmlDocPtr parse_xml(const struct book *b, const struct zip_member *m, struct err *err)
{
	xmlParserCtxtPtr parser = b->xml->xmlNewParserCtxt();
	xmlDocPtr doc = b->xml->xmlCtxtReadMemory(parser, str_text(&m->bytes), (int)m->bytes.len,
						  NULL, NULL, XML_SAFE | XML_PARSE_RECOVER);

	b->xml->xmlFreeParserCtxt(parser);
	if (doc && doc->children)
		return doc;
	if (doc)
		b->xml->xmlFreeDoc(doc);
	err_set(err, ERR_CONFIG, "%s cannot be read: it is not XML", m->name);
	return NULL;
}

/* The node behind this one in the order of the document, below `top`; NULL: none. */
static xmlNodePtr next_node(xmlNodePtr node, const xmlNode *top)
{
	bool open = node->type == XML_ELEMENT_NODE || node->type == XML_DOCUMENT_NODE;

	if (open && node->children)
		return node->children;
	for (; node && node != top; node = node->parent)
		if (node->next)
			return node->next;
	return NULL;
}

static bool is_element(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name);
}

/* The first element of this name below `top`, in any namespace; NULL: none. */
static xmlNodePtr find_element(xmlNodePtr top, const char *name)
{
	for (xmlNodePtr node = top; node; node = next_node(node, top))
		if (node != top && is_element(node, name))
			return node;
	return NULL;
}

static xmlNodePtr next_element(xmlNodePtr node, const xmlNode *top, const char *name)
{
	while ((node = next_node(node, top)))
		if (is_element(node, name))
			return node;
	return NULL;
}

/* Text and CDATA, without entities of the document. */
static void add_own_text(struct str *to, const xmlNode *node)
{
	if ((node->type == XML_TEXT_NODE || node->type == XML_CDATA_SECTION_NODE) && node->content)
		str_add(to, (const char *)node->content);
}

/* The text below a node, as one line. The caller frees it; NULL: there is none. */
static char *text_of(xmlNodePtr top)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct str line = STR_INIT;

	for (xmlNodePtr node = top; node; node = next_node(node, top))
		add_own_text(&text, node);
	if (!utf8_valid(str_text(&text), text.len))
		return NULL;
	split_normalise(&line, str_text(&text), text.len);
	if (line.len)
		return str_detach(&line);
	str_free(&line);
	return NULL;
}

/* An attribute by its name without a prefix; "": it is absent. The caller frees it. */
static char *attribute_of(const xmlNode *node, const char *name)
{
	struct str text = STR_INIT;

	for (const xmlAttr *a = node->properties; a; a = a->next) {
		if (strcmp((const char *)a->name, name) != 0)
			continue;
		for (const xmlNode *part = a->children; part; part = part->next)
			add_own_text(&text, part);
		break;
	}
	return str_detach(&text);
}

static bool attribute_is(const xmlNode *node, const char *name, const char *value)
{
	CLEANUP(free_text) char *is = attribute_of(node, name);

	return !strcmp(is, value);
}

/* ---- paths ---- */

static int hex_digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10
					    : -1;
}

/* Decodes "%20" in place. */
static void decode_percents(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		int high = *at == '%' ? hex_digit(at[1]) : -1;
		int low = high >= 0 ? hex_digit(at[2]) : -1;
		if (low >= 0 && (high || low)) {
			*to++ = (char)(high * 16 + low);
			at += 2;
		} else {
			*to++ = *at;
		}
	}
	*to = '\0';
}

/* The member that a reference in the document `base` names; NULL: none in this book. *id gets what
 * is behind '#', "" if nothing is; NULL: not asked for. The caller frees both. */
static char *resolve(const char *base, const char *href, char **id)
{
	CLEANUP(free_text) char *path = xstrndup(href, strcspn(href, "#"));
	const char *folder_end = strrchr(base, '/'), *hash = strchr(href, '#');
	CLEANUP(str_free) struct str parts = STR_INIT;
	size_t colon = strcspn(path, ":/?");

	if (path[colon] == ':' || path[0] == '/')
		return NULL; /* another site, or no path of this book */
	decode_percents(path);
	if (*path)
		str_addf(&parts, "%.*s/%s", folder_end ? (int)(folder_end - base) : 0, base, path);
	else
		str_add(&parts, base);
	struct str out = STR_INIT;
	for (char *at = parts.s, *part; (part = strsep(&at, "/"));) {
		char *last = out.len ? strrchr(out.s, '/') : NULL;
		if (!strcmp(part, "..")) {
			out.len = last ? (size_t)(last - out.s) : 0;
			if (out.s)
				out.s[out.len] = '\0';
		} else if (*part && strcmp(part, ".") != 0) {
			str_addf(&out, "%s%s", out.len ? "/" : "", part);
		}
	}
	if (!out.len) {
		str_free(&out);
		return NULL;
	}
	if (id) {
		*id = xstrdup(hash ? hash + 1 : "");
		decode_percents(*id);
	}
	return str_detach(&out);
}

/* ---- container ---- */

/* Fonts may be obfuscated, which protects no text: EPUB 3.3, 4.4, and Adobe's way. */
static bool is_font_obfuscation(const char *algorithm)
{
	return !strcmp(algorithm, "http://www.idpf.org/2008/embedding") ||
	       !strcmp(algorithm, "http://ns.adobe.com/pdf/enc#RC");
}

/* ERR_CONFIG: a shop has encrypted the book. */
static int check_encryption(const struct book *b, const struct zip_member *m, struct err *err)
{
	xmlDocPtr doc = parse_xml(b, m, err);
	bool encrypted = false;

	if (!doc)
		return -1;
	xmlNodePtr top = (xmlNodePtr)doc;
	for (xmlNodePtr node = doc->children; node; node = next_element(node, top, "EncryptedData"))
		for (xmlNodePtr child = is_element(node, "EncryptedData") ? node->children : NULL;
		     child; child = child->next)
			if (is_element(child, "EncryptionMethod")) {
				CLEANUP(free_text)
				char *algorithm = attribute_of(child, "Algorithm");
				encrypted |= !is_font_obfuscation(algorithm);
			}
	b->xml->xmlFreeDoc(doc);
	if (encrypted)
		return err_set(err, ERR_CONFIG,
			       "this book is encrypted (DRM) and cannot be read: get it without "
			       "copy protection");
	return 0;
}

/* Sets b->package. */
static int read_container(struct book *b, const struct zip_member *m, struct err *err)
{
	if (!m->found)
		return err_set(err, ERR_CONFIG,
			       "it has no META-INF/container.xml, so it is no EPUB book");
	xmlDocPtr doc = parse_xml(b, m, err);
	if (!doc)
		return -1;
	xmlNodePtr file = find_element((xmlNodePtr)doc, "rootfile");
	if (file) {
		CLEANUP(free_text) char *path = attribute_of(file, "full-path");
		b->package = resolve("", path, NULL);
	}
	b->xml->xmlFreeDoc(doc);
	return b->package ? 0
			  : err_set(err, ERR_CONFIG,
				    "META-INF/container.xml names no package document");
}

static int open_container(struct book *b, struct err *err)
{
	struct zip_member members[] = {
		{.name = "META-INF/container.xml", .most = MEMBER_MOST},
		{.name = "META-INF/encryption.xml", .most = MEMBER_MOST},
		{.name = "META-INF/sinf.xml", .most = MEMBER_MOST}, /* Apple's copy protection */
	};
	int result = read_members(b, members, ARRAY_LEN(members), err);

	if (result == 0 && members[2].found)
		result = err_set(err, ERR_CONFIG,
				 "this book is encrypted (DRM) and cannot be read: get it without "
				 "copy protection");
	if (result == 0 && members[1].found)
		result = check_encryption(b, &members[1], err);
	if (result == 0)
		result = read_container(b, &members[0], err);
	zip_members_free(members, ARRAY_LEN(members));
	return result;
}

/* ---- package document ---- */

static const struct entry *find_entry(const struct book *b, const char *id)
{
	for (size_t i = 0; *id && i < b->manifest_count; i++)
		if (!strcmp(b->manifest[i].id, id))
			return &b->manifest[i];
	return NULL;
}

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || isspace((unsigned char)at[-1])) &&
		    (!at[len] || isspace((unsigned char)at[len])))
			return true;
	return false;
}

static bool is_document(const struct entry *e)
{
	return !strcmp(e->type, "application/xhtml+xml") || !strcmp(e->type, "text/html");
}

static int read_manifest(struct book *b, xmlNodePtr manifest, struct err *err)
{
	for (xmlNodePtr item = manifest; (item = next_element(item, manifest, "item"));) {
		CLEANUP(free_text) char *href = attribute_of(item, "href");
		char *path = resolve(b->package, href, NULL);
		if (!path)
			continue; /* of another site */
		GROW(b->manifest, b->manifest_count, b->manifest_cap);
		b->manifest[b->manifest_count++] = (struct entry){attribute_of(item, "id"), path,
								  attribute_of(item, "media-type"),
								  attribute_of(item, "properties")};
		if (b->manifest_count > MANIFEST_MOST)
			return err_set(err, ERR_CONFIG, "its manifest has more than %d entries",
				       MANIFEST_MOST);
	}
	/* the list does not move any more */
	for (size_t i = 0; i < b->manifest_count; i++) {
		if (!b->nav && has_word(b->manifest[i].properties, "nav"))
			b->nav = &b->manifest[i];
		if (!b->cover && has_word(b->manifest[i].properties, "cover-image"))
			b->cover = &b->manifest[i];
		if (!b->ncx && !strcmp(b->manifest[i].type, "application/x-dtbncx+xml"))
			b->ncx = &b->manifest[i];
	}
	return 0;
}

static int read_spine(struct book *b, xmlNodePtr spine, struct err *err)
{
	for (xmlNodePtr item = spine; (item = next_element(item, spine, "itemref"));) {
		CLEANUP(free_text) char *id = attribute_of(item, "idref");
		const struct entry *entry = find_entry(b, id);
		if (!entry || !is_document(entry))
			continue; /* a picture, or another site's */
		GROW(b->spine, b->spine_count, b->spine_cap);
		b->spine[b->spine_count++] =
			(struct spine){entry, entry == b->nav                      ? PART_CONTENTS
					      : attribute_is(item, "linear", "no") ? PART_EXTRA
										   : PART_SPOKEN};
		if (b->spine_count > ENTRIES_MOST)
			return err_set(err, ERR_CONFIG, "it has more than %d documents",
				       ENTRIES_MOST);
	}
	return b->spine_count ? 0 : err_set(err, ERR_CONFIG, "its spine names no document");
}

/* Leaves out the page with the table of contents that EPUB 2 lists in its guide. */
static void read_guide(struct book *b, xmlNodePtr guide)
{
	for (xmlNodePtr ref = guide; ref && (ref = next_element(ref, guide, "reference"));) {
		CLEANUP(free_text) char *href = attribute_of(ref, "href");
		CLEANUP(free_text) char *path = resolve(b->package, href, NULL);
		for (size_t i = 0; path && attribute_is(ref, "type", "toc") && i < b->spine_count;
		     i++)
			if (!strcmp(b->spine[i].entry->path, path))
				b->spine[i].part = PART_CONTENTS;
	}
}

/* ---- metadata ---- */

/* Sets *to if it is not set; takes `text`, which may be NULL. */
static void set_once(char **to, char *text)
{
	if (*to)
		free(text);
	else
		*to = text;
}

/* Adds a name to the list of authors; takes `name`. */
static void add_author(struct script_book *book, char *name)
{
	char *before = book->author;

	if (!name)
		return;
	if (!before) {
		book->author = name;
		return;
	}
	book->author = xasprintf("%s, %s", before, name);
	free(before);
	free(name);
}

/* Takes a date like "1897-05-26"; "publication" counts more than what made the file. */
static void read_date(struct script_book *book, xmlNodePtr node)
{
	CLEANUP(free_text) char *date = text_of(node);
	CLEANUP(free_text) char *event = attribute_of(node, "event");
	bool better = !book->year || !strcmp(event, "publication");

	/* calibre writes the year 101 for none */
	if (!date || strspn(date, "0123456789") < 4 || !strncmp(date, "0101", 4) || !better)
		return;
	free(book->year);
	book->year = xstrndup(date, 4);
}

static void read_metadata(struct book *b, xmlNodePtr metadata)
{
	struct script_book *book = &b->script->book;

	for (xmlNodePtr node = metadata; node && (node = next_node(node, metadata));) {
		if (is_element(node, "title"))
			set_once(&book->title, text_of(node));
		else if (is_element(node, "creator") &&
			 (attribute_is(node, "role", "") || attribute_is(node, "role", "aut")))
			add_author(book, text_of(node));
		else if (is_element(node, "language"))
			set_once(&book->language, text_of(node));
		else if (is_element(node, "publisher"))
			set_once(&book->publisher, text_of(node));
		else if (is_element(node, "date"))
			read_date(book, node);
		else if (is_element(node, "meta") && attribute_is(node, "name", "cover")) {
			CLEANUP(free_text) char *id = attribute_of(node, "content");
			b->cover = b->cover ? b->cover : find_entry(b, id);
		}
	}
}

static int read_parts(struct book *b, xmlDocPtr doc, struct err *err)
{
	xmlNodePtr top = (xmlNodePtr)doc, manifest = find_element(top, "manifest"),
		   spine = find_element(top, "spine");

	if (!manifest || !spine)
		return err_set(err, ERR_CONFIG, "%s has no manifest or no spine", b->package);
	if (read_manifest(b, manifest, err) < 0 || read_spine(b, spine, err) < 0)
		return -1;
	read_guide(b, find_element(top, "guide"));
	read_metadata(b, find_element(top, "metadata"));
	return 0;
}

static int read_package(struct book *b, struct err *err)
{
	struct zip_member m = {.name = b->package, .most = MEMBER_MOST};
	int result = read_members(b, &m, 1, err);

	if (result == 0 && !m.found)
		result = err_set(err, ERR_CONFIG, "%s is missing in it", b->package);
	xmlDocPtr doc = result == 0 ? parse_xml(b, &m, err) : NULL;
	result = doc ? read_parts(b, doc, err) : -1;
	if (doc)
		b->xml->xmlFreeDoc(doc);
	zip_members_free(&m, 1);
	return result;
}

/* ---- table of contents ---- */

static void add_place(struct book *b, const char *base, const char *href, char *title)
{
	char *id = NULL, *path = title ? resolve(base, href, &id) : NULL;
	const char *hash = strchr(href, '#');

	if (!path || b->place_count >= ENTRIES_MOST) {
		free(path);
		free(id);
		free(title);
		return;
	}
	GROW(b->places, b->place_count, b->place_cap);
	b->places[b->place_count++] =
		(struct place){path, id, xstrdup(hash ? hash + 1 : ""), title};
}

/* Reads the links of EPUB 3's navigation document. */
static void read_nav(struct book *b, xmlNodePtr top)
{
	for (xmlNodePtr nav = top; (nav = next_element(nav, top, "nav"));) {
		CLEANUP(free_text) char *type = attribute_of(nav, "type");
		if (!has_word(type, "toc"))
			continue;
		for (xmlNodePtr a = nav; (a = next_element(a, nav, "a"));) {
			CLEANUP(free_text) char *href = attribute_of(a, "href");
			add_place(b, b->nav->path, href, text_of(a));
		}
		return;
	}
}

/* Reads EPUB 2's: navPoint has navLabel/text, content, and further navPoints. */
static void read_ncx(struct book *b, xmlNodePtr top)
{
	xmlNodePtr map = find_element(top, "navMap");

	for (xmlNodePtr point = map; point && (point = next_element(point, map, "navPoint"));) {
		xmlNodePtr label = NULL, content = NULL;
		for (xmlNodePtr child = point->children; child; child = child->next) {
			label = is_element(child, "navLabel") ? child : label;
			content = is_element(child, "content") ? child : content;
		}
		if (!label || !content)
			continue;
		CLEANUP(free_text) char *href = attribute_of(content, "src");
		add_place(b, b->ncx->path, href, text_of(label));
	}
}

static void read_contents(struct book *b, const struct zip_member *m,
			  void (*read)(struct book *b, xmlNodePtr top))
{
	struct err why = {0};
	xmlDocPtr doc = m->found && !b->place_count ? parse_xml(b, m, &why) : NULL;

	if (!doc)
		return; /* headings will begin the chapters */
	read(b, (xmlNodePtr)doc);
	b->xml->xmlFreeDoc(doc);
}

/* ---- documents ---- */

static void read_document(struct book *b, const struct spine *spine, const struct zip_member *m,
			  int *chapter)
{
	CLEANUP(free_text) char *name = xasprintf("%s/%s", b->source, spine->entry->path);
	struct html_mark *marks = xcalloc(b->place_count + 1, sizeof(*marks));
	struct html_document document = {.source = script_add_source(b->script, name),
					 .bytes = str_text(&m->bytes),
					 .len = m->bytes.len,
					 .marks = marks,
					 .headings_begin_chapters = !b->place_count,
					 .chapter = chapter};

	for (size_t i = 0; i < b->place_count; i++)
		if (!strcmp(b->places[i].path, spine->entry->path))
			marks[document.mark_count++] = (struct html_mark){
				b->places[i].id, b->places[i].written, b->places[i].title};
	if (m->found)
		html_read_document(b->script, &document);
	else
		script_complain(b->script, document.source, 0,
				"this document is missing in the book");
	free(marks);
}

/* Keeps the cover if it is a JPEG or PNG file. */
static void keep_cover(struct script_book *book, struct zip_member *m)
{
	const char *bytes = str_text(&m->bytes);

	if (m->bytes.len > 8 &&
	    (!memcmp(bytes, "\xff\xd8\xff", 3) || !memcmp(bytes, "\x89PNG", 4))) {
		book->cover = m->bytes;
		m->bytes = STR_INIT;
	}
}

/* NULL: no member. */
static struct zip_member member_of(const struct entry *entry, size_t most)
{
	return (struct zip_member){.name = entry ? entry->path : "", .most = most};
}

/* Counts the chapters whose documents the reading order does not have. */
static void count_lost_chapters(struct book *b)
{
	for (size_t i = 0; i < b->place_count; i++) {
		bool there = b->nav && !strcmp(b->nav->path, b->places[i].path);
		for (size_t k = 0; k < b->spine_count && !there; k++)
			there = !strcmp(b->spine[k].entry->path, b->places[i].path);
		b->script->silent.lost_chapters += !there;
	}
}

/* Reads all that is left in one pass over the book: its documents, contents, and cover. */
static int read_documents(struct book *b, struct err *err)
{
	size_t count = b->spine_count, nav = count, ncx = count + 1, cover = count + 2;
	struct zip_member *members = xcalloc(count + 3, sizeof(*members));
	int chapter = -1;

	for (size_t i = 0; i < count; i++)
		members[i] = member_of(b->spine[i].part == PART_SPOKEN ? b->spine[i].entry : NULL,
				       MEMBER_MOST);
	members[nav] = member_of(b->nav, MEMBER_MOST);
	members[ncx] = member_of(b->ncx, MEMBER_MOST);
	members[cover] = member_of(b->cover, COVER_MOST);
	int result = read_members(b, members, count + 3, err);
	if (result == 0) {
		read_contents(b, &members[nav], read_nav);
		read_contents(b, &members[ncx], read_ncx);
		keep_cover(&b->script->book, &members[cover]);
	}
	count_lost_chapters(b);
	for (size_t i = 0; result == 0 && i < count; i++) {
		b->script->silent.navigation += b->spine[i].part == PART_CONTENTS;
		b->script->silent.extra_pages += b->spine[i].part == PART_EXTRA;
		if (b->spine[i].part == PART_SPOKEN)
			read_document(b, &b->spine[i], &members[i], &chapter);
		str_free(&members[i].bytes);
	}
	zip_members_free(members, count + 3);
	free(members);
	return result;
}

void input_read_epub(struct script *s, const char *source, const char *bytes, size_t len)
{
	CLEANUP(book_free)
	struct book b = {.script = s, .source = source, .bytes = bytes, .len = len};
	struct err err = {0};

	if (xml_library_load(&b.xml, &err) < 0 || open_container(&b, &err) < 0 ||
	    read_package(&b, &err) < 0 || read_documents(&b, &err) < 0)
		script_complain(s, source, 0, "%s", err.msg);
}
