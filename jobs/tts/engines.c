/* engines.c - the table of speech engines: packages, options, licences, memory, languages. */
#include "engines.h"

#include <strings.h>

#include "base/str.h"
#include "jobs/workers/embed.h"
#include "apt.h"
#include "chatterbox.h"
#include "kokoro.h"
#include "letters.h"
#include "piper.h"
#include "qwen3.h"
#include "voices.h"

#define ESPEAK_HAVE                                                                                \
	"	for f in /usr/lib/*/libespeak-ng.so.1 /usr/lib/libespeak-ng.so.1 "                       \
	"/usr/lib64/libespeak-ng.so.1 \\\n"                                                        \
	"		/usr/local/lib/libespeak-ng.so.1 /lib/*/libespeak-ng.so.1; do [ -e "                    \
	"\"$f\" "                                                                                  \
	"] && return 0; done\n"                                                                    \
	"	command -v espeak-ng >/dev/null 2>&1\n"
#define PYTHON_HAVE "	python3 -c 'import venv, ensurepip' >/dev/null 2>&1\n"

static const char espeak_install[] =
	APT_INSTALL("espeak-ng", ESPEAK_HAVE, "'espeak-ng*' 'libespeak-ng*'", "espeak-ng");
static const char python_install[] = APT_INSTALL(
	"python3 with venv", PYTHON_HAVE, "'python3*' 'libpython3*'", "python3 python3-venv");

static const char *const espeak_packages[] = {"espeak-ng", NULL};
static const char *const python_packages[] = {"python3", "python3-venv", NULL};
static const char *const chatterbox_python[] = {"engine_chatterbox.py",  "burst_graphs.py",
						"chatterbox_blocks.py",  "chatterbox_loop.py",
						"chatterbox_prepare.py", "chatterbox_slots.py",
						"chatterbox_sound.py",   "chatterbox_t3.py",
						"chatterbox_weights.py", NULL};
static const char *const kokoro_python[] = {"engine_kokoro.py", "kokoro_batch.py", "kokoro_text.py",
					    NULL};
static const char *const qwen3_python[] = {"engine_qwen3.py", "qwen3_blocks.py", "qwen3_talk.py",
					   NULL};
static const char *const piper_python[] = {"engine_piper.py", NULL};

static const struct job_file *espeak_file(void)
{
	return &espeak_worker_file;
}

/* speed: words a minute (the library treats less than 80 as 80); gap: hundredths of a second
 * between words. */
static const struct engine_option espeak_options[] = {
	{"speed", true, 80, 900},
	{"rate", true, 80, 900},
	{"pitch", true, 0, 99},
	{"range", true, 0, 100},
	{"amplitude", true, 0, 200},
	{"gap", true, 0, 1000},
	{0},
};

static const struct engine_option chatterbox_options[] = {
	{"exaggeration", false, 0, 2},
	{"cfg_weight", false, 0, 2},
	{"temperature", false, 0.01, 5},
	{"repetition_penalty", false, 1, 10},
	{"min_p", false, 0, 1},
	{"top_p", false, 0, 1},
	{0},
};

static const struct engine_option turbo_options[] = {
	{"temperature", false, 0.01, 5},
	{"repetition_penalty", false, 1, 10},
	{"top_p", false, 0, 1},
	{"top_k", true, 0, 6563},
	{0},
};

static const struct engine_option piper_options[] = {
	{"speed", false, 0.25, 4},  {"noise_scale", false, 0, 2},      {"noise_w", false, 0, 2},
	{"speaker", true, 0, 9999}, {"sentence_silence", false, 0, 5}, {0},
};

/* Chinese, Japanese, Korean, Russian and six languages in Latin letters */
#define QWEN3_LETTERS                                                                              \
	(LETTERS_LATIN | LETTERS_CYRILLIC | LETTERS_HAN | LETTERS_KANA | LETTERS_HANGUL)

/* What the four rows of Qwen3-TTS share: all of them, those of a size, those of a voice source. */
/* clang-format off */
#define QWEN3_ALIKE \
	.letters = QWEN3_LETTERS, .gpu = true, .bf16 = true, .max_batch = 64, .seconds_per_char = 0.5 / 15, .seconds_each = 0.5, .lock = "qwen3", \
	.sources = "qwen3-source", .torch = true, .torchaudio = true, .install = python_install, .installed = PYTHON_HAVE, .packages = python_packages, .python = qwen3_python
/* 0.83 frames a character at 30 ms, which the host launches: 16 passes of the code predictor and
 * one of the talker; sound at some 50 GFLOP a second. Memory: weights, 0.11 GiB of cache for the
 * longest row, 1,300 frames of sound at once */
#define QWEN3_PRIOR(LONGEST_S, BASE_GIB, SOURCE) \
	{.once_s = 0.2, .longest_s = LONGEST_S, .each_s = 0.0004, .gpu = "RTX 3090", .host_share = 0.9, .base_gib = BASE_GIB, .each_gib = 0.12, \
	 .source = "computed from the models' shapes, 2026-11; " SOURCE "never run on a GPU"}
#define QWEN3_SMALL .vram_gb = 8, .prior = QWEN3_PRIOR(0.025, 4.5, "weights take 2.0 GiB as published for an RTX 4070; ")
#define QWEN3_LARGE .vram_gb = 12, .prior = QWEN3_PRIOR(0.027, 6.5, "")
#define QWEN3_RAN "tests with random weights, on a processor; no GPU yet"
#define QWEN3_NAMED \
	.facts = {"Apache-2.0", "Apache-2.0", 0, "10", NULL, 24000, QWEN3_RAN}, .voice = QWEN3_VOICE, .named_voices = true, \
	.check_voice = qwen3_check_voice
#define QWEN3_CLONE \
	.facts = {"Apache-2.0", "Apache-2.0", 0, "10", "3 to 30 s", 24000, QWEN3_RAN}, .sample_least_s = 2.9, .sample_most_s = 30, .needs_sample = true, \
	.reads_words = true
#define QWEN3_WORKER "\"$BURST_ENV/venv/bin/python\" \"$BURST_KIT/burst_worker.py\" qwen3 "
/* clang-format on */

/* As published: S3Gen uses the first 10 s, T3 6 s (Turbo 15 s). The whole sample gives the timbre.
 * A sample of over two minutes is probably a mistake. */
#define CHATTERBOX_SAMPLE .sample_usual_s = 6, .sample_used_s = 10, .sample_most_s = 120

static const struct engine engines[] = {
	{
		.name = "espeak",
		.facts = {"GPL-3.0", "GPL-3.0", 5, "over 100", NULL, 22050, "all tests, on x86-64"},
		.voice = "en",
		.named_voices = true,
		.max_batch = 64,
		.max_batch_weight =
			64 * 320, /* a few MB of samples; larger files only delay the first fetch */
		.seconds_per_char = 0.0001, /* some 700 times as fast as speech */
		.seconds_each = 0.005,
		.prior = {.host_share = 1, .source = "espeak-ng on one core, 2026-11"},
		.worker = "\"$BURST_KIT/espeak-worker\"",
		.install = espeak_install,
		.installed = ESPEAK_HAVE,
		.packages = espeak_packages,
		.options = espeak_options,
		.file = espeak_file,
		.normal_speed = 175, /* in words a minute */
		.check_voice = voices_check_espeak,
	},
	{
		.name = "piper",
		.facts = {"GPL-3.0", "by voice", 0, "37", NULL, 22050,
			  "tests with one real voice, on x86-64"},
		.voice = PIPER_VOICE,
		.named_voices = true,
		.max_batch = 64,
		.max_batch_weight = 64 * 320,
		/* a guess for idle cores: 0.6 / 15 was measured on two busy ones */
		.seconds_per_char = 0.2 / 15,
		.seconds_each = 0.05,
		.worker = "\"$BURST_ENV/venv/bin/python\" \"$BURST_KIT/burst_worker.py\" piper",
		.install = python_install,
		.installed = PYTHON_HAVE,
		.packages = python_packages,
		.lock = "piper",
		.options = piper_options,
		.python = piper_python,
		.normal_speed = 1,
		.check_voice = piper_check_voice,
		.by_voice = &piper_voices,
	},
	{
		.name = "chatterbox",
		.facts = {"MIT", "MIT", 0, "English", "6 to 10 s", 24000,
			  "tests with random weights, on a processor; no GPU yet"},
		.letters = LETTERS_LATIN,
		.gpu = true,
		.bf16 = true,
		.vram_gb = 8,
		.max_batch = 64, /* its worker measures how many fit */
		.seconds_per_char = 1.0 / 15,
		.seconds_each = 0.5,
		/* 1.7 tokens a character at 30 ms a step, which the host launches; 0.4 s of S3Gen
		 * for 15.5 s of sound; weights, caches and activations follow from the models'
		 * shapes */
		.prior = {.once_s = 0.2,
			  .longest_s = 0.05,
			  .each_s = 0.0017,
			  .gpu = "RTX 3090",
			  .host_share = 0.8,
			  .base_gib = 3.5,
			  .each_gib = 0.21,
			  .source =
				  "computed from the models' shapes, 2026-11; never run on a GPU"},
		.cap_s = 40,
		.worker = "\"$BURST_ENV/venv/bin/python\" \"$BURST_KIT/burst_worker.py\" "
			  "chatterbox regular",
		.lock = "chatterbox",
		.torch = true,
		.torchaudio = true,
		.weights = chatterbox_weights,
		.prepare = "chatterbox_prepare.py",
		.install = python_install,
		.installed = PYTHON_HAVE,
		.packages = python_packages,
		.options = chatterbox_options,
		.python = chatterbox_python,
		CHATTERBOX_SAMPLE,
		.sample_least_s = 0.5, /* no lower bound is published */
	},
	{
		.name = "chatterbox-turbo",
		.facts = {"MIT", "MIT", 0, "English", "over 5 s", 24000,
			  "tests with random weights, on a processor; no GPU yet"},
		.letters = LETTERS_LATIN,
		.gpu = true,
		.bf16 = true,
		.vram_gb = 8,
		.max_batch = 64,
		.seconds_per_char = 0.5 / 15,
		.seconds_each = 0.5,
		.prior = {.once_s = 0.2,
			  .longest_s = 0.04,
			  .each_s = 0.0003,
			  .gpu = "RTX 3090",
			  .host_share = 0.8,
			  .base_gib = 4.4,
			  .each_gib = 0.11,
			  .source = "computed from the models' shapes, 2026-11; memory as "
				    "published for vLLM; never run on a GPU"},
		.cap_s = 40,
		.worker = "\"$BURST_ENV/venv/bin/python\" \"$BURST_KIT/burst_worker.py\" "
			  "chatterbox turbo",
		.lock = "chatterbox",
		.torch = true,
		.torchaudio = true,
		.weights = chatterbox_turbo_weights,
		.prepare = "chatterbox_prepare.py",
		.install = python_install,
		.installed = PYTHON_HAVE,
		.packages = python_packages,
		.options = turbo_options,
		.python = chatterbox_python,
		CHATTERBOX_SAMPLE,
		.sample_least_s = 5,
	},
	{.name = "qwen3",
	 QWEN3_ALIKE,
	 QWEN3_SMALL,
	 QWEN3_NAMED,
	 .worker = QWEN3_WORKER "custom 0.6b",
	 .weights = qwen3_weights,
	 .options = qwen3_options},
	{.name = "qwen3-1.7b",
	 QWEN3_ALIKE,
	 QWEN3_LARGE,
	 QWEN3_NAMED,
	 .worker = QWEN3_WORKER "custom 1.7b",
	 .weights = qwen3_large_weights,
	 .options = qwen3_large_options},
	{.name = "qwen3-clone",
	 QWEN3_ALIKE,
	 QWEN3_SMALL,
	 QWEN3_CLONE,
	 .worker = QWEN3_WORKER "clone 0.6b",
	 .weights = qwen3_clone_weights,
	 .options = qwen3_options},
	{.name = "qwen3-1.7b-clone",
	 QWEN3_ALIKE,
	 QWEN3_LARGE,
	 QWEN3_CLONE,
	 .worker = QWEN3_WORKER "clone 1.7b",
	 .weights = qwen3_large_clone_weights,
	 .options = qwen3_options},
	{
		.name = "kokoro",
		/* espeak-ng makes part of its phonemes; the 54 voices take 28 MB, whose exact sizes
		 * are unknown */
		.facts = {"Apache-2.0 and GPL-3.0", "Apache-2.0", 28, "8", NULL, 24000,
			  "tests with random weights, on a processor; no GPU yet"},
		.voice = KOKORO_VOICE,
		.named_voices = true,
		.letters = LETTERS_LATIN | LETTERS_DEVANAGARI | LETTERS_HAN | LETTERS_KANA,
		.letters_of = kokoro_letters,
		.gpu = true,
		.vram_gb = 6,
		.max_batch = 64,
		.seconds_per_char = 0.05 / 15,
		.seconds_each = 0.2,
		/* some 55 GFLOP for a second of sound, and as much for its norms; 130 s of sound at
		 * once */
		.prior = {.once_s = 0.1,
			  .longest_s = 0.0002,
			  .each_s = 0.0007,
			  .gpu = "RTX 3090",
			  .host_share = 0.5,
			  .base_gib = 4,
			  .each_gib = 0.02,
			  .source =
				  "computed from the model's shapes, 2026-11; never run on a GPU"},
		.worker = "\"$BURST_ENV/venv/bin/python\" \"$BURST_KIT/burst_worker.py\" kokoro",
		.lock = "kokoro",
		.sources = "kokoro-source",
		.torch = true,
		.weights = kokoro_weights,
		.install = python_install,
		.installed = PYTHON_HAVE,
		.packages = python_packages,
		.options = kokoro_options,
		.python = kokoro_python,
		.normal_speed = 1,
		.check_voice = kokoro_check_voice,
	},
};

const struct engine *engine_list(size_t *count)
{
	*count = ARRAY_LEN(engines);
	return engines;
}

const struct engine *engine_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		if (!strcmp(engines[i].name, name))
			return &engines[i];
	return NULL;
}

static int no_option(const struct engine *engine, const char *name, struct err *err)
{
	CLEANUP(str_free) struct str known = STR_INIT;
	CLEANUP(str_free) struct str shown = STR_INIT;
	const char *names[16];
	size_t n = 0;

	for (const struct engine_option *o = engine->options; o->name && n < ARRAY_LEN(names) - 1;
	     o++) {
		str_addf(&known, "%s%s", n ? ", " : "", o->name);
		names[n++] = o->name;
	}
	names[n] = NULL;
	const char *near = nearest_word(name, names);
	str_add_printable(&shown, name, strlen(name), 40);
	if (near)
		return err_set(err, ERR_CONFIG,
			       "options: %s has no option \"%s\", did you mean \"%s\"?",
			       engine->name, str_text(&shown), near);
	return err_set(err, ERR_CONFIG, "options: %s has no option \"%s\"; it has %s", engine->name,
		       str_text(&shown), str_text(&known));
}

static int wrong_word(const struct engine *engine, const struct engine_option *o, const char *word,
		      const char *text, struct err *err)
{
	CLEANUP(str_free) struct str known = STR_INIT;
	const char *near = word ? nearest_word(word, o->words) : NULL;

	for (size_t i = 0; o->words[i]; i++)
		str_addf(&known, "%s%s", i ? ", " : "", o->words[i]);
	if (near)
		return err_set(err, ERR_CONFIG, "options: %s is %s, did you mean \"%s\"? %s has %s",
			       o->name, text, near, engine->name, str_text(&known));
	return err_set(err, ERR_CONFIG, "options: %s is %s; %s has %s", o->name, text, engine->name,
		       str_text(&known));
}

static bool option_fits(const struct engine_option *o, const json_t *value)
{
	const char *text = json_string_value(value);
	double number = json_number_value(value);

	if (o->text_bytes)
		return text && strlen(text) <= o->text_bytes;
	for (size_t i = 0; o->words && text && o->words[i]; i++)
		if (!strcasecmp(o->words[i], text))
			return true;
	return !o->words && (o->whole ? json_is_integer(value) : json_is_number(value)) &&
	       number >= o->least && number <= o->most;
}

int engine_check_option(const struct engine *engine, const char *name, const json_t *value,
			struct err *err)
{
	const struct engine_option *o = engine->options;

	while (o->name && strcmp(o->name, name) != 0)
		o++;
	if (!o->name)
		return no_option(engine, name, err);
	if (option_fits(o, value))
		return 0;
	CLEANUP(free_text)
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(10));
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_add_printable(&shown, text ? text : "", text ? strlen(text) : 0, 40);
	if (o->words)
		return wrong_word(engine, o, json_string_value(value), str_text(&shown), err);
	if (o->text_bytes)
		return err_set(err, ERR_CONFIG,
			       "options: %s is %s; %s needs a string of at most %zu bytes", name,
			       str_text(&shown), engine->name, o->text_bytes);
	return err_set(err, ERR_CONFIG, "options: %s is %s; %s needs a %snumber from %g to %g",
		       name, str_text(&shown), engine->name, o->whole ? "whole " : "", o->least,
		       o->most);
}

const char *const *engine_names(void)
{
	static const char *names[ARRAY_LEN(engines) + 1];

	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		names[i] = engines[i].name;
	return names;
}

double engine_speed(const struct engine *engine, double value)
{
	const struct engine_option *o = engine->options;

	if (engine->normal_speed <= 0 || value <= 0)
		return 1;
	while (o->name && strcmp(o->name, "speed") != 0)
		o++;
	return (o->name ? MIN(MAX(value, o->least), o->most) : value) / engine->normal_speed;
}
