/* readalong.c - writes an EPUB 3 with media overlays: a book whose text is marked while it is heard
 * (https://www.w3.org/TR/epub-33/) */
#include "readalong.h"

#include <ctype.h>
#include <stdlib.h>
#include <time.h>

#include "base/crypto.h"
#include "base/mem.h"
#include "zip_out.h"

#define ACTIVE_CLASS "-epub-media-overlay-active"

static const char container[] =
	"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
	"<container xmlns=\"urn:oasis:names:tc:opendocument:xmlns:container\" version=\"1.0\">\n"
	"<rootfiles><rootfile full-path=\"EPUB/package.opf\" "
	"media-type=\"application/oebps-package+xml\"/></rootfiles>\n"
	"</container>\n";

static const char style[] = "body { margin: 5%; line-height: 1.5; }\n"
			    "." ACTIVE_CLASS " { background-color: #ffe9a8; color: #000; }\n";

/* ---- text ---- */

/* Appends a text for XML, without the characters that it cannot have. */
static void add_escaped(struct str *to, const char *text)
{
	for (const char *at = text; *at;) {
		const char *from = at;
		uint32_t c = utf8_next(&at);
		if (c == '&')
			str_add(to, "&amp;");
		else if (c == '<')
			str_add(to, "&lt;");
		else if (c == '>')
			str_add(to, "&gt;");
		else if (c == '"')
			str_add(to, "&quot;");
		else if (c >= 0x20 && c != 0xfffe && c != 0xffff)
			str_addn(to, from, (size_t)(at - from));
		else
			str_addc(to, ' ');
	}
}

/* Appends an element, if it has a text. start: its start tag without "<" and ">". */
static void add_element(struct str *to, const char *start, const char *text)
{
	if (!text || !*text || !utf8_valid(text, strlen(text)))
		return;
	str_addf(to, "<%s>", start);
	add_escaped(to, text);
	str_addf(to, "</%.*s>\n", (int)strcspn(start, " "), start);
}

/* Copies a language's code as BCP 47 writes it; "": it is none. */
static void copy_language(char *to, size_t room, const char *language)
{
	size_t letters = strspn(language, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
	       at = 0;

	*to = '\0';
	if (letters < 2 || letters > 3 || !strchr("-_", language[letters]) ||
	    strlen(language) >= room)
		return;
	for (size_t part = 0; language[at]; at++) {
		bool dash = language[at] == '-' || language[at] == '_';
		part = dash ? 0 : part + 1;
		if ((!dash && !isalnum((unsigned char)language[at])) || part > 8 ||
		    (dash && (!language[at + 1] || strchr("-_", language[at + 1])))) {
			*to = '\0';
			return;
		}
		to[at] = (char)(dash ? '-' : language[at]);
		to[at + 1] = '\0';
	}
}

/* The language of the book: its own, else that of its first piece, as far as that is known. */
static void find_language(const struct readalong *r, char *to, size_t room)
{
	const char *own = r->book ? r->book->language : NULL, *spoken = r->pieces[0].language;

	copy_language(to, room, own ? own : "");
	if (*to)
		return;
	CLEANUP(free_text)
	char *first = xstrndup(spoken ? spoken : "", spoken ? strcspn(spoken, "-_+") : 0);
	copy_language(to, room, first);
	if (!*to)
		snprintf(to, room, "und");
}

/* Whether a blank belongs between two pieces of one paragraph: Chinese and Japanese have none. */
static bool has_blank(const char *before, const char *after)
{
	const char *last = before + strlen(before);

	while (last > before && ((unsigned char)*--last & 0xc0) == 0x80)
		;
	uint32_t a = *last ? utf8_next(&last) : ' ', b = *after ? utf8_next(&after) : ' ';
	return !((a >= 0x3000 && a <= 0x9fff) || (a >= 0xff00 && a <= 0xff60)) ||
	       !((b >= 0x3000 && b <= 0x9fff) || (b >= 0xff00 && b <= 0xff60));
}

/* ---- chapters ---- */

static int64_t ms_of(const struct readalong *r, int64_t frames)
{
	return (frames * 1000 + r->rate / 2) / r->rate;
}

static void add_seconds(struct str *to, int64_t ms)
{
	str_addf(to, "%lld.%03llds", (long long)(ms / 1000), (long long)(ms % 1000));
}

static int64_t chapter_ms(const struct readalong *r, const struct readalong_chapter *c)
{
	return ms_of(r, c->end - c->begin);
}

static void begin_page(struct str *to, const char *language, const char *title)
{
	str_addf(to,
		 "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE html>\n"
		 "<html xmlns=\"http://www.w3.org/1999/xhtml\" "
		 "xmlns:epub=\"http://www.idpf.org/2007/ops\" lang=\"%s\" xml:lang=\"%s\">\n<head>",
		 language, language);
	add_element(to, "title", title);
	str_add(to, "<link rel=\"stylesheet\" type=\"text/css\" href=\"style.css\"/>\n</head>\n");
}

/* The element that a piece begins; NULL: it continues one. */
static const char *element_of(const struct join_piece *piece, bool first)
{
	if (!first && piece->border <= BORDER_SENTENCE)
		return NULL;
	return !piece->heading ? "p" : first ? "h1" : "h2";
}

static void add_page(struct str *to, const struct readalong *r, const struct readalong_chapter *c,
		     const char *language)
{
	const char *open = NULL;

	begin_page(to, language, c->title);
	str_add(to, "<body epub:type=\"bodymatter\">\n<section id=\"chapter\" "
		    "epub:type=\"chapter\">\n");
	if (c->named && !r->pieces[c->from].heading) /* a title that is not spoken */
		add_element(to, "h1", c->title);
	for (size_t i = c->from; i < c->from + c->count; i++) {
		const struct join_piece *piece = &r->pieces[i];
		const char *element = element_of(piece, i == c->from);
		if (element && open)
			str_addf(to, "</%s>\n", open);
		if (element && open && piece->border == BORDER_SCENE)
			str_add(to, "<hr/>\n");
		if (element)
			str_addf(to, "<%s>", element);
		else if (has_blank(r->pieces[i - 1].text, piece->text))
			str_addc(to, ' ');
		open = element ? element : open;
		str_addf(to, "<span id=\"s%zu\">", i + 1);
		add_escaped(to, piece->text);
		str_add(to, "</span>");
	}
	str_addf(to, "</%s>\n</section>\n</body>\n</html>\n", open);
}

/* A clip lasts until the next one begins, so that the pauses are heard. */
static void add_overlay(struct str *to, const struct readalong *r,
			const struct readalong_chapter *c, size_t number)
{
	str_addf(to,
		 "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
		 "<smil xmlns=\"http://www.w3.org/ns/SMIL\" "
		 "xmlns:epub=\"http://www.idpf.org/2007/ops\" version=\"3.0\">\n<body>\n"
		 "<seq id=\"chapter\" epub:textref=\"chapter-%zu.xhtml#chapter\" "
		 "epub:type=\"chapter\">\n",
		 number);
	for (size_t i = c->from; i < c->from + c->count; i++) {
		bool last = i + 1 == c->from + c->count;
		int64_t begin = i == c->from ? 0 : ms_of(r, r->cues[i].begin - c->begin),
			end = last ? chapter_ms(r, c) : ms_of(r, r->cues[i + 1].begin - c->begin);
		str_addf(to,
			 "<par id=\"p%zu\"><text src=\"chapter-%zu.xhtml#s%zu\"/>"
			 "<audio src=\"audio/chapter-%zu.m4a\" clipBegin=\"",
			 i + 1, number, i + 1, number);
		add_seconds(to, begin);
		str_add(to, "\" clipEnd=\"");
		add_seconds(to, end);
		str_add(to, "\"/></par>\n");
	}
	str_add(to, "</seq>\n</body>\n</smil>\n");
}

/* ---- the package ---- */

static const char *title_of(const struct readalong *r)
{
	const char *own = r->book ? r->book->title : NULL;

	return own && *own ? own : r->name;
}

static const char *cover_type(const struct readalong *r)
{
	return !r->book || !r->book->cover.len ? NULL
	       : r->book->cover.s[0] == '\x89' ? "png"
					       : "jpeg";
}

/* The same book keeps its identifier when it is made again. */
static void add_identifier(struct str *to, const struct readalong *r, const char *language)
{
	const char *author = r->book && r->book->author ? r->book->author : "";
	CLEANUP(free_text) char *all = xasprintf("%s\n%s\n%s", title_of(r), author, language);
	char hex[SHA256_HEX];

	sha256_hex(all, strlen(all), hex);
	str_addf(to,
		 "<dc:identifier id=\"id\">urn:uuid:%.8s-%.4s-8%.3s-a%.3s-%.12s</dc:identifier>\n",
		 hex, hex + 8, hex + 12, hex + 15, hex + 18);
}

static void add_metadata(struct str *to, const struct readalong *r, const char *language)
{
	static const struct script_book nothing = {0};
	const struct script_book *book = r->book ? r->book : &nothing;
	const char *year = book->year ? book->year : "";
	time_t now = (time_t)r->now_s;
	char modified[32];
	struct tm tm;
	int64_t all_ms = 0;

	strftime(modified, sizeof(modified), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	str_add(to, "<metadata xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n");
	add_identifier(to, r, language);
	add_element(to, "dc:title", title_of(r));
	add_element(to, "dc:language", language);
	add_element(to, "dc:creator id=\"author\"", book->author);
	add_element(to, "dc:publisher", book->publisher);
	if (strlen(year) == 4 && strspn(year, "0123456789") == 4)
		add_element(to, "dc:date", year);
	add_element(to, "meta property=\"dcterms:modified\"", modified);
	add_element(to, "meta property=\"media:narrator\"", book->narrator);
	add_element(to, "meta property=\"media:active-class\"", ACTIVE_CLASS);
	for (size_t i = 0; i < r->count; i++) {
		int64_t ms = chapter_ms(r, &r->chapters[i]);
		str_addf(to, "<meta property=\"media:duration\" refines=\"#overlay-%zu\">", i + 1);
		add_seconds(to, ms);
		str_add(to, "</meta>\n");
		all_ms += ms;
	}
	str_add(to, "<meta property=\"media:duration\">");
	add_seconds(to, all_ms);
	str_add(to, "</meta>\n"
		    "<meta property=\"schema:accessMode\">textual</meta>\n"
		    "<meta property=\"schema:accessMode\">auditory</meta>\n"
		    "<meta property=\"schema:accessModeSufficient\">textual</meta>\n"
		    "<meta property=\"schema:accessibilityFeature\">synchronizedAudioText</meta>\n"
		    "<meta property=\"schema:accessibilityHazard\">none</meta>\n"
		    "</metadata>\n");
}

static void add_package(struct str *to, const struct readalong *r, const char *language)
{
	const char *cover = cover_type(r);

	str_addf(to,
		 "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
		 "<package xmlns=\"http://www.idpf.org/2007/opf\" version=\"3.0\" "
		 "unique-identifier=\"id\" xml:lang=\"%s\">\n",
		 language);
	add_metadata(to, r, language);
	str_add(to, "<manifest>\n<item id=\"nav\" href=\"nav.xhtml\" "
		    "media-type=\"application/xhtml+xml\" properties=\"nav\"/>\n"
		    "<item id=\"style\" href=\"style.css\" media-type=\"text/css\"/>\n");
	if (cover)
		str_addf(to,
			 "<item id=\"cover\" href=\"cover.%s\" media-type=\"image/%s\" "
			 "properties=\"cover-image\"/>\n",
			 cover, cover);
	for (size_t n = 1; n <= r->count; n++)
		str_addf(to,
			 "<item id=\"chapter-%zu\" href=\"chapter-%zu.xhtml\" "
			 "media-type=\"application/xhtml+xml\" media-overlay=\"overlay-%zu\"/>\n"
			 "<item id=\"overlay-%zu\" href=\"chapter-%zu.smil\" "
			 "media-type=\"application/smil+xml\"/>\n"
			 "<item id=\"audio-%zu\" href=\"audio/chapter-%zu.m4a\" "
			 "media-type=\"audio/mp4\"/>\n",
			 n, n, n, n, n, n, n);
	str_add(to, "</manifest>\n<spine>\n");
	for (size_t n = 1; n <= r->count; n++)
		str_addf(to, "<itemref idref=\"chapter-%zu\"/>\n", n);
	str_add(to, "</spine>\n</package>\n");
}

static void add_contents(struct str *to, const struct readalong *r, const char *language)
{
	begin_page(to, language, title_of(r));
	str_add(to, "<body>\n<nav epub:type=\"toc\">\n");
	add_element(to, "h1", title_of(r));
	str_add(to, "<ol>\n");
	for (size_t i = 0; i < r->count; i++) {
		str_addf(to, "<li><a href=\"chapter-%zu.xhtml\">", i + 1);
		add_escaped(to, r->chapters[i].title);
		str_add(to, "</a></li>\n");
	}
	str_add(to, "</ol>\n</nav>\n</body>\n</html>\n");
}

/* ---- the file ---- */

static int add_text(struct zip_out *z, const char *name, struct str *text, struct err *err)
{
	int result = zip_out_add(z, name, str_text(text), text->len, err);

	str_free(text);
	return result;
}

static int add_chapter(struct zip_out *z, const struct readalong *r, size_t i, const char *language,
		       struct err *err)
{
	const struct readalong_chapter *c = &r->chapters[i];
	CLEANUP(free_text) char *page = xasprintf("EPUB/chapter-%zu.xhtml", i + 1);
	CLEANUP(free_text) char *overlay = xasprintf("EPUB/chapter-%zu.smil", i + 1);
	CLEANUP(free_text) char *audio = xasprintf("EPUB/audio/chapter-%zu.m4a", i + 1);
	CLEANUP(str_free) struct str text = STR_INIT;

	add_page(&text, r, c, language);
	if (add_text(z, page, &text, err) < 0)
		return -1;
	add_overlay(&text, r, c, i + 1);
	if (add_text(z, overlay, &text, err) < 0)
		return -1;
	return zip_out_add_file(z, audio, r->dir, c->audio, err);
}

int readalong_write(const struct readalong *r, const char *to, struct err *err)
{
	static const char type[] = "application/epub+zip";
	const char *cover = cover_type(r);
	CLEANUP(zip_out_free) struct zip_out z = {.fd = -1};
	CLEANUP(str_free) struct str text = STR_INIT;
	char language[32];

	find_language(r, language, sizeof(language));
	if (zip_out_begin(&z, r->dir, to, err) < 0 ||
	    zip_out_add(&z, "mimetype", type, strlen(type), err) < 0 ||
	    zip_out_add(&z, "META-INF/container.xml", container, strlen(container), err) < 0)
		return -1;
	add_package(&text, r, language);
	if (add_text(&z, "EPUB/package.opf", &text, err) < 0)
		return -1;
	add_contents(&text, r, language);
	if (add_text(&z, "EPUB/nav.xhtml", &text, err) < 0 ||
	    zip_out_add(&z, "EPUB/style.css", style, strlen(style), err) < 0)
		return -1;
	if (cover) {
		CLEANUP(free_text) char *name = xasprintf("EPUB/cover.%s", cover);
		if (zip_out_add(&z, name, r->book->cover.s, r->book->cover.len, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < r->count; i++)
		if (add_chapter(&z, r, i, language, err) < 0)
			return -1;
	return zip_out_end(&z, err);
}
