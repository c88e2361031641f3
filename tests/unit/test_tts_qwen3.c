/* test_tts_qwen3.c - jobs for Qwen3-TTS: voices, languages, samples with and without their words.
 */
#include "tts_helpers.h"

#include "jobs/text/script.h"
#include "jobs/tts/tts.h"

struct asked {
	const char *engine, *line; /* of the script */
	const char *voices, *option;
};

static struct job *load_job(const struct asked *a, struct err *err)
{
	struct section *conf = section_new(job_tts.options, "burst.cfg:1");
	CLEANUP(free_text) char *out = in_folder("out");
	CLEANUP(free_text) char *path = in_folder("i.jsonl");
	struct job_setup setup = {.conf = conf, .base_dir = folder, .output_dir = out, .name = "t"};
	struct job *job = NULL;

	*err = (struct err){0};
	put_text("i.jsonl", a->line);
	section_set_text(conf, "input", path, "burst.cfg:2");
	section_set_text(conf, "engine", a->engine, "burst.cfg:3");
	if (a->voices)
		section_set_text(conf, "voices", a->voices, "burst.cfg:4");
	if (a->option)
		section_add_item(conf, "options", a->option, "burst.cfg:5");
	if (job_tts.load(&job, &setup, err) < 0)
		job = NULL;
	section_free(conf);
	return job;
}

#define KNOWN                                                                                      \
	"auto, chinese, english, french, german, italian, japanese, korean, portuguese, russian, " \
	"spanish"

static const struct {
	struct asked asked;
	const char *fault; /* NULL: it is fine */
} jobs[] = {
	{{"qwen3", "{\"text\":\"a\"}"}, NULL},
	{{"qwen3", "{\"text\":\"a\",\"voice\":\"Uncle_Fu\"}"}, NULL},
	{{"qwen3-1.7b", "{\"text\":\"a\",\"voice\":\"uncle_fo\"}"},
	 "i.jsonl:1: voice \"uncle_fo\" is unknown to qwen3-1.7b; did you mean \"uncle_fu\"?"},
	{{"qwen3", "{\"text\":\"a\",\"voice\":\"en-us+m3\"}"},
	 "i.jsonl:1: voice \"en-us+m3\" is unknown to qwen3; there are aiden, dylan, eric, "
	 "ono_anna, ryan, serena, sohee, uncle_fu, vivian"},
	{{"qwen3", "{\"text\":\"a\"}", .option = "language=German"}, NULL},
	{{"qwen3", "{\"text\":\"a\"}", .option = "language=germann"},
	 "burst.cfg:5: options: language is \"germann\"; did you mean \"german\"?"},
	{{"qwen3-1.7b", "{\"text\":\"a\",\"options\":{\"language\":\"nl\"}}"},
	 "i.jsonl:1: options: language is \"nl\"; there are " KNOWN},
	{{"qwen3", "{\"text\":\"a\"}", .option = "language=7"},
	 "burst.cfg:5: options: language is 7; there are " KNOWN},
	{{"qwen3", "{\"text\":\"a\"}", .option = "top_k=1.5"},
	 "burst.cfg:5: options: top_k is 1.5; qwen3 needs a whole number from 0 to 2048"},
	{{"qwen3-1.7b", "{\"text\":\"a\"}", .option = "instruct=Sadly, and slowly."}, NULL},
	{{"qwen3-1.7b", "{\"text\":\"a\"}", .option = "instruct=7"},
	 "burst.cfg:5: options: instruct is 7; qwen3-1.7b needs a string of at most 500 bytes"},
	{{"qwen3", "{\"text\":\"a\"}", .option = "instruct=Sadly."},
	 "burst.cfg:5: options: qwen3 has no option \"instruct\"; there are language, temperature, "
	 "top_k, top_p, repetition_penalty, "
	 "subtalker_temperature, subtalker_top_k, subtalker_top_p"},
	{{"qwen3-clone", "{\"text\":\"a\"}"},
	 "i.jsonl:1: qwen3-clone needs a voice: put a sample NAME.wav into a folder, and set "
	 "voices = \"FOLDER\" and voice = \"NAME\""},
	{{"qwen3", "{\"text\":\"Привет, мир. 你好。 こんにちは 안녕\"}"}, NULL},
	{{"qwen3", "{\"text\":\"שלום עולם\"}"},
	 "i.jsonl:1: \"שלום עולם\" is written in Hebrew letters, which no language of qwen3 has; "
	 "`burst engines` lists others"},
	{{"chatterbox", "{\"text\":\"My friend Наташа lives there.\"}"}, NULL},
	{{"chatterbox", "{\"text\":\"Привет, мир.\"}"},
	 "i.jsonl:1: \"Привет, мир.\" is written in Cyrillic letters, which no language of "
	 "chatterbox has; `burst engines` lists others"},
	{{"piper", "{\"text\":\"Привет, мир.\"}"}, NULL},
	{{"qwen3-1.7b-clone", "{\"text\":\"a\",\"voice\":\"ryan\"}"},
	 "i.jsonl:1: voice \"ryan\": qwen3-1.7b-clone takes voices from files: name their folder, "
	 "as in voices = \"voices\", and put ryan.wav there"},
};

static void what_a_job_may_ask_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
		struct err err;
		struct job *job = load_job(&jobs[i].asked, &err);
		const char *at = strstr(err.msg, "i.jsonl:1");
		const char *got = job ? NULL : at ? at : err.msg;
		if (!got != !jobs[i].fault || (got && strcmp(got, jobs[i].fault)))
			fail_msg("%s %s: got \"%s\", want \"%s\"", jobs[i].asked.engine,
				 jobs[i].asked.line, got ? got : "a job",
				 jobs[i].fault ? jobs[i].fault : "a job");
		job_tts.free(job);
	}
}

static void letters_by_script(void **state)
{
	static const struct {
		const char *text;
		unsigned known;
		const char *foreign;
	} all[] = {
		{"", LETTERS_LATIN, NULL},
		{"1984: 3 + 4 = 7 \U0001f600", LETTERS_LATIN, NULL},
		{"Ça va, Łódź? Tiếng Việt.", LETTERS_LATIN, NULL},
		{"Αθήνα", LETTERS_LATIN, "Greek"},
		{"Москва", LETTERS_LATIN, "Cyrillic"},
		{"Москва", LETTERS_LATIN | LETTERS_CYRILLIC, NULL},
		{"Москва", 0, NULL},
		{"Moscow", LETTERS_CYRILLIC, "Latin"},
		{"abжж", LETTERS_LATIN, NULL}, /* half and half */
		{"abжжж", LETTERS_LATIN, "Cyrillic"},
		{"Երևան", LETTERS_LATIN, "Armenian"},
		{"مرحبا بالعالم", LETTERS_LATIN, "Arabic"},
		{"नमस्ते", LETTERS_LATIN, "Devanagari"},
		{"தமிழ்", LETTERS_LATIN, "Indic"},
		{"สวัสดี", LETTERS_LATIN, "Thai"},
		{"თბილისი", LETTERS_LATIN, "Georgian"},
		{"漢字", LETTERS_LATIN, "Chinese"},
		{"漢字かなかな", LETTERS_LATIN, "kana"},
		{"서울", LETTERS_LATIN | LETTERS_HAN | LETTERS_KANA, "Hangul"},
		{"𠀀𠀁", LETTERS_LATIN, "Chinese"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const char *got = letters_foreign(all[i].text, all[i].known);
		if (!got != !all[i].foreign || (got && strcmp(got, all[i].foreign)))
			fail_msg("%s: got %s, want %s", all[i].text, got ? got : "none",
				 all[i].foreign ? all[i].foreign : "none");
	}
}

static void each_engine_has_its_weights(void **state)
{
	static const struct {
		const char *engine, *worker, *repository;
	} all[] = {
		{"qwen3",
		 "qwen3 custom 0.6b --pin qwen-tts==0.1.1 --pin transformers==4.57.3 --pin "
		 "weights==85e237c12c02",
		 "Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice"},
		{"qwen3-1.7b", "qwen3 custom 1.7b --pin qwen-tts==0.1.1",
		 "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice"},
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct job *job =
			load_job(&(struct asked){all[i].engine, "{\"text\":\"a\"}"}, &err);
		if (!job)
			fail_msg("%s", err.msg);
		const struct job_needs *needs = job_tts.needs(job);
		assert_true(needs->gpu);
		assert_non_null(strstr(needs->worker, all[i].worker));
		assert_non_null(strstr(needs->setup, all[i].repository));
		assert_non_null(strstr(needs->setup, "speech_tokenizer/model.safetensors"));
		job_tts.free(job);
	}
}

static const struct job_file *file_of(struct job *job, const char *name)
{
	const struct job_needs *needs = job_tts.needs(job);

	for (size_t i = 0; i < needs->file_count; i++)
		if (!strcmp(needs->files[i].name, name))
			return &needs->files[i];
	return NULL;
}

/* The key of the first segment. */
static char *key_of(const struct asked *a, const char *words)
{
	struct err err;
	struct job *job = load_job(a, &err);
	size_t count;

	if (!job)
		fail_msg("%s", err.msg);
	const struct job_file *file = file_of(job, "voice-anna.txt");
	assert_true(!file == !words);
	if (file) {
		assert_int_equal(file->len, strlen(words));
		assert_memory_equal(file->data, words, file->len);
	}
	assert_non_null(file_of(job, "voice-anna.wav"));
	json_t *task = job_tts.task(job, 1, 0);
	assert_string_equal(json_string_value(json_object_get(task, "voice_file")),
			    "voice-anna.wav");
	json_decref(task);
	char *key = xstrdup(job_tts.segments(job, &count)[0].key);
	job_tts.free(job);
	return key;
}

static void words_travel_with_their_sample(void **state)
{
	CLEANUP(free_text) char *voices = in_folder("voices");
	CLEANUP(free_text)
	char *empty = xasprintf("i.jsonl:1: voice \"anna\": %s/anna.txt: no words: write what is "
				"said in anna.wav, or remove the file",
				voices);
	CLEANUP(free_text)
	char *shorter = xasprintf("i.jsonl:1: voice \"anna\": %s/anna.wav: 2.5 s are too short: "
				  "qwen3-clone needs a voice sample of more than 2.9 s",
				  voices);
	struct asked clone = {"qwen3-clone",
			      "{\"text\":\"a\",\"voice\":\"anna\"}\n{\"text\":\"b\",\"voice\":"
			      "\"anna\"}\n",
			      voices},
		     other = {"chatterbox", clone.line, voices};
	struct err err;

	(void)state;
	put_tone("voices/anna.wav", 16000, 1, 3, 0.5, 0);
	CLEANUP(free_text) char *without = key_of(&clone, NULL);
	CLEANUP(free_text) char *elsewhere = key_of(&other, NULL);
	put_text("voices/anna.txt", "What anna says.\n");
	CLEANUP(free_text) char *with = key_of(&clone, "What anna says.\n");
	CLEANUP(free_text) char *unread = key_of(&other, NULL);
	put_text("voices/anna.txt", "What anna said.\n");
	CLEANUP(free_text) char *corrected = key_of(&clone, "What anna said.\n");
	assert_string_not_equal(without, with);
	assert_string_not_equal(with, corrected);
	assert_string_equal(elsewhere, unread); /* an engine that does not read them */
	put_text("voices/anna.txt", " \n");
	assert_null(load_job(&clone, &err));
	assert_string_equal(err.msg, empty);
	put_tone("voices/anna.wav", 16000, 1, 2.5, 0.5, 0);
	assert_null(load_job(&clone, &err));
	assert_string_equal(err.msg, shorter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_job_may_ask_for),
		cmocka_unit_test(letters_by_script),
		cmocka_unit_test(each_engine_has_its_weights),
		cmocka_unit_test(words_travel_with_their_sample),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
