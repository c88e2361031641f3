/* test_tts_epub.c - EPUB books and HTML pages become scripts; what they must not do is refused. */
#include "tts_helpers.h"
#include "zip_make.h"

#include "jobs/text/script.h"

static const struct split_limits limits = {280, 0};

/* What was read, in short: text, with #chapter where there is one and ! behind a heading, separated
 * by bars; then what is not spoken. */
static char *shown(struct script *s)
{
	struct str to = STR_INIT;
	CLEANUP(str_free) struct str silent = STR_INIT;
	struct err err = {0};

	if (!s->complaints && script_end(s, "f", &limits, &err) < 0)
		str_add(&to, err.msg);
	str_add(&to, s->complaint);
	for (size_t i = 0; !s->complaints && i < s->count; i++) {
		const struct script_item *item = &s->items[i];
		str_addf(&to, "%s%s%s", i ? "|" : "", item->text, item->heading ? "!" : "");
		if (item->chapter >= 0)
			str_addf(&to, "#%s", s->chapters[item->chapter]);
	}
	script_tell_silent(s, &silent);
	if (silent.len && !s->complaints)
		str_addf(&to, " [%s]", str_text(&silent));
	return to.len ? str_detach(&to) : xstrdup("");
}

static const struct {
	const char *what, *html, *want;
} pages[] = {
	{"headings are chapters",
	 "<html><head><title>T</title></head><body><h1>One <i>and</i> more</h1><p>The first "
	 "text.<h2>Two</h2>Text without a paragraph</body>",
	 "One and more!#One and more|The first text.#One and more|Two!#Two|Text without a "
	 "paragraph#Two"},
	{"entities, breaks and white space",
	 "<p>Tom &amp; Jerry&#39;s <b>big</b>&nbsp;day<br>and a caf&eacute;\n\n at &#x6e;ight",
	 "Tom & Jerry's big day and a café at night"},
	{"what is not spoken",
	 "<p>Text.</p><pre>int x;</pre><script>var x='</p>'</script><style>p{}</style><img src=x>"
	 "<svg><text>no</text></svg><nav><a>home</a></nav><math><mi>x</mi></math><p hidden>no</p>"
	 "<!-- no --><template>no</template><p>End.</p>",
	 "Text.|End. [1 code block, 2 images, 1 formula, 1 list of links]"},
	{"an inline element within a word", "<p>in<b>side</b> a w<wbr>ord", "inside a word"},
	{"lists and tables",
	 "<ul><li>one thing</li><li>another</ul><table><tr><th>Name<th>Price <tr><td><p>An "
	 "apple</p></td><td>three</td></tr></table>",
	 "one thing|another|Name, Price|An apple, three"},
	{"numbers of footnotes",
	 "<p>One<a href='#n1' epub:type='noteref'>1</a> two<sup><a href='#n2'>2</a></sup> "
	 "three<a href='#n3'><sup>*</sup></a> four <a href='#n4'>[4]</a> five<a class='fnanchor' "
	 "href='x'>5</a> <a href='#c1'>chapter 1</a>, <a href='http://x/1'>6</a> and "
	 "x<sup>2</sup>.",
	 "One two three four five chapter 1, 6 and x2."},
	{"footnotes and numbers of pages",
	 "<p>Text <span epub:type='pagebreak' title='3'/>goes on<span class='pagenum'>[Pg "
	 "4]</span>.</p><aside epub:type='footnote'>no</aside><section role='doc-endnotes'>"
	 "<ol><li>no<li>no</ol></section><div class='footnote'><p>no</p></div>",
	 "Text goes on. [4 footnotes, 2 page numbers]"},
	{"Latin-1 that says so",
	 "<meta http-equiv=Content-Type content='text/html; charset=iso-8859-1'><p>caf\xe9",
	 "café"},
	{"what is hidden by its style", "<p style='color:red; display : none'>no</p><p>Yes.</p>",
	 "Yes."},
	{"a footnote that only its number names",
	 "<p>He saw<sup><a id='r1' href='#n1'>1</a></sup> it<sup><a "
	 "href='x.html#n2'>2</a></sup>.</p>"
	 "<p id='n1'><a href='#r1'>1</a> No.</p><p><a id='n2'></a>2 No.</p><p id='n3'>Yes.</p>",
	 "He saw it.|Yes. [2 footnotes]"},
	{"a comparison is text", "<p>a < b and c <3", "a < b and c <3"},
	{"nothing that is spoken", "<p><img src=x></p>",
	 "f: there is nothing to speak in it [1 image]"},
};

static void test_pages(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		CLEANUP(script_free) struct script s = {0};
		input_read_html(&s, script_add_source(&s, "f"), pages[i].html,
				strlen(pages[i].html));
		CLEANUP(free_text) char *got = shown(&s);
		if (strcmp(got, pages[i].want) != 0)
			fail_msg("%s: %s\n    wanted %s", pages[i].what, got, pages[i].want);
	}
}

/* The numbers of ordered lists, which job.list_numbers speaks. */
static const struct {
	const char *what, *html, *want;
} lists[] = {
	{"plain", "<ol><li>one<li><p>two</p><p>more</p></ol><ul><li>dot</ul>",
	 "1. one|2. two|more|dot"},
	{"a start and a value", "<ol start=5><li>a<li value=9>b<li>c</ol>", "5. a|9. b|10. c"},
	{"no numbers", "<ol start=x><li value='1e3'>a<li value=99999999999>b</ol>", "1. a|2. b"},
	{"backwards", "<ol reversed><li>a<li>b<ul><li>c</ul><li>d</ol>", "3. a|2. b|c|1. d"},
	{"backwards from a start, and again",
	 "<ol reversed start=7><li>a</ol><ol reversed><li>b</ol>", "7. a|1. b"},
	{"backwards where nothing is spoken",
	 "<nav><ol reversed><li>a</ol></nav><ol "
	 "reversed><li>b<li>c</ol>",
	 "2. b|1. c [1 list of links]"},
	{"letters", "<ol type=a start=26><li>x<li>y</ol><ol type=A><li>z<li value=0>w</ol>",
	 "Z. x|AA. y|A. z|0. w"},
	{"Roman", "<ol type=i start=4><li>x</ol><ol type=I><li>y</ol>", "4. x|1. y"},
	{"within each other", "<ol><li>a<ol type=A><li>b</ol><li>c<li><ol><li>d</ol></ol>",
	 "1. a|A. b|2. c|1. d"},
	{"no text in an item", "<ol><li><img src=x><li>b</ol><p>c</p>", "2. b|c [1 image]"},
	{"no list at all", "<li>a", "a"},
};

static void test_lists(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		CLEANUP(script_free) struct script s = {.list_numbers = true};
		input_read_html(&s, script_add_source(&s, "f"), lists[i].html,
				strlen(lists[i].html));
		CLEANUP(free_text) char *got = shown(&s);
		if (strcmp(got, lists[i].want) != 0)
			fail_msg("%s: %s\n    wanted %s", lists[i].what, got, lists[i].want);
	}
}

static void test_nested_without_end(void **state)
{
	CLEANUP(script_free) struct script s = {0};
	CLEANUP(str_free) struct str page = STR_INIT;

	(void)state;
	for (int i = 0; i < 200000; i++)
		str_add(&page, "<div>");
	input_read_html(&s, script_add_source(&s, "f"), str_text(&page), page.len);
	assert_non_null(strstr(s.complaint, "more than 1000 elements are nested"));
}

/* ---- books ---- */

#define CONTAINER                                                                                  \
	"<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container'><rootfiles><rootfile " \
	"full-path='O/b.opf'/></rootfiles></container>"
#define PACKAGE(manifest, spine)                                                                   \
	"<package xmlns='http://www.idpf.org/2007/opf'><metadata "                                 \
	"xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>A &amp; B</dc:title><dc:creator>"   \
	"Ann</dc:creator><dc:creator>Ben</dc:creator><dc:creator role='ill'>Cid</dc:creator>"      \
	"<dc:language>de</dc:language><dc:date event='conversion'>2020-01-01</dc:date><dc:date "   \
	"event='publication'>1897-05-26</dc:date><dc:publisher>P</dc:publisher><meta "             \
	"name='cover' "                                                                            \
	"content='cov'/></metadata><manifest><item id='cov' href='c.png' media-type='image/png'/>" \
	"<item id='nav' href='nav.html' properties='nav' media-type='application/xhtml+xml'/>"     \
	"<item id='ncx' href='toc.ncx' media-type='application/x-dtbncx+xml'/>"                    \
	"<item id='a' href='t/a%20b.html' media-type='application/xhtml+xml'/>"                    \
	"<item id='b' href='t/../b.html' media-type='application/xhtml+xml'/>" manifest            \
	"</manifest>" spine "</package>"
#define SPINE "<spine><itemref idref='nav'/><itemref idref='b'/><itemref idref='a'/></spine>"
#define NAV                                                                                        \
	"<html xmlns:epub='http://www.idpf.org/2007/ops'><nav epub:type='toc'><ol><li><a "         \
	"href='b.html'>B&nbsp;</a><ol><li><a href='./b.html#x'>X</a></li></ol></li><li><a "        \
	"href='t/a%20b.html'>A</a></li></ol></nav></html>"
#define CONTENTS(href, title, href2, title2)                                                       \
	"<html xmlns:epub='x'><nav epub:type='toc'><a href='" href "'>" title                      \
	"</a><a href='" href2 "'>" title2 "</a></nav></html>"
#define NCX                                                                                        \
	"<!DOCTYPE ncx PUBLIC '-//NISO//DTD ncx 2005-1//EN' 'http://127.0.0.1:9/ncx.dtd'><ncx>"    \
	"<navMap><navPoint><navLabel><text>NB</text></navLabel><content src='b.html'/><navPoint>"  \
	"<navLabel><text>NX</text></navLabel><content src='b.html#x'/></navPoint></navPoint>"      \
	"</navMap></ncx>"
#define DOC_A "<html><body><h1>Title</h1><p>Text a.</p></body></html>"
#define DOC_B "<html><body><p>Text b.</p><p><a id='x'/>Text x.</p></body></html>"
#define FONTS                                                                                      \
	"<encryption><EncryptedData><EncryptionMethod "                                            \
	"Algorithm='http://www.idpf.org/2008/embedding'/></EncryptedData></encryption>"
#define DRM                                                                                        \
	"<encryption><enc:EncryptedData xmlns:enc='x'><enc:EncryptionMethod "                      \
	"Algorithm='http://www.w3.org/2001/04/xmlenc#aes128-cbc'/></enc:EncryptedData></"          \
	"encryption>"
#define BOMB                                                                                       \
	"<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"        \
	"<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'><!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;&c;'>"    \
	"<!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;'><!ENTITY f SYSTEM 'file:///etc/hostname'>]>"

#define GOOD "Text b.#B|Text x.#X|Title!#A|Text a.#A [1 list of links]"

static const struct {
	const char *what, *container, *package, *nav, *ncx, *a, *encryption, *want;
} books[] = {
	{"EPUB 3", CONTAINER, PACKAGE("", SPINE), NAV, NULL, DOC_A, NULL, GOOD},
	{"EPUB 2", CONTAINER, PACKAGE("", SPINE), NULL, NCX, DOC_A, NULL,
	 "Text b.#NB|Text x.#NX|Title!#NX|Text a.#NX [1 list of links]"},
	{"a title that is no heading of HTML", CONTAINER, PACKAGE("", SPINE), NAV, NULL,
	 "<p>a</p><p>Text a.</p><p>a</p>", NULL,
	 "Text b.#B|Text x.#X|a!#A|Text a.#A|a#A [1 list of links]"},
	{"without a table of contents headings are chapters", CONTAINER, PACKAGE("", SPINE), NULL,
	 NULL, DOC_A, NULL, "Text b.|Text x.|Title!#Title|Text a.#Title [1 list of links]"},
	{"fonts may be obfuscated", CONTAINER, PACKAGE("", SPINE), NAV, NULL, DOC_A, FONTS, GOOD},
	{"DRM", CONTAINER, PACKAGE("", SPINE), NAV, NULL, DOC_A, DRM,
	 "f: this book is encrypted (DRM) and cannot be read: get it without copy protection"},
	{"a document is missing", CONTAINER, PACKAGE("", SPINE), NAV, NULL, NULL, NULL,
	 "f/O/t/a b.html: this document is missing in the book"},
	{"no container", NULL, NULL, NULL, NULL, NULL, NULL,
	 "f: it has no META-INF/container.xml, so it is no EPUB book"},
	{"no package", CONTAINER, NULL, NULL, NULL, NULL, NULL, "f: O/b.opf is missing in it"},
	{"a path out of the book", "<rootfile full-path='../../etc/passwd'/>", NULL, NULL, NULL,
	 NULL, NULL, "f: etc/passwd is missing in it"},
	{"a path of the machine", "<rootfile full-path='/etc/passwd'/>", NULL, NULL, NULL, NULL,
	 NULL, "f: META-INF/container.xml names no package document"},
	{"no XML", "this is none", NULL, NULL, NULL, NULL, NULL,
	 "f: META-INF/container.xml cannot be read: it is not XML"},
	{"nothing in its spine", CONTAINER, PACKAGE("", "<spine/>"), NULL, NULL, NULL, NULL,
	 "f: its spine names no document"},
	{"entities of its own are passed over", CONTAINER, PACKAGE("", SPINE),
	 "<!DOCTYPE x [<!ENTITY a 'aaa'><!ENTITY f SYSTEM 'file:///etc/hostname'>]>"
	 "<html xmlns:epub='x'><nav epub:type='toc'><a href='b.html'>B&a;&f;</a><a "
	 "href='b.html#x'>X</a><a href='t/a%20b.html'>A</a></nav></html>",
	 NULL, DOC_A, NULL, GOOD},
	{"entities that grow end the table of contents", CONTAINER, PACKAGE("", SPINE),
	 BOMB "<html xmlns:epub='x'><nav epub:type='toc'><a href='b.html'>B&e;</a></nav></html>",
	 NULL, DOC_A, NULL, "Text b.#B|Text x.#B|Title!#B|Text a.#B [1 list of links]"},
	{"not linear", CONTAINER,
	 PACKAGE("", "<spine><itemref idref='b'/><itemref idref='a' linear='no'/></spine>"), NAV,
	 NULL, DOC_A, NULL, "Text b.#B|Text x.#X [1 page outside the reading order]"},
	{"a document that is there twice is spoken twice", CONTAINER,
	 PACKAGE("", "<spine><itemref idref='a'/><itemref idref='a'/></spine>"), NULL, NULL,
	 "<p>Text a.", NULL, "Text a.|Text a."},
	{"a chapter whose id is not there begins with its document", CONTAINER, PACKAGE("", SPINE),
	 CONTENTS("b.html#gone", "Gone", "t/a%20b.html#x", "A"), NULL, DOC_A, NULL,
	 "Text b.#Gone|Text x.#Gone|Title!#A|Text a.#A [1 list of links]"},
	{"unless another one begins there", CONTAINER, PACKAGE("", SPINE),
	 CONTENTS("b.html#gone", "Gone", "b.html", "B"), NULL, DOC_A, NULL,
	 "Text b.#B|Text x.#B|Title!#B|Text a.#B [1 list of links, 1 chapter of the contents that "
	 "leads nowhere]"},
	{"chapters whose documents are not in the reading order", CONTAINER, PACKAGE("", SPINE),
	 CONTENTS("b.html", "B", "c.html#x", "C"), NULL, DOC_A, NULL,
	 "Text b.#B|Text x.#B|Title!#B|Text a.#B [1 list of links, 1 chapter of the contents that "
	 "leads nowhere]"},
	{"two chapters at one place", CONTAINER, PACKAGE("", SPINE),
	 CONTENTS("b.html#x", "Part One", "b.html#x", "X"), NULL, DOC_A, NULL,
	 "Text b.|Text x.#Part One: X|Title!#Part One: X|Text a.#Part One: X [1 list of links]"},
	{"one chapter twice", CONTAINER, PACKAGE("", SPINE),
	 CONTENTS("b.html", "B", "./b.html", "B"), NULL, DOC_A, NULL,
	 "Text b.#B|Text x.#B|Title!#B|Text a.#B [1 list of links]"},
	{"percents in fragments, decoded and as they are", CONTAINER, PACKAGE("", SPINE),
	 CONTENTS("t/a%20b.html#%C3%A4%201", "One", "t/a%20b.html#b%201", "Two"), NULL,
	 "<p id='ä 1'>Text one.</p><pre><i id='b%201'>x</i></pre><p>Text two.</p>", NULL,
	 "Text b.|Text x.|Text one.#One|Text two.#Two [1 code block, 1 list of links]"},
	{"the same table of contents for ever", CONTAINER, PACKAGE("", SPINE),
	 "<nav type='toc'><a href='nav.html'>N</a><a href='nav.html'>N</a></nav>", NULL, DOC_A,
	 NULL, "Text b.|Text x.|Title!|Text a. [1 list of links]"},
};

static void add_part(struct zip_part *parts, size_t *count, const char *name, const char *text)
{
	if (text)
		parts[(*count)++] = (struct zip_part){name, text, strlen(text)};
}

static void make_book(struct str *to, size_t i, uint32_t flags)
{
	struct zip_part parts[8];
	size_t n = 0;

	add_part(parts, &n, "META-INF/container.xml", books[i].container);
	add_part(parts, &n, "META-INF/encryption.xml", books[i].encryption);
	add_part(parts, &n, "O/b.opf", books[i].package);
	add_part(parts, &n, "O/nav.html", books[i].nav);
	add_part(parts, &n, "O/toc.ncx", books[i].ncx);
	add_part(parts, &n, "O/t/a b.html", books[i].a);
	add_part(parts, &n, "O/b.html", DOC_B);
	add_part(parts, &n, "O/c.png", "\x89PNG and more");
	zip_make(to, parts, n, flags);
}

static void test_books(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(books); i++) {
		CLEANUP(script_free) struct script s = {0};
		CLEANUP(str_free) struct str zip = STR_INIT;
		make_book(&zip, i, 0);
		input_read_epub(&s, script_add_source(&s, "f"), zip.s, zip.len);
		CLEANUP(free_text) char *got = shown(&s);
		if (strcmp(got, books[i].want) != 0)
			fail_msg("%s: %s\n    wanted %s", books[i].what, got, books[i].want);
	}
}

static void test_metadata(void **state)
{
	CLEANUP(script_free) struct script s = {0};
	CLEANUP(str_free) struct str zip = STR_INIT;

	(void)state;
	make_book(&zip, 0, 0);
	input_read_epub(&s, script_add_source(&s, "f"), zip.s, zip.len);
	assert_string_equal(s.book.title, "A & B");
	assert_string_equal(s.book.author, "Ann, Ben");
	assert_string_equal(s.book.language, "de");
	assert_string_equal(s.book.year, "1897");
	assert_string_equal(s.book.publisher, "P");
	assert_string_equal(str_text(&s.book.cover), "\x89PNG and more");
}

static void test_damaged_books(void **state)
{
	CLEANUP(str_free) struct str zip = STR_INIT;
	CLEANUP(str_free) struct str locked = STR_INIT;

	(void)state;
	make_book(&zip, 0, 0);
	for (size_t len = 0; len < zip.len; len += 7) {
		CLEANUP(script_free) struct script s = {0};
		input_read_epub(&s, script_add_source(&s, "f"), zip.s, len);
		assert_true(s.complaints > 0);
	}
	CLEANUP(script_free) struct script s = {0};
	make_book(&locked, 0, 1);
	input_read_epub(&s, script_add_source(&s, "f"), locked.s, locked.len);
	assert_string_equal(s.complaint, "f: META-INF/container.xml is encrypted with a password");
}

static void test_too_large(void **state)
{
	CLEANUP(script_free) struct script s = {0};
	CLEANUP(str_free) struct str zip = STR_INIT;
	size_t len = (size_t)17 << 20;
	char *blank = xcalloc(1, len);
	struct zip_part parts[] = {{"META-INF/container.xml", blank, len}};

	(void)state;
	zip_make(&zip, parts, 1, 0);
	input_read_epub(&s, script_add_source(&s, "f"), zip.s, zip.len);
	assert_string_equal(s.complaint,
			    "f: META-INF/container.xml is unpacked larger than 16 MiB");
	free(blank);
}

/* ---- HTML in other texts ---- */

static void test_marked_texts(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"Tom &amp; Jerry&#39;s <b>big</b>&nbsp;day<br>Next line",
		 "Tom & Jerry's big day Next line [3 HTML tags, 3 HTML entities (their characters "
		 "are)]"},
		{"<i>One</i>two &auml;<a href=\"x\">three</a>",
		 "Onetwo äthree [4 HTML tags, 1 HTML entity (its character is)]"},
		{"If a < b and c > d, AT&T or &foo; stays, <name> too. <3",
		 "If a < b and c > d, AT&T or &foo; stays, <name> too. <3"},
		{"a <b and c> d", "a <b and c> d"},
		{"Wait <break time=\"1s\"/> <b>here</b>.",
		 "Wait <break time=\"1s\"/> here. [2 HTML tags]"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(script_free) struct script s = {0};
		struct script_item item = {
			.source = script_add_source(&s, "f"), .line = 1, .chapter = -1};
		script_add_marked(&s, &item, cases[i].text, strlen(cases[i].text));
		CLEANUP(free_text) char *got = shown(&s);
		assert_string_equal(got, cases[i].want);
	}
}

/* ---- subtitles ---- */

static void test_subtitles(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"1\r\n00:00:01,000 --> 00:00:03,500\r\n<i>Hello</i>\r\nthere.\r\n\r\n2\n"
		 "00:01:04,000 --> 01:00:05,000\n{\\an8}Bye &amp; go\n",
		 "1-3.5 Hello there.|64-3605 Bye & go"},
		{"WEBVTT title\n\nNOTE this is\nno text\n\nSTYLE\n::cue {}\n\nid\n00:01.5 --> "
		 "00:02 "
		 "align:start\n<v Roger>One</v> a < b\n\n00:03.000 --> 00:04.000\n♪\n",
		 "1.5-2 One a < b"},
		{"1\n00:00:02,000 --> 00:00:01,000\nx\n", "f:2: this cue ends before it begins"},
		{"1\n0:0 -> 1\nx\n\n2\n00:00:02,000 --> soon\nx\n",
		 "f:6: these are no times: write them like 00:00:01,000 --> 00:00:02,500"},
		{"hello\n", "f: there are no subtitles in it"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(script_free) struct script s = {0};
		CLEANUP(str_free) struct str got = STR_INIT;
		input_read_subtitles(&s, script_add_source(&s, "f"), cases[i].text,
				     strlen(cases[i].text));
		str_add(&got, s.complaint);
		for (size_t k = 0; !s.complaints && k < s.count; k++)
			str_addf(&got, "%s%g-%g %s", k ? "|" : "", s.items[k].begin_s,
				 s.items[k].end_s, s.items[k].text);
		assert_string_equal(str_text(&got), cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_nested_without_end),
		cmocka_unit_test(test_books),
		cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_damaged_books),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_subtitles),
		cmocka_unit_test(test_marked_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
