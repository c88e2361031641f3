/* test_tts_job.c - what a tts job accepts in its config, and what it needs. */
#include "tts_helpers.h"

#include "tts_jobs.h"

static const struct {
	const char *what, *line;
	struct setting setting;
	const char *message;
} faults[] = {
	{"an unknown voice",
	 "{\"text\":\"a\",\"voice\":\"en-uz\"}",
	 {"voice", "en"},
	 "i.jsonl:1: voice \"en-uz\" is unknown to espeak; did you mean \"en-us\"?"},
	{"a voice of no shape",
	 "{\"text\":\"a\",\"voice\":\"../x\"}",
	 {"voice", "en"},
	 "i.jsonl:1: voice \"../x\" is unknown to espeak; there are af, am, an, ar and 137 others"},
	{"an unknown voice in the config",
	 "{\"text\":\"a\"}",
	 {"voice", "e_n"},
	 "burst.cfg:3: voice \"e_n\" is unknown to espeak; did you mean \"en\"?"},
	{"an unknown engine",
	 "{\"text\":\"a\"}",
	 {"engine", "espaek"},
	 "burst.cfg:3: engine \"espaek\" is unknown; did you mean \"espeak\"? (an engine of your "
	 "own needs worker = \"...\")"},
	{"a mode that is none",
	 "{\"text\":\"a\"}",
	 {"input_mode", "words"},
	 "burst.cfg:3: input_mode must be \"auto\", \"lines\" or \"paragraphs\""},
	{"pieces that may be too long",
	 "{\"text\":\"a\"}",
	 {"min_chars", "141"},
	 "burst.cfg:3: min_chars must be at most half of max_chars: 140"},
	{"an option that is none",
	 "{\"text\":\"a\"}",
	 {"options", "speed"},
	 "burst.cfg:3: options: \"speed\" must be written as in \"speed=160\""},
	{"an option whose value is a word",
	 "{\"text\":\"a\"}",
	 {"options", "speed=fast"},
	 "burst.cfg:3: options: speed is \"fast\"; espeak needs a whole number from 80 to 900"},
	{"an option out of its range",
	 "{\"text\":\"a\"}",
	 {"options", "pitch=100"},
	 "burst.cfg:3: options: pitch is 100; espeak needs a whole number from 0 to 99"},
	{"an option with a fraction",
	 "{\"text\":\"a\"}",
	 {"options", "gap=1.5"},
	 "burst.cfg:3: options: gap is 1.5; espeak needs a whole number from 0 to 1000"},
	{"an option that is misspelt",
	 "{\"text\":\"a\"}",
	 {"options", "sped=160"},
	 "burst.cfg:3: options: espeak has no option \"sped\"; did you mean \"speed\"?"},
	{"an option far from all",
	 "{\"text\":\"a\"}",
	 {"options", "colour=red"},
	 "burst.cfg:3: options: espeak has no option \"colour\"; there are speed, rate, pitch, "
	 "range, "
	 "amplitude, gap"},
	{"an unknown engine near piper",
	 "{\"text\":\"a\"}",
	 {"engine", "pipr"},
	 "burst.cfg:3: engine \"pipr\" is unknown; did you mean \"piper\"? (an engine of your own "
	 "needs worker = \"...\")"},
	{"a line's option whose value is a word",
	 "{\"text\":\"a\",\"options\":{\"speed\":\"fast\"}}",
	 {"seed", "1"},
	 "i.jsonl:1: options: speed is \"fast\"; espeak needs a whole number from 80 to 900"},
	{"a line's option that is nothing",
	 "{\"text\":\"a\",\"options\":{\"speed\":null}}",
	 {"seed", "1"},
	 "i.jsonl:1: options: speed is null; espeak needs a whole number from 80 to 900"},
	{"a line's option that is misspelt",
	 "{\"text\":\"a\",\"options\":{\"pich\":3}}",
	 {"seed", "1"},
	 "i.jsonl:1: options: espeak has no option \"pich\"; did you mean \"pitch\"?"},
};

static void job_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		struct err err = {0};
		put_text("i.jsonl", faults[i].line);
		struct job *job = load_job("i.jsonl", &faults[i].setting, 1, &err);
		if (job || strcmp(err.msg, faults[i].message))
			fail_msg("%s: got \"%s\", want \"%s\"", faults[i].what, err.msg,
				 faults[i].message);
	}
}

static void turbo_has_options_of_its_own(void **state)
{
	struct setting settings[] = {{"engine", "chatterbox-turbo"}, {"options", "top_k=50"}},
		       foreign[] = {{"engine", "chatterbox-turbo"},
				    {"options", "exaggeration=0.7"}};
	struct err err = {0};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\"}");
	struct job *job = load_job("i.jsonl", settings, 2, &err);
	if (!job)
		fail_msg("%s", err.msg);
	assert_non_null(strstr(job_tts.needs(job)->worker,
			       "burst_worker.py\" chatterbox turbo --pin chatterbox-tts=="));
	assert_non_null(strstr(job_tts.needs(job)->setup, "ResembleAI/chatterbox-turbo"));
	job_tts.free(job);
	assert_null(load_job("i.jsonl", foreign, 2, &err));
	assert_string_equal(err.msg, "burst.cfg:3: options: chatterbox-turbo has no option "
				     "\"exaggeration\"; there are temperature, "
				     "repetition_penalty, top_p, top_k");
}

static void a_worker_that_names_the_harness_gets_it(void **state)
{
	struct setting own[] = {{"engine", "mine"},
				{"worker",
				 "python3 $BURST_KIT/burst_worker.py $BURST_CODE/mine.py"}},
		       other[] = {{"engine", "mine"}, {"worker", "python3 $BURST_CODE/mine.py"}};
	struct err err = {0};

	(void)state;
	put_text("i.jsonl", "{\"text\":\"a\"}");
	struct job *job = load_job("i.jsonl", own, 2, &err);
	if (!job)
		fail_msg("%s", err.msg);
	assert_true(has_file(job_tts.needs(job), "burst_worker.py"));
	assert_false(has_file(job_tts.needs(job), "engine_piper.py"));
	job_tts.free(job);
	job = load_job("i.jsonl", other, 2, &err);
	assert_int_equal(job_tts.needs(job)->file_count, 0);
	job_tts.free(job);
}

static void long_texts(void **state)
{
	struct setting settings[] = {{"max_chars", "40"}, {"options", "speed=160"}, {"seed", "7"}};
	struct err err = {0};
	size_t count;

	(void)state;
	put_text("l.jsonl",
		 "{\"id\":\"q\",\"text\":\"This is the first sentence of it. This is the second "
		 "one of it.\"}\n"
		 "{\"id\":\"r\",\"text\":\"Short.\",\"seed\":100,\"options\":{\"pitch\":3}}\n");
	struct job *job = load_job("l.jsonl", settings, 3, &err);
	if (!job)
		fail_msg("%s", err.msg);
	struct segment *segments = job_tts.segments(job, &count);
	assert_int_equal(count, 3);
	assert_string_equal(segments[0].id, "q-1");
	assert_string_equal(segments[1].file, "q-2.wav");
	assert_string_equal(segments[2].id, "r");
	assert_true(segments[0].weight == 33 && segments[0].est_seconds > 0);
	assert_string_equal(segments[0].group, "en");
	json_t *first = job_tts.task(job, 1, 2), *second = job_tts.task(job, 2, 1);
	char begin[9] = "";
	memcpy(begin, segments[1].key, 8);
	assert_int_equal(json_integer_value(json_object_get(first, "seed")),
			 ((strtol(begin, NULL, 16) & INT32_MAX) + 2 * 1000003) & INT32_MAX);
	assert_int_equal(json_integer_value(json_object_get(second, "seed")), 100 + 1000003);
	assert_string_equal(json_string_value(json_object_get(first, "text")),
			    "This is the second one of it.");
	assert_int_equal(json_object_size(json_object_get(second, "options")), 2);
	json_decref(first);
	json_decref(second);
	job_tts.free(job);

	put_text("l.jsonl", "{\"id\":\"q\",\"text\":\"This is the first sentence of it. This is "
			    "the second one of it.\"}\n"
			    "{\"id\":\"q-2\",\"text\":\"Short.\"}\n");
	assert_null(load_job("l.jsonl", settings, 1, &err));
	assert_string_equal(err.msg, "l.jsonl:1: this text is cut into pieces, and the id of one, "
				     "\"q-2\", already exists (line 2)");
}

static void needs_of_espeak(void **state)
{
	struct setting workers = {"workers", "3"}, worker = {"worker", "exec ./mine"};
	struct err err = {0};

	(void)state;
	put_text("n.txt", "Hello.\n");
	struct job *job = load_job("n.txt", &workers, 1, &err);
	const struct job_needs *needs = job_tts.needs(job);
	assert_true(!needs->gpu && !needs->command && needs->install && !needs->setup);
	assert_int_equal(needs->workers, 3);
	assert_int_equal(needs->max_batch, 64);
	assert_int_equal(needs->tries, 3);
	assert_string_equal(needs->worker, "\"$BURST_KIT/espeak-worker\"");
	job_tts.free(job);
	job = load_job("n.txt", &worker, 1, &err);
	needs = job_tts.needs(job);
	assert_string_equal(needs->worker, "exec ./mine");
	assert_null(needs->install);
	assert_int_equal(needs->file_count, 0);
	job_tts.free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(job_faults),
		cmocka_unit_test(turbo_has_options_of_its_own),
		cmocka_unit_test(a_worker_that_names_the_harness_gets_it),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(needs_of_espeak),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
