/* test_tts_keys.c - what a segment's key depends on. */
#include "tts_helpers.h"

#include "tts_jobs.h"

static char *key_with(const char *line, const struct setting *setting)
{
	struct err err = {0};
	size_t count;

	put_text("k.jsonl", line);
	struct job *job = load_job("k.jsonl", setting, 1, &err);
	if (!job)
		fail_msg("%s", err.msg);
	char *key = xstrdup(job_tts.segments(job, &count)[0].key);
	job_tts.free(job);
	return key;
}

static void keys(void **state)
{
	static const struct setting usual = {"voice", "en"};
	static const struct {
		const char *what, *line;
		struct setting setting;
		bool same;
	} others[] = {
		{"blanks", "{\"id\":\"b\",\"text\":\" Hello  there. \"}", {"voice", "en"}, true},
		{"the text", "{\"text\":\"Hello there!\"}", {"voice", "en"}, false},
		{"the voice", "{\"text\":\"Hello there.\"}", {"voice", "de"}, false},
		{"an option", "{\"text\":\"Hello there.\"}", {"options", "speed=160"}, false},
		{"an option of the line",
		 "{\"text\":\"Hello there.\",\"options\":{\"speed\":160}}",
		 {"voice", "en"},
		 false},
		{"the seed", "{\"text\":\"Hello there.\"}", {"seed", "1"}, false},
		{"the worker", "{\"text\":\"Hello there.\"}", {"worker", "python3 w.py"}, false},
		{"the setup of an engine of burst's own",
		 "{\"text\":\"Hello there.\"}",
		 {"setup", "pip install x"},
		 true},
		{"the number of workers", "{\"text\":\"Hello there.\"}", {"workers", "4"}, true},
		{"what is only carried along",
		 "{\"text\":\"Hello there.\",\"note\":1}",
		 {"voice", "en"},
		 true},
	};
	CLEANUP(free_text) char *key = key_with("{\"id\":\"a\",\"text\":\"Hello there.\"}", &usual);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		CLEANUP(free_text) char *other = key_with(others[i].line, &others[i].setting);
		if (!strcmp(key, other) != others[i].same)
			fail_msg("%s: the key is %s", others[i].what,
				 others[i].same ? "another" : "the same");
	}
}

/* An engine of one's own: what its setup installs is what speaks. */
static void keys_of_own_engines(void **state)
{
	struct setting settings[] = {
		{"engine", "mine"}, {"worker", "python3 w.py"}, {"setup", "pip install x==1"}};
	struct err err = {0};
	size_t count;

	(void)state;
	put_text("k.jsonl", "{\"text\":\"Hello there.\"}");
	struct job *one = load_job("k.jsonl", settings, 3, &err);
	settings[2].text = "pip install x==2";
	struct job *two = load_job("k.jsonl", settings, 3, &err);
	struct job *none = load_job("k.jsonl", settings, 2, &err);
	if (!one || !two || !none)
		fail_msg("%s", err.msg);
	assert_string_not_equal(job_tts.segments(one, &count)[0].key,
				job_tts.segments(two, &count)[0].key);
	assert_string_not_equal(job_tts.segments(one, &count)[0].key,
				job_tts.segments(none, &count)[0].key);
	job_tts.free(one);
	job_tts.free(two);
	job_tts.free(none);
}

/* Neither its key nor its seed knows the place of a line, its id, or the job's name; each of two
 * equal lines has its own. */
static void keys_know_no_place(void **state)
{
	struct err err = {0};
	size_t count;

	(void)state;
	put_text("k.txt", "One.\nYes.\nTwo.\nYes.\n");
	put_text("l.jsonl",
		 "{\"id\":\"new\",\"text\":\"Zero.\"}\n{\"id\":\"b\",\"text\":\"Two.\"}\n{\"id\":"
		 "\"y\",\"text\":\"Yes.\"}\n"
		 "{\"id\":\"z\",\"text\":\"Yes.\"}\n{\"id\":\"own\",\"text\":\"Yes.\",\"seed\":5}\n"
		 "{\"id\":\"own2\",\"text\":\"Yes.\",\"seed\":5}\n");
	struct job *before = load_job("k.txt", NULL, 0, &err),
		   *after = load_job("l.jsonl", NULL, 0, &err);
	if (!before || !after)
		fail_msg("%s", err.msg);
	const struct segment *a = job_tts.segments(before, &count),
			     *b = job_tts.segments(after, &count);
	assert_string_equal(a[2].key, b[1].key);
	assert_string_equal(a[1].key, b[2].key);
	assert_string_equal(a[3].key, b[3].key);
	assert_string_not_equal(a[1].key, a[3].key);
	assert_string_equal(b[4].key, b[5].key); /* the user wants the same twice */
	assert_string_not_equal(b[4].key, b[3].key);
	json_t *one = job_tts.task(before, 2, 0), *other = job_tts.task(after, 1, 0),
	       *own = job_tts.task(after, 5, 0);
	assert_int_equal(json_integer_value(json_object_get(one, "seed")),
			 json_integer_value(json_object_get(other, "seed")));
	assert_int_equal(json_integer_value(json_object_get(own, "seed")), 5);
	json_decref(one);
	json_decref(other);
	json_decref(own);
	job_tts.free(before);
	job_tts.free(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(keys_of_own_engines),
		cmocka_unit_test(keys_know_no_place),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
