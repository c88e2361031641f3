/* test_tts_fit.c - the speed of each cue of subtitles, by its time (job.fit). */
#include "base/jsonx.h"
#include "tts_jobs.h"

#define CUE(from, to, text) "00:00:" from " --> 00:00:" to "\n" text "\n\n"
#define LETTERS_26          "abcdefg hijkl mnopq rstuvw xyz" /* two seconds at usual speed */

/* speeds: of each segment's task, 0: not set */
static const struct {
	const char *what;
	struct setting settings[2];
	const char *script, *speeds, *notes;
} cases[] = {
	{"time enough: never slower",
	 {{"fit", "true"}},
	 CUE("01,000", "09,000", LETTERS_26) CUE("20,000", "29,000", "Yes."),
	 "0 0",
	 ""},
	{"a little faster, in steps",
	 {{"fit", "true"}},
	 CUE("01,000", "02,900", LETTERS_26),
	 "193",
	 ""},
	{"the next cue begins at once",
	 {{"fit", "true"}},
	 CUE("01,000", "03,050", LETTERS_26) CUE("03,050", "05,000", "Yes."),
	 "193 0",
	 ""},
	{"the next cue begins before the end",
	 {{"fit", "true"}},
	 CUE("01,000", "09,000", LETTERS_26) CUE("03,050", "05,000", "Yes."),
	 "193 0",
	 ""},
	{"cues of one time",
	 {{"fit", "true"}},
	 CUE("01,000", "09,000", LETTERS_26) CUE("01,000", "09,000", "Yes."),
	 "0 0",
	 ""},
	{"too much for its time",
	 {{"fit", "true"}},
	 CUE("01,000", "02,000", LETTERS_26),
	 "237",
	 "1 cue may end after its time, by an estimate: 001 by 0.5 s (spoken 1.35 times as fast, "
	 "which is the most)\n"},
	{"a speed of its own",
	 {{"fit", "true"}, {"options", "speed=350"}},
	 CUE("01,000", "02,000", LETTERS_26),
	 "350",
	 ""},
	{"its other name",
	 {{"fit", "true"}, {"options", "rate=350"}},
	 CUE("01,000", "01,800", LETTERS_26),
	 "438",
	 ""},
	{"a pause within",
	 {{"fit", "true"}},
	 CUE("01,000", "04,000", "abcdefg hijklm [pause 1s] nopq rstuvw xyz"),
	 "0 0",
	 ""},
	{"a pause that leaves too little",
	 {{"fit", "true"}},
	 CUE("01,000", "03,900", "abcdefg hijklm [pause 1s] nopq rstuvw xyz"),
	 "193 193",
	 ""},
	{"another engine's speed",
	 {{"fit", "true"}, {"engine", "piper"}},
	 CUE("01,000", "02,600", LETTERS_26),
	 "1.25",
	 ""},
	{"an engine without",
	 {{"fit", "true"}, {"engine", "chatterbox"}},
	 CUE("01,000", "02,000", LETTERS_26),
	 "0",
	 "1 cue may end after its time, by an estimate: 001 by 1.0 s (chatterbox has no option for "
	 "its speed)\n"},
	{"without the key", {{"seed", "0"}}, CUE("01,000", "02,000", LETTERS_26), "0", ""},
};

static void speeds(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str all = STR_INIT;
		CLEANUP(str_free) struct str notes = STR_INIT;
		struct err err = {0};
		size_t count;
		put_text("s.srt", cases[i].script);
		struct job *job = load_job("s.srt", cases[i].settings,
					   cases[i].settings[1].key ? 2 : 1, &err);
		if (!job)
			fail_msg("%s: %s", cases[i].what, err.msg);
		job_tts.segments(job, &count);
		for (size_t k = 0; k < count; k++) {
			CLEANUP(json_decref) json_t *task = job_tts.task(job, k, 0);
			json_t *speed = json_object_get(json_object_get(task, "options"), "speed");
			str_addf(&all, "%s%g", k ? " " : "", json_number_value(speed));
		}
		struct segment_result *results = xcalloc(count, sizeof(*results));
		assert_int_equal(job_tts.foresee(job, results, &notes, &err), 0);
		if (strcmp(str_text(&all), cases[i].speeds) ||
		    strcmp(str_text(&notes), cases[i].notes))
			fail_msg("%s: got \"%s\" \"%s\"", cases[i].what, str_text(&all),
				 str_text(&notes));
		free(results);
		job_tts.free(job);
	}
}

static void inputs_without_times(void **state)
{
	struct setting fit = {"fit", "true"};
	struct err err = {0};

	(void)state;
	put_text("i.txt", "Hello.\n");
	assert_null(load_job("i.txt", &fit, 1, &err));
	assert_string_equal(err.msg, "burst.cfg:3: fit: the input has no times to fit: only .srt "
				     "and .vtt have them");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speeds),
		cmocka_unit_test(inputs_without_times),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
