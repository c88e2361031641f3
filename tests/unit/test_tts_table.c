/* test_tts_table.c - what the columns of a table are for, and who speaks. */
#include "tts_helpers.h"

#include "base/section.h"
#include "jobs/text/script.h"

static const struct split_limits limits = {280, 20};

static int load(const char *name, struct script *s, struct err *err)
{
	CLEANUP(free_text) char *path = in_folder(name);

	return script_load(s, path, name, INPUT_AUTO, &limits, err);
}

static const struct {
	const char *what, *name, *bytes, *text, *id, *options, *keep, *want;
} chosen[] = {
	{"columns by their names", "c.csv", "file;words\nx;One\n", "words", "file", NULL, NULL,
	 "x:One"},
	{"names in another case, with blanks", "c.csv", "File, Words \nx,One\n", "words", "file",
	 NULL, NULL, "x:One"},
	{"usual names of other languages", "c.csv",
	 "Nummer;Sprache;S\303\204TZE;Satz\n7;x;y;Eins\n", NULL, NULL, NULL, NULL,
	 "7:Eins+Sprache+SÄTZE"},
	{"capitals with accents", "c.csv", "NUM\303\211RO;R\303\211PLIQUE\n7;Un\n", NULL, NULL,
	 NULL, NULL, "7:Un"},
	{"accents of their own", "c.csv", "Nume\314\201ro;Oracio\314\201n\n7;Uno\n", NULL, NULL,
	 NULL, NULL, "7:Uno"},
	{"Polish", "c.csv", "numer;tre\305\233\304\207\n7;Raz\n", NULL, NULL, NULL, NULL, "7:Raz"},
	{"two that are usual", "c.csv", "Satz;Zeile\nEins;Zwei\n", NULL, NULL, NULL, NULL,
	 "c.csv:1: \"Satz\" and \"Zeile\" could both be the text: choose with job.columns = { text "
	 "= "
	 "\"Satz\"; }"},
	{"one of two columns", "c.csv", "sentence,content\nOne,Two\n", "content", NULL, NULL, NULL,
	 "001:Two+sentence"},
	{"keys of JSON lines", "c.jsonl", "{\"en\":\"One\",\"text\":\"Eins\"}\n", "en", NULL, NULL,
	 NULL, "001:One+text"},
	{"Anki's export without columns", "c.txt", "#separator:Semicolon\n#html:true\nOne;eins\n",
	 "2", NULL, NULL, NULL, "001:eins+1"},
	{"a column for the manifest alone", "c.csv", "text,speed\nOne,2\n", NULL, NULL, NULL,
	 "Speed", "001:One+speed"},
	{"a column that is an option", "c.csv", "text,speed\nOne,2\nTwo,\n", NULL, NULL, "speed",
	 NULL, "001:One{\"speed\":2}|002:Two"},
	{"an option of the line itself wins", "c.jsonl",
	 "{\"text\":\"One\",\"speed\":2,\"options\":{\"speed\":3}}\n", NULL, NULL, "speed", NULL,
	 "001:One{\"speed\":3}"},
	{"a column that does not exist", "c.csv", "id,text\n1,One\n", NULL, "key", NULL, NULL,
	 "c.csv:1: job.columns.id is \"key\", and no column is called so; there are \"id\", "
	 "\"text\""},
};

static const struct option_spec columns_table[] = {
	{"text", OPTION_TEXT, 0, NULL, ""},
	{"id", OPTION_TEXT, 0, NULL, ""},
	{"voice", OPTION_TEXT, 0, NULL, ""},
	{"speaker", OPTION_TEXT, 0, NULL, ""},
	{"options", OPTION_TEXTS, 0, NULL, ""},
	{"keep", OPTION_TEXTS, 0, NULL, ""},
	{0},
};

static void show_extras(struct str *to, const struct script *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct script_item *item = &s->items[i];
		const char *key;
		json_t *value;
		CLEANUP(free_text)
		char *options = item->options ? json_dumps(item->options, JSON_COMPACT) : NULL;
		str_addf(to, "%s%s:%s", i ? "|" : "", item->id, item->text);
		json_object_foreach (item->extra, key, value)
			str_addf(to, "+%s", key);
		str_add(to, options ? options : "");
	}
}

static void columns_are_chosen(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(chosen); i++) {
		CLEANUP(section_free) struct section *columns = section_new(columns_table, "c");
		CLEANUP(script_free) struct script s = {.columns = columns};
		CLEANUP(str_free) struct str got = STR_INIT;
		struct err err = {0};
		if (chosen[i].text)
			section_set_text(columns, "text", chosen[i].text, "c");
		if (chosen[i].id)
			section_set_text(columns, "id", chosen[i].id, "c");
		if (chosen[i].options)
			section_add_item(columns, "options", chosen[i].options, "c");
		if (chosen[i].keep)
			section_add_item(columns, "keep", chosen[i].keep, "c");
		put_text(chosen[i].name, chosen[i].bytes);
		if (load(chosen[i].name, &s, &err) < 0)
			str_add(&got, err.msg);
		else
			show_extras(&got, &s);
		if (strcmp(str_text(&got), chosen[i].want) != 0)
			fail_msg("%s: got \"%s\", want \"%s\"", chosen[i].what, str_text(&got),
				 chosen[i].want);
	}
}

/* Scripts with the speakers of this list; what is said by whom, or the mistake. */
static const struct {
	const char *what, *name, *bytes, *want;
} plays[] = {
	{"labels", "p.txt", "Alice: Hello, Bob.\nBOB: Hi.\n[Bob] And bye\nHe left.\n",
	 "Hello, Bob.@en-us(Alice)|Hi.@de(Bob)|And bye@de(Bob)|He left."},
	{"a label of several words, with a wide colon", "p.txt",
	 "Mr. Smith: Hello\n旁白：Hello again\n", "Hello@fr(Mr. Smith)|Hello again@zh(旁白)"},
	{"a label that is spoken", "p.txt", "Note: Hello\nAlice: Hi\n",
	 "Note: Hello|Hi@en-us(Alice)"},
	{"what is no label", "p.txt", "At 10:30 he said: no\nalas: no\nSee http://x\nBob:no\n",
	 "At 10:30 he said: no|alas: no|See http://x|Bob:no"},
	{"labels within a paragraph", "p.txt", "Alice: One\nline.\nBob: Two.\n\nThree\nlines.\n",
	 "One line.@en-us(Alice)|Two.@de(Bob)|Three lines."},
	{"labels in Markdown", "p.md", "**Alice:** One\nline.\n*Bob*: Two.\n\n# Bob: Three\n",
	 "One line.@en-us(Alice)|Two.@de(Bob)|Bob: Three"},
	{"a column", "p.csv", "id,speaker,text\n1,alice,One\n2,Bob,Two\n3,,Three\n",
	 "One@en-us(alice)|Two@de(Bob)|Three"},
	{"a row's own voice", "p.jsonl",
	 "{\"text\":\"One\",\"character\":\"Alice\",\"voice\":\"sv\"}\n{\"text\":\"Two\",\"voice\":"
	 "\"Bob\"}\n",
	 "One@sv(Alice)|Two@de"},
	{"a label that nobody knows", "p.txt", "Alice: One\nCarol: Two\nCarol: Three\n",
	 "p.txt:2: \"Carol\" reads like a speaker's label: give it a voice in job.speakers, as in "
	 "\"NAME=VOICE\", or list \"NAME\" alone to speak it"},
	{"a speaker that nobody knows", "p.csv", "speaker,text\nAlice,One\nCarol,Two\n",
	 "p.csv:3: speaker \"Carol\" has no voice: set job.speakers = [\"NAME=VOICE\", ...], or "
	 "job.columns = { keep = [\"speaker\"]; } to speak all in one voice"},
	{"a label without a text", "p.txt", "Alice:\nOne\n",
	 "p.txt:1: nothing follows the label \"Alice:\""},
	{"a label before a silence", "p.txt", "Alice: ...\nBob: One\nAlice: [pause 1s]\nBob: Two\n",
	 "One@de(Bob)|Two@de(Bob)"},
	{"two speakers in a row", "p.jsonl", "{\"text\":\"Alice: One\\nline\\r\\nBob: Two\"}\n",
	 "One line@en-us(Alice)|Two@de(Bob)"},
	{"two speakers in a cell", "p.csv", "text\n\"Alice: One\nBob: Two\n\"\n",
	 "One@en-us(Alice)|Two@de(Bob)"},
	{"behind tags", "p.csv", "text\nAlice: <i>One</i> line<br>Bob: Two &amp; more<BR />End\n",
	 "One line@en-us(Alice)|Two & more End@de(Bob)"},
	{"in a page", "p.html", "<p>Alice: One\nBob: line<br>Bob: Two<br/><b>Alice:</b> Three</p>",
	 "One Bob: line@en-us(Alice)|Two@de(Bob)|Three@en-us(Alice)"},
	{"in a cue", "p.srt", "1\n00:00:01,000 --> 00:00:03,000\nAlice: One\nBob: Two\n",
	 "One@en-us(Alice)|Two@de(Bob)"},
	{"with a voice of their own", "p.jsonl",
	 "{\"text\":\"Alice: One\\nBob: Two\",\"voice\":\"sv\"}\n", "One@sv(Alice)|Two@sv(Bob)"},
	{"one of them is not known", "p.jsonl", "{\"text\":\"Alice: One\\nCarol: Two\"}\n",
	 "p.jsonl:1: \"Carol\" reads like a speaker's label: give it a voice in job.speakers, as "
	 "in "
	 "\"NAME=VOICE\", or list \"NAME\" alone to speak it"},
	{"a row of one speaker with the label of another", "p.csv",
	 "speaker,text\nAlice,\"One\nBob: Two\"\n",
	 "p.csv:2: another speaker's label stands in the text of \"Alice\": give it a row of its "
	 "own"},
};

static void show_voices(struct str *to, const struct script *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct script_item *item = &s->items[i];
		str_addf(to, "%s%s", i ? "|" : "", item->text);
		if (item->voice)
			str_addf(to, "@%s", item->voice);
		if (item->speaker)
			str_addf(to, "(%s)", item->speaker);
	}
}

static void speakers_have_voices(void **state)
{
	static const char *const pairs[] = {"Alice=en-us", " Bob = de ", "Mr. Smith=fr", "旁白=zh",
					    "Note"};
	struct speakers speakers = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		assert_int_equal(speakers_add(&speakers, pairs[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
		CLEANUP(script_free) struct script s = {.speakers = &speakers};
		CLEANUP(str_free) struct str got = STR_INIT;
		struct err err = {0};
		put_text(plays[i].name, plays[i].bytes);
		if (load(plays[i].name, &s, &err) < 0)
			str_add(&got, err.msg);
		else
			show_voices(&got, &s);
		if (strcmp(str_text(&got), plays[i].want) != 0)
			fail_msg("%s: got \"%s\", want \"%s\"", plays[i].what, str_text(&got),
				 plays[i].want);
	}
	speakers_free(&speakers);
}

static void speakers_are_checked(void **state)
{
	static const char *const wrong[] = {"", "=en", "Alice=", "a:b=en", "[x]=en", "ALICE=de"};
	struct speakers speakers = {0};

	(void)state;
	assert_int_equal(speakers_add(&speakers, "Alice=en", NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct err err = {0};
		assert_int_equal(speakers_add(&speakers, wrong[i], &err), -1);
		assert_true(starts_with(err.msg, "speakers: "));
	}
	speakers_free(&speakers);
}

/* Without job.speakers a label is spoken, and told. */
static void labels_are_told(void **state)
{
	CLEANUP(str_free) struct str got = STR_INIT;
	const struct speakers none = {0};

	(void)state;
	for (int given = 0; given < 2; given++) {
		CLEANUP(script_free) struct script s = {.speakers = given ? &none : NULL};
		put_text("l.txt", "Alice: One\nBob: Two\nHe left.\n");
		assert_int_equal(load("l.txt", &s, NULL), 0);
		assert_string_equal(s.items[0].text, "Alice: One");
		script_tell_labels(&s, &got);
	}
	assert_string_equal(
		str_text(&got),
		"2 of 3 texts begin like a speaker's label (\"Alice:\", \"Bob:\"), and the "
		"label is spoken: give each a voice with job.speakers = [\"NAME=VOICE\", "
		"...], or set job.speakers = []");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_chosen),
		cmocka_unit_test(speakers_have_voices),
		cmocka_unit_test(speakers_are_checked),
		cmocka_unit_test(labels_are_told),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
