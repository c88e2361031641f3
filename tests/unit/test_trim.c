/* test_trim.c - silence and stray sounds at the ends of the pieces stay out of the track, and its
 * pauses are as long as they should be. */
#include "join_bed.h"

#define RATE 16000

/* A file of stretches: seconds and amplitude, ended by 0 s. */
struct stretch {
	double seconds, amplitude;
};

static void put_stretches(const char *name, const struct stretch *list)
{
	struct wav_format format = {.rate = RATE, .channels = 1, .bits = 16};
	CLEANUP(str_free) struct str bytes = STR_INIT;
	unsigned char header[WAV_HEADER_BYTES];
	size_t frames = 0;

	for (size_t i = 0; list[i].seconds > 0; i++)
		frames += (size_t)lround(list[i].seconds * RATE);
	wav_make_header(header, &format, (int64_t)frames * 2, false);
	str_addn(&bytes, (const char *)header, sizeof(header));
	for (size_t i = 0; list[i].seconds > 0; i++)
		for (long k = 0; k < lround(list[i].seconds * RATE); k++) {
			long v = lround(list[i].amplitude * 32767 * (k % 40 < 20 ? 1 : -1));
			str_addc(&bytes, (char)(v & 0xff));
			str_addc(&bytes, (char)(v >> 8 & 0xff));
		}
	put(name, bytes.s, bytes.len);
}

static const struct {
	const char *what;
	struct stretch list[8];
	double begin, end; /* of the speech, in seconds */
	size_t strays;
} files[] = {
	{"sound alone", {{1, 0.5}}, 0, 1, 0},
	{"silence at both ends", {{0.3, 0}, {1, 0.5}, {0.5, 0}}, 0.3, 1.3, 0},
	{"noise of the room at both ends", {{0.3, 0.002}, {1, 0.5}, {0.5, 0.002}}, 0.3, 1.3, 0},
	{"a quiet voice", {{0.3, 0.0001}, {1, 0.01}, {0.5, 0.0001}}, 0.3, 1.3, 0},
	{"a pause within", {{0.2, 0}, {1, 0.5}, {0.6, 0}, {1, 0.5}, {0.2, 0}}, 0.2, 2.8, 0},
	{"a click at the end", {{0.2, 0}, {1, 0.5}, {0.4, 0}, {0.03, 0.6}, {0.1, 0}}, 0.2, 1.2, 1},
	{"clicks at both ends",
	 {{0.05, 0.6}, {0.3, 0}, {1, 0.5}, {0.4, 0}, {0.03, 0.6}, {0.1, 0}},
	 0.35,
	 1.35,
	 2},
	{"the last letter of a word", {{1, 0.5}, {0.12, 0}, {0.03, 0.1}, {0.3, 0}}, 0, 1.15, 0},
	{"a short word at the end", {{1, 0.5}, {0.4, 0}, {0.15, 0.3}, {0.3, 0}}, 0, 1.55, 0},
	{"a short sound alone", {{0.3, 0}, {0.05, 0.5}, {0.3, 0}}, 0.3, 0.35, 0},
	{"two short sounds", {{0.3, 0}, {0.05, 0.5}, {0.4, 0}, {0.05, 0.5}}, 0.3, 0.8, 0},
	{"silence alone", {{0.3, 0}}, 0, 0.3, 0},
};

static void speech_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CLEANUP(free_text) char *path = in_folder("a.wav");
		struct wav_info info;
		struct wav_trim trim;
		put_stretches("a.wav", files[i].list);
		CLEANUP(file_close) FILE *f = fopen(path, "re");
		assert_int_equal(wav_read_header(f, &info, NULL), 0);
		assert_int_equal(wav_trim(f, &info, &trim, NULL), 0);
		double begin = (double)trim.begin / RATE, end = (double)trim.end / RATE;
		if (fabs(begin - files[i].begin) > 0.0101 || fabs(end - files[i].end) > 0.0101 ||
		    trim.strays != files[i].strays)
			fail_msg("%s: from %.3f to %.3f, %zu strays", files[i].what, begin, end,
				 trim.strays);
		assert_true(trim.least <= trim.begin && trim.most >= trim.end);
	}
}

/* The lengths of the silences of joined.wav, in ms, separated by blanks. */
static void show_silences(struct str *to)
{
	CLEANUP(free_text) char *path = in_folder("joined.wav");
	CLEANUP(file_close) FILE *f = fopen(path, "re");
	struct wav_info info;
	float *levels;
	size_t count, quiet = 0;

	assert_int_equal(wav_read_header(f, &info, NULL), 0);
	assert_int_equal(wav_levels(f, &info, &levels, &count, NULL), 0);
	for (size_t i = 0; i <= count; i++) {
		if (i < count && levels[i] < 0.01F) {
			quiet++;
			continue;
		}
		if (quiet)
			str_addf(to, "%s%zu", to->len ? " " : "", quiet * 10);
		quiet = 0;
	}
	free(levels);
}

static void pauses_are_exact(void **state)
{
	static const struct join_piece pieces[] = {
		{"a.wav", "One", BORDER_NONE, 0},        {"b.wav", "two,", BORDER_NONE, 0},
		{"a.wav", "three.", BORDER_SENTENCE, 0}, {"b.wav", "Four.", BORDER_LINE, 0},
		{"a.wav", "Five.", BORDER_PARAGRAPH, 0}, {"b.wav", "Six.", BORDER_HEADING, 0},
		{"a.wav", "Seven.", BORDER_SCENE, 0},    {"b.wav", "Eight.", BORDER_CHAPTER, 1},
		{"a.wav", "Nine.", BORDER_LINE, 1, 1.5}, {"a.wav", "Ten.", BORDER_SENTENCE, 1}};
	static const struct stretch a[] = {{0.3, 0}, {1, 0.5}, {0.7, 0}, {0}},
				    b[] = {{1, 0.5}, {0.3, 0}, {0.03, 0.6}, {0.2, 0}, {0}};
	struct join_options options = {.pauses_s = {[BORDER_NONE] = 0,
						    [BORDER_SENTENCE] = 0.4,
						    [BORDER_LINE] = 0.5,
						    [BORDER_PARAGRAPH] = 0.7,
						    [BORDER_HEADING] = 1.2,
						    [BORDER_SCENE] = 2,
						    [BORDER_CHAPTER] = 2.5},
				       .trim = true,
				       .subtitles = true};
	CLEANUP(str_free) struct str notes = STR_INIT;
	CLEANUP(str_free) struct str got = STR_INIT;
	struct err err = {0};

	(void)state;
	clear_folder();
	put_stretches("a.wav", a);
	put_stretches("b.wav", b);
	if (join(pieces, ARRAY_LEN(pieces), &options, &notes, &err) < 0)
		fail_msg("%s", err.msg);
	show_silences(&got);
	/* first 50 ms before the first sound, last 100 ms behind the last one */
	assert_string_equal(str_text(&got), "50 400 500 700 1200 2000 2500 1500 400 100");
	assert_true(starts_with(str_text(&notes), "stray sounds left out of the track in 4 files: "
						  "b.wav, b.wav, b.wav, b.wav\njoined.wav: 19s\n"));
	/* ten seconds of speech, and the pauses */
	CLEANUP(free_text) char *chapters = get_text("chapters.txt");
	/* the second begins 7.05 + 0 + 0.4 + 0.5 + 0.7 + 1.2 + 2 + 2.5 s after the beginning */
	assert_non_null(strstr(chapters, "START=229600\n"));
	clear_folder();
	put_stretches("a.wav", a);
	options.trim = false;
	assert_int_equal(join(pieces, 1, &options, &notes, &err), 0);
	str_reset(&got);
	show_silences(&got);
	assert_string_equal(str_text(&got), "300 700");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speech_is_found),
		cmocka_unit_test(pauses_are_exact),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
