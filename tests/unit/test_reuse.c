/* test_reuse.c - outputs by what they are: random edits of a script, with a crash at any rename,
 * lose no render that is still wanted. */
#include "tts_helpers.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/jsonx.h"
#include "jobs/common.h"
#include "jobs/manifest.h"
#include "jobs/tts/tts.h"

/* In a child: dies right before or after so many renames. 0: never. */
static int dies_at, renames;
static bool dies_after;

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	bool now = dies_at && ++renames == dies_at;

	if (now && !dies_after)
		leave_child(9);
	int result = (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
	if (now)
		leave_child(9);
	return result;
}

static unsigned chance = 1;

static unsigned pick(unsigned below)
{
	chance = chance * 1103515245 + 12345;
	return (chance >> 16) % below;
}

/* ---- a script that is edited ---- */

enum { LINES_MOST = 12, WORDS = 9 };

struct lines {
	int word[LINES_MOST];
	int count;
};

static void write_script(const struct lines *lines)
{
	struct str text = STR_INIT;

	for (int i = 0; i < lines->count; i++)
		str_addf(&text, "Word %d.\n", lines->word[i]);
	put_text("script.txt", str_text(&text));
	str_free(&text);
}

static void edit(struct lines *lines)
{
	struct lines before = *lines;
	int a = (int)pick((unsigned)before.count), b = (int)pick((unsigned)before.count);

	switch (pick(6)) {
	case 0: /* on top or anywhere */
		if (before.count == LINES_MOST)
			break;
		for (int i = before.count; i > a; i--)
			lines->word[i] = before.word[i - 1];
		lines->word[a] = (int)pick(WORDS);
		lines->count++;
		break;
	case 1:
		if (before.count == 1)
			break;
		for (int i = a; i + 1 < before.count; i++)
			lines->word[i] = before.word[i + 1];
		lines->count--;
		break;
	case 2:
		lines->word[a] = before.word[b];
		lines->word[b] = before.word[a];
		break;
	case 3:
		for (int i = 0; i < before.count; i++)
			lines->word[i] = before.word[before.count - 1 - i];
		break;
	case 4:
		for (int i = 0; i < before.count; i++)
			lines->word[i] = before.word[(i + a) % before.count];
		break;
	default: lines->word[a] = (int)pick(WORDS); break;
	}
}

static struct job *load(void)
{
	struct section *conf = section_new(job_tts.options, "burst.cfg:1");
	CLEANUP(free_text) char *out = in_folder("out");
	CLEANUP(free_text) char *input = in_folder("script.txt");
	struct job_setup setup = {.conf = conf, .base_dir = folder, .output_dir = out, .name = "t"};
	struct job *job = NULL;
	struct err err = {0};

	section_set_text(conf, "input", input, "burst.cfg:2");
	section_set_int(conf, "min_chars", 0, "burst.cfg:3");
	if (job_tts.load(&job, &setup, &err) < 0)
		fail_msg("%s", err.msg);
	section_free(conf);
	return job;
}

/* The contents that a render of this key has. */
static char *sound_of(const char *key)
{
	return xasprintf("sound of %s", key);
}

static void render(struct job *job, size_t index, struct segment_result *result)
{
	size_t count;
	const struct segment *s = &job_tts.segments(job, &count)[index];
	CLEANUP(free_text) char *sound = sound_of(s->key), *name = xasprintf("out/%s", s->file);
	struct err err = {0};

	*result = (struct segment_result){
		.state = SEGMENT_SAFE, .seconds = 1, .sample_rate = 8000, .tries = 1};
	sha256_hex(sound, strlen(sound), result->sha256);
	if (job_tts.record(job, index, result, 1, &err) < 0)
		fail_msg("%s", err.msg);
	put_text(name, sound);
}

/* Each reused file holds what its key says; the count of those to render. */
static size_t check_results(struct job *job, const struct segment_result *results)
{
	size_t count, open = 0;
	const struct segment *list = job_tts.segments(job, &count);

	for (size_t i = 0; i < count; i++) {
		open += results[i].state != SEGMENT_SAFE;
		if (results[i].state != SEGMENT_SAFE)
			continue;
		CLEANUP(free_text)
		char *sound = sound_of(list[i].key), *name = xasprintf("out/%s", list[i].file),
		     *is = get_text(name);
		if (strcmp(sound, is))
			fail_msg("%s holds \"%s\", want \"%s\"", name, is, sound);
	}
	return open;
}

/* All that the segments want and that lies somewhere: these need no render. */
static size_t count_missing(struct job *job, json_t *known)
{
	size_t count, missing = 0;
	const struct segment *list = job_tts.segments(job, &count);

	for (size_t i = 0; i < count; i++)
		missing += !json_object_get(known, list[i].key);
	return missing;
}

static void keys_of(struct job *job, json_t *known)
{
	size_t count;
	const struct segment *list = job_tts.segments(job, &count);

	json_object_clear(known);
	for (size_t i = 0; i < count; i++)
		json_object_set_new(known, list[i].key, json_true());
}

static int find_and_bring(struct job *job, struct segment_result *results)
{
	struct str notes = STR_INIT;
	struct err err = {0};

	memset(results, 0, LINES_MOST * sizeof(*results));
	if (job_tts.find_cached(job, results, false, &err) < 0 ||
	    job_tts.bring(job, results, &notes, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(str_text(&notes), "");
	str_free(&notes);
	return 0;
}

/* A client that dies in the middle of it. */
static bool die_in_it(struct job *job)
{
	struct segment_result results[LINES_MOST];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		dies_after = pick(2);
		dies_at = 1 + (int)pick(8);
		find_and_bring(job, results);
		leave_child(0);
	}
	pick(2), pick(8); /* the child's */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
	return WEXITSTATUS(status) == 9;
}

/* After every step, by the manifest alone: each sound file is known by its hash. */
static void all_is_known(void)
{
	CLEANUP(free_text)
	char *out = in_folder("out"),
	     *command = xasprintf("ls %s | grep -v -e manifest.jsonl -e '^.burst-copy'", out);
	CLEANUP(manifest_free) struct manifest m = {0};
	struct err err = {0};
	char name[200];
	FILE *list = popen(command, "r");

	assert_int_equal(manifest_read(out, false, &m, &err), 0);
	while (fgets(name, sizeof(name), list)) {
		const struct manifest_entry *entry;
		bool absent;
		name[strcspn(name, "\n")] = '\0';
		assert_int_equal(manifest_match(&m, out, name, NULL, &entry, &absent, &err), 0);
		if (!entry)
			fail_msg("%s is in no line of the manifest", name);
	}
	pclose(list);
}

static void finish(struct job *job, struct segment_result *results)
{
	struct str notes = STR_INIT;
	struct err err = {0};
	size_t count;

	job_tts.segments(job, &count);
	for (size_t i = 0; i < count; i++)
		if (results[i].state != SEGMENT_SAFE)
			render(job, i, &results[i]);
	if (job_tts.finish(job, results, &notes, &err) < 0)
		fail_msg("%s", err.msg);
	str_free(&notes);
}

static void random_edits_and_crashes(void **state)
{
	struct lines lines = {.word = {0, 1, 2, 3, 4, 5}, .count = 6};
	struct segment_result results[LINES_MOST] = {0};
	CLEANUP(json_decref) json_t *known = json_object();
	int crashes = 0, reused_at_other_names = 0;

	(void)state;
	clear_folder();
	CLEANUP(free_text) char *out = in_folder("out");
	mkdir(out, 0755);
	for (int round = 0; round < 200; round++) {
		write_script(&lines);
		struct job *job = load();
		struct job_changes c;
		size_t count, missing = count_missing(job, known);
		job_tts.segments(job, &count);
		for (unsigned deaths = pick(3); deaths > 0; deaths--) {
			crashes += die_in_it(job);
			all_is_known();
		}
		find_and_bring(job, results);
		all_is_known();
		job_tts.changes(job, &c);
		reused_at_other_names += (int)c.moved;
		size_t open = check_results(job, results);
		if (open > missing) /* fewer, where something older is still there */
			fail_msg("round %d: %zu to render, want %zu at most", round, open, missing);
		assert_true(c.added + c.changed == open && c.unchanged == count - open);
		finish(job, results);
		check_results(job, results);
		keys_of(job, known);
		job_tts.free(job);
		for (unsigned edits = 1 + pick(3); edits > 0; edits--)
			edit(&lines);
	}
	if (crashes < 50 || reused_at_other_names < 200)
		fail_msg("%d crashes, %d reused: too few to be a test", crashes,
			 reused_at_other_names);
}

/* ---- what is not touched ---- */

/* A new output folder with these lines. */
static void render_first(const struct lines *lines)
{
	struct segment_result results[LINES_MOST] = {0};

	clear_folder();
	CLEANUP(free_text) char *out = in_folder("out");
	mkdir(out, 0755);
	write_script(lines);
	struct job *job = load();
	find_and_bring(job, results);
	finish(job, results);
	job_tts.free(job);
}

static void edited_files_stay(void **state)
{
	struct lines lines = {.word = {0, 1, 2}, .count = 3};
	struct segment_result results[LINES_MOST] = {0};
	struct err err = {0};

	(void)state;
	render_first(&lines);
	/* the user's own word for line 2, and a line on top */
	put_text("out/002.wav", "edited");
	lines = (struct lines){.word = {5, 0, 1, 2}, .count = 4};
	write_script(&lines);
	struct job *job = load();
	assert_int_equal(job_tts.find_cached(job, results, false, &err), -1);
	assert_non_null(strstr(err.msg, "out/002.wav is there and was not made by this job"));
	CLEANUP(free_text) char *still = get_text("out/002.wav");
	assert_string_equal(still, "edited");
	job_tts.free(job);
}

/* A manifest comes with a repository: no line of it leads out of the folder. */
static void lines_lead_nowhere_else(void **state)
{
	static const char *const files[] = {".burst-moving-d/x.wav", "d/x.wav", "link.wav"};
	struct segment_result results[LINES_MOST] = {0};
	struct err err = {0};
	size_t count;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		clear_folder();
		put_text("script.txt", "Word 0.\n");
		put_text("elsewhere/x.wav", "mine");
		CLEANUP(free_text)
		char *out = in_folder("out"), *name = path_join(out, files[i]),
		     *dir = path_dir(name), *to = in_folder("elsewhere");
		CLEANUP(free_text) char *file = in_folder("elsewhere/x.wav");
		char hash[SHA256_HEX];
		mkdir(out, 0755);
		assert_int_equal(strchr(files[i], '/') ? symlink(to, dir) : symlink(file, name), 0);
		sha256_hex("mine", 4, hash);
		struct job *job = load();
		CLEANUP(free_text)
		char *line = xasprintf(
			"{\"id\":\"001\",\"file\":\"%s\",\"key\":\"%s\",\"sha256\":\"%s\"}\n",
			files[i], job_tts.segments(job, &count)[0].key, hash);
		put_text("out/manifest.jsonl", line);
		memset(results, 0, sizeof(results));
		assert_int_equal(job_tts.find_cached(job, results, false, &err), 0);
		if (results[0].state == SEGMENT_SAFE)
			fail_msg("%s is believed", files[i]);
		assert_true(is_there("elsewhere/x.wav"));
		job_tts.free(job);
	}
}

static void stale_names(void **state)
{
	struct lines lines = {.word = {0, 1, 2, 3}, .count = 4};
	struct segment_result results[LINES_MOST] = {0};
	struct job_changes c;
	struct str notes = STR_INIT;
	struct err err = {0};

	(void)state;
	render_first(&lines);
	put_text("out/notes.txt", "mine");
	put_text("out/009.wav", "mine");
	lines = (struct lines){.word = {0, 2}, .count = 2};
	write_script(&lines);
	struct job *job = load();
	find_and_bring(job, results);
	job_tts.changes(job, &c);
	assert_true(c.added == 0 && c.changed == 0 && c.gone == 2 && c.unchanged == 2 &&
		    c.moved == 1 && c.stale == 2);
	assert_int_equal(job_tts.finish(job, results, &notes, &err), 0);
	assert_string_equal(
		str_text(&notes),
		"2 old outputs without a segment: 003.wav, 004.wav (see `burst run --prune`)\n");
	assert_true(is_there("out/003.wav") && is_there("out/004.wav") && is_there("out/009.wav"));
	job_tts.free(job);
	str_free(&notes);
}

/* Both files have the same sound, so the name under which one was parked before a death is the
 * first that the other one would be given. */
static void a_parked_file_is_not_overwritten(void **state)
{
	struct segment_result results[LINES_MOST] = {0};
	char hash[SHA256_HEX];
	size_t count;

	(void)state;
	clear_folder();
	put_text("script.txt", "Word 0.\nWord 1.\n");
	sha256_hex("sound", 5, hash);
	struct job *job = load();
	const struct segment *list = job_tts.segments(job, &count);
	CLEANUP(free_text) char *out = in_folder("out");
	CLEANUP(free_text) char *parked = xasprintf(".burst-moving-%.16s-1.wav", hash);
	CLEANUP(free_text) char *at = xasprintf("out/%s", parked);
	CLEANUP(free_text)
	char *lines =
		xasprintf("{\"id\":\"x\",\"file\":\"%s\",\"key\":\"%s\",\"sha256\":\"%s\"}\n"
			  "{\"id\":\"y\",\"file\":\"002.wav\",\"key\":\"%s\",\"sha256\":\"%s\"}\n",
			  parked, list[1].key, hash, list[0].key, hash);
	mkdir(out, 0755);
	put_text(at, "sound");
	put_text("out/002.wav", "sound");
	put_text("out/manifest.jsonl", lines);
	find_and_bring(job, results);
	assert_true(results[0].state == SEGMENT_SAFE && results[1].state == SEGMENT_SAFE);
	assert_true(is_there("out/001.wav") && is_there("out/002.wav") && !is_there(at));
	all_is_known();
	job_tts.free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_edits_and_crashes),
		cmocka_unit_test(edited_files_stay),
		cmocka_unit_test(lines_lead_nowhere_else),
		cmocka_unit_test(stale_names),
		cmocka_unit_test(a_parked_file_is_not_overwritten),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
