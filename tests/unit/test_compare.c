/* test_compare.c - what a file says against its text: the words of both, the longest run that
 * differs, and the chunk that brings the transcript. */
#include "join_bed.h"

#include "jobs/tts/compare.h"

/* ---- the words ---- */

static const struct {
	const char *name, *language, *text, *words;
} normal[] = {
	{"case and punctuation", "en", "\"Wait!\" -- who GOES there?", "wait who goes there"},
	{"apostrophes", "en", "O'Connor\xe2\x80\x99s don't", "oconnors dont"},
	{"hyphens and dashes", "en", "well-known\xe2\x80\x94yes", "well known yes"},
	{"a year", "en", "In 1984, he", "in 1984 he"},
	{"a year as words", "en", "in nineteen eighty-four he", "in 1984 he"},
	{"a year in full", "en", "in one thousand nine hundred and eighty four he", "in 1984 he"},
	{"2024", "en", "twenty twenty-four", "2024"},
	{"1905", "en", "nineteen oh five", "1905"},
	{"2000", "en", "in two thousand they", "in 2000 they"},
	{"1900", "en", "in nineteen hundred they", "in 1900 they"},
	{"thousands", "en", "1,234,567", "1234567"},
	{"thousands as words", "en",
	 "one million two hundred thirty-four thousand five hundred and sixty-seven", "1234567"},
	{"money", "en", "paid $5.50 now", "paid 550 now"},
	{"money as words", "en", "paid five dollars and fifty cents now", "paid 550 now"},
	{"money, halfway", "en", "3,250 dollars", "3250"},
	{"money, sign", "en", "$3,250", "3250"},
	{"a decimal", "en", "about 3.14 of", "about 314 of"},
	{"a decimal as words", "en", "about three point one four of", "about 314 of"},
	{"millions", "en", "3.5 million euros", "three point five million"},
	{"whole millions", "en", "3 million", "3000000"},
	{"whole millions as words", "en", "three million", "3000000"},
	{"percent", "en", "10% of", "10 of"},
	{"percent as words", "en", "ten percent of", "10 of"},
	{"a phone number", "en", "555-1234", "5551234"},
	{"a phone number as words", "en", "five five five one two three four", "5551234"},
	{"a time", "en", "at 7:30 in", "at 730 in"},
	{"a time as words", "en", "at seven thirty in", "at 730 in"},
	{"ordinals", "en", "on the 21st of March", "on the 21 of march"},
	{"ordinals as words", "en", "on the twenty-first of March", "on the 21 of march"},
	{"one and only", "en", "the one and only", "the 1 and only"},
	{"a list", "en", "1, 2 and 3 apples", "123 apples"},
	{"a list as words", "en", "one, two, and three apples", "123 apples"},
	{"titles", "en", "Mr. and Mrs. Smith", "mister and missus smith"},
	{"the end of a sentence", "en", "It was 7. Then", "it was 7 then"},
	{"hundreds", "en", "a hundred men", "a 100 men"},
	{"a hundred times hundred", "en", "hundred hundred thousand thousand", "1001000001000"},
	{"letters and digits", "en", "mp3 a 5km", "mp 3 a 5 km"},
	{"kokoro's phonemes", "en", "[Misaki](/mis\xcb\x88\xc9\x91ki/) sings", "misaki sings"},
	{"half of that", "en", "a](/b", "a b"},
	{"German", "de",
	 "Die S\xc3\x9c\xc3\x9f"
	 "e \xc3\x84pfel, 42!",
	 "die s\xc3\xbc\xc3\x9f"
	 "e \xc3\xa4pfel 42"},
	{"Greek and Russian", NULL, "\xce\x91\xce\x92 \xd0\x96\xd0\x81",
	 "\xce\xb1\xce\xb2 \xd0\xb6\xd1\x91"},
	{"no language: numbers stay", NULL, "forty-two $5", "forty two 5"},
	{"signs", "en", "R&D @ 5 + 3 = 8", "r and d at 5 plus 3 equals 8"},
	{"nothing", "en", " ... \xe2\x80\x94 !", ""},
};

static void words_of_texts(void **state)
{
	struct comparison c;
	bool bad = false;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(normal); i++) {
		compare_texts(normal[i].text, normal[i].words, normal[i].language, &c);
		if (!c.differing && c.words == c.heard)
			continue;
		print_error("%s: \"%s\" has %zu words, not %zu; \"%s\" is not \"%s\"\n",
			    normal[i].name, normal[i].text, c.words, c.heard, c.said, c.got);
		bad = true;
	}
	assert_false(bad);
}

/* ---- the verdict ---- */

static const struct {
	const char *name, *language, *text, *heard;
	size_t differing, run;
	bool suspect;
} verdicts[] = {
	/* files that are right, as Whisper heard them */
	{"the same", "en", "Hello, old world.", "hello old world", 0, 0, false},
	{"numbers", "en", "In 1984, 7 men crossed the river.",
	 "In 1984, seven men crossed the river.", 0, 0, false},
	{"a compound", "en", "She sells sea shells.", "She sells seashells.", 0, 0, false},
	{"an abbreviation", "en", "The U.S.A. declared", "The USA declared", 0, 0, false},
	{"another spelling", "en", "A colourful neighbour organised the theatre programme.",
	 "A colorful neighbor organized the theater program.", 0, 0, false},
	{"names", "en", "Tolstoy, Dostoevsky and Chekhov wrote in Russian.",
	 "Tolspoy, the Stokesky and Chekhov Road in Russian.", 1, 1, false},
	{"one word", "en", "He saw the cat in the garden.", "He saw the car in the garden.", 0, 0,
	 false},
	{"two words", "en", "The ship sailed for the north coast at dawn.",
	 "The ship sailed for a frosty coast at dawn.", 2, 2, false},
	{"a short text", "en", "Copenhagen", "Coppenhagen.", 0, 0, false},
	{"one word of a short text", "en", "Kyiv", "cave", 1, 1, false},
	{"German number", "de", "Es war 1984 in Berlin.",
	 "Es war neunzehnhundert vier und achtzig in Berlin.", 1, 1, false},
	{"signs alone", "en", "...", "dot dot dot", 0, 0, false},
	/* files that are wrong */
	{"nothing", "en", "Hello.", "", 1, 1, true},
	{"the end is missing", "en", "The ship sailed for the north coast at dawn.",
	 "The ship sailed for the", 4, 4, true},
	{"a part is repeated", "en", "The ship sailed at dawn.",
	 "The ship sailed at dawn. The ship sailed at dawn.", 5, 5, true},
	{"babble in the middle", "en", "The ship sailed for the north coast at dawn.",
	 "The ship uh ya da mo ko coast at dawn.", 5, 5, true},
	{"a short text, all wrong", "en", "Hello there", "banana bread", 2, 2, true},
	{"another text", "en", "one text here and there", "quite another thing was said", 5, 5,
	 true},
};

static void verdicts_of_transcripts(void **state)
{
	struct comparison c;
	bool bad = false;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(verdicts); i++) {
		compare_texts(verdicts[i].text, verdicts[i].heard, verdicts[i].language, &c);
		if (c.differing == verdicts[i].differing && c.run == verdicts[i].run &&
		    c.suspect == verdicts[i].suspect)
			continue;
		print_error("%s: %zu differ, run of %zu, %s: \"%s\" as \"%s\"\n", verdicts[i].name,
			    c.differing, c.run, c.suspect ? "suspect" : "good", c.said, c.got);
		bad = true;
	}
	assert_false(bad);
	compare_texts("The ship sailed at dawn.", "The ship mailed my long letters.", "en", &c);
	assert_string_equal(c.said, "sailed at dawn");
	assert_string_equal(c.got, "mailed my long letters");
}

static void repeat(struct str *to, const char *words, size_t times)
{
	for (size_t i = 0; i < times; i++)
		str_add(to, words);
}

/* Foreign texts of any length end, and what is shown of them fits. */
static void large_transcripts(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str heard = STR_INIT;
	struct comparison c;

	(void)state;
	repeat(&text, "the ship sailed at dawn ", 4000);
	repeat(&heard, "caf\xc3\xa9 \xe2\x99\xaa ", 40000);
	compare_texts(str_text(&text), str_text(&heard), "en", &c);
	assert_true(c.suspect && c.words == 20000 && c.heard == 40000);
	assert_true(utf8_valid(c.said, strlen(c.said)) && utf8_valid(c.got, strlen(c.got)));
	compare_texts(str_text(&text), str_text(&text), "en", &c);
	assert_false(c.suspect);
	compare_texts("one", str_text(&heard), "en", &c);
	assert_true(c.suspect);
	compare_texts(str_text(&text), "", "en", &c);
	assert_true(c.suspect && c.run == 20000);
	repeat(&heard, "9", 100000);
	compare_texts("nine", str_text(&heard) + 40000 * 9, "en", &c);
}

/* ---- the chunk ---- */

static void put_le32(char *to, size_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (char)(value >> 8 * i & 0xff);
}

/* A tone with these bytes behind it. Returns the transcript; the caller frees it. */
static char *transcript_of(const void *behind, size_t len)
{
	CLEANUP(free_text) char *path = in_folder("t.wav");
	CLEANUP(str_free) struct str all = STR_INIT;
	struct wav_info info;
	struct err err = {0};

	put_tone("t.wav", 8000, 1, 0.1, 0.5, 0);
	assert_int_equal(path_read(path, 1 << 20, &all, NULL), 0);
	str_addn(&all, behind, len);
	put_le32(all.s + 4, all.len - 8);
	put("t.wav", all.s, all.len);
	CLEANUP(file_close) FILE *f = fopen(path, "re");
	assert_int_equal(wav_read_header(f, &info, &err), 0);
	return wav_transcript(f, &info);
}

#define CHUNK(bytes) bytes, sizeof(bytes) - 1

static const struct {
	const char *name, *bytes;
	size_t len;
	const char *want; /* NULL: none */
} chunks[] = {
	{"none", CHUNK(""), NULL},
	{"a text", CHUNK("hear\3\0\0\0one\0"), "one"},
	{"no word", CHUNK("hear\0\0\0\0"), ""},
	{"behind another", CHUNK("LIST\4\0\0\0adtlhear\2\0\0\0ab"), "ab"},
	{"the first of two", CHUNK("hear\2\0\0\0abhear\2\0\0\0cd"), "ab"},
	{"another chunk", CHUNK("HEAR\2\0\0\0ab"), NULL},
	{"cut", CHUNK("hear\5\0\0\0abc"), NULL},
	{"longer than all files",
	 CHUNK("hear\xff\xff\xff\xff"
	       "abc"),
	 NULL},
	{"up to a zero", CHUNK("hear\4\0\0\0ab\0c"), "ab"},
	{"control characters and no UTF-8", CHUNK("hear\4\0\0\0a\x1b\xff\n"), "a\\x1b\\xff\\x0a"},
};

static void transcripts_in_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
		CLEANUP(free_text) char *got = transcript_of(chunks[i].bytes, chunks[i].len);
		if (!got != !chunks[i].want || (got && strcmp(got, chunks[i].want)))
			fail_msg("%s: \"%s\"", chunks[i].name, got ? got : "(none)");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_texts),
		cmocka_unit_test(verdicts_of_transcripts),
		cmocka_unit_test(large_transcripts),
		cmocka_unit_test(transcripts_in_files),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
