/* test_agent_words.c - the words that the espeak worker marks in a WAV file, and who reads them. */
#include "join_bed.h"

#include "jobs/workers/espeak_words.h"

enum { RATE = 8000, FRAMES = 8000 };

/* Writes a tone of a second with the words of a text behind it. */
static void put_marked(const char *name, const char *text, const struct espeak_word *words,
		       size_t count)
{
	CLEANUP(free_text) char *path = in_folder(name);
	CLEANUP(str_free) struct str all = STR_INIT;

	put_tone(name, RATE, 1, 1.0, 0.5, 0);
	assert_int_equal(path_read(path, 1 << 20, &all, NULL), 0);
	espeak_words_chunks(&all, text, words, count, FRAMES);
	size_t riff = all.len - 8;
	for (int i = 0; i < 4; i++)
		all.s[4 + i] = (char)(riff >> 8 * i & 0xff);
	put(name, all.s, all.len);
}

/* Words as espeak-ng 1.51 reports them: characters of the text. */
static const struct {
	const char *name, *text;
	struct espeak_word words[8];
	const char *want; /* begin-end word; */
} texts[] = {
	{"words",
	 "Hello, old world.",
	 {{0, 0, 100}, {7, 100, 200}, {11, 200, 900}},
	 "0-100 Hello,; 100-200 old; 200-900 world.; "},
	{"characters, not bytes",
	 "Süße Äpfel",
	 {{0, 0, 10}, {5, 20, 30}},
	 "0-10 Süße; 20-30 Äpfel; "},
	{"parts of a number",
	 "It is $45.50 in",
	 {{0, 0, 1}, {3, 1, 2}, {6, 2, 3}, {7, 3, 4}, {8, 4, 5}, {9, 5, 6}, {10, 6, 7}, {13, 7, 8}},
	 "0-1 It; 1-2 is; 2-3 $; 3-4 45.50; 7-8 in; "},
	{"a word twice, and one before its dash",
	 "go - well-known",
	 {{0, 0, 5}, {0, 5, 6}, {2, 6, 9}},
	 "0-5 go; 6-9 well-known; "},
	{"scripts without blanks",
	 "今天。你",
	 {{0, 0, 5}, {1, 5, 6}, {3, 8, 8}},
	 "0-5 今; 5-6 天。; 8-8 你; "},
	{"beyond the text or the sound",
	 "one two",
	 {{0, 0, 5}, {40, 6, 7}, {4, 9000, 9001}},
	 "0-5 one; "},
	{"an end beyond the sound", "one", {{0, 7000, 9000}}, "7000-8000 one; "},
	{"backwards", "one two three", {{8, 10, 20}, {4, 20, 30}, {0, 30, 40}}, "10-20 three; "},
	{"no word", "one", {{0}}, "0-0 one; "},
};

static void tell_marks(struct str *to, const char *name)
{
	CLEANUP(free_text) char *path = in_folder(name);
	CLEANUP(file_close) FILE *f = fopen(path, "re");
	struct wav_info info;
	struct wav_mark *marks;
	struct err err = {0};

	if (!f || wav_read_header(f, &info, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
	size_t count = wav_marks(f, &info, &marks);
	for (size_t i = 0; i < count; i++)
		str_addf(to, "%lld-%lld %s; ", (long long)marks[i].begin, (long long)marks[i].end,
			 marks[i].text);
	wav_marks_free(marks, count);
}

static void words_come_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(str_free) struct str got = STR_INIT;
		size_t count = 1;
		while (count < ARRAY_LEN(texts[i].words) && texts[i].words[count].end)
			count++;
		put_marked("m.wav", texts[i].text, texts[i].words, count);
		tell_marks(&got, "m.wav");
		if (strcmp(str_text(&got), texts[i].want))
			fail_msg("%s: got \"%s\", want \"%s\"", texts[i].name, str_text(&got),
				 texts[i].want);
	}
	CLEANUP(str_free) struct str none = STR_INIT;
	put_marked("m.wav", "one", NULL, 0);
	tell_marks(&none, "m.wav");
	assert_string_equal(str_text(&none), "");
}

/* Reads a file whose bytes are these: whatever marks it has are within the sound and can be shown.
 */
static size_t count_sane_marks(const char *bytes, size_t len)
{
	CLEANUP(free_text) char *path = in_folder("d.wav");
	struct wav_info info;
	struct wav_mark *marks;
	struct err err = {0};

	put("d.wav", bytes, len);
	CLEANUP(file_close) FILE *f = fopen(path, "re");
	if (wav_read_header(f, &info, &err) < 0)
		return 0;
	size_t count = wav_marks(f, &info, &marks);
	for (size_t i = 0; i < count; i++)
		assert_true(marks[i].begin >= 0 && marks[i].begin <= marks[i].end &&
			    marks[i].end <= info.frames && marks[i].text[0] &&
			    utf8_valid(marks[i].text, strlen(marks[i].text)) &&
			    (i == 0 || marks[i].begin >= marks[i - 1].begin));
	wav_marks_free(marks, count);
	return count;
}

/* Any byte of the chunks is changed, and the file is cut at any place. */
static void damaged_chunks(void **state)
{
	static const struct espeak_word words[] = {{0, 0, 100}, {4, 100, 200}};
	static const unsigned char values[] = {0, 1, 0x1f, 0x7f, 0x80, 0xff};
	CLEANUP(free_text) char *path = in_folder("m.wav");
	CLEANUP(str_free) struct str all = STR_INIT;
	const size_t from = WAV_HEADER_BYTES + 2 * FRAMES;

	(void)state;
	put_marked("m.wav", "one two", words, 2);
	assert_int_equal(path_read(path, 1 << 20, &all, NULL), 0);
	assert_int_equal(count_sane_marks(all.s, all.len), 2);
	for (size_t at = from; at < all.len; at++) {
		char kept = all.s[at];
		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			all.s[at] = (char)values[v];
			count_sane_marks(all.s, all.len);
		}
		all.s[at] = kept;
	}
	for (size_t len = from; len < all.len; len++) {
		for (int i = 0; i < 4; i++)
			all.s[4 + i] = (char)((len - 8) >> 8 * i & 0xff);
		assert_true(count_sane_marks(all.s, len) <= 2);
	}
}

/* Which parts of the shown text the marks stand for. */
static const struct {
	const char *name, *shown, *spoken, *lexicon;
	const char *marks[6]; /* each takes 10 samples */
	const char *want;
} shown[] = {
	{"the same text",
	 "one two one",
	 "one two one",
	 NULL,
	 {"one", "two", "one"},
	 "one@0 two@10 one@20 "},
	{"marks that leave words out",
	 "a one two one",
	 "a one two one",
	 NULL,
	 {"two", "one"},
	 "two@0 one@10 "},
	{"no word within another", "another other", "another other", NULL, {"other"}, "other@0 "},
	{"a mark that is nowhere",
	 "one two",
	 "one two",
	 NULL,
	 {"one", "three", "two"},
	 "one@0 two@20 "},
	{"marks of another text", "one two", "one two", NULL, {"uno", "dos", "two"}, ""},
	{"a replacement of several words",
	 "the SQL base",
	 "the sequel thing base",
	 "SQL\tsequel thing\n",
	 {"the", "sequel", "thing", "base"},
	 "the@0 SQL@10 base@30 "},
	{"a replacement by one word",
	 "by New York now",
	 "by Gotham now",
	 "New York\tGotham\n",
	 {"by", "Gotham", "now"},
	 "by@0 New York@10 now@20 "},
	{"a text that the lexicon does not make",
	 "by New York",
	 "by elsewhere",
	 "New York\tGotham\n",
	 {"by", "elsewhere"},
	 ""},
	{"scripts without blanks",
	 "今天今天",
	 "今天今天",
	 NULL,
	 {"今", "天", "今", "天"},
	 "今@0 天@10 今@20 天@30 "},
};

static void words_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		CLEANUP(str_free) struct str got = STR_INIT;
		struct wav_mark marks[6] = {0};
		struct lexicon *lexicon = NULL;
		struct cue_word *words;
		size_t count = 0;
		const char *lines = shown[i].lexicon;
		if (lines)
			assert_int_equal(lexicon_read(&lexicon, "l", lines, strlen(lines),
						      &(struct phoneme_marks){0}, NULL),
					 0);
		for (; count < 6 && shown[i].marks[count]; count++)
			marks[count] =
				(struct wav_mark){(int64_t)count * 10, (int64_t)count * 10 + 10,
						  (char *)shown[i].marks[count]};
		count = words_match(shown[i].shown, shown[i].spoken, lexicon, marks, count, &words);
		for (size_t k = 0; k < count; k++)
			str_addf(&got, "%.*s@%lld ", (int)(words[k].to - words[k].from),
				 shown[i].shown + words[k].from, (long long)words[k].at.begin);
		free(words);
		lexicon_free(lexicon);
		if (strcmp(str_text(&got), shown[i].want))
			fail_msg("%s: got \"%s\", want \"%s\"", shown[i].name, str_text(&got),
				 shown[i].want);
	}
}

/* Marked words decide, not letters, in the second of two files too. */
static void captions_follow_marks(void **state)
{
	static const char text[] =
		"This is spoken slowly, by somebody who has a lot of time for it. "
		"And this is said fast!";
	static const struct espeak_word words[] = {{0, 400, 600}, {65, 6400, 6500}};
	static const struct join_piece pieces[] = {{"a.wav", "One.", BORDER_LINE, -1},
						   {"b.wav", text, BORDER_LINE, -1}};
	struct join_options options = {.subtitles = true};
	CLEANUP(str_free) struct str notes = STR_INIT;

	(void)state;
	options.pauses_s[BORDER_LINE] = 0.5;
	clear_folder();
	put_tone("a.wav", RATE, 1, 1.5, 0.5, 0);
	put_marked("b.wav", text, words, 2);
	assert_int_equal(join(pieces, 2, &options, &notes, NULL), 0);
	CLEANUP(free_text) char *srt = get_text("joined.srt");
	assert_non_null(strstr(srt, "00:00:02,050 --> "));
}

/* Words that their engine did not mark are estimated, and say so. */
static void words_are_listed(void **state)
{
	static const struct espeak_word words[] = {{0, 800, 1600}, {6, 1600, 2400}};
	static const struct join_piece pieces[] = {{"a.wav", "\"Ah,\" one two.", BORDER_LINE, -1},
						   {"b.wav", "One", BORDER_LINE, -1}};
	struct join_options options = {.words = true};
	CLEANUP(str_free) struct str notes = STR_INIT;

	(void)state;
	options.pauses_s[BORDER_LINE] = 0.5;
	clear_folder();
	put_marked("a.wav", "\"Ah,\" one two.", words, 2);
	put_tone("b.wav", RATE, 1, 1.0, 0.5, 0);
	assert_int_equal(join(pieces, 2, &options, &notes, NULL), 0);
	CLEANUP(free_text) char *json = get_text("joined.words.json");
	assert_string_equal(
		json,
		"[\n{\"word\":\"\\\"Ah,\\\"\",\"start\":0.100,\"end\":0.200,\"segment\":\"a\"},\n"
		"{\"word\":\"one\",\"start\":0.200,\"end\":0.300,\"segment\":\"a\"},\n"
		"{\"word\":\"two.\",\"start\":0.300,\"end\":1.000,\"segment\":\"a\",\"estimated\":"
		"true},\n"
		"{\"word\":\"One\",\"start\":1.500,\"end\":2.500,\"segment\":\"b\",\"estimated\":"
		"true}\n]\n");
	assert_string_equal(str_text(&notes),
			    "joined.wav: 2.5s\njoined.words.json: when each word is "
			    "heard\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_come_back),  cmocka_unit_test(damaged_chunks),
		cmocka_unit_test(words_are_found),  cmocka_unit_test(captions_follow_marks),
		cmocka_unit_test(words_are_listed),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
