/* test_join.c - the joined track: exact to the sample, at the wanted loudness, with subtitles and
 * chapters that fit. */
#include "join_bed.h"

static int64_t frames_of(const char *name, struct wav_info *info)
{
	CLEANUP(free_text) char *path = in_folder(name);
	CLEANUP(file_close) FILE *f = fopen(path, "re");
	struct err err = {0};

	if (!f || wav_read_header(f, info, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
	return info->frames;
}

static void to_the_sample(void **state)
{
	static const struct join_piece pieces[] = {
		{"a.wav", "First.", BORDER_NONE, -1},
		{"b.wav", "Second, cut.", BORDER_LINE, 0},
		{"c.wav", "Its other piece.", BORDER_NONE, 0},
		{"d.wav", "Third --> <b>.", BORDER_LINE, 1},
	};
	struct join_options options = {.pauses_s = {[BORDER_NONE] = 0.1, [BORDER_LINE] = 0.4},
				       .subtitles = true};
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct wav_info info;
	struct err err = {0};

	(void)state;
	clear_folder();
	put_tone("a.wav", 22050, 1, 1.0, 0.5, 0);
	put_tone("b.wav", 22050, 1, 0.5, 0.5, 0);
	put_tone("c.wav", 22050, 1, 0.25, 0.5, 0);
	put_tone("d.wav", 22050, 1, 2.0, 0.5, 0);
	if (join(pieces, 4, &options, &notes, &err) < 0)
		fail_msg("%s", err.msg);
	/* 0.25 s are 5513 samples, 0.4 s 8820, 0.1 s 2205 */
	assert_int_equal(frames_of("joined.wav", &info),
			 22050 + 8820 + 11025 + 2205 + 5513 + 8820 + 44100);
	CLEANUP(free_text) char *srt = get_text("joined.srt");
	assert_string_equal(srt,
			    "1\n00:00:00,000 --> 00:00:01,000\nFirst.\n\n"
			    "2\n00:00:01,400 --> 00:00:02,400\nSecond, cut. Its other piece.\n\n"
			    "3\n00:00:02,650 --> 00:00:04,650\nThird -> <b>.\n\n");
	CLEANUP(free_text) char *vtt = get_text("joined.vtt");
	assert_true(starts_with(vtt, "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nFirst.\n\n"));
	assert_non_null(strstr(vtt, "Third --&gt; &lt;b&gt;."));
	CLEANUP(free_text) char *chapters = get_text("chapters.txt");
	assert_string_equal(
		chapters,
		";FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/22050\nSTART=30870\nEND=49613\ntitle=One\n"
		"[CHAPTER]\nTIMEBASE=1/22050\nSTART=58433\nEND=102533\ntitle=Two \\= 2\\; "
		"\\#\\\\\n");
	assert_string_equal(
		str_text(&notes),
		"joined.wav: 4.7s\njoined.srt, joined.vtt: subtitles\nchapters.txt: 2 chapters\n");
	assert_false(is_there(".joined.work"));
}

/* The samples themselves, not only their number. */
static void the_same_samples(void **state)
{
	static const struct join_piece pieces[] = {{"a.wav", "a", BORDER_NONE, -1},
						   {"b.wav", "b", BORDER_LINE, -1}};
	struct join_options options = {PAUSES(0.001)};
	CLEANUP(str_free) struct str notes = STR_INIT;
	CLEANUP(str_free) struct str a = STR_INIT;
	CLEANUP(str_free) struct str b = STR_INIT;
	CLEANUP(str_free) struct str all = STR_INIT;
	CLEANUP(free_text) char *path_a = in_folder("a.wav");
	CLEANUP(free_text) char *path_b = in_folder("b.wav");
	CLEANUP(free_text) char *path = in_folder("joined.wav");

	(void)state;
	clear_folder();
	put_tone("a.wav", 8000, 2, 0.1, 0.5, 0);
	put_tone("b.wav", 8000, 2, 0.2, 0.3, 0);
	assert_int_equal(join(pieces, 2, &options, &notes, NULL), 0);
	assert_int_equal(path_read(path_a, 1 << 20, &a, NULL), 0);
	assert_int_equal(path_read(path_b, 1 << 20, &b, NULL), 0);
	assert_int_equal(path_read(path, 1 << 20, &all, NULL), 0);
	assert_int_equal(all.len, a.len + b.len - 44 + 8 * 4);
	assert_memory_equal(all.s + 44, a.s + 44, a.len - 44);
	assert_memory_equal(all.s + a.len + 8 * 4, b.s + 44, b.len - 44);
}

static void needs_ffmpeg(void)
{
	if (!ffmpeg_found())
		skip();
}

/* A quiet voice is lifted by gain alone, a loud one with high peaks goes through the limiter. */
static const struct {
	const char *name;
	double amplitude, target;
} levels[] = {
	{"quiet to -18", 0.05, -18},
	{"quiet to -23", 0.05, -23},
	{"loud to -18", 0.9, -18},
	{"near full scale, peaks limited", 0.2, -5.5},
};

/* By a run of ffmpeg that knows nothing of ours. The last "I:" it prints is that of the whole. */
static double measured_anew(const char *path)
{
	CLEANUP(free_text)
	char *line = xasprintf(
		"ffmpeg -nostdin -hide_banner -nostats -i '%s' -af ebur128 -f null - 2>&1 | "
		"sed -n 's/^ *I: *\\(.*\\) LUFS$/\\1/p' | tail -n 1",
		path);
	FILE *p = popen(line, "re");
	char said[64] = "nan";

	if (!p || !fgets(said, sizeof(said), p) || pclose(p) != 0)
		fail_msg("ffmpeg measured nothing");
	return strtod(said, NULL);
}

static void loudness(void **state)
{
	static const struct join_piece pieces[] = {{"a.wav", "a", BORDER_NONE, -1},
						   {"b.wav", "b", BORDER_LINE, -1}};

	(void)state;
	needs_ffmpeg();
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		struct join_options options = {PAUSES(0.4), .normalise = true,
					       .lufs = levels[i].target};
		CLEANUP(str_free) struct str notes = STR_INIT;
		CLEANUP(free_text) char *path = in_folder("joined.wav");
		struct wav_info info;
		struct err err = {0};
		clear_folder();
		put_tone("a.wav", 22050, 1, 3, levels[i].amplitude, 0);
		put_tone("b.wav", 22050, 1, 4, levels[i].amplitude / 2, 0);
		if (join(pieces, 2, &options, &notes, &err) < 0)
			fail_msg("%s: %s", levels[i].name, err.msg);
		assert_int_equal(frames_of("joined.wav", &info), 7 * 22050 + 8820);
		assert_int_equal(info.format.rate, 22050);
		double heard = measured_anew(path),
		       said = strtod(strstr(str_text(&notes), " at ") + 4, NULL);
		if (fabs(heard - levels[i].target) > 1 || fabs(heard - said) > 0.3)
			fail_msg("%s: measured %.1f, %s", levels[i].name, heard, str_text(&notes));
		assert_false(is_there(".joined.work"));
	}
}

static void silence_has_no_loudness(void **state)
{
	static const struct join_piece pieces[] = {{"a.wav", "a", BORDER_NONE, -1}};
	struct join_options options = {.normalise = true, .lufs = -18};
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct err err = {0};

	(void)state;
	needs_ffmpeg();
	clear_folder();
	put_tone("a.wav", 22050, 1, 2, 0, 0);
	assert_int_equal(join(pieces, 1, &options, &notes, &err), 0);
	assert_true(starts_with(str_text(&notes), "joined.wav: 2.0s, loudness left as it is: "));
	assert_true(is_there("joined.wav"));
}

static void other_formats_are_converted(void **state)
{
	static const struct join_piece pieces[] = {{"a.wav", "a", BORDER_NONE, -1},
						   {"b.wav", "b", BORDER_LINE, -1},
						   {"a.wav", "a", BORDER_LINE, -1}};
	struct join_options options = {PAUSES(0)};
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct wav_info info;
	struct err err = {0};

	(void)state;
	needs_ffmpeg();
	clear_folder();
	put_tone("a.wav", 22050, 1, 1, 0.5, 0);
	put_tone("b.wav", 44100, 2, 1, 0.5, 0);
	if (join(pieces, 3, &options, &notes, &err) < 0)
		fail_msg("%s", err.msg);
	int64_t frames = frames_of("joined.wav", &info);
	assert_true(frames >= 3 * 22050 - 32 && frames <= 3 * 22050 + 32);
	assert_int_equal(info.format.channels, 1);
	assert_false(is_there(".joined.work"));
}

/* Without ffmpeg the track is there all the same, and the note says what is missing. */
static void without_ffmpeg(void **state)
{
	static const struct join_piece pieces[] = {{"a.wav", "a", BORDER_NONE, -1},
						   {"b.wav", "b", BORDER_LINE, -1}};
	struct join_options options = {PAUSES(0.4), .normalise = true, .lufs = -18};
	CLEANUP(free_text) char *path = xstrdup(getenv("PATH"));
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct err err = {0};

	(void)state;
	clear_folder();
	put_tone("a.wav", 8000, 1, 1, 0.5, 0);
	put_tone("b.wav", 8000, 1, 1, 0.5, 0);
	setenv("PATH", folder, 1);
	int first = join(pieces, 2, &options, &notes, &err);
	put_tone("b.wav", 16000, 1, 1, 0.5, 0);
	int second = join(pieces, 2, &options, &notes, &err);
	setenv("PATH", path, 1);
	assert_int_equal(first, 0);
	assert_string_equal(str_text(&notes),
			    "joined.wav: 2.4s, loudness left as it is: ffmpeg is not installed\n");
	assert_int_equal(second, -1);
	assert_true(starts_with(
		err.msg,
		"b.wav: its sound format differs from the first segment's; converting: ffmpeg: "));
	assert_false(is_there(".joined.work"));
}

/* Chapters travel in the files that players take. */
static void other_formats_are_made(void **state)
{
	static const struct join_piece pieces[] = {{"a.wav", "a", BORDER_NONE, 0},
						   {"b.wav", "b", BORDER_LINE, 1}};
	static const char *const names[] = {"m4b", "mp3", "opus", "flac"};
	struct join_options options = {PAUSES(0.5)};
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct err err = {0};

	(void)state;
	needs_ffmpeg();
	clear_folder();
	put_tone("a.wav", 22050, 1, 1, 0.5, 0);
	put_tone("b.wav", 22050, 1, 2, 0.5, 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		options.formats[i] = ffmpeg_format_find(names[i]);
	if (join(pieces, 2, &options, &notes, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP(free_text)
		char *line = xasprintf(
			"ffprobe -v error -show_chapters -show_entries format=duration -of "
			"default=nk=0 %s/joined.%s | "
			"grep -cE '^(TAG:title=One|TAG:title=Two = 2; "
			"#.|duration=3.[5-9]|start_time=1.50)'",
			folder, names[i]);
		char said[16] = "";
		FILE *p = popen(line, "re");
		assert_non_null(p);
		assert_non_null(fgets(said, sizeof(said), p));
		pclose(p);
		if (atoi(said) != 4)
			fail_msg("joined.%s: %s of 4 lines; %s", names[i], said, str_text(&notes));
	}
	assert_non_null(strstr(str_text(&notes), "joined.m4b: with its chapters\n"));
	assert_false(is_there(".joined.work"));
}

/* A file for each chapter, cut from the track, with subtitles from its own beginning. */
static void chapters_get_files(void **state)
{
	static const struct join_piece pieces[] = {{"b.wav", "Before.", BORDER_NONE, -1},
						   {"a.wav", "First.", BORDER_LINE, 0},
						   {"b.wav", "More of it.", BORDER_LINE, 0},
						   {"a.wav", "Second.", BORDER_LINE, 1}};
	struct join_options options = {PAUSES(0.5), .subtitles = true, .by_chapter = true};
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct wav_info info;
	struct err err = {0};

	(void)state;
	clear_folder();
	put_tone("a.wav", 8000, 1, 1.5, 0.5, 0);
	put_tone("b.wav", 8000, 1, 2, 0.5, 0);
	if (join(pieces, 4, &options, &notes, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(frames_of("joined.wav", &info), 8000 * 17 / 2);
	assert_int_equal(frames_of("chapter-00.wav", &info), 8000 * 2);
	assert_int_equal(frames_of("chapter-01 One.wav", &info), 8000 * 4);
	assert_int_equal(frames_of("chapter-02 Two = 2; #-.wav", &info), 8000 * 3 / 2);
	CLEANUP(free_text) char *srt = get_text("chapter-01 One.srt");
	assert_string_equal(srt, "1\n00:00:00,000 --> 00:00:01,500\nFirst.\n\n"
				 "2\n00:00:02,000 --> 00:00:04,000\nMore of it.\n\n");
	assert_true(is_there("chapter-02 Two = 2; #-.vtt"));
	assert_non_null(strstr(str_text(&notes), "chapter-*: 3 files of chapters\n"));
	assert_false(is_there(".joined.work"));
	clear_folder();
	put_tone("a.wav", 8000, 1, 1.5, 0.5, 0);
	put_tone("b.wav", 8000, 1, 2, 0.5, 0);
	options.partial = true;
	assert_int_equal(join(pieces, 4, &options, &notes, &err), 0);
	assert_false(is_there("chapter-01 One.wav") || is_there("chapter-01 One.partial.wav"));
}

/* The old track survives a failure. */
static void a_missing_piece(void **state)
{
	static const struct join_piece pieces[] = {{"a.wav", "a", BORDER_NONE, -1},
						   {"absent.wav", "b", BORDER_LINE, -1}};
	struct join_options options = {PAUSES(0.4)};
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct err err = {0};

	(void)state;
	clear_folder();
	put_tone("a.wav", 8000, 1, 1, 0.5, 0);
	put_text("joined.wav", "old");
	assert_int_equal(join(pieces, 2, &options, &notes, &err), -1);
	assert_string_equal(err.msg, "absent.wav: No such file or directory");
	CLEANUP(free_text) char *old = get_text("joined.wav");
	assert_string_equal(old, "old");
	assert_false(is_there(".joined.work"));
}

/* A track that lacks segments leaves an earlier whole one alone; the next whole one replaces both.
 */
static void a_partial_track(void **state)
{
	static const struct join_piece pieces[] = {{"a.wav", "a", BORDER_NONE, 0},
						   {"a.wav", "b", BORDER_LINE, 1}};
	static const char *const whole[] = {"joined.wav", "joined.srt", "joined.vtt",
					    "chapters.txt"};
	static const char *const partial[] = {"joined.partial.wav", "joined.partial.srt",
					      "joined.partial.vtt", "chapters.partial.txt"};
	struct join_options options = {PAUSES(0.4), .subtitles = true, .partial = true};
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct err err = {0};

	(void)state;
	clear_folder();
	put_tone("a.wav", 8000, 1, 1, 0.5, 0);
	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		put_text(whole[i], "old");
	assert_int_equal(join(pieces, 1, &options, &notes, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		CLEANUP(free_text) char *old = get_text(whole[i]);
		assert_string_equal(old, "old");
		assert_true(is_there(partial[i]));
	}
	assert_non_null(strstr(str_text(&notes), "joined.partial.wav: "));
	options.partial = false;
	assert_int_equal(join(pieces, 2, &options, &notes, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		assert_true(is_there(whole[i]));
		assert_false(is_there(partial[i]));
	}
}

/* A track that is too long for the fields of a WAV file, as if they had few bits. */
static void a_long_track_is_rf64(void **state)
{
	static const struct join_piece pieces[] = {{"a.wav", "a", BORDER_NONE, -1, 0, 1.0},
						   {"b.wav", "b", BORDER_LINE, -1, 0, 0.5}};
	static const struct {
		int64_t plain_bytes;
		const char *begins;
	} cases[] = {{0, "RIFF"}, {40000, "RIFF"}, {20000, "RF64"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct join_options options = {PAUSES(0.5), .subtitles = true,
					       .plain_bytes = cases[i].plain_bytes};
		CLEANUP(str_free) struct str notes = STR_INIT;
		struct wav_info info;
		struct err err = {0};
		if (ffmpeg_found()) {
			options.formats[0] = ffmpeg_format_find("flac");
			options.formats[1] = ffmpeg_format_find("m4b");
		}
		clear_folder();
		put_tone("a.wav", 8000, 1, 1.0, 0.5, 0);
		put_tone("b.wav", 8000, 1, 0.5, 0.5, 0);
		if (join(pieces, 2, &options, &notes, &err) < 0)
			fail_msg("%s", err.msg);
		CLEANUP(free_text) char *path = in_folder("joined.wav");
		CLEANUP(str_free) struct str bytes = STR_INIT;
		assert_int_equal(path_read(path, 1 << 20, &bytes, NULL), 0);
		assert_memory_equal(bytes.s, cases[i].begins, 4);
		assert_int_equal(frames_of("joined.wav", &info), 16000);
		/* the samples of the first piece, then silence */
		CLEANUP(free_text) char *path_a = in_folder("a.wav");
		CLEANUP(str_free) struct str a = STR_INIT;
		assert_int_equal(path_read(path_a, 1 << 20, &a, NULL), 0);
		assert_memory_equal(bytes.s + info.data_offset, a.s + WAV_HEADER_BYTES, 16000);
		assert_true(is_there("joined.srt") && is_there("joined.vtt"));
		if (options.formats[0])
			assert_true(is_there("joined.flac") && is_there("joined.m4b"));
	}
}

/* Each cue begins at its time; behind one that takes longer, the next begins as soon as it can. */
static void cues_at_their_times(void **state)
{
	static const struct join_piece pieces[] = {
		{.file = "a.wav", .text = "a", .fitted = true, .at_s = 0.5, .until_s = 1.6},
		{.file = "b.wav", .text = "b", .fitted = true, .at_s = 2, .until_s = 2.5},
		{.file = "c.wav", .text = "c", .fitted = true, .at_s = 2.5, .until_s = 0},
		{.file = "a.wav",
		 .text = "its other piece",
		 .border = BORDER_LINE,
		 .fitted = true,
		 .at_s = -1,
		 .until_s = 4},
		{.file = "b.wav", .text = "b", .fitted = true, .at_s = 10, .until_s = 11},
	};
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct join_options options = {PAUSES(0.4), .subtitles = true};
	struct wav_info info;
	struct err err = {0};

	(void)state;
	clear_folder();
	put_tone("a.wav", 8000, 1, 1.0, 0.5, 0);
	put_tone("b.wav", 8000, 1, 0.75, 0.5, 0);
	put_tone("c.wav", 8000, 1, 0.5, 0.5, 0);
	if (join(pieces, 5, &options, &notes, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(frames_of("joined.wav", &info), 10.75 * 8000);
	CLEANUP(free_text) char *srt = get_text("joined.srt");
	assert_non_null(strstr(srt, "00:00:00,500 --> "));
	assert_non_null(strstr(srt, "00:00:02,000 --> "));
	assert_non_null(strstr(srt, "00:00:10,000 --> "));
	assert_true(starts_with(str_text(&notes),
				"2 of 4 cues end after their time: b.wav by 0.25 s, a.wav by 0.65 "
				"s; others begin up to 0.25 s late\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_the_sample),
		cmocka_unit_test(the_same_samples),
		cmocka_unit_test(cues_at_their_times),
		cmocka_unit_test(loudness),
		cmocka_unit_test(silence_has_no_loudness),
		cmocka_unit_test(other_formats_are_converted),
		cmocka_unit_test(without_ffmpeg),
		cmocka_unit_test(a_missing_piece),
		cmocka_unit_test(chapters_get_files),
		cmocka_unit_test(a_partial_track),
		cmocka_unit_test(a_long_track_is_rf64),
		cmocka_unit_test(other_formats_are_made),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
