/* test_command.c - jobs of type command: settings, tasks, patterns, and which files of the output
 * folder may be replaced. */
#include "tts_helpers.h"

#include "jobs/command/command.h"
#include "base/clock.h"
#include "base/pattern.h"
#include "sha256_file.h"

static const struct {
	const char *pattern, *path;
	bool match;
} globs[] = {
	{"out/**.mp4", "out/a.mp4", true},
	{"out/**.mp4", "out/x/y/a.mp4", true},
	{"out/**.mp4", "out/a.mp3", false},
	{"out/**.mp4", "a.mp4", false},
	{"out/*.mp4", "out/a.mp4", true},
	{"out/*.mp4", "out/x/a.mp4", false},
	{"**/a.txt", "a.txt", true},
	{"**/a.txt", "x/y/a.txt", true},
	{"**/a.txt", "x/ba.txt", false},
	{"a/**/b", "a/b", true},
	{"a/**/b", "a/x/y/b", true},
	{"a/**/b", "a/xb", false},
	{"**", "x/y", true},
	{"a?c", "abc", true},
	{"a?c", "a/c", false},
	{"[a-c]x", "bx", true},
	{"[!a-c]x", "bx", false},
	{"[!a-c]x", "dx", true},
	{"[x", "[x", true},
	{"[]]", "]", true},
	{"a\\*b", "a*b", true},
	{"a\\*b", "axb", false},
	{"*a*b*", "xxaxxbxx", true},
	{"*a*b", "aaab/b", false},
	{"**a*b", "x/aa/cab", true},
	{"", "", true},
	{"", "a", false},
	{"out/*", "out/", true},
	{"*.tmp", ".tmp", true},
	{"out/**/f*.txt", "out/s1/f1.txt", true},
};

static void match_patterns(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(globs); i++)
		if (pattern_match(globs[i].pattern, globs[i].path) != globs[i].match)
			fail_msg("\"%s\" %s \"%s\"", globs[i].pattern,
				 globs[i].match ? "must match" : "must not match", globs[i].path);
}

/* Patterns made to be slow must not be. */
static void patterns_end(void **state)
{
	CLEANUP(str_free) struct str path = STR_INIT;

	(void)state;
	for (int i = 0; i < 1000; i++)
		str_add(&path, i % 50 ? "a" : "/");
	assert_false(pattern_match("**a*a*a*a*a*a*a*a*a*a**a*a*a*a*a*ab", str_text(&path)));
}

static struct job *load_job(const char *run, const char *output_pattern, int pods, struct err *err)
{
	struct section *conf = section_new(job_command.options, "burst.cfg:1");
	CLEANUP(free_text) char *out = in_folder("out");
	struct job_setup setup = {
		.conf = conf, .base_dir = folder, .output_dir = out, .name = "c", .pods = pods};
	struct job *job = NULL;

	if (run)
		section_set_text(conf, "run", run, "burst.cfg:2");
	if (output_pattern)
		section_add_item(conf, "outputs", output_pattern, "burst.cfg:3");
	section_set_bool(conf, "stream", true, "burst.cfg:4");
	section_add_item(conf, "env", "HF_TOKEN", "burst.cfg:5");
	if (job_command.load(&job, &setup, err) < 0)
		job = NULL;
	section_free(conf);
	return job;
}

static void settings(void **state)
{
	static const struct {
		const char *run, *outputs, *message;
	} faults[] = {
		{NULL, "out/*", "burst.cfg:1: job.run is missing: which command is to be run?"},
		{"  ", "out/*", "burst.cfg:2: job.run is empty: which command is to be run?"},
		{"x", NULL,
		 "burst.cfg:1: job.outputs is missing: everything that the command writes would be "
		 "lost with its pod; name the files to fetch, like [\"out/**\"], or set no_outputs "
		 "= true"},
		{"x", " ",
		 "burst.cfg:3: job.outputs: entry 1 is empty; write a pattern, like \"out/**\""},
		{"x", "../*",
		 "burst.cfg:3: outputs: \"../*\" must be a path inside the tree, without .. or a "
		 "leading /"},
		{"x", "/etc/*",
		 "burst.cfg:3: outputs: \"/etc/*\" must be a path inside the tree, without .. or a "
		 "leading /"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		struct err err = {0};
		assert_null(load_job(faults[i].run, faults[i].outputs, 0, &err));
		assert_string_equal(err.msg, faults[i].message);
	}
}

static void one_pod_or_several(void **state)
{
	struct err err = {0};
	size_t count;

	(void)state;
	struct job *job = load_job("make video", "out/**.mp4", 0, &err);
	job_command.segments(job, &count);
	assert_int_equal(count, 1);
	job_command.free(job);

	job = load_job("make video", "out/**.mp4", 3, &err);
	struct segment *segments = job_command.segments(job, &count);
	assert_int_equal(count, 3);
	assert_string_equal(segments[2].id, "command-2");
	assert_null(segments[2].file);
	assert_string_not_equal(segments[0].key, segments[1].key);
	const struct job_needs *needs = job_command.needs(job);
	assert_true(needs->command && needs->stream && !needs->gpu && !needs->worker);
	assert_int_equal(needs->max_batch, 1);
	assert_string_equal(needs->outputs[0], "out/**.mp4");
	assert_null(needs->outputs[1]);
	assert_string_equal(needs->env_names[0], "HF_TOKEN");
	json_t *task = job_command.task(job, 2, 0);
	assert_string_equal(json_string_value(json_object_get(task, "run")), "make video");
	assert_int_equal(json_integer_value(json_object_get(task, "index")), 2);
	assert_int_equal(json_integer_value(json_object_get(task, "count")), 3);
	json_decref(task);
	job_command.free(job);
}

static void place_file(struct job *job, size_t index, const char *file, const char *attempt)
{
	CLEANUP(free_text) char *name = xasprintf("out/%s", file);
	CLEANUP(free_text) char *path = in_folder(name);
	struct segment_result result = {
		.state = SEGMENT_SAFE, .provider = "local", .tries = 1, .file = file};
	struct err err = {0};

	put_text(name, attempt);
	COPY_TEXT(result.attempt, attempt);
	assert_int_equal(sha256_file(path, result.sha256, &result.bytes, &err), 0);
	if (job_command.record(job, index, &result, 1, &err) < 0)
		fail_msg("%s", err.msg);
}

static void outputs_and_their_manifest(void **state)
{
	struct segment_result results[2] = {{.state = SEGMENT_SAFE, .attempt = "p0"},
					    {.state = SEGMENT_FAILED, .attempt = "p1"}};
	CLEANUP(str_free) struct str notes = STR_INIT;
	CLEANUP(free_text)
	char *want = xasprintf("2 files in %s/out\ncommand-1: failed: exit status 3\n", folder);
	CLEANUP(free_text)
	char *foreign =
		xasprintf("%s/out/f/mine.txt is there and was not made by this job; use --force to "
			  "overwrite, or another output folder",
			  folder);
	struct err err = {0};

	(void)state;
	clear_folder();
	struct job *job = load_job("x", "f/**.txt", 2, &err);
	assert_int_equal(job_command.find_cached(job, results, false, &err), 0);
	place_file(job, 1, "f/b.txt", "p1");
	place_file(job, 0, "f/deep/a.txt", "p0");
	COPY_TEXT(results[1].reason, "exit status 3");
	assert_int_equal(job_command.finish(job, results, &notes, &err), 0);
	assert_string_equal(str_text(&notes), want);
	CLEANUP(free_text) char *manifest = get_text("out/manifest.jsonl");
	assert_true(starts_with(manifest, "{\"id\":\"command-0\",\"file\":\"f/deep/a.txt\","));
	assert_non_null(strstr(manifest, "\n{\"id\":\"command-1\",\"file\":\"f/b.txt\","));

	/* its own outputs may be replaced, others not; what no pattern names is nobody's business
	 */
	put_text("out/notes.md", "mine");
	assert_int_equal(job_command.find_cached(job, results, false, &err), 0);
	assert_int_equal(results[0].cached, false);
	put_text("out/f/mine.txt", "mine");
	assert_int_equal(job_command.find_cached(job, results, false, &err), -1);
	assert_string_equal(err.msg, foreign);
	assert_int_equal(job_command.find_cached(job, results, true, &err), 0);
	job_command.free(job);
}

/* "**" matches what burst itself has in the folder, too, and a pod never writes there. */
static void names_that_are_no_outputs(void **state)
{
	static const char *const own[] = {"out/a.txt.part", "out/f/b.part",
					  "out/manifest.jsonl.tmp-1", "out/.burst-probe-1"};
	struct segment_result result = {.state = SEGMENT_SAFE, .attempt = "p0"};
	struct err err = {0};

	(void)state;
	clear_folder();
	struct job *job = load_job("x", "**", 1, &err);
	place_file(job, 0, "a.txt", "p0");
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		put_text(own[i], "begun");
	if (job_command.find_cached(job, &result, false, &err) < 0)
		fail_msg("%s", err.msg);
	put_text("out/f/manifest.jsonl", "mine");
	assert_int_equal(job_command.find_cached(job, &result, false, &err), -1);
	assert_non_null(strstr(err.msg, "/out/f/manifest.jsonl is there"));
	job_command.free(job);
}

/* Young's and Daly's interval: 10 to 60 s a save, 2 to 10 h between interruptions. */
static void checkpoint_intervals(void **state)
{
	static const struct {
		double save_s, between_s, every_s;
	} cases[] = {
		{10, 7200, 372.8}, {10, 28800, 752.3}, {30, 28800, 1294.6}, {60, 36000, 1800},
		{60, 7200, 889.9}, {0.001, 3600, 10},  {100, 20, 20},       {0, 3600, 0},
		{5, 0, 0},         {-1, 3600, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double got = checkpoint_every_s(cases[i].save_s, cases[i].between_s);
		if (got < cases[i].every_s - 0.1 || got > cases[i].every_s + 0.1)
			fail_msg("%g s a save, %g s between: %g, not %g", cases[i].save_s,
				 cases[i].between_s, got, cases[i].every_s);
	}
}

static void bad_variable(void **state)
{
	struct section *conf = section_new(job_command.options, "burst.cfg:1");
	struct job_setup setup = {
		.conf = conf, .base_dir = folder, .output_dir = folder, .name = "c"};
	struct job *job = NULL;
	struct err err = {0};

	(void)state;
	section_set_text(conf, "run", "x", "burst.cfg:2");
	section_add_item(conf, "outputs", "out/*", "burst.cfg:3");
	section_add_item(conf, "env", "A=B", "burst.cfg:5");
	assert_int_equal(job_command.load(&job, &setup, &err), -1);
	assert_string_equal(err.msg, "burst.cfg:5: job.env: \"A=B\" is not the name of a variable "
				     "(write the name only; the "
				     "value is taken from your environment)");
	section_free(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(match_patterns),
		cmocka_unit_test(patterns_end),
		cmocka_unit_test(settings),
		cmocka_unit_test(one_pod_or_several),
		cmocka_unit_test(outputs_and_their_manifest),
		cmocka_unit_test(names_that_are_no_outputs),
		cmocka_unit_test(checkpoint_intervals),
		cmocka_unit_test(bad_variable),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
