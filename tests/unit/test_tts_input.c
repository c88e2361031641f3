/* test_tts_input.c - scripts become segments, and mistakes in them are named. */
#include "tts_helpers.h"

#include "jobs/text/script.h"

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
	{"a short paragraph stays apart", "a.txt", "Yes.\n\nThis is a paragraph\nof two lines.\n",
	 "001:Yes.|002:This is a paragraph of two lines."},
	{"short lines stay apart", "a.txt", "Yes.\nNo.\n", "001:Yes.|002:No."},

	{"JSON lines", "a.jsonl",
	 "{\"id\":\"x\",\"text\":\"One\"}\n{\"id\":\"y\",\"text\":\"Two\",\"voice\":\"en\"}\n",
	 "x:One|y:Two@en"},
	{"lines with a text only, as Piper reads them", "a.jsonl",
	 "{\"text\":\"One\"}\n\n{\"text\":\"Two\"}\n", "001:One|002:Two"},
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

	{"ids in folders", "a.csv", "id,text\nch1/line 1,One\n1/2/3/4/5/6/7/8/x,Two\n",
	 "ch1/line 1:One|1/2/3/4/5/6/7/8/x:Two"},
	{"rows without content", "a.csv", "id,text,voice\n1,One,\n,,\n , ,\n,,\n", "1:One"},
	{"rows without their last fields", "a.csv", "id,text,voice,note\n1,One\n2,Two,de\n",
	 "1:One|2:Two@de"},
	{"rows with empty fields behind the last column", "a.csv", "id,text\n1,One,,\n", "1:One"},
	{"a spreadsheet's line above the header", "a.csv", "sep=;\nid;text\n1;One, two\n",
	 "1:One, two"},
	{"the same with BOM and CRLF", "a.csv", BOM "sep=|\r\nid|text\r\n1|One\r\n", "1:One"},
	{"a column with another usual name", "a.csv", "id,sentence\n1,One\n", "1:One"},
	{"a column that is called text wins", "a.csv", "line,text\n7,One\n", "001:One"},
	{"keys with other usual names", "a.jsonl", "{\"Sentence\":\"One\",\"ID\":\"x\"}\n",
	 "x:One"},
	{"Anki's export with columns", "a.txt",
	 "#separator:tab\n#html:false\n#columns:Text\tBack\n\"One\ttwo\"\teins\nThree\tdrei\n",
	 "001:One two|002:Three"},

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
	 "001:Take with you:|002:Bread. Milk! Salt|003:Then go to the shop at the corner."},
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
	 "001:A quoted line of text and its end.|002:Twice quoted, that one is|003:with a list in "
	 "it"},
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
	 "001:This is spoken.|002:And the text goes on."},
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
	 "001:Café Öl — A © &bogus; in &amp;."},
	{"HTML", "a.md",
	 "<div align=\"center\">\n<h1>A <b>bold</b> title &amp; more</h1>\nText that is "
	 "centred<br>here\n<img src=\"x.png\">\n</div>\n\nA <a\nhref='a>b'>link of two "
	 "lines</a> is spoken.\n\n<style>\np { x: y }\n\n</style>\n\n<pre>\nx\n\ny\n</pre>\n",
	 "001:A bold title & more|002:Text that is centred here|003:A link of two lines is "
	 "spoken."},
	{"comments", "a.md",
	 "Text with<!-- no --> one.\n\n<!-- one\n\nof two paragraphs -->\n    x = code\n\n<!-- end "
	 "-->\nAnd all the other text.\n",
	 "001:Text with one.|002:And all the other text."},
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
	{"SSML's pause in Markdown", "a.md",
	 "Before <break time=\"500ms\"/> it.\n\n<break strength=\"strong\" />\n\nAfter it.\n",
	 "001:Before <break time=\"500ms\"/> it.|002:After it."},
	{"headings are never merged", "a.md", "# A\n\nYes.\n\nNo.\n\n# B\n\nYes.\n",
	 "001:A#0|002:Yes.#0|003:No.#0|004:B#1|005:Yes.#1"},
	{"BOM and CRLF in Markdown", "a.md",
	 BOM "# One\r\n\r\nThis is a paragraph,\r\nin two lines.\r\n",
	 "001:One#0|002:This is a paragraph, in two lines.#0"},
};

/* A letter for each border, then the text. */
static void show_borders(struct str *to, const struct script *s)
{
	static const char letters[BORDERS] = {
		[BORDER_NONE] = '-',      [BORDER_SENTENCE] = '.', [BORDER_LINE] = 'l',
		[BORDER_PARAGRAPH] = 'p', [BORDER_HEADING] = 'h',  [BORDER_SCENE] = 's',
		[BORDER_CHAPTER] = 'c'};

	for (size_t i = 0; i < s->count; i++)
		str_addf(to, "%s%c:%s", i ? "|" : "", letters[s->items[i].border],
			 s->items[i].text);
}

static const struct {
	const char *what, *name, *bytes, *want;
} borders[] = {
	{"lines", "a.txt", "One.\nTwo.\n", "-:One.|l:Two."},
	{"rows", "a.jsonl", "{\"text\":\"One\"}\n{\"text\":\"Two\"}\n", "-:One|l:Two"},
	{"rows of a table", "a.csv", "text\nOne\nTwo\n", "-:One|l:Two"},
	{"paragraphs", "a.txt", "One\nline.\n\nTwo\nlines.\n", "-:One line.|p:Two lines."},
	{"scene breaks", "a.txt", "***\n\nOne.\n\n* * *\n\nTwo.\n---\nThree.\n#\nFour.\n\n\n⁂\n",
	 "-:One.|s:Two.|s:Three.|s:Four."},
	{"scene breaks in Markdown", "a.md",
	 "One.\n\n***\n\nTwo.\n\n• • •\n\nThree.\n\n\\* \\* "
	 "\\*\n\nFour.\n\n#\n\nFive.\n\n—\n\nSix.\n",
	 "-:One.|s:Two.|s:Three.|s:Four.|s:Five.|s:Six."},
	{"an image is no scene break", "a.md", "One.\n\n![x](y)\n\n# ![x](y)\n\nTwo.\n",
	 "-:One.|p:Two."},
	{"lines without words", "a.txt", "\"Today?\"\n\n\"No.\"\n\n...\n\n\"Tomorrow then?\"\n",
	 "-:\"Today?\"|p:\"No.\"|s:\"Tomorrow then?\""},
	{"rows without words", "a.jsonl",
	 "{\"id\":\"1\",\"text\":\"Are you there?\"}\n{\"id\":\"2\",\"text\":\"...\"}\n"
	 "{\"id\":\"3\",\"text\":\"!?\"}\n{\"id\":\"4\",\"text\":\"I "
	 "see.\"}\n{\"id\":\"5\",\"text\":\"***\"}\n"
	 "{\"id\":\"6\",\"text\":\"+\"}\n",
	 "-:Are you there?|p:I see.|s:+"},
	{"wrapped lines", "a.txt",
	 "It was a dark and stormy night and\nthe rain fell in torrents except at\noccasional "
	 "intervals when it was\nchecked by a violent gust.\n",
	 "-:It was a dark and stormy night and the rain fell in torrents except at occasional "
	 "intervals when it was checked by a violent gust."},
	{"wrapped paragraphs without blank lines", "a.txt",
	 "It was a dark and stormy night and\nthe rain fell in torrents. It was\nchecked by a "
	 "violent gust.\nNobody was there to see how it was\nthat the lamp went out.\n",
	 "-:It was a dark and stormy night and the rain fell in torrents. It was checked by a "
	 "violent gust.|l:Nobody was there to see how it was that the lamp went out."},
	{"wrapped and indented", "a.txt",
	 "   It was a dark and stormy night and\nthe rain fell in torrents. It was\n   Nobody was "
	 "there to see how it was\nthat the lamp went out.\n",
	 "-:It was a dark and stormy night and the rain fell in torrents. It was|p:Nobody was "
	 "there to see how it was that the lamp went out."},
	{"a dialogue", "a.txt",
	 "Host: Welcome to the show.\nGuest: Thanks for having me.\n\nHost: Next topic now "
	 "please.\nGuest: Sure thing.\n",
	 "-:Host: Welcome to the show.|l:Guest: Thanks for having me.|p:Host: Next topic now "
	 "please.|l:Guest: Sure thing."},
	{"a sentence on each line", "a.txt",
	 "The first of the sentences is here.\nThe second one is a little longer.\nAnd the "
	 "third.\n",
	 "-:The first of the sentences is here.|l:The second one is a little longer.|l:And the "
	 "third."},
	{"a list without stops", "a.txt",
	 "the first of the questions, which is there\nthe second one, which is longer than it\nthe "
	 "third of them, which ends the list\n",
	 "-:the first of the questions, which is there|l:the second one, which is longer than "
	 "it|l:the third of them, which ends the list"},
	{"words", "a.txt", "apple\nbanana\ncherry\n", "-:apple|l:banana|l:cherry"},
	{"a poem", "a.txt",
	 "The sea is calm to-night,\nThe tide is full, the moon lies fair\nUpon the straits;\n\nOn "
	 "the French coast the light\nGleams and is gone;\n",
	 "-:The sea is calm to-night,|l:The tide is full, the moon lies fair|l:Upon the "
	 "straits;|p:On the French coast the light|l:Gleams and is gone;"},
	{"wrapped Chinese", "a.txt", "那天晚上\n下着大雨。\n\n第二天\n天晴了。\n",
	 "-:那天晚上下着大雨。|p:第二天天晴了。"},
	{"a word cut at its hyphen", "a.txt", "He is a well-\nknown man.\n\nSo they say.\n",
	 "-:He is a well-known man.|p:So they say."},
	{"chapters of plain text", "a.txt",
	 "Before.\n\nCHAPTER I.\nThe Storm\n\nOne.\n\n***\n\nTwo.\n\nKapitel 2\n\nThree.\n\n# The "
	 "end #\nFour.\n\nAfter\n=====\nFive.\n",
	 "-:Before.|c:CHAPTER I. The Storm|h:One.|s:Two.|c:Kapitel 2|h:Three.|c:The "
	 "end|h:Four.|c:After|h:Five."},
	{"a table of contents", "a.txt", "Chapter 1\nChapter 2\nChapter 3\n\nChapter 1\n\nOne.\n",
	 "-:Chapter 1|l:Chapter 2|l:Chapter 3|c:Chapter 1|h:One."},
	{"paragraphs of Markdown", "a.md", "One.\n\nTwo.\n", "-:One.|p:Two."},
	{"headings and chapters", "a.md",
	 "Before.\n\n# A\n\n## B\n\nOne.\n\nTwo.\n\n# C\n\nThree.\n",
	 "-:Before.|c:A|h:B|h:One.|p:Two.|c:C|h:Three."},
	{"a list", "a.md",
	 "Take with you:\n\n- A loaf of brown bread\n- A bottle of fresh milk\n\nThen go.\n",
	 "-:Take with you:|p:A loaf of brown bread|l:A bottle of fresh milk|p:Then go."},
	{"a table", "a.md",
	 "Prices:\n\n| The thing | What it costs |\n|-|-|\n| A loaf of bread | Two coins |\n| A "
	 "bottle of milk | Three coins |\n\nNo more.\n",
	 "-:Prices:|p:The thing, What it costs|l:A loaf of bread, Two coins|l:A bottle of milk, "
	 "Three coins|p:No more."},
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
				   "z\n\nAnd this[^1].\n\n[^1]: Note.\n\n!?\n";
	CLEANUP(script_free) struct script s = {0};
	CLEANUP(str_free) struct str got = STR_INIT;
	struct err err = {0};

	(void)state;
	put_text("s.md", text);
	if (load("s.md", INPUT_AUTO, &s, &err) < 0)
		fail_msg("%s", err.msg);
	script_tell_silent(&s, &got);
	assert_string_equal(str_text(&got), "2 code blocks, 1 image, 1 footnote, 1 silent line");
}

static const struct {
	const char *name, *bytes, *want;
} tellings[] = {
	{"a.txt", "One.\nTwo.\nThree.\n", "read as 3 lines"},
	{"a.txt", "One.\n", "read as 1 paragraph"},
	{"a.txt", "Host: One.\nGuest: Two.\n\nHost: Three.\n", "read as 3 lines in 2 paragraphs"},
	{"a.txt", "Chapter 1\n\nOne that\nis wrapped.\n\n***\n\nTwo.\n\nChapter 2\n\nThree.\n",
	 "read as 2 chapters, 3 paragraphs, 1 scene break; 1 wrapped line joined (job.input_mode)"},
	{"a.md", "# One\n\nText.\n\n---\n\n# Two\n\nText.\n", "read as 2 chapters, 1 scene break"},
	{"a.jsonl", "{\"text\":\"One\"}\n", ""},
};

/* How a script was read is told. */
static void tell_how_it_was_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tellings); i++) {
		CLEANUP(script_free) struct script s = {0};
		CLEANUP(str_free) struct str got = STR_INIT;
		put_text(tellings[i].name, tellings[i].bytes);
		assert_int_equal(load(tellings[i].name, INPUT_AUTO, &s, NULL), 0);
		script_tell_read(&s, &got);
		assert_string_equal(str_text(&got), tellings[i].want);
	}
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

static void borders_are_known(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(borders); i++) {
		CLEANUP(script_free) struct script s = {0};
		CLEANUP(str_free) struct str got = STR_INIT;
		struct err err = {0};
		put_text(borders[i].name, borders[i].bytes);
		if (load(borders[i].name, INPUT_AUTO, &s, &err) < 0)
			fail_msg("%s: %s", borders[i].what, err.msg);
		show_borders(&got, &s);
		if (!strcmp(str_text(&got), borders[i].want))
			continue;
		print_error("%s: got \"%s\", want \"%s\"\n", borders[i].what, str_text(&got),
			    borders[i].want);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static const struct {
	const char *what, *name, *bytes, *message;
} bad[] = {
	{"nothing", "b.txt", "", "b.txt: there is nothing to speak in it"},
	{"blank lines only", "b.txt", "\n \n\t\n", "b.txt: there is nothing to speak in it"},
	{"no word", "b.txt", "...\n!?\n***\n[pause 1s]\n",
	 "b.txt: there is nothing to speak in it"},
	{"invalid UTF-8", "b.txt", "One.\nTwo.\nca\xe9\n",
	 "b.txt:3: this is not UTF-8: save it as UTF-8, or, if it is Windows-1252, `iconv -f "
	 "WINDOWS-1252 -t UTF-8 'b.txt' >utf8.txt`"},
	{"a name that says nothing", "b.docx", "x",
	 "b.docx is plain text: to be spoken it needs a name that ends in .txt"},

	{"duplicate ids", "b.jsonl",
	 "{\"id\":\"x\",\"text\":\"a\"}\n{\"id\":\"y\",\"text\":\"b\"}\n{\"id\":\"x\",\"text\":"
	 "\"c\"}\n",
	 "b.jsonl:3: id \"x\" already exists (b.jsonl:1)"},
	{"a made id that is taken", "b.jsonl",
	 "{\"id\":\"002\",\"text\":\"a\"}\n{\"text\":\"b\"}\n",
	 "b.jsonl:2: id \"002\" already exists (b.jsonl:1)"},
	{"an id that leaves the folder", "b.jsonl", "{\"id\":\"../x\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"../x\" cannot name a file: it is not a regular file name"},
	{"an id from the root", "b.jsonl", "{\"id\":\"/x\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"/x\" cannot name a file: it is empty"},
	{"an id that leaves its folder", "b.jsonl", "{\"id\":\"x/..\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"x/..\" cannot name a file: it is not a regular file name"},
	{"an id in a hidden folder", "b.jsonl", "{\"id\":\".git/x\",\"text\":\"a\"}",
	 "b.jsonl:1: id \".git/x\" cannot name a file: it must not begin with a dot, a dash or a "
	 "blank, nor end with a dot or a blank"},
	{"an id in a folder that could be a file", "b.jsonl", "{\"id\":\"x.WAV/y\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"x.WAV/y\" cannot name a file: a folder in it ends in .wav"},
	{"an id in nine folders", "b.jsonl", "{\"id\":\"1/2/3/4/5/6/7/8/9/x\",\"text\":\"a\"}",
	 "b.jsonl:1: id \"1/2/3/4/5/6/7/8/9/x\" cannot name a file: it has more than 8 folders"},
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
	 "b.jsonl:1: \"options\" must be an object, as in {\"speed\": 160}"},
	{"not an object", "b.jsonl", "[1]", "b.jsonl:1: not a JSON object"},
	{"invalid UTF-8 in JSON", "b.jsonl", "{\"text\":\"ca\xe9\"}",
	 "b.jsonl:1: this is not UTF-8: save it as UTF-8, or, if it is Windows-1252, `iconv -f "
	 "WINDOWS-1252 -t UTF-8 'b.jsonl' >utf8.jsonl`"},
	{"several", "b.jsonl", "{\"text\":\"\"}\n{}\n{\"text\":\"ok\"}\n[]\n",
	 "b.jsonl:1: the text is empty (and 2 more)"},

	{"no header", "b.csv", "x,One\ny,Two\n",
	 "b.csv:1: no column is called \"text\": put a header line on top, as in id,text,voice, or "
	 "name the column in job.columns = { text = \"...\"; }, or write id|text lines"},
	{"pipes of two kinds", "b.csv", "x|One\ny|Two|three\n",
	 "b.csv:1: no column is called \"text\": put a header line on top, as in id,text,voice, or "
	 "name the column in job.columns = { text = \"...\"; }, or write id|text lines"},
	{"no header in TSV", "b.tsv", "x\tOne\n",
	 "b.tsv:1: no column is called \"text\": put a header line on top, as in id\ttext\tvoice, "
	 "or "
	 "name the column in job.columns = { text = \"...\"; }"},
	{"too many fields", "b.csv", "id,text\nx,One, two\n",
	 "b.csv:2: 3 fields where the header has 2 (a text with a separator in it must stand in "
	 "quotes)"},
	{"a row without its text", "b.csv", "id,text\nx\n", "b.csv:2: the text is empty"},
	{"two columns that could be the text", "b.csv", "id,sentence,content\n1,a,b\n",
	 "b.csv:1: \"sentence\" and \"content\" could both be the text: choose with job.columns = "
	 "{ "
	 "text = \"sentence\"; }"},
	{"the same in JSON lines", "b.jsonl", "{\"line\":\"a\",\"content\":\"b\"}\n",
	 "b.jsonl:1: \"line\" and \"content\" could both be the text: choose with job.columns = { "
	 "text = \"line\"; }"},
	{"a column that would change the sound", "b.csv", "id,text,emotion\n1,a,sad\n2,b,sad\n",
	 "b.csv:1: \"emotion\" changes nothing: to pass it to the engine, name it in job.columns = "
	 "{ "
	 "options = [...]; }; to copy it to the manifest alone, in keep = [...]"},
	{"the same in JSON lines, once", "b.jsonl",
	 "{\"text\":\"a\",\"speaker_id\":3}\n{\"text\":\"b\",\"speaker_id\":4}\n",
	 "b.jsonl:1: \"speaker_id\" changes nothing: to pass it to the engine, name it in "
	 "job.columns "
	 "= { options = [...]; }; to copy it to the manifest alone, in keep = [...]"},
	{"Anki's export without a choice", "b.txt", "#separator:tab\nOne\teins\n",
	 "b.txt:1: no column is called \"text\": name it in job.columns = { text = \"...\"; }; "
	 "there "
	 "are \"1\", \"2\""},
	{"a quote that is never closed", "b.csv", "id,text\nx,\"One\ny,Two\n",
	 "b.csv:2: a quote is opened and never closed"},
	{"text behind a quote", "b.csv", "id,text\nx,\"One\" two\n",
	 "b.csv:2: there is text behind a closing quote (write \"\" for a quote within)"},
	{"the line of a later row", "b.csv", "id,text\nx,\"One\n\n\"\ny,\n",
	 "b.csv:5: the text is empty"},
	{"duplicate ids in CSV", "b.csv", "id,text\nx,One\nx,Two\n",
	 "b.csv:3: id \"x\" already exists (b.csv:2)"},
	{"a seed in CSV", "b.csv", "text,seed\nOne,x\n",
	 "b.csv:2: \"seed\" must be a whole number from 0 to 2147483647"},
	{"options in CSV", "b.csv", "text,options\nOne,x\n",
	 "b.csv:2: \"options\" must be an object, as in {\"speed\": 160}"},

	{"an open code block", "b.md", "Text.\n\n```\nmore\n",
	 "b.md:3: this code block is never closed"},
	{"an open code block at the end", "b.md", "Text.\n\n```\nx\n```\n\nMore.\n\n~~~\n\n",
	 "b.md:9: this code block is never closed"},
	{"an open comment", "b.md", "Text.\n\n<!-- no\n\nmore\n",
	 "b.md:3: this piece of HTML is never closed"},
	{"a line of a paragraph that is not UTF-8", "b.md", "---\nx: y\n---\nText\nand ca\xe9\n",
	 "b.md:5: this is not UTF-8: save it as UTF-8, or, if it is Windows-1252, `iconv -f "
	 "WINDOWS-1252 -t UTF-8 'b.md' >utf8.md`"},
	{"invalid UTF-8 in Markdown", "b.md", "Text.\n\nca\xe9\n",
	 "b.md:3: this is not UTF-8: save it as UTF-8, or, if it is Windows-1252, `iconv -f "
	 "WINDOWS-1252 -t UTF-8 'b.md' >utf8.md`"},
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
		[INPUT_AUTO] = 3, [INPUT_LINES] = 3, [INPUT_PARAGRAPHS] = 2};

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
	put_text("dir/b.txt", "Second,\n\nTwo lines.\n");
	put_text("dir/d.txt", "Chapter 9\n\nOne of them\nis here.\n");
	put_text("dir/a.txt", "First.");
	put_text("dir/.hidden.txt", "No.");
	put_text("dir/readme.md", "No.");
	put_text("dir/c.md", "Before.\n# Third\n## Fourth\nText.\n");
	put_text("none/x.c", "No.");
	if (load("dir", INPUT_AUTO, &s, &err) < 0)
		fail_msg("%s", err.msg);
	show(&got, &s);
	assert_string_equal(
		str_text(&got),
		"a:First.#0|b-1:Second,#1|b-2:Two lines.#1|c-1:Before.#2|c-2:Third#3|c-3:"
		"Fourth#4|c-4:Text.#4|d-1:Chapter 9#6|d-2:One of them is here.#6");
	str_reset(&got);
	script_tell_read(&s, &got);
	assert_string_equal(str_text(&got),
			    "read as 6 chapters, 4 paragraphs; 1 wrapped line joined "
			    "(job.input_mode); files in this order: a.txt, b.txt, c.md, d.txt");
	assert_int_equal(load("none", INPUT_AUTO, &none, &err), -1);
	assert_string_equal(err.msg, "none: no .txt or .md file is in this folder");
	assert_int_equal(load("absent.txt", INPUT_AUTO, &none, &err), -1);
	assert_string_equal(err.msg, "job.input: absent.txt: No such file or directory");
}

static void extras_are_kept(void **state)
{
	CLEANUP(script_free) struct script s = {0};

	(void)state;
	put_text("e.jsonl",
		 "{\"text\":\"a\",\"image\":\"anna\",\"seed\":5,\"options\":{\"speed\":90}}\n");
	assert_int_equal(load("e.jsonl", INPUT_AUTO, &s, NULL), 0);
	assert_string_equal(json_string_value(json_object_get(s.items[0].extra, "image")), "anna");
	assert_int_equal(json_object_size(s.items[0].extra), 1);
	assert_true(s.items[0].has_seed && s.items[0].seed == 5);
	assert_int_equal(json_integer_value(json_object_get(s.items[0].options, "speed")), 90);
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
		cmocka_unit_test(tell_how_it_was_read),
		cmocka_unit_test(borders_are_known),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
