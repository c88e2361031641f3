/* test_tts_kokoro.c - the voices of Kokoro and its weights. */
#include "tts_helpers.h"

#include "jobs/tts/engines.h"
#include "jobs/text/script.h"

static void voices_are_checked(void **state)
{
	static const struct {
		const char *voice, *fault; /* NULL: it is fine */
	} all[] = {
		{"af_heart", NULL},
		{"pm_santa", NULL},
		{"af_hart", "voice \"af_hart\" is unknown to kokoro; did you mean \"af_heart\"?"},
		{"somebody else", "voice \"somebody else\" is unknown to kokoro; there are "
				  "af_alloy, af_aoede, af_bella, af_heart and 50 others"},
		{"jf_alpha", NULL},
		{"zm_yunxi", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct err err = {0};
		assert_int_equal(engine_check_voice(engine_find("kokoro"), all[i].voice, &err) < 0,
				 all[i].fault != NULL);
		if (all[i].fault)
			assert_string_equal(err.msg, all[i].fault);
	}
}

static void weights_and_versions(void **state)
{
	static const char *const none[] = {NULL};
	const struct engine *kokoro = engine_find("kokoro");
	size_t voices = 0;

	(void)state;
	assert_non_null(kokoro);
	for (const struct engine_weight *w = kokoro->weights; w->repository; w++)
		voices += !strncmp(w->file, "voices/", strlen("voices/"));
	assert_int_equal(voices, 54);
	CLEANUP(free_text) char *worker = environment_worker(kokoro);
	assert_non_null(
		strstr(worker, "burst_worker.py\" kokoro --pin kokoro==0.9.4 --pin misaki==0.9.4"));
	assert_non_null(strstr(worker, " --pin weights==f3ff3571791e"));
	CLEANUP(free_text) char *setup = environment_setup(kokoro, none, NULL, NULL);
	assert_non_null(strstr(setup, "voices/af_heart.pt"));
	assert_non_null(strstr(setup, "phonemizer-fork==3.3.2"));
	/* built by what is locked, after it */
	assert_non_null(
		strstr(strstr(setup, "setuptools==80.9.0 --hash="), "jieba==0.42.1 --hash="));
	assert_non_null(strstr(setup, "build \"$BORROWED/kokoro-source.txt\""));
	assert_non_null(strstr(worker, " --pin jieba==0.42.1 --pin unidic-lite==1.0.8"));
	assert_int_equal(kokoro->letters_of("zm_yunxi"), LETTERS_HAN);
	assert_int_equal(kokoro->letters_of("jf_alpha"), LETTERS_HAN | LETTERS_KANA);
	assert_int_equal(kokoro->letters_of("af_heart"), LETTERS_LATIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(voices_are_checked),
		cmocka_unit_test(weights_and_versions),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
