/* test_captions.c - subtitles of a joined track. */
#include "join_bed.h"

static const struct {
	const char *what, *text, *want;
} captions[] = {
	{"one line", "Short.", "00:00:00,000 --> 00:00:10,000\nShort.\n"},
	{"two lines", "This is a text that does not fit into one line of forty-two.",
	 "00:00:00,000 --> 00:00:10,000\nThis is a text that does\nnot fit into one line of "
	 "forty-two.\n"},
	{"just 42", "123456789 123456789 123456789 123456789 12",
	 "00:00:00,000 --> 00:00:10,000\n123456789 123456789 123456789 123456789 12\n"},
	{"a word that is too long",
	 "Short Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch here.",
	 "00:00:00,000 --> "
	 "00:00:10,000\nShort\nLlanfairpwllgwyngyllgogerychwyrndrobwlllla\n"},
	{"a line ends behind a comma", "When the wind had gone, they sat and looked at the sea.",
	 "00:00:00,000 --> 00:00:10,000\nWhen the wind had gone,\nthey sat and looked at the "
	 "sea.\n"},
	{"a text without blanks", "昔々、あるところに、お爺さんとお婆さんが住んでいました。",
	 "00:00:00,000 --> "
	 "00:00:10,000\n昔々、あるところに、\nお爺さんとお婆さんが住んでいました。\n"},
};

static void caption_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(captions); i++) {
		struct cue cue = {captions[i].text, 0, 80000};
		CLEANUP(str_free) struct str got = STR_INIT;
		subtitles_srt(&got, &cue, 1, 0, 8000);
		const char *want = captions[i].want, *newline = strchr(want, '\n');
		if (!strstr(str_text(&got), newline))
			fail_msg("%s: got \"%s\", want \"%s\"", captions[i].what, str_text(&got),
				 want);
	}
}

/* Lines break by the rules of the language, too. */
static void lines_keep_ordinals(void **state)
{
	struct piece *lines;

	(void)state;
	assert_int_equal(
		captions_wrap("die im 19. Jahrhundert geschrieben worden waren.", "de", &lines), 2);
	assert_int_equal(lines[0].len, strlen("die im 19. Jahrhundert"));
	free(lines);
}

/* 280 characters become several captions that follow each other without a gap and end where the
 * sound ends. */
static void long_captions(void **state)
{
	struct str text = STR_INIT, got = STR_INIT;
	size_t lines = 0;

	(void)state;
	for (int i = 0; i < 28; i++)
		str_addf(&text, "%sword%05d", i ? " " : "", i);
	struct cue cue = {str_text(&text), 8000, 8000 + 8000 * 18};
	subtitles_srt(&got, &cue, 1, 0, 8000);
	assert_true(starts_with(str_text(&got), "1\n00:00:01,000 --> "));
	assert_non_null(strstr(str_text(&got), " --> 00:00:19,000\n"));
	char before[13] = "00:00:01,000";
	for (const char *p = str_text(&got); (p = strstr(p, " --> ")); p += 5, lines++) {
		assert_memory_equal(p - 12, before, 12);
		memcpy(before, p + 5, 12);
	}
	assert_int_equal(lines, 4); /* 28 words, 4 a line, 2 lines each */
	str_free(&text);
	str_free(&got);
}

/* A second at least, two lines at most; 1000 samples a second. */
static const struct {
	const char *what;
	struct cue cues[3];
	const char *want; /* begin-end text; */
} timings[] = {
	{"each long enough",
	 {{"One.", 0, 1000}, {"Two.", 1100, 2200}},
	 "0-1000 One.; 1100-2200 Two.; "},
	{"short ones are shown together",
	 {{"One.", 0, 400}, {"Two.", 500, 1200}, {"Three.", 1300, 2500}},
	 "0-1200 One. Two.; 1300-2500 Three.; "},
	{"a short one at the end", {{"One.", 0, 1500}, {"Two.", 1700, 2000}}, "0-2000 One. Two.; "},
	{"the last one outlasts the track",
	 {{"One.", 0, 1500}, {"Two.", 2600, 2900}},
	 "0-1500 One.; 2600-3600 Two.; "},
	{"too far apart: it stays",
	 {{"One.", 0, 300}, {"Two.", 2000, 3500}},
	 "0-1000 One.; 2000-3500 Two.; "},
	{"no room for both: it stays as long as it may",
	 {{"Well.", 0, 300},
	  {"This takes two lines of forty-two letters, all of them to the brim.", 400, 4000},
	  {0}},
	 "0-4000 Well. This takes two lines of forty-two letters, all of them to the brim.; "},
	{"three lines would be too many",
	 {{"Well, there it is now.", 0, 300},
	  {"This takes two lines of forty-two letters, all of them to the brim.", 400, 4000}},
	 "0-2753 Well, there it is now. This takes two lines of forty-two letters,; 2753-4000 all "
	 "of them to the brim.; "},
	{"each sentence of up to two lines has a caption of its own",
	 {{"The old keeper climbed the stairs of the lighthouse slowly. He counted every single "
	   "step as he had done for years.",
	   0, 8000}},
	 "0-4260 The old keeper climbed the stairs of the lighthouse slowly.; 4260-8000 He counted "
	 "every single step as he had done for years.; "},
	{"ordinals end no caption",
	 {{"Im Juli 1921 brannte sie zum ersten Mal ab, doch am 3. Mai des folgenden Jahres stand "
	   "sie wieder da.",
	   0, 8000, "de"}},
	 "0-4452 Im Juli 1921 brannte sie zum ersten Mal ab,; 4452-8000 doch am 3. Mai des "
	 "folgenden "
	 "Jahres stand sie wieder da.; "},
	{"one text in two halves, cut behind its comma",
	 {{"The first half of a sentence that goes on for long, and then its other half follows at "
	   "once.",
	   0, 8000}},
	 "0-4444 The first half of a sentence that goes on for long,; 4444-8000 and then its other "
	 "half follows at once.; "},
};

static void caption_times(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(timings); i++) {
		CLEANUP(str_free) struct str got = STR_INIT;
		struct caption *made;
		size_t count = 0;
		while (count < ARRAY_LEN(timings[i].cues) && timings[i].cues[count].text)
			count++;
		count = captions_make(&made, timings[i].cues, count, 1000);
		for (size_t k = 0; k < count; k++)
			str_addf(&got, "%lld-%lld %s; ", (long long)made[k].begin,
				 (long long)made[k].end, made[k].text);
		captions_free(made, count);
		if (strcmp(str_text(&got), timings[i].want))
			fail_msg("%s: got \"%s\", want \"%s\"", timings[i].what, str_text(&got),
				 timings[i].want);
	}
}

static uint32_t turn(uint32_t *state)
{
	return *state = *state * 1664525 + 1013904223;
}

/* A text of up to `most` words of up to 14 letters; some end a clause or a sentence. */
static char *random_text(uint32_t *state, uint32_t most)
{
	static const char *const ends[] = {"", "", "", "", "", ",", ".", "!\""};
	struct str text = STR_INIT;

	for (uint32_t words = 1 + (turn(state) >> 8) % most; words; words--) {
		str_add(&text, text.len ? " " : "");
		for (uint32_t n = 1 + (turn(state) >> 8) % 14; n; n--)
			str_addc(&text, (char)('a' + (turn(state) >> 8) % 26));
		str_add(&text, ends[(turn(state) >> 8) % ARRAY_LEN(ends)]);
	}
	return str_detach(&text);
}

static void check_caption(const struct caption *c, const struct caption *next, uint32_t seed)
{
	struct piece *lines;
	size_t count = captions_wrap(c->text, NULL, &lines);

	for (size_t i = 0; i < count; i++)
		if (lines[i].len > CAPTION_WIDTH)
			fail_msg("seed %u: a line of %zu: %s", seed, lines[i].len, c->text);
	free(lines);
	if (count > CAPTION_LINES)
		fail_msg("seed %u: %zu lines: %s", seed, count, c->text);
	if (c->end - c->begin < 1000)
		fail_msg("seed %u: only %lld ms: %s", seed, (long long)(c->end - c->begin),
			 c->text);
	if (next && c->end > next->begin)
		fail_msg("seed %u: it ends after the next one begins: %s", seed, c->text);
}

/* Speech of any rhythm, at 20 characters in a second: no caption is too short, too long or lost. */
static void captions_of_any_speech(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 3000; seed++) {
		uint32_t random = seed;
		struct cue cues[12];
		CLEANUP(str_free) struct str all = STR_INIT;
		CLEANUP(str_free) struct str shown = STR_INIT;
		struct caption *made;
		int64_t now = 0;
		for (size_t i = 0; i < ARRAY_LEN(cues); i++) {
			char *text = random_text(&random, i % 3 ? 3 : 40);
			cues[i] =
				(struct cue){text, now, now + (int64_t)strlen(text) * 50, NULL, 0};
			now = cues[i].end + (turn(&random) >> 8) % 1200;
			str_addf(&all, "%s%s", i ? " " : "", text);
		}
		size_t count = captions_make(&made, cues, ARRAY_LEN(cues), 1000);
		for (size_t i = 0; i < count; i++) {
			check_caption(&made[i], i + 1 < count ? &made[i + 1] : NULL, seed);
			str_addf(&shown, "%s%s", i ? " " : "", made[i].text);
		}
		assert_string_equal(str_text(&shown), str_text(&all));
		captions_free(made, count);
		for (size_t i = 0; i < ARRAY_LEN(cues); i++)
			free((void *)cues[i].text);
	}
}

/* A long text is cut where the voice pauses, not where the letters say. */
static void captions_follow_the_voice(void **state)
{
	static const struct join_piece pieces[] = {
		{"a.wav",
		 "The first half of a sentence that goes on for long, and then its other half "
		 "follows at once.",
		 0, -1}};
	struct join_options options = {.pauses_s = {[BORDER_LINE] = 0.4}, .subtitles = true};
	CLEANUP(str_free) struct str notes = STR_INIT;

	(void)state;
	clear_folder();
	/* a pause from 3.5 s to 3.9 s; by letters the cut is at 4.10 s. A caption begins with the
	 * voice, to 10 ms */
	put_tone("a.wav", 22050, 1, 7.0, 0.5, 0.4);
	assert_int_equal(join(pieces, 1, &options, &notes, NULL), 0);
	CLEANUP(free_text) char *srt = get_text("joined.srt");
	assert_non_null(strstr(srt, "00:00:00,000 --> 00:00:03,891\n"));
	assert_non_null(strstr(srt, " --> 00:00:07,400\nand then its other half follows at once."));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caption_lines),
		cmocka_unit_test(lines_keep_ordinals),
		cmocka_unit_test(long_captions),
		cmocka_unit_test(caption_times),
		cmocka_unit_test(captions_of_any_speech),
		cmocka_unit_test(captions_follow_the_voice),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
