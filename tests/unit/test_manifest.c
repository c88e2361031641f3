/* test_manifest.c - which files of the output folder are ours: cached, stale, foreign, and how the
 * manifest grows. */
#include "tts_helpers.h"

#include "jobs/common.h"
#include "jobs/manifest.h"
#include "jobs/tts/tts.h"
#include "sha256_file.h"

#define KEY  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

#define LINE(id, hash)                                                                             \
	"{\"id\":\"" id "\",\"file\":\"" id ".wav\",\"key\":\"" KEY "\",\"sha256\":\"" hash "\"}"  \
	"\n"

static const struct {
	const char *what, *bytes;
	size_t count;
	const char *message; /* NULL: it is read */
} files[] = {
	{"empty", "", 0, NULL},
	{"two lines", LINE("a", HASH) LINE("b", HASH), 2, NULL},
	{"a cut last line is dropped", LINE("a", HASH) "{\"id\":\"b\",\"fi", 1, NULL},
	{"a whole last line without its end counts",
	 LINE("a", HASH) "{\"id\":\"b\",\"file\":\"b\",\"key\":\"" KEY "\",\"sha256\":\"" HASH
			 "\"}",
	 2, NULL},
	{"blank lines", "\n" LINE("a", HASH) "\n", 1, NULL},
	{"garbage", LINE("a", HASH) "garbage\n", 1,
	 "m:2: not a line of a manifest; use --force to overwrite"},
	{"a path that leaves",
	 "{\"id\":\"a\",\"file\":\"../a\",\"key\":\"" KEY "\",\"sha256\":\"" HASH "\"}\n", 0,
	 "m:1: id, file, key and sha256 are not what burst writes; use --force to overwrite"},
	{"no hash", "{\"id\":\"a\",\"file\":\"a\",\"key\":\"" KEY "\",\"sha256\":\"x\"}\n", 0,
	 "m:1: id, file, key and sha256 are not what burst writes; use --force to overwrite"},
	{"an array", "[]\n", 0, "m:1: not a line of a manifest; use --force to overwrite"},
};

static void parse_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct manifest m = {0};
		struct err err = {0};
		int result = manifest_parse("m", files[i].bytes, strlen(files[i].bytes), false, &m,
					    &err);
		if (strcmp(err.msg, files[i].message ? files[i].message : ""))
			fail_msg("%s: got \"%s\"", files[i].what, err.msg);
		if (result == 0 && m.count != files[i].count)
			fail_msg("%s: %zu lines, want %zu", files[i].what, m.count, files[i].count);
		manifest_free(&m);
		assert_int_equal(
			manifest_parse("m", files[i].bytes, strlen(files[i].bytes), true, &m, &err),
			0);
		assert_int_equal(m.count, files[i].count);
		assert_true((m.bad_line != 0) == (files[i].message != NULL));
		manifest_free(&m);
	}
}

static void odd_numbers(void **state)
{
	static const char bytes[] =
		"{\"id\":\"a\",\"file\":\"a\",\"key\":\"" KEY "\",\"sha256\":\"" HASH
		"\",\"bytes\":-5,"
		"\"seconds\":1e308,\"sample_rate\":-1,\"tries\":9223372036854775807}\n";
	struct segment_result result = {0};
	struct manifest m = {0};

	(void)state;
	assert_int_equal(manifest_parse("m", bytes, strlen(bytes), false, &m, NULL), 0);
	manifest_restore(&m.entries[0], &result);
	assert_true(result.bytes == 0 && result.seconds == 1e9 && result.sample_rate == 0 &&
		    result.tries == 1000);
	manifest_free(&m);
}

static void latest_first(void **state)
{
	static const char bytes[] =
		LINE("b", HASH) LINE("a", HASH) LINE("b", KEY) LINE("c", HASH) LINE("b", HASH);
	struct manifest m;
	size_t count;

	(void)state;
	assert_int_equal(manifest_parse("m", bytes, strlen(bytes), false, &m, NULL), 0);
	struct manifest_entry *const *found = manifest_find(&m, "b.wav", &count);
	assert_int_equal(count, 3);
	assert_ptr_equal(found[0], &m.entries[4]);
	assert_ptr_equal(found[2], &m.entries[0]);
	assert_null(manifest_find(&m, "x.wav", &count));
	assert_int_equal(count, 0);
	manifest_free(&m);
}

/* ---- through a job ---- */

static struct job *job_of(const char *script, bool join)
{
	struct section *conf = section_new(job_tts.options, "burst.cfg:1");
	CLEANUP(free_text) char *out = in_folder("out");
	CLEANUP(free_text) char *input = in_folder("script.jsonl");
	struct job_setup setup = {.conf = conf, .base_dir = folder, .output_dir = out, .name = "t"};
	struct job *job = NULL;
	struct err err = {0};

	put_text("script.jsonl", script);
	section_set_text(conf, "input", input, "burst.cfg:2");
	if (join)
		section_set_bool(section_set_group(conf, "join", "burst.cfg:3"), "subtitles", true,
				 "burst.cfg:3");
	if (job_tts.load(&job, &setup, &err) < 0)
		fail_msg("%s", err.msg);
	section_free(conf);
	return job;
}

/* Puts a sound under the segment's name and records it, as a run does. */
static void render(struct job *job, size_t index, double seconds, struct segment_result *result)
{
	size_t count;
	const struct segment *segment = &job_tts.segments(job, &count)[index];
	CLEANUP(free_text) char *name = xasprintf("out/%s", segment->file);
	CLEANUP(free_text) char *path = in_folder(name);
	struct err err = {0};

	put_tone(name, 8000, 1, seconds, 0.5, 0);
	*result = (struct segment_result){.state = SEGMENT_SAFE,
					  .seconds = seconds,
					  .sample_rate = 8000,
					  .tries = 1,
					  .provider = "local",
					  .gpu = "none\x1b",
					  .attempt = "a1",
					  .batch = "b1"};
	assert_int_equal(sha256_file(path, result->sha256, &result->bytes, &err), 0);
	if (job_tts.record(job, index, result, 1, &err) < 0)
		fail_msg("%s", err.msg);
}

#define SCRIPT                                                                                     \
	"{\"id\":\"x\",\"text\":\"One\",\"note\":\"kept\"}\n{\"id\":\"y\",\"text\":\"Two\"}\n{"    \
	"\"id\":\"z\",\"text\":\"Three\"}\n"

static int cached(struct job *job, struct segment_result results[3], bool force, struct err *err)
{
	CLEANUP(free_text) char *out = xasprintf("%s/out", folder);

	memset(results, 0, 3 * sizeof(*results));
	*err = (struct err){0};
	if (job_check_output(out, err) < 0)
		return -1;
	return job_tts.find_cached(job, results, force, err);
}

static void a_run_and_another(void **state)
{
	struct segment_result results[3] = {0};
	struct str notes = STR_INIT;
	struct err err;

	(void)state;
	clear_folder();
	struct job *job = job_of(SCRIPT, false);
	assert_int_equal(cached(job, results, false, &err), 0);
	assert_int_equal(results[0].state, SEGMENT_OPEN);
	render(job, 2, 0.5, &results[2]);
	render(job, 0, 0.25, &results[0]);
	results[1].state = SEGMENT_FAILED;
	COPY_TEXT(results[1].reason, "worker: no");
	assert_int_equal(job_tts.finish(job, results, &notes, &err), 0);
	assert_string_equal(str_text(&notes), "y: failed: worker: no\n");
	CLEANUP(free_text) char *manifest = get_text("out/manifest.jsonl");
	if (!starts_with(manifest, "{\"id\":\"x\",\"file\":\"x.wav\",") ||
	    !strstr(manifest, "\n{\"id\":\"z\","))
		fail_msg("not in the order of the script: %s", manifest);
	if (!strstr(manifest, "\"seconds\":0.25,\"sample_rate\":8000,\"engine\":\"espeak\","
			      "\"voice\":\"en\",\"provider\":\"local\","
			      "\"gpu\":\"none\\\\x1b\",\"batch\":\"b1\",\"attempt\":\"a1\","
			      "\"cached\":false,\"tries\":1,"
			      "\"suspect\":false,\"note\":\"kept\"}"))
		fail_msg("%s", manifest);

	assert_int_equal(cached(job, results, false, &err), 0);
	assert_true(results[0].state == SEGMENT_SAFE && results[0].cached &&
		    results[0].seconds == 0.25);
	assert_int_equal(results[1].state, SEGMENT_OPEN);
	assert_string_equal(results[2].provider, "local");
	assert_int_equal(results[2].sample_rate, 8000);
	job_tts.free(job);
	str_free(&notes);
}

static void stale_and_foreign(void **state)
{
	struct segment_result results[3] = {0};
	struct err err;

	(void)state;
	clear_folder();
	struct job *job = job_of(SCRIPT, false);
	for (size_t i = 0; i < 3; i++)
		render(job, i, 0.5, &results[i]);
	job_tts.free(job);

	/* a text was changed: our own old file may be replaced */
	job = job_of("{\"id\":\"x\",\"text\":\"One\"}\n{\"id\":\"y\",\"text\":\"Two!\"}\n{\"id\":"
		     "\"z\",\"text\":\"Three\"}\n",
		     false);
	assert_int_equal(cached(job, results, false, &err), 0);
	assert_true(results[0].cached && !results[1].cached && results[2].cached);

	/* a file was changed: it is not ours any more */
	put_tone("out/x.wav", 8000, 1, 0.7, 0.5, 0);
	put_tone("out/z.wav", 8000, 1, 0.7, 0.5, 0);
	CLEANUP(free_text)
	char *message =
		xasprintf("%s/out/x.wav is there (and 1 more) and was not made by this job; use "
			  "--force to overwrite, or another output folder",
			  folder);
	assert_int_equal(cached(job, results, false, &err), -1);
	assert_string_equal(err.msg, message);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_int_equal(cached(job, results, true, &err), 0);
	assert_true(!results[0].cached && !results[2].cached);
	job_tts.free(job);
}

/* The line is written before the rename: after a crash between them the old file is still known as
 * ours. */
static void a_crash_before_the_rename(void **state)
{
	struct segment_result results[3] = {0};
	struct err err = {0};

	(void)state;
	clear_folder();
	struct job *job = job_of(SCRIPT, false);
	render(job, 0, 0.5, &results[0]);
	COPY_TEXT(results[0].sha256, HASH);
	assert_int_equal(job_tts.record(job, 0, &results[0], 1, &err), 0);
	assert_int_equal(cached(job, results, false, &err), 0);
	assert_true(results[0].cached);
	job_tts.free(job);
}

static void a_cut_line_is_mended(void **state)
{
	struct segment_result results[3] = {0};
	struct err err = {0};

	(void)state;
	clear_folder();
	put_text("out/manifest.jsonl", "{\"id\":\"x\",\"fi");
	struct job *job = job_of(SCRIPT, false);
	assert_int_equal(cached(job, results, false, &err), 0);
	render(job, 1, 0.5, &results[1]);
	assert_int_equal(cached(job, results, true, &err), 0);
	assert_true(results[1].cached);
	job_tts.free(job);
}

static void former_files_stay_ours(void **state)
{
	struct segment_result results[3] = {0};
	struct str notes = STR_INIT;
	struct err err = {0};

	(void)state;
	clear_folder();
	struct job *job = job_of(SCRIPT, false);
	for (size_t i = 0; i < 3; i++)
		render(job, i, 0.5, &results[i]);
	assert_int_equal(job_tts.finish(job, results, &notes, &err), 0);
	job_tts.free(job);
	job = job_of("{\"id\":\"x\",\"text\":\"One\"}\n", false);
	assert_int_equal(cached(job, results, false, &err), 0);
	assert_int_equal(job_tts.finish(job, results, &notes, &err), 0);
	job_tts.free(job);
	CLEANUP(free_text) char *manifest = get_text("out/manifest.jsonl");
	assert_non_null(strstr(manifest, "\"former\":true"));
	job = job_of(SCRIPT, false);
	assert_int_equal(cached(job, results, false, &err), 0);
	assert_true(results[0].cached && results[1].cached && results[2].cached);
	assert_int_equal(job_tts.finish(job, results, &notes, &err), 0);
	CLEANUP(free_text) char *again = get_text("out/manifest.jsonl");
	assert_null(strstr(again, "former"));
	job_tts.free(job);
	str_free(&notes);
}

static void bad_folders(void **state)
{
	struct segment_result results[3];
	CLEANUP(free_text)
	char *is_file = xasprintf("output folder %s/out: there is a file of that name", folder);
	CLEANUP(free_text)
	char *has_joined =
		xasprintf("%s/out/joined.wav is there and was not made by this job; use --force "
			  "to overwrite it, or another output folder",
			  folder);
	CLEANUP(free_text)
	char *bad_line =
		xasprintf("%s/out/manifest.jsonl:1: not a line of a manifest; use --force to "
			  "overwrite",
			  folder);
	struct err err;

	(void)state;
	clear_folder();
	struct job *job = job_of(SCRIPT, true);
	put_text("out", "");
	assert_int_equal(cached(job, results, false, &err), -1);
	assert_string_equal(err.msg, is_file);
	clear_folder();
	put_text("out/joined.wav", "mine");
	assert_int_equal(cached(job, results, false, &err), -1);
	assert_string_equal(err.msg, has_joined);
	assert_int_equal(cached(job, results, true, &err), 0);
	put_text("out/manifest.jsonl", "mine\n");
	assert_int_equal(cached(job, results, false, &err), -1);
	assert_string_equal(err.msg, bad_line);
	clear_folder();
	put_text("out/other.txt", "mine"); /* nobody's business */
	assert_int_equal(cached(job, results, false, &err), 0);
	assert_true(is_there("out/other.txt") && !is_there("out/manifest.jsonl"));
	job_tts.free(job);
}

static void read_only_folder(void **state)
{
	struct segment_result results[3];
	struct err err;

	(void)state;
	if (geteuid() == 0)
		skip(); /* root may write everywhere */
	CLEANUP(free_text) char *out = in_folder("out");
	clear_folder();
	mkdir(out, 0555);
	struct job *job = job_of(SCRIPT, false);
	assert_int_equal(cached(job, results, false, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	job_tts.free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_files),          cmocka_unit_test(odd_numbers),
		cmocka_unit_test(latest_first),         cmocka_unit_test(a_run_and_another),
		cmocka_unit_test(stale_and_foreign),    cmocka_unit_test(a_crash_before_the_rename),
		cmocka_unit_test(a_cut_line_is_mended), cmocka_unit_test(former_files_stay_ours),
		cmocka_unit_test(bad_folders),          cmocka_unit_test(read_only_folder),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
