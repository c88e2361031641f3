/* test_wav.c - WAV headers good and bad, what is heard in the samples, and the verdict on a
 * finished file. */
#include "tts_helpers.h"

#include "jobs/tts/state.h"

static const struct check_limits limits = {
	.min_duration = 0.35,
	.max_duration = 3,
	.max_silence = 2,
	.max_clipped = 0.01,
	.speed = 1,
};
#define TEXT "This is a text of about sixty characters, so four seconds long."

static const struct {
	const char *name;
	double seconds, amplitude, silence;
	const char *reason; /* "" when it is good */
} sounds[] = {
	{"a fitting tone is good", 4, 0.5, 0, ""},
	{"a pause of 1.5 s is good", 4, 0.5, 1.5, ""},
	{"a long pause", 4, 0.5, 2.5, "2.5 s of silence inside"},
	{"silence", 4, 0, 0, "silent all through"},
	{"clipped", 4, 1.5, 0, "clipped: 53.5 % of the samples"},
	{"full scale without clipping", 4, 0.99, 0, ""},
	{"too short", 0.3, 0.5, 0, "too short: 0.30 s where the text takes at least 1.17 s"},
	{"too long", 30, 0.5, 0, "too long: 30.00 s where the text takes at most 17.10 s"},
	{"no sample at all", 0, 0.5, 0, "too short: 0.00 s where the text takes at least 1.17 s"},
};

static void verdicts(void **state)
{
	CLEANUP(free_text) char *path = in_folder("x.wav");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sounds); i++) {
		struct check check;
		struct err err = {0};
		put_tone("x.wav", 22050, 1, sounds[i].seconds, sounds[i].amplitude,
			 sounds[i].silence);
		if (check_wav(path, TEXT, &limits, &check, &err) < 0)
			fail_msg("%s: %s", sounds[i].name, err.msg);
		if (strcmp(check.reason, sounds[i].reason) || check.ok != !sounds[i].reason[0])
			fail_msg("%s: got \"%s\", want \"%s\"", sounds[i].name, check.reason,
				 sounds[i].reason);
		assert_int_equal(check.sample_rate, 22050);
	}
}

static void engine_cap(void **state)
{
	CLEANUP(free_text) char *path = in_folder("x.wav");
	struct check_limits capped = limits;
	struct check check;
	struct err err = {0};

	(void)state;
	capped.cap_s = 40;
	put_tone("x.wav", 8000, 1, 39.95, 0.5, 0);
	assert_int_equal(check_wav(path, TEXT, &capped, &check, &err), 0);
	assert_string_equal(check.reason, "40.0 s: the engine stops at 40 s, the end is missing");
}

/* One byte of a good file is changed, or the file is cut. */
static const struct {
	const char *name;
	size_t offset;
	unsigned char byte;
	size_t len; /* 0: whole (8044 bytes) */
	const char *message;
} headers[] = {
	{"whole", 0, 'R', 0, ""},
	{"empty", 0, 'R', (size_t)-1, "the file is empty"},
	{"not RIFF", 0, 'X', 0, "not a WAV file"},
	{"not WAVE", 8, 'X', 0, "not a WAV file"},
	{"cut in the header", 0, 'R', 30, "the file is cut: its header says 8044 bytes, it has 30"},
	{"cut in the first bytes", 0, 'R', 7, "the file is cut: its header is not complete"},
	{"cut in the samples", 0, 'R', 5000,
	 "the file is cut: its header says 8044 bytes, it has 5000"},
	{"a header that says too little", 5, 0x01, 0,
	 "the header says 364 bytes, the file has 8044"},
	{"data that say too much", 41, 0xff, 0,
	 "the file is cut: 57344 bytes of sound are missing"},
	{"another coding", 20, 6, 0,
	 "a WAV coding that is not read here (tag 6, 16 bits); PCM or float is"},
	{"eight bits", 34, 8, 0,
	 "a WAV coding that is not read here (tag 1, 8 bits); PCM or float is"},
	{"no channel", 22, 0, 0, "an impossible WAV header (8000 Hz, 0 channels)"},
	{"a wrong frame", 32, 3, 0, "an impossible WAV header (8000 Hz, 1 channels)"},
	{"half a sample", 40, 0x3f, 0, "the file is cut within a sample"},
	{"no fmt chunk", 12, 'x', 0, "not a WAV file: its data come before the format"},
	{"a fmt chunk that is too short", 16, 2, 0, "not a WAV file: its fmt chunk is too short"},
	{"no data chunk", 36, 'x', 0, "the file is cut: its header is not complete"},
};

static void read_headers(void **state)
{
	CLEANUP(free_text) char *path = in_folder("h.wav");
	CLEANUP(free_text) char *bytes = NULL;
	CLEANUP(str_free) struct str whole = STR_INIT;

	(void)state;
	put_tone("h.wav", 8000, 1, 0.5, 0.5, 0);
	assert_int_equal(path_read(path, 1 << 20, &whole, NULL), 0);
	assert_int_equal(whole.len, 8044);
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		struct err err = {0};
		struct wav_info info;
		size_t len = headers[i].len == (size_t)-1 ? 0
			     : headers[i].len             ? headers[i].len
							  : whole.len;
		bytes = xmalloc(whole.len);
		memcpy(bytes, whole.s, whole.len);
		bytes[headers[i].offset] = (char)headers[i].byte;
		put("h.wav", bytes, len);
		free(TAKE(bytes));
		CLEANUP(file_close) FILE *f = fopen(path, "re");
		int result = wav_read_header(f, &info, &err);
		if ((result < 0) != (headers[i].message[0] != 0) ||
		    strcmp(err.msg, headers[i].message))
			fail_msg("%s: got \"%s\", want \"%s\"", headers[i].name, err.msg,
				 headers[i].message);
		if (result == 0)
			assert_int_equal(info.frames, 4000);
	}
}

/* Extensible headers, chunks before the data, floats and 24 bits: as other engines write them. */
static void other_codings(void **state)
{
	static const unsigned char extensible[] =
		"RIFF\x4a\0\0\0WAVEfmt \x28\0\0\0\xfe\xff\2\0\x80\xbb\0\0\0\xee\2\0\4\0"
		"\x10\0\x16\0\x10\0\3\0\0\0\1\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
		"LIST\1\0\0\0x\0data\4\0\0\0\0\x40\0\xc0";
	static const unsigned char floats[] =
		"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\3\0\1\0\xc0\x5d\0\0\0\x77\1\0\4\0\x20\0"
		"data\x08\0\0\0\0\0\0\x3f\0\0\x80\xbf";
	static const unsigned char nan_one[] =
		"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\3\0\1\0\xc0\x5d\0\0\0\x77\1\0\4\0\x20\0"
		"data\4\0\0\0\0\0\xc0\x7f";
	static const unsigned char deep[] =
		"RIFF\x2a\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\xc0\x5d\0\0\x40\x19\1\0\3\0\x18\0"
		"data\x06\0\0\0\0\0\x40\0\0\xe0";
	static const struct {
		const char *name;
		const unsigned char *bytes;
		size_t len;
		int channels, rate;
		int64_t frames;
		double peak; /* negative: it is refused */
	} files[] = {
		{"extensible", extensible, sizeof(extensible) - 1, 2, 48000, 1, 0.5},
		{"float", floats, sizeof(floats) - 1, 1, 24000, 2, 1.0},
		{"not a number", nan_one, sizeof(nan_one) - 1, 1, 24000, 1, -1},
		{"24 bits", deep, sizeof(deep) - 1, 1, 24000, 2, 0.5},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CLEANUP(free_text) char *path = in_folder("c.wav");
		struct wav_info info;
		struct wav_sound sound;
		struct err err = {0};
		put("c.wav", files[i].bytes, files[i].len);
		CLEANUP(file_close) FILE *f = fopen(path, "re");
		if (wav_read_header(f, &info, &err) < 0)
			fail_msg("%s: %s", files[i].name, err.msg);
		assert_int_equal(info.format.channels, files[i].channels);
		assert_int_equal(info.format.rate, files[i].rate);
		assert_int_equal(info.frames, files[i].frames);
		int result = wav_listen(f, &info, &sound, &err);
		assert_int_equal(result, files[i].peak < 0 ? -1 : 0);
		if (result == 0 && fabs(sound.peak - files[i].peak) > 1e-6)
			fail_msg("%s: peak %f", files[i].name, sound.peak);
	}
}

/* Sizes of 64 bits. The sound is a hole in the file, which takes no room on the disk. */
static void rf64(void **state)
{
	static const struct {
		const char *name;
		int64_t data_bytes, file_bytes; /* in the header, really */
		const char *message;
	} files[] = {
		{"short", 8, 88, ""},
		{"more than 4 GiB", 6000000000, 6000000080, ""},
		{"cut", 6000000000, 5000000080,
		 "the file is cut: its header says 6000000080 bytes, it has 5000000080"},
		{"longer than it says", 5000000000, 6000000080,
		 "the header says 5000000080 bytes, the file has 6000000080"},
		{"below nothing", -2, 1000, "the header says 78 bytes, the file has 1000"},
		{"the most", INT64_MAX - 100, 1000,
		 "the file is cut: its header says 9223372036854775787 bytes, it has 1000"},
	};
	const struct wav_format format = {.rate = 24000, .channels = 1, .bits = 16};
	CLEANUP(free_text) char *path = in_folder("long.wav");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		unsigned char header[WAV_RF64_HEADER_BYTES];
		struct wav_info info;
		struct err err = {0};
		wav_make_header(header, &format, files[i].data_bytes, true);
		put("long.wav", header, sizeof(header));
		assert_int_equal(truncate(path, (off_t)files[i].file_bytes), 0);
		CLEANUP(file_close) FILE *f = fopen(path, "re");
		int result = wav_read_header(f, &info, &err);
		if (strcmp(err.msg, files[i].message) || (result < 0) != (err.msg[0] != 0))
			fail_msg("%s: got \"%s\", want \"%s\"", files[i].name, err.msg,
				 files[i].message);
		if (result == 0) {
			assert_true(info.frames == files[i].data_bytes / 2);
			assert_int_equal(info.data_offset, WAV_RF64_HEADER_BYTES);
		}
	}
}

/* Measured with espeak-ng at its usual speed: the seconds it takes, which must lie within the
 * window. */
static const struct {
	const char *text;
	double seconds;
} spoken[] = {
	{"1", 0.68},
	{"a", 0.57},
	{"1234567890", 5.62},
	{"9876543210987654321", 11.31},
	{"e.g. i.e. etc. cf. vs.", 2.56},
	{"HTTP://WWW.EXAMPLE.COM/A?B=C&D=E", 5.95},
	{"Dr. Mr. Mrs. Prof. St. Jr.", 4.14},
	{"wwwwwwwwwwwwwwwwwwwww", 10.45},
	{"Aaaaaaaaaaaaaaaaaaaaaaaaaaah", 1.60},
	{"What is the capital of Peru? ... Lima.", 2.37},
	{"Which Italian traveller dictated an account of his journeys to the court of Kublai Khan "
	 "while he was in prison?",
	 5.76},
};

static void windows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(spoken); i++) {
		double least, most;
		check_window(spoken[i].text, &limits, &least, &most);
		if (spoken[i].seconds < least || spoken[i].seconds > most)
			fail_msg("%s: %f is not within %f and %f", spoken[i].text,
				 spoken[i].seconds, least, most);
	}
}

static void signs_may_be_silent(void **state)
{
	CLEANUP(free_text) char *path = in_folder("s.wav");
	struct check check;

	(void)state;
	put_tone("s.wav", 8000, 1, 0.5, 0, 0);
	assert_int_equal(check_wav(path, "#", &limits, &check, NULL), 0);
	assert_true(check.ok);
	assert_int_equal(check_wav(path, "word", &limits, &check, NULL), 0);
	assert_false(check.ok);
}

static void unreadable(void **state)
{
	CLEANUP(free_text) char *path = in_folder("absent.wav");
	struct check check;
	struct err err = {0};

	(void)state;
	assert_int_equal(check_wav(path, "x", &limits, &check, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts),     cmocka_unit_test(engine_cap),
		cmocka_unit_test(read_headers), cmocka_unit_test(other_codings),
		cmocka_unit_test(windows),      cmocka_unit_test(signs_may_be_silent),
		cmocka_unit_test(unreadable),   cmocka_unit_test(rf64),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
