#include "engines.h"

#include "base/str.h"
#include "jobs/workers/embed.h"
#include "apt.h"
#include "chatterbox.h"
#include "piper.h"
#include "voices.h"

static const char espeak_install[] = APT_INSTALL("espeak-ng",
						 "	for f in /usr/lib/*/libespeak-ng.so.1 /usr/lib/libespeak-ng.so.1 "
						 "/usr/lib64/libespeak-ng.so.1 \\\n"
						 "		/usr/local/lib/libespeak-ng.so.1 /lib/*/libespeak-ng.so.1; do [ -e \"$f\" "
						 "] && return 0; done\n"
						 "	command -v espeak-ng >/dev/null 2>&1\n",
						 "'espeak-ng*' 'libespeak-ng*'", "espeak-ng");

static const char python_install[] = APT_INSTALL("python3 with venv", "	python3 -c 'import venv, ensurepip' >/dev/null 2>&1\n",
						 "'python3*' 'libpython3*'", "python3 python3-venv");

static const char *const espeak_packages[] = {"espeak-ng", NULL};
static const char *const python_packages[] = {"python3", "python3-venv", NULL};
static const char *const chatterbox_python[] = {"engine_chatterbox.py", "chatterbox_blocks.py", "chatterbox_sound.py", "chatterbox_t3.py", NULL};
static const char *const piper_python[] = {"engine_piper.py", NULL};

static const struct job_file *espeak_file(void)
{
	return &espeak_worker_file;
}

/* Speed in words a minute (below 80 the library speaks at 80), gap in hundredths of a second between words. */
static const struct engine_option espeak_options[] = {
	{"speed", true, 80, 900}, {"rate", true, 80, 900},	 {"pitch", true, 0, 99}, {"range", true, 0, 100},
	{"amplitude", true, 0, 200}, {"gap", true, 0, 1000}, {0},
};

static const struct engine_option chatterbox_options[] = {
	{"exaggeration", false, 0, 2}, {"cfg_weight", false, 0, 2}, {"temperature", false, 0.01, 5}, {"repetition_penalty", false, 1, 10},
	{"min_p", false, 0, 1},	       {"top_p", false, 0, 1},	    {0},
};

static const struct engine_option turbo_options[] = {
	{"temperature", false, 0.01, 5}, {"repetition_penalty", false, 1, 10}, {"top_p", false, 0, 1}, {"top_k", true, 0, 6563}, {0},
};

static const struct engine_option piper_options[] = {
	{"speed", false, 0.25, 4}, {"noise_scale", false, 0, 2},	{"noise_w", false, 0, 2},
	{"speaker", true, 0, 9999}, {"sentence_silence", false, 0, 5}, {0},
};

static const struct engine engines[] = {
	{
		.name = "espeak",
		.facts = {"GPL-3.0", "GPL-3.0", 5, "over 100", NULL, 22050, "all tests, on x86-64"},
		.voice = "en",
		.named_voices = true,
		.max_batch = 64,
		.max_batch_weight =
			64 * 320, /* a few MB of samples; more only delays the files' way home */
		.seconds_per_char = 0.0001, /* some 700 times as fast as speech */
		.seconds_each = 0.005,
		.prior = {.host_share = 1, .source = "espeak-ng on one core, 2026-11"},
		.worker = "\"$BURST_KIT/espeak-worker\"",
		.install = espeak_install,
		.packages = espeak_packages,
		.options = espeak_options,
		.file = espeak_file,
		.normal_speed = 175, /* words a minute */
		.check_voice = voices_check_espeak,
	},
	{
		.name = "piper",
		.facts = {"GPL-3.0", "by voice", 0, "37", NULL, 22050, "tests with one real voice, on x86-64"},
		.voice = PIPER_VOICE,
		.named_voices = true,
		.max_batch = 64,
		.max_batch_weight = 64 * 320,
		.seconds_per_char = 0.2 / 15, /* a guess for idle cores; 0.6 / 15 was measured on two busy ones */
		.seconds_each = 0.05,
		.worker = "\"$BURST_ENV/venv/bin/python\" \"$BURST_KIT/burst_worker.py\" piper",
		.install = python_install,
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
		.facts = {"MIT", "MIT", 0, "English", "WAV, 6 to 10 s", 24000, "tests with random weights, on a processor; no GPU yet"},
		.gpu = true,
		.vram_gb = 8,
		.max_batch = 64, /* its worker measures how many fit */
		.seconds_per_char = 1.0 / 15,
		.seconds_each = 0.5,
		/* 1.7 tokens a character at 30 ms a step, which the host launches; S3Gen's .4 s for 15.5 s of sound; weights, caches and
		 * activations by the models' shapes */
		.prior = {.once_s = 0.2, .longest_s = 0.05, .each_s = 0.0017, .gpu = "RTX 3090", .host_share = 0.8, .base_gib = 3.5,
			  .each_gib = 0.21, .source = "computed from the models' shapes, 2026-11; never run on a GPU"},
		.cap_s = 40,
		.worker = "\"$BURST_ENV/venv/bin/python\" \"$BURST_KIT/burst_worker.py\" chatterbox regular",
		.lock = "chatterbox",
		.torch = true,
		.torchaudio = true,
		.weights = chatterbox_weights,
		.install = python_install,
		.packages = python_packages,
		.options = chatterbox_options,
		.python = chatterbox_python,
	},
	{
		.name = "chatterbox-turbo",
		.facts = {"MIT", "MIT", 0, "English", "WAV, over 5 s", 24000, "tests with random weights, on a processor; no GPU yet"},
		.gpu = true,
		.vram_gb = 8,
		.max_batch = 64,
		.seconds_per_char = 0.5 / 15,
		.seconds_each = 0.5,
		.prior = {.once_s = 0.2, .longest_s = 0.04, .each_s = 0.0003, .gpu = "RTX 3090", .host_share = 0.8, .base_gib = 4.4,
			  .each_gib = 0.11, .source = "computed from the models' shapes, 2026-11; memory as published for vLLM; never run on a GPU"},
		.cap_s = 40,
		.worker = "\"$BURST_ENV/venv/bin/python\" \"$BURST_KIT/burst_worker.py\" chatterbox turbo",
		.lock = "chatterbox",
		.torch = true,
		.torchaudio = true,
		.weights = chatterbox_turbo_weights,
		.install = python_install,
		.packages = python_packages,
		.options = turbo_options,
		.python = chatterbox_python,
		.sample_least_s = 5,
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

	for (const struct engine_option *o = engine->options; o->name && n < ARRAY_LEN(names) - 1; o++) {
		str_addf(&known, "%s%s", n ? ", " : "", o->name);
		names[n++] = o->name;
	}
	names[n] = NULL;
	const char *near = nearest_word(name, names);
	str_add_printable(&shown, name, strlen(name), 40);
	if (near)
		return err_set(err, ERR_CONFIG, "options: %s has no option \"%s\", did you mean \"%s\"?", engine->name, str_text(&shown), near);
	return err_set(err, ERR_CONFIG, "options: %s has no option \"%s\"; it has %s", engine->name, str_text(&shown), str_text(&known));
}

int engine_check_option(const struct engine *engine, const char *name, const json_t *value, struct err *err)
{
	const struct engine_option *o = engine->options;
	double number = json_number_value(value);

	while (o->name && strcmp(o->name, name) != 0)
		o++;
	if (!o->name)
		return no_option(engine, name, err);
	bool fine = o->whole ? json_is_integer(value) : json_is_number(value);
	if (fine && number >= o->least && number <= o->most)
		return 0;
	CLEANUP(free_text) char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(10));
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_add_printable(&shown, text ? text : "", text ? strlen(text) : 0, 40);
	return err_set(err, ERR_CONFIG, "options: %s is %s; %s wants a %snumber from %g to %g", name, str_text(&shown), engine->name,
		       o->whole ? "whole " : "", o->least, o->most);
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
