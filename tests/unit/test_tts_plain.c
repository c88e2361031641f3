/* test_tts_plain.c - what sites and programs put around a plain text is not spoken: licences,
 * tables of contents, times of messages, names above speeches; and front matter names the book. */
#include "tts_helpers.h"

#include "jobs/text/script.h"

static const struct split_limits limits = {280, 0};

/* What is read of each text: items separated by bars, with the letter of their border and "#" for a
 * heading; then what is not spoken, and the book. */
static const struct row {
	const char *what, *name, *bytes, *want;
} rows[] = {
	{"a file of Project Gutenberg", "a.txt",
	 "The Project Gutenberg eBook of The Salt Road\n\nThis ebook is for anyone.\n\nTitle: The "
	 "Salt Road\n\nAuthor: Mary Quill\n\nRelease date: May 1, 2005 [eBook "
	 "#15432]\n\nLanguage: English\n\n*** START OF THE PROJECT GUTENBERG EBOOK THE SALT ROAD "
	 "***\n\nProduced by A Reader and\nthe Team.\n\n\nCONTENTS\n\n  I. The Mule\n  II. The "
	 "Bridge\n\n\n[Illustration: A mule]\n\n\nI.\n\nThe Mule\n\n\nThe mule _refused_.[1] He "
	 "sat down.\n\n       *       *       *\n\nIt was gone.\n\n[1] So they "
	 "say.\n\n\nII.\n\nThe "
	 "Bridge\n\n\nThey built it.\n\n*** END OF THE PROJECT GUTENBERG EBOOK THE SALT ROAD "
	 "***\n\nUpdated editions will replace it.\n",
	 "-#I. The Mule|hThe mule refused. He sat down.|sIt was gone.|c#II. The Bridge|hThey built "
	 "it. (1 image, 1 footnote, 1 licence of Project Gutenberg, 1 table of contents) The Salt "
	 "Road/Mary Quill/-/en"},
	{"an older one", "a.txt",
	 "Project Gutenberg's Nachtzug, by Karl Ohne\n\n***START OF THIS PROJECT GUTENBERG EBOOK "
	 "NACHTZUG\nUND TAG***\n\nE-text prepared by Jemand\n\nDer Zug hielt.\n\nEnd of Project "
	 "Gutenberg's Nachtzug\n\n*** END OF THIS PROJECT GUTENBERG EBOOK NACHTZUG ***\n",
	 "-Der Zug hielt. (1 licence of Project Gutenberg)"},
	{"a text that only names it", "a.txt",
	 "The START OF THE PROJECT GUTENBERG EBOOK is near.\n",
	 "-The START OF THE PROJECT GUTENBERG EBOOK is near."},
	{"chapters that are numbers", "a.txt",
	 "One\n\n1\n\nIt began.\n\n2\n\nIt went on.\n\n3\n\nIt ended.\n",
	 "-One|c#1|hIt began.|c#2|hIt went on.|c#3|hIt ended."},
	{"numbers with titles", "a.txt",
	 "I. THE ROAD\n\nIt began. So.\n\nII. THE SEA\n\nIt went on.\n",
	 "-#I. THE ROAD|hIt began. So.|c#II. THE SEA|hIt went on."},
	{"numbers that begin anew in each part", "a.txt",
	 "Part One\n\nI\n\nA.\n\nII\n\nB.\n\nPart Two\n\nI\n\nC.\n\nII\n\nD.\n",
	 "-#Part One|h#I|hA.|c#II|hB.|c#Part Two|h#I|hC.|c#II|hD."},
	{"numbers right above their text", "a.txt", "1.\nIt began.\n\n2.\nIt went on.\n",
	 "-#1.|hIt began.|c#2.|hIt went on."},
	{"page numbers", "a.txt", "It began and\n\n1\n\nwent on to the\n\n2\n\nend.\n",
	 "-It began and|p1|pwent on to the|p2|pend."},
	{"a list with blank lines", "a.txt", "1. Boil water\n\n2. Add salt\n\n3. Wait\n",
	 "-1. Boil water|p2. Add salt|p3. Wait"},
	{"a title apart from its number", "a.txt",
	 "CHAPTER ONE\n\nThe Wheel\n\nIt stood still.\n\nCHAPTER TWO\n\nNobody came.\n",
	 "-#CHAPTER ONE. The Wheel|hIt stood still.|c#CHAPTER TWO|hNobody came."},
	{"a table of contents that repeats in the text", "a.txt",
	 "Contents\n\nThe Road\nThe Sea\n\nThe Road\n\nIt began.\n",
	 "-The Road|pIt began. (1 table of contents)"},
	{"contents that are prose", "a.txt",
	 "Contents\n\nThe box held a lamp, a rope and a letter that nobody had read.\n\nIt was "
	 "old.\n",
	 "-Contents|pThe box held a lamp, a rope and a letter that nobody had read.|pIt was old."},
	{"marks of typists", "a.txt",
	 "It was *very* cold, _as they say_, in snake_case and 2 * 3 * 4.\n\nSee the "
	 "lamp[12].\n\n[12] A note.\n\n[A] is a letter.\n",
	 "-It was very cold, as they say, in snake_case and 2 * 3 * 4.|pSee the lamp. (2 "
	 "footnotes)"},
	{"numbers in brackets without notes", "a.txt", "[1] Boil water.\n[2] Add salt.\n",
	 "-[1] Boil water.|l[2] Add salt."},
	/* chats */
	{"a chat with dates in brackets", "a.txt",
	 "[03/05/2024, 14:02:11] Anna: On the train?\n[03/05/2024, 14:02:40] Ben: Yes, it left at "
	 "two.\n\xe2\x80\x8e[03/05/2024, 14:03:06] Ben: \xe2\x80\x8eimage omitted\n",
	 "-Anna: On the train?|lBen: Yes, it left at two. (3 times of messages, 1 message without "
	 "a "
	 "text)"},
	{"a chat with dates before a dash", "a.txt",
	 "12/31/23, 9:15\u202fPM - Messages are encrypted.\n12/31/23, 9:16 PM - Carla: "
	 "Happy new year!\n31.12.23, 21:17 - Dan Smith: Same to you\nand the kids.\n12/31/23, 9:18 "
	 "PM - Carla: <Media omitted>\n",
	 "-Carla: Happy new year!|lDan Smith: Same to you and the kids. (4 times of messages, 2 "
	 "messages without a text)"},
	{"IRC", "a.txt", "[20:01] <mira> is it up?\n[20:02] <tom> not yet\n",
	 "-mira: is it up?|ltom: not yet (2 times of messages)"},
	{"a transcript", "a.txt",
	 "[00:00:01] Host: Welcome.\n[00:00:04] Guest: Thanks.\n2023-12-31T21:15:02 - x\n",
	 "-Host: Welcome.|lGuest: Thanks. (3 times of messages, 1 message without a text)"},
	{"times in prose", "a.txt", "At 9:15 PM - or so - it rang.\n10:30 was too late.\n",
	 "-At 9:15 PM - or so - it rang.|l10:30 was too late."},
	/* screenplays */
	{"a screenplay", "a.txt",
	 "INT. KITCHEN - NIGHT\n\nMARTHA stirs a pot that has been empty for\nan hour.\n\n      "
	 "MARTHA\n  You came\n  back.\n\n      JONAS (O.S.)\n    (from the door)\n  I never "
	 "left.\n\n      MARTHA (CONT'D)\n  Eleven years?\n\nCUT TO:\n",
	 "-INT. KITCHEN - NIGHT|pMARTHA stirs a pot that has been empty for|lan hour.|pMARTHA: You "
	 "came back.|pJONAS: I never left.|pMARTHA: Eleven years?|pCUT TO: (1 stage direction)"},
	{"a poem with a title", "a.txt", "THE SEA\nThe sea is grey,\nThe sky is grey.\n",
	 "-THE SEA|lThe sea is grey,|lThe sky is grey."},
	/* subtitles */
	{"voices, sounds and lines of two", "a.vtt",
	 "WEBVTT\n\nSTYLE\n::cue { color: red }\n\n00:01.000 --> 00:02.000\n<v.loud Mary>Hello "
	 "<c.x>there</c>.</v>\n\n00:03.000 --> 00:04.000\n[door creaks]\n\n00:05.000 --> "
	 "00:06.000\n>> (SIGHS) Who?\n\n00:07.000 --> 00:08.000\n[pause 2s]\n\n00:09.000 --> "
	 "00:10.000\n(All laugh)\n\n00:11.000 --> 00:12.000\nEnd.\n",
	 "-Hello there.|l(SIGHS) Who?|-End. (2 described sounds)"},
	{"captions that roll", "a.vtt",
	 "WEBVTT\n\n00:00:00.160 --> 00:00:02.389\n \nhello<00:00:00.480><c> and</c><c> "
	 "welcome</c>\n\n00:00:02.389 --> 00:00:02.399\nhello and welcome\n \n\n00:00:02.399 --> "
	 "00:00:04.000\nhello and welcome\nto<00:00:02.600><c> my show</c>\n\n00:00:04.000 --> "
	 "00:00:04.010\nto my show\n",
	 "-hello and welcome|-to my show"},
	{"karaoke", "a.srt",
	 "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}{\\k20}Hel{\\k30}lo,\\Nfriend.\n\n2\n00:00:03,"
	 "000 --> 00:00:04,000\nNo.\n\n3\n00:00:04,000 --> 00:00:05,000\nNo.\n",
	 "-Hello, friend.|lNo.|lNo."},
	{"SubStation", "a.ass",
	 "[Events]\nFormat: Layer, Start, End\nDialogue: "
	 "0,0:00:01.00,0:00:02.00,Default,Tom,0,0,0,,"
	 "{\\i1}Hello, my\\Nfriend.\nDialogue: 0,x\n",
	 "-Hello, my friend."},
	{"SBV", "a.sbv", "0:00:01.000,0:00:02.000\nHello.\n\n0:00:03.000,0:00:04.000\nBye.\n",
	 "-Hello.|lBye."},
	{"lyrics", "a.lrc",
	 "[ti:The River]\n[00:12.00]The river goes\n[00:17.20]\n[00:21.10][00:45.10]by my door\n",
	 "-The river goes|lby my door"},
	/* front matter */
	{"YAML", "a.md",
	 "---\ntitle: 'The Mill: A \"Story\"' # x\nauthor:\n  - Ada Lane\n  - name: Bo "
	 "Reed\ndate: March 3, 2019\nlang: en-GB\n---\n\nText.\n",
	 "-Text. The Mill: A \"Story\"/Ada Lane, Bo Reed/2019/en-GB"},
	{"Pandoc's lists", "a.md",
	 "---\ntitle:\n- type: main\n  text: The Mill\n- type: subtitle\n  text: A "
	 "Story\ncreator:\n- role: author\n  text: Ada Lane\n- role: editor\n  text: Ed "
	 "Itor\n...\n\nText.\n",
	 "-Text. The Mill/Ada Lane/-/-"},
	{"quotes", "a.md",
	 "---\nauthor: \"Ada \\\"Quick\\\" Lane\"\ntitle: \"It's #1 # no comment\"\n---\nText.\n",
	 "-Text. It's #1 # no comment/Ada \"Quick\" Lane/-/-"},
	{"TOML", "a.md",
	 "+++\ntitle = \"Le Moulin\"\nauthors = [\"Ada\", 'Bo']\ndate = "
	 "2019-03-03T10:00:00Z\n+++\nText.\n",
	 "-Text. Le Moulin/Ada, Bo/2019/-"},
	{"percent signs", "a.md", "% The Mill\n% Ada Lane; Bo Reed\n% May 2019\n\nText.\n",
	 "-Text. The Mill/Ada Lane, Bo Reed/2019/-"},
	{"lines of a title page", "a.txt",
	 "Title: The Wait\nAuthor: Ada Lane\nDraft date: 1/1/2020\nContact:\n   a "
	 "street\n\nText.\n",
	 "-Text. The Wait/Ada Lane/-/-"},
	{"YAML above a plain text", "a.txt", "---\ntitle: The Wait\n---\n\nText.\n",
	 "-Text. The Wait/-/-/-"},
	{"a line that is no front matter", "a.md", "---\n\nText.\n\n---\n\nMore.\n",
	 "-Text.|sMore."},
};

static void show(struct str *to, const struct script *s)
{
	CLEANUP(str_free) struct str silent = STR_INIT;
	const struct script_book *b = &s->book;

	for (size_t i = 0; i < s->count; i++)
		str_addf(to, "%s%c%s%s", i ? "|" : "", "--lphsc"[s->items[i].border],
			 s -> items[i].heading ? "#" : "", s->items[i].text);
	script_tell_silent(s, &silent);
	if (silent.len)
		str_addf(to, " (%s)", str_text(&silent));
	if (b->title || b->author)
		str_addf(to, " %s/%s/%s/%s", b->title ? b->title : "-", b->author ? b->author : "-",
			 b->year ? b->year : "-", b->language ? b->language : "-");
}

static void read_plain(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(script_free) struct script s = {0};
		CLEANUP(str_free) struct str got = STR_INIT;
		CLEANUP(free_text) char *path = in_folder(rows[i].name);
		struct err err = {0};
		put_text(rows[i].name, rows[i].bytes);
		if (script_load(&s, path, rows[i].name, INPUT_AUTO, &limits, &err) < 0)
			fail_msg("%s: %s", rows[i].what, err.msg);
		show(&got, &s);
		if (!strcmp(str_text(&got), rows[i].want))
			continue;
		print_error("%s:\ngot  \"%s\"\nwant \"%s\"\n", rows[i].what, str_text(&got),
			    rows[i].want);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* Names above speeches are speakers, and what is in brackets behind a name is no part of it. */
static void speakers_of_a_play(void **state)
{
	CLEANUP(script_free) struct script s = {0};
	CLEANUP(free_text) char *path = in_folder("play.txt");
	CLEANUP(str_free) struct str got = STR_INIT;
	struct speakers speakers = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(speakers_add(&speakers, "Mrs. Hale=de", &err), 0);
	assert_int_equal(speakers_add(&speakers, "Toby=fr", &err), 0);
	s.speakers = &speakers;
	put_text("play.txt", "TOBY (off): Gone, ma'am.\n\nMRS. HALE (V.O.)\n(softly)\nThen bring "
			     "the lamp.\n");
	if (script_load(&s, path, "play.txt", INPUT_AUTO, &limits, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < s.count; i++)
		str_addf(&got, "%s/%s/%s|", s.items[i].speaker, s.items[i].voice, s.items[i].text);
	assert_string_equal(str_text(&got),
			    "Toby/fr/Gone, ma'am.|Mrs. Hale/de/Then bring the lamp.|");
	speakers_free(&speakers);
}

/* UTF-16, as spreadsheets write it, with both byte orders; and what is neither that nor UTF-8. */
static void other_encodings(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *want;
	} files[] = {
		{"\xff\xfeO\0k\0 \0\xe9\0=\xd8\x00\xde\n\0", 16, "Ok é😀"},
		{"\xfe\xff\0O\0k\0 \0\xe9\xd8=\xde\x00\0\n", 16, "Ok é😀"},
		{"\xff\xfeO\0k", 5, "a.txt: is damaged UTF-16; save it as UTF-8"},
		{"\xff\xfe=\xd8O\0", 6, "a.txt: is damaged UTF-16; save it as UTF-8"},
		{"Ok\ncaf\xe9\n", 8,
		 "a.txt:2: this is not UTF-8: save it as UTF-8, or, if it is Windows-1252, `iconv "
		 "-f WINDOWS-1252 -t UTF-8 'a.txt' >utf8.txt`"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CLEANUP(script_free) struct script s = {0};
		CLEANUP(free_text) char *path = in_folder("a.txt");
		struct err err = {0};
		put("a.txt", files[i].bytes, files[i].len);
		int got = script_load(&s, path, "a.txt", INPUT_AUTO, &limits, &err);
		assert_string_equal(got < 0 ? err.msg : s.items[0].text, files[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_plain),
		cmocka_unit_test(speakers_of_a_play),
		cmocka_unit_test(other_encodings),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
