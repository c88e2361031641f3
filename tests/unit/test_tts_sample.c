/* test_tts_sample.c - voice samples: which are refused, in what words, and what of them goes to the
 * pods. */
#include "tts_helpers.h"

#include "base/program.h"
#include "jobs/tts/tts.h"

static struct job *load_job(const char *engine, const char *lines, struct mistakes *m,
			    struct err *err)
{
	struct section *conf = section_new(job_tts.options, "burst.cfg:1");
	CLEANUP(free_text) char *out = in_folder("out");
	CLEANUP(free_text) char *path = in_folder("i.jsonl");
	CLEANUP(free_text) char *voices = in_folder("voices");
	struct job_setup setup = {
		.conf = conf, .base_dir = folder, .output_dir = out, .name = "t", .mistakes = m};
	struct job *job = NULL;

	*err = (struct err){0};
	put_text("i.jsonl", lines);
	section_set_text(conf, "input", path, "burst.cfg:2");
	section_set_text(conf, "engine", engine, "burst.cfg:3");
	section_set_text(conf, "voices", voices, "burst.cfg:4");
	if (job_tts.load(&job, &setup, err) < 0)
		job = NULL;
	section_free(conf);
	return job;
}

static void put_noise(const char *name, const char *head, size_t head_len)
{
	unsigned char bytes[4000];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)((i * 2654435761u) >> 13);
	memcpy(bytes, head, head_len);
	put(name, bytes, sizeof(bytes));
}

static void put_cut(const char *name)
{
	struct str bytes = STR_INIT;
	CLEANUP(free_text) char *path = in_folder(name);
	struct err err;

	put_tone(name, 24000, 1, 7, 0.5, 0);
	assert_int_equal(path_read(path, 1 << 24, &bytes, &err), 0);
	put(name, bytes.s, bytes.len / 2);
	str_free(&bytes);
}

static void not_there(void)
{
}
static void empty(void)
{
	put_text("voices/anna.wav", "");
}
static void no_sound(void)
{
	put_text("voices/anna.wav", "These are words, and no sound.\n");
}
static void cut(void)
{
	put_cut("voices/anna.wav");
}
static void silent(void)
{
	put_tone("voices/anna.wav", 24000, 1, 7, 0, 0);
}
static void whispered(void)
{
	put_tone("voices/anna.wav", 24000, 1, 7, 0.001, 0);
}
static void mostly_silent(void)
{
	put_tone("voices/anna.wav", 24000, 1, 3, 0.5, 6);
}
static void clipped(void)
{
	put_tone("voices/anna.wav", 24000, 1, 7, 5, 0);
}
static void half_a_second(void)
{
	put_tone("voices/anna.wav", 24000, 1, 0.5, 0.5, 0);
}
static void three_seconds(void)
{
	put_tone("voices/anna.wav", 24000, 1, 2.8, 0.5, 0);
}
static void five_seconds(void)
{
	put_tone("voices/anna.wav", 48000, 2, 5, 0.5, 0);
}
static void seven_seconds(void)
{
	put_tone("voices/anna.wav", 24000, 1, 7, 0.5, 0);
}
static void forty_seconds(void)
{
	put_tone("voices/anna.wav", 8000, 1, 40, 0.5, 0);
}
static void three_minutes(void)
{
	put_tone("voices/anna.wav", 8000, 1, 180, 0.5, 0);
}
static void upper_case(void)
{
	put_tone("voices/anna.WAV", 24000, 1, 7, 0.5, 0);
}

static const struct {
	const char *name;
	void (*make)(void);
	const char *engine;
	const char *fault; /* behind the folder; NULL: it is good */
} samples[] = {
	{"none", not_there, "chatterbox", "anna.wav: No such file or directory"},
	{"an empty file", empty, "chatterbox", "anna.wav: the file is empty"},
	{"no sound", no_sound, "chatterbox", "anna.wav: it is no WAV, FLAC, MP3, M4A or Ogg file"},
	{"a file that is cut", cut, "chatterbox",
	 "anna.wav: the file is cut: its header says 336044 bytes, it has 168022"},
	{"silence", silent, "chatterbox",
	 "anna.wav: 7.0 s of silence: choose a passage in which the voice speaks"},
	{"next to silence", whispered, "chatterbox",
	 "anna.wav: 7.0 s of its 7.0 s are quieter than -50 dBFS: cut the silence, or record it "
	 "louder"},
	{"a long pause", mostly_silent, "chatterbox",
	 "anna.wav: 6.0 s of its 9.0 s are quieter than -50 dBFS: cut the silence, or record it "
	 "louder"},
	{"clipped", clipped, "chatterbox",
	 "anna.wav: 87.0 % of it is clipped: record it at a lower level, or choose another "
	 "passage"},
	{"half a second", half_a_second, "chatterbox",
	 "anna.wav: 0.5 s are too short: chatterbox needs a voice sample of more than 0.5 s"},
	{"five seconds for Turbo", five_seconds, "chatterbox-turbo",
	 "anna.wav: 5.0 s are too short: chatterbox-turbo needs a voice sample of more than 5 s"},
	{"five seconds", five_seconds, "chatterbox", NULL},
	{"less than three for Qwen", three_seconds, "qwen3-clone",
	 "anna.wav: 2.8 s are too short: qwen3-clone needs a voice sample of more than 2.9 s"},
	{"forty for Qwen", forty_seconds, "qwen3-1.7b-clone",
	 "anna.wav: 40.0 s are too long: qwen3-1.7b-clone needs a voice sample of at most 30 s; to "
	 "cut it: ffmpeg -ss 0 -t 30 -i anna.wav cut.wav"},
	{"forty", forty_seconds, "chatterbox-turbo", NULL},
	{"three minutes", three_minutes, "chatterbox",
	 "anna.wav: 180.0 s are too long: chatterbox needs a voice sample of at most 120 s; to cut "
	 "it: ffmpeg -ss 0 -t 10 -i anna.wav cut.wav"},
	{"seven", seven_seconds, "qwen3-clone", NULL},
	{"an ending in capitals", upper_case, "chatterbox", NULL},
};

static void what_a_sample_must_be(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct err err;
		clear_folder();
		put_text("voices/anna.doc", "no sample");
		samples[i].make();
		struct job *job = load_job(samples[i].engine,
					   "{\"text\":\"a\",\"voice\":\"anna\"}\n", NULL, &err);
		CLEANUP(free_text)
		char *want = samples[i].fault ? xasprintf("i.jsonl:1: voice \"anna\": %s/voices/%s",
							  folder, samples[i].fault)
					      : xstrdup("");
		if (!job != !!samples[i].fault || strcmp(job ? "" : err.msg, want) != 0)
			fail_msg("%s: got \"%s\", want \"%s\"", samples[i].name,
				 job ? "a job" : err.msg, want);
		job_tts.free(job);
	}
}

/* Each is told where it is named first, and only there. */
static void all_bad_samples_are_told(void **state)
{
	static const char *const want[] = {"i.jsonl:2: voice \"silent\"",
					   "i.jsonl:3: voice \"text\"", "i.jsonl:5: voice \"god\"",
					   "did you mean \"good\"?"};
	struct mistakes m = {0};
	struct err err;
	size_t told = 0;

	(void)state;
	clear_folder();
	put_tone("voices/good.wav", 24000, 1, 7, 0.5, 0);
	put_tone("voices/silent.wav", 24000, 1, 7, 0, 0);
	put_text("voices/text.wav", "These are words, and no sound.\n");
	assert_null(load_job("chatterbox",
			     "{\"text\":\"a\",\"voice\":\"good\"}\n{\"text\":\"b\",\"voice\":"
			     "\"silent\"}\n{\"text\":\"c\",\"voice\":\"text\"}\n"
			     "{\"text\":\"d\",\"voice\":\"silent\"}\n{\"text\":\"e\",\"voice\":"
			     "\"god\"}\n{\"text\":\"f\",\"voice\":\"good\"}\n",
			     &m, &err));
	for (size_t i = 0; i < m.count; i++)
		told += strstr(m.list[i].err.msg, "voice \"") != NULL;
	assert_int_equal(told, 3);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		bool found = false;
		for (size_t k = 0; k < m.count; k++)
			found |= strstr(m.list[k].err.msg, want[i]) != NULL;
		if (!found)
			fail_msg("\"%s\" is not told", want[i]);
	}
	mistakes_free(&m);
}

static const struct job_file *file_of(struct job *job, const char *name)
{
	const struct job_needs *needs = job_tts.needs(job);

	for (size_t i = 0; i < needs->file_count; i++)
		if (!strcmp(needs->files[i].name, name))
			return &needs->files[i];
	return NULL;
}

/* Makes NAME of seven seconds of a tone with the real ffmpeg. */
static void encode(const char *name, const char *const *settings)
{
	CLEANUP(free_text) char *path = in_folder(name);
	const char *argv[24] = {"ffmpeg", "-nostdin", "-v", "error",       "-y",
				"-f",     "lavfi",    "-i", "sine=440:d=7"};
	size_t n = 9;
	struct err err;

	for (; *settings; settings++)
		argv[n++] = *settings;
	argv[n] = path;
	if (program_must(&(struct program){.argv = argv, .limit_ms = 60000}, NULL, NULL, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
}

static const struct {
	const char *name, *settings[6];
} foreign[] = {
	{"voices/anna.flac", {NULL}},
	{"voices/anna.mp3", {NULL}},
	{"voices/anna.m4a", {NULL}}, /* its index comes last */
	{"voices/anna.ogg", {NULL}},
	{"voices/anna.opus", {NULL}},
	{"voices/anna.wav", {"-c:a", "pcm_u8", NULL}},
	{"voices/anna.wav", {"-f", "mp3", NULL}}, /* a name may say anything */
	{"voices/anna.wav", {"-c:a", "adpcm_ms", "-ac", "2", NULL}},
};

/* The worker gets a WAV at its engine's rate; the segment is known by the file that the user has.
 */
static void other_files_are_converted(void **state)
{
	CLEANUP(free_text) char *before = NULL;

	(void)state;
	if (!program_exists("ffmpeg"))
		skip();
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
		struct err err;
		struct wav_info info;
		size_t count;
		clear_folder();
		put_text("voices/other.txt", "");
		encode(foreign[i].name, foreign[i].settings);
		struct job *job =
			load_job("chatterbox", "{\"text\":\"a\",\"voice\":\"anna\"}\n", NULL, &err);
		if (!job)
			fail_msg("%s: %s", foreign[i].name, err.msg);
		const struct job_file *file = file_of(job, "voice-anna.wav");
		assert_non_null(file);
		CLEANUP(file_close) FILE *f = fmemopen((void *)file->data, file->len, "r");
		if (wav_read_header(f, &info, &err) < 0)
			fail_msg("%s: %s", foreign[i].name, err.msg);
		assert_int_equal(info.format.rate, 24000);
		assert_int_equal(info.format.channels, 1);
		assert_int_equal(info.format.bits, 16);
		assert_true(fabs(wav_seconds(&info) - 7) < 0.1);
		char *key = xstrdup(job_tts.segments(job, &count)[0].key);
		assert_true(!before || strcmp(before, key) != 0);
		free(before);
		before = key;
		job_tts.free(job);
	}
}

/* What decides is in the file that the user has: converting it anew, or elsewhere, makes no other
 * segment. */
static void the_key_is_of_the_users_file(void **state)
{
	const char *lines = "{\"text\":\"a\",\"voice\":\"anna\"}\n";
	struct err err;
	size_t count;

	(void)state;
	clear_folder();
	put_tone("voices/anna.wav", 44100, 2, 7, 0.5, 0);
	struct job *job = load_job("chatterbox", lines, NULL, &err);
	assert_non_null(job);
	/* as it is: the engine changes the rate */
	assert_int_equal(file_of(job, "voice-anna.wav")->len, 44 + 7 * 44100 * 4);
	CLEANUP(free_text) char *key = xstrdup(job_tts.segments(job, &count)[0].key);
	job_tts.free(job);
	put_text("voices/anna.mp3", "never read: the WAV file goes first");
	job = load_job("chatterbox", lines, NULL, &err);
	assert_non_null(job);
	assert_string_equal(key, job_tts.segments(job, &count)[0].key);
	job_tts.free(job);
}

static void without_ffmpeg_it_says_how_to_convert(void **state)
{
	CLEANUP(free_text) char *path = xstrdup(getenv("PATH"));
	CLEANUP(free_text) char *want = NULL;
	struct err err;

	(void)state;
	clear_folder();
	put_noise("voices/anna.flac", "fLaC", 4);
	setenv("PATH", folder, 1);
	struct job *job =
		load_job("chatterbox", "{\"text\":\"a\",\"voice\":\"anna\"}\n", NULL, &err);
	setenv("PATH", path, 1);
	assert_null(job);
	want = xasprintf("i.jsonl:1: voice \"anna\": %s/voices/anna.flac: only ffmpeg can read it, "
			 "and that is not installed: install it, or make a WAV "
			 "file elsewhere: ffmpeg -i anna.flac -ac 1 -c:a pcm_s16le anna.wav",
			 folder);
	assert_string_equal(err.msg, want);
	if (!program_exists("ffmpeg"))
		return;
	assert_null(load_job("chatterbox", "{\"text\":\"a\",\"voice\":\"anna\"}\n", NULL, &err));
	assert_non_null(strstr(err.msg, "voices/anna.flac: it cannot be converted: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_sample_must_be),
		cmocka_unit_test(all_bad_samples_are_told),
		cmocka_unit_test(other_files_are_converted),
		cmocka_unit_test(the_key_is_of_the_users_file),
		cmocka_unit_test(without_ffmpeg_it_says_how_to_convert),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
