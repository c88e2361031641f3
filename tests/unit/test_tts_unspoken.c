/* test_tts_unspoken.c - what is no speech in a Markdown file is left out and counted. */
#include "tts_helpers.h"

#include "jobs/text/script.h"

static const struct split_limits limits = {280, 0};

/* What is read of each text: items separated by bars, then what is not spoken. */
static const struct {
	const char *text, *want, *silent;
} texts[] = {
	/* formulas */
	{"The energy is $E = mc^2$ and with $6{x}_{1} + 4{x}_{2} \\leq {24}$ we "
	 "get\n\n$$\n\\int_0^1 "
	 "x\\,dx = \\frac{1}{2}\n$$\n\nand it costs $5 or $6 in all.\n",
	 "The energy is and with we get|and it costs $5 or $6 in all.", "3 formulas"},
	{"It costs $5 and $10, or 5$ and 10$, or US$7, or $8-$9.\n",
	 "It costs $5 and $10, or 5$ and 10$, or US$7, or $8-$9.", ""},
	{"Set $HOME and $PATH, or $5 or 6$ in all; \\$x^2\\$ too.\n",
	 "Set $HOME and $PATH, or $5 or 6$ in all; $x^2$ too.", ""},
	{"For all $n$ of the $12$ items.\n", "For all n of the 12 items.", ""},
	{"So \\(a^2 + b^2\\) and \\[\nc^2\n\\] are equal, \\(see below\\) and \\[1\\].\n",
	 "So and|are equal, (see below) and [1].", "2 formulas"},
	{"Here:\n\n\\begin{align}\na &= b \\\\\n\\end{align}\n\nThe end.\n", "Here:|The end.",
	 "1 formula"},
	{"> A quote $$\n> x^2\n> $$\n> goes on.\n", "A quote|goes on.", "1 formula"},
	{"Code `$x^2$` stays, and $`x^2`$ goes.\n", "Code $x^2$ stays, and goes.", "1 formula"},
	{"One $x\n\nTwo^2$ three.\n", "One $x|Two^2$ three.", ""},
	{"```\n$x^2$ :smile:\n```\nText.\n", "Text.", "1 code block"},
	/* marks of sites */
	{"import Tabs from '@theme/Tabs';\n\n# Post\n\n> [!NOTE]\n> Mind the gap here.\n\n{{< "
	 "youtube "
	 "abc123 >}}\n\n{% include figure.html %}\n\n:::warning\nWatch out for it "
	 "now.\n:::\n\nThis is ==highlighted== text with a [[Wiki Link|shown]] link :smile: "
	 "here.\n\n%% a private comment %%\n",
	 "Post|Mind the gap here.|Watch out for it now.|This is highlighted text with a shown link "
	 "here.",
	 "2 shortcodes, 2 block marks, 1 import, 1 emoji code, 1 comment"},
	{":::note{.x} My title\nText of it.\n:::\n::: {.columns}\nMore.\n:::\n:::tip[A "
	 "*tip*]\nEnd.\n:::\n",
	 "My title|Text of it.|More.|A tip|End.", "3 block marks"},
	{"> [!tip]- The title\n> The text.\n\n[!x] is no alert, nor is [!NOTE].\n",
	 "The title|The text.|[!x] is no alert, nor is [!NOTE].", "1 block mark"},
	{"{% highlight c %}\nint x;\n{% endhighlight %}\nA {{ page.name }} and {{% note %}}text{{% "
	 "/note "
	 "%}} {/* no */} here.\n",
	 "A and text here.", "4 shortcodes, 1 comment"},
	{"export const x = {\n  y: 1,\n};\n\nImport of goods is here.\nimport duties are high.\n",
	 "Import of goods is here. import duties are high.", "1 import"},
	{"<Tabs items={['a', 'b']} open={x > 1}>\n<Tab>Text within.</Tab>\n</Tabs>\n",
	 "Text within.", ""},
	{"See [[Page]], [[Page#Part]], [[Page#^id]], [[1]](http://x.y) and ![[image.png]].\n",
	 "See Page, Page Part, Page, [1] and .", "1 image"},
	{"!!! note \"A *title*\"\n    Text within.\n\n    More of it.\n\n??? question\n    Is it "
	 "open?\n\nText outside.\n",
	 "A title|Text within.|More of it.|Is it open?|Text outside.", "2 block marks"},
	{"Hello {{ x }} world.\n{: .note}\n\n* TOC\n{:toc}\n\n![a](b.png){width=50%} and "
	 "[c](d){:target=\"_blank\"} of {braces}.\n",
	 "Hello world.|and c of {braces}.", "1 image, 2 shortcodes"},
	{"import A from 'a'\n\nThe snow fell {props.count} times. {/* no */}\n\n{\n  3 + "
	 "4\n}\n\nEnd.\n",
	 "The snow fell times.|End.", "2 shortcodes, 1 import, 1 comment"},
	{"A block ^abc123\n\nx ^2\n\nSee it^[a note] here [@doe99, p. 3] or \\ref{fig:1}, not "
	 "[@me](http://x.y).\n",
	 "A block|x ^2|See it here or , not @me.", "2 footnotes, 1 formula"},
	{"%% hidden\nover lines %%\n\nShown.\n", "Shown.", "1 comment"},
	{"[TOC]\n\n[[_TOC_]]\n\nThe text.\n", "The text.", "2 shortcodes"},
	{"Yes :+1: and 10:30:15, a:b:c, std::vector and :100: or 5 :tada:.\n",
	 "Yes and 10:30:15, a:b:c, std::vector and :100: or 5 .", "2 emoji codes"},
	{"If a == b or c==d == e, then ==all of *it*==.\n",
	 "If a == b or c==d == e, then all of it.", ""},
	{"All 100%% of it, 5%% more.\n\n%%\nno\n\nno\n%%\nYes.\n",
	 "All 100%% of it, 5%% more.|Yes.", "1 comment"},
	{"See https://x.y/a==b==c/:smile:/$x^2$ and [a](http://x/:smile:).\n",
	 "See https://x.y/a==b==c/:smile:/$x^2$ and a.", ""},
};

static void no_speech_is_left_out(void **state)
{
	CLEANUP(free_text) char *path = in_folder("a.md");
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(script_free) struct script s = {0};
		CLEANUP(str_free) struct str got = STR_INIT, silent = STR_INIT;
		struct err err = {0};
		put_text("a.md", texts[i].text);
		if (script_load(&s, path, "a.md", INPUT_AUTO, &limits, &err) < 0)
			fail_msg("%s: %s", texts[i].text, err.msg);
		for (size_t k = 0; k < s.count; k++)
			str_addf(&got, "%s%s", k ? "|" : "", s.items[k].text);
		script_tell_silent(&s, &silent);
		if (!strcmp(str_text(&got), texts[i].want) &&
		    !strcmp(str_text(&silent), texts[i].silent))
			continue;
		print_error("got \"%s\" (%s),\nwant \"%s\" (%s)\n", str_text(&got),
			    str_text(&silent), texts[i].want, texts[i].silent);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* The places of mistakes behind a formula stay right, whatever its line ends. */
static void lines_are_kept(void **state)
{
	static const char *const same[] = {
		"One.\n\n$$\nx^2\n$$\n\n:::tip Title\nb\n:::\n\n```\nopen\n",
		"One.\r\n\r\n$$\r\nx^2\r\n$$\r\n\r\n:::tip "
		"Title\r\nb\r\n:::\r\n\r\n```\r\nopen\r\n"};
	CLEANUP(free_text) char *path = in_folder("l.md");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		CLEANUP(script_free) struct script s = {0};
		struct err err = {0};
		put_text("l.md", same[i]);
		assert_int_equal(script_load(&s, path, "l.md", INPUT_AUTO, &limits, &err), -1);
		assert_string_equal(err.msg, "l.md:11: this code block is never closed");
	}
}

/* The numbers of ordered lists, which job.list_numbers speaks. */
static void lists_are_numbered(void **state)
{
	static const char text[] =
		"Do these:\n\n1. Admit the problem\n2. Ask:\n   - a friend\n   - a "
		"doctor\n   1. Inner one\n3. Make a list\n\n   of two "
		"paragraphs\n\nThen:\n\n0) Zero\n1) [x] One\n";
	CLEANUP(free_text) char *path = in_folder("n.md");

	(void)state;
	put_text("n.md", text);
	for (int numbers = 0; numbers < 2; numbers++) {
		CLEANUP(script_free) struct script s = {.list_numbers = numbers};
		CLEANUP(str_free) struct str got = STR_INIT;
		assert_int_equal(script_load(&s, path, "n.md", INPUT_AUTO, &limits, NULL), 0);
		for (size_t k = 0; k < s.count; k++)
			str_addf(&got, "%s%s", k ? "|" : "", s.items[k].text);
		assert_string_equal(
			str_text(&got),
			numbers ? "Do these:|1. Admit the problem|2. Ask:|a friend|a doctor|1. "
				  "Inner "
				  "one|3. Make a list|of two paragraphs|Then:|0. Zero|1. One"
				: "Do these:|Admit the problem|Ask:|a friend|a doctor|Inner "
				  "one|Make a list|of two paragraphs|Then:|Zero|One");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_speech_is_left_out),
		cmocka_unit_test(lines_are_kept),
		cmocka_unit_test(lists_are_numbered),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
