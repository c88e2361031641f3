/* test_habits.c - files that differ from their voice's others: repeated words, swallowed ends,
 * another rate, a mean off zero. */
#include "tts_helpers.h"

#include "jobs/tts/state.h"

#define TEXT "The quick brown fox jumps over the lazy dog." /* 35 letters */

/* Teaches a voice: files of about 2.3 s for TEXT, some slower, some faster, that fade at their end.
 */
static void teach(struct habits *h, size_t files)
{
	for (size_t i = 0; i < files; i++) {
		struct heard heard = {.seconds = 2.3 + 0.1 * (double)(i % 5),
				      .rate = 24000,
				      .tail = 0.02 * (double)(i % 4)};
		char why[160];
		assert_true(habits_judge(h, "en", TEXT, &heard, why, sizeof(why)));
	}
}

static void what_is_unusual(void **state)
{
	static const struct {
		const char *name, *text;
		struct heard heard;
		size_t known;
		const char *why;
	} rows[] = {
		{"as always", TEXT, {2.6, 24000, 0.05}, 20, NULL},
		{"a slow one", TEXT, {4.4, 24000, 0.05}, 20, NULL},
		{"repeated",
		 TEXT,
		 {6.0, 24000, 0.05},
		 20,
		 "6.0 s where this voice takes about 2.5 s: something may be repeated"},
		{"the end is missing",
		 TEXT,
		 {0.8, 24000, 0.05},
		 20,
		 "0.8 s where this voice takes about 2.5 s: something may be missing"},
		{"cut off",
		 TEXT,
		 {2.5, 24000, 0.9},
		 20,
		 "it ends in full voice, where this voice's other files fade: the end may be cut "
		 "off"},
		{"another rate",
		 TEXT,
		 {2.5, 22050, 0.05},
		 20,
		 "22050 samples a second where this voice's other files have 24000"},
		{"too few are known", TEXT, {6.0, 24000, 0.9}, 11, NULL},
		{"too short to tell", "Wait!", {4.0, 24000, 0.9}, 20, NULL},
		{"digits are long", "In 1984, 2,500,000 people.", {5.2, 24000, 0.05}, 20, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct habits *h = habits_new();
		char why[160] = "";
		teach(h, rows[i].known);
		bool usual = habits_judge(h, "en", rows[i].text, &rows[i].heard, why, sizeof(why));
		if (usual != !rows[i].why || (rows[i].why && strcmp(why, rows[i].why)))
			fail_msg("%s: \"%s\"", rows[i].name, why);
		struct heard other = {60, 8000, 1}; /* another voice has habits of its own */
		assert_true(habits_judge(h, "de", TEXT, &other, why, sizeof(why)));
		habits_free(h);
	}
}

/* A voice all of whose files end loud is not doubted for it. */
static void loud_ends_may_be_usual(void **state)
{
	struct habits *h = habits_new();
	char why[160];

	(void)state;
	for (size_t i = 0; i < 40; i++) {
		struct heard heard = {2.5, 24000, 1};
		assert_true(habits_judge(h, "en", TEXT, &heard, why, sizeof(why)));
	}
	habits_free(h);
}

/* A third of bad files does not move the measure. */
static void bad_files_teach_little(void **state)
{
	struct habits *h = habits_new();
	char why[160];

	(void)state;
	for (size_t i = 0; i < 60; i++) {
		struct heard heard = {i % 3 == 2 ? 12 : 2.5, 24000, 0};
		bool usual = habits_judge(h, "en", TEXT, &heard, why, sizeof(why));
		if (i >= 12)
			assert_int_equal(usual, i % 3 != 2);
	}
	habits_free(h);
}

static void put_samples(const char *name, double offset, double fade)
{
	enum { RATE = 8000, FRAMES = 24000 };
	static unsigned char bytes[WAV_HEADER_BYTES + 2 * FRAMES];
	struct wav_format format = {.rate = RATE, .channels = 1, .bits = 16};

	wav_make_header(bytes, &format, 2 * FRAMES, false);
	for (size_t i = 0; i < FRAMES; i++) {
		double left = (FRAMES - (double)i) / RATE, level = left < fade ? left / fade : 1;
		long v = lround(
			32767 *
			(offset + 0.4 * level * sin(6.283185307179586 * 400 * (double)i / RATE)));
		bytes[WAV_HEADER_BYTES + 2 * i] = (unsigned char)(v & 0xff);
		bytes[WAV_HEADER_BYTES + 2 * i + 1] = (unsigned char)(v >> 8 & 0xff);
	}
	put(name, bytes, sizeof(bytes));
}

static void heard_in_a_file(void **state)
{
	CLEANUP(free_text) char *path = in_folder("x.wav");
	struct wav_sound sound;
	struct wav_info info;
	struct err err = {0};

	(void)state;
	for (int faded = 0; faded < 2; faded++) {
		put_samples("x.wav", 0.1, faded ? 0.5 : 0);
		CLEANUP(file_close) FILE *f = fopen(path, "re");
		assert_non_null(f);
		assert_int_equal(wav_read_header(f, &info, &err), 0);
		assert_int_equal(wav_listen(f, &info, &sound, &err), 0);
		assert_float_equal(sound.offset, 0.1, 0.001);
		if (faded)
			assert_true(sound.tail < 0.5);
		else
			assert_float_equal(sound.tail, 1, 0.02);
	}
}

static void an_offset_is_refused(void **state)
{
	CLEANUP(free_text) char *path = in_folder("x.wav");
	struct check_limits limits = {.min_duration = 0.35,
				      .max_duration = 3,
				      .max_silence = 2,
				      .max_clipped = 0.01,
				      .max_offset = 0.05,
				      .speed = 1};
	struct check check;
	struct err err = {0};

	(void)state;
	put_samples("x.wav", 0.1, 0.5);
	assert_int_equal(check_wav(path, TEXT, &limits, &check, &err), 0);
	assert_string_equal(check.reason, "its mean is 10 % of full scale off zero");
	assert_false(check.ok);
	put_samples("x.wav", 0.04, 0.5);
	assert_int_equal(check_wav(path, TEXT, &limits, &check, &err), 0);
	assert_true(check.ok);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_unusual),        cmocka_unit_test(loud_ends_may_be_usual),
		cmocka_unit_test(bad_files_teach_little), cmocka_unit_test(heard_in_a_file),
		cmocka_unit_test(an_offset_is_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
