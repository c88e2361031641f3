/* tts_keys.c - the keys of a job of type "tts", and the checks that need no script */
#include <math.h>
#include <stdlib.h>

#include "base/gpus.h"
#include "base/jsonx.h"
#include "join.h"
#include "jobs/common.h"
#include "state.h"

static const struct option_spec check_options[] = {
	{"enabled", OPTION_BOOL, 0, "true", "check each finished file"},
	{"tries", OPTION_INT, 0, "3", "how often a suspect segment is rendered in all"},
	{"min_duration", OPTION_DECIMAL, 0, "0.35",
	 "shortest length, times what the text should take"},
	{"max_duration", OPTION_DECIMAL, 0, "3.0",
	 "longest length, times what the text should take"},
	{"silence", OPTION_DECIMAL, 0, "2.0", "longest silence within, in seconds"},
	{"clipping", OPTION_DECIMAL, 0, "0.01", "largest share of clipped samples"},
	{"offset", OPTION_DECIMAL, 0, "0.05",
	 "largest mean of all samples, as a share of full scale"},
	{"compare", OPTION_BOOL, 0, "true",
	 "suspect files that differ from others of their voice in speed, ending or sample rate"},
	{0},
};

static const struct option_spec join_options[] = {
	{"gap", OPTION_DECIMAL, 0, "0.4", "seconds of silence between segments"},
	{"piece_gap", OPTION_DECIMAL, 0, "0.1", "the same between pieces of one long text"},
	{"loudness", OPTION_DECIMAL, 0, NULL,
	 "loudness of the track in LUFS, as in -18 (absent: unchanged)"},
	{"subtitles", OPTION_BOOL, 0, "false", "write joined.srt and joined.vtt"},
	{"formats", OPTION_TEXTS, 0, NULL,
	 "also write the track with chapters in these formats: m4b, mp3, opus, flac"},
	{0},
};

static const struct option_spec estimate_options[] = {
	{"gpu", OPTION_TEXT, 0, NULL,
	 "the GPU that the times were measured on; others follow by bandwidth and compute"},
	{"once", OPTION_DECIMAL, 0, "0", "seconds of each batch, whatever its content"},
	{"longest", OPTION_DECIMAL, 0, "0", "seconds for each character of its longest segment"},
	{"each", OPTION_DECIMAL, 0, "0", "seconds for each character of all its segments"},
	{"host_share", OPTION_DECIMAL, 0, "0",
	 "share of `longest` and `each` that no faster card shortens"},
	{"vram_base", OPTION_DECIMAL, 0, "0", "GiB of GPU memory that the engine always takes"},
	{"vram_each", OPTION_DECIMAL, 0, "0", "GiB that each segment of a batch adds"},
	{0},
};

const struct option_spec tts_options[] = {
	JOB_COMMON_OPTIONS,
	{"engine", OPTION_TEXT, 0, "espeak",
	 "what speaks: \"piper\" (a neural voice without a GPU), another of `burst engines`, or "
	 "any name with your own worker"},
	{"input", OPTION_PATH, OPTION_REQUIRED, NULL,
	 "the script: .txt, .jsonl, .csv, .tsv, .md, or a folder of .txt"},
	{"input_mode", OPTION_TEXT, 0, "auto",
	 "how .txt is cut: lines, paragraphs, or auto (paragraphs if some have several lines)"},
	{"lexicon", OPTION_PATH, 0, NULL,
	 "pronunciations: a file with a word, a tab and what to say for it on each line"},
	{"voice", OPTION_TEXT, 0, NULL, "voice of lines that name none"},
	{"voices", OPTION_PATH, 0, NULL,
	 "folder of voice samples: NAME.wav (flac, mp3, m4a, ogg with ffmpeg) is the voice NAME; "
	 "NAME.txt its words, for qwen3-clone"},
	{"options", OPTION_TEXTS, 0, NULL, "settings of the engine, as in [\"speed=160\"]"},
	{"seed", OPTION_INT, 0, "0",
	 "base of the random seeds; the same seed gives the same files"},
	{"accept_license", OPTION_BOOL, 0, "false",
	 "use weights whose licence forbids some use; you keep to it"},
	{"weights_url", OPTION_TEXT, 0, NULL,
	 "a server with the paths of huggingface.co that weights come from instead"},
	{"worker", OPTION_TEXT, 0, NULL, "shell command that starts your own worker program"},
	{"workers", OPTION_INT, 0, "1", "worker processes on each pod"},
	{"max_batch", OPTION_INT, 0, NULL,
	 "largest number of segments in a batch (absent: the engine's own)"},
	{"hang", OPTION_DURATION, 0, "60s",
	 "restart a worker that is silent for this long, or for ten times its estimate", NULL},
	{"vram_gb", OPTION_INT, 0, NULL,
	 "GPU memory that your own worker needs; 0: it needs no GPU"},
	{"setup_needs_gpu", OPTION_BOOL, 0, "true",
	 "false: your setup compiles nothing for a card, so all cards share its result and a pod "
	 "without a GPU can run it"},
	{"estimate", OPTION_GROUP, 0, NULL, "what is known of the engine before it has run here",
	 estimate_options},
	{"max_chars", OPTION_INT, 0, "280", "longer texts are cut at sentences, commas, words"},
	{"min_chars", OPTION_INT, 0, "20", "shorter pieces are merged with a neighbour"},
	{"check", OPTION_GROUP, 0, NULL, "what a finished file must satisfy", check_options},
	{"join", OPTION_GROUP, 0, NULL, "one track of all segments", join_options},
	{0},
};

static int range_int(const struct section *conf, const char *key, int64_t least, int64_t most,
		     struct err *err)
{
	int64_t value = section_int(conf, key);

	if (section_has(conf, key) && (value < least || value > most))
		return err_set(err, ERR_CONFIG, "%s: %s must be from %lld to %lld",
			       section_where(conf, key), key, (long long)least, (long long)most);
	return 0;
}

static int range_decimal(const struct section *conf, const char *key, double least, double most,
			 struct err *err)
{
	double value = section_decimal(conf, key);

	if (section_has(conf, key) && !(value >= least && value <= most))
		return err_set(err, ERR_CONFIG, "%s: %s must be from %g to %g",
			       section_where(conf, key), key, least, most);
	return 0;
}

static int check_ranges(const struct section *conf, struct mistakes *m, struct err *err)
{
	const struct section *check = section_group(conf, "check"),
			     *join = section_group(conf, "join"),
			     *estimate = section_group(conf, "estimate");
	const struct {
		const struct section *of;
		const char *key;
		int64_t least, most;
	} whole[] = {
		{conf, "workers", 1, 256},
		{conf, "max_batch", 1, 10000},
		{conf, "vram_gb", 0, 2000},
		{conf, "max_chars", TTS_CHARS_LEAST, TTS_CHARS_MOST},
		{conf, "min_chars", 0, MAX(section_int(conf, "max_chars"), 0) / 2},
		{conf, "seed", 0, INT32_MAX},
		{check, "tries", 1, 20},
	};
	const struct {
		const struct section *of;
		const char *key;
		double least, most;
	} decimal[] = {
		{check, "min_duration", 0, 1},    {check, "max_duration", 1, 1000},
		{check, "silence", 0.1, 3600},    {check, "clipping", 0, 1},
		{check, "offset", 0, 1},          {join, "gap", 0, 60},
		{join, "piece_gap", 0, 60},       {join, "loudness", -70, -5},
		{estimate, "once", 0, 3600},      {estimate, "longest", 0, 3600},
		{estimate, "each", 0, 3600},      {estimate, "host_share", 0, 1},
		{estimate, "vram_base", 0, 2000}, {estimate, "vram_each", 0, 2000},
	};

	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		if (range_int(whole[i].of, whole[i].key, whole[i].least, whole[i].most, err) < 0 &&
		    mistakes_note(m, NULL, err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(decimal); i++)
		if (range_decimal(decimal[i].of, decimal[i].key, decimal[i].least, decimal[i].most,
				  err) < 0 &&
		    mistakes_note(m, NULL, err) < 0)
			return -1;
	return 0;
}

static json_t *option_value(const char *text)
{
	char *end;
	long long whole = strtoll(text, &end, 10);

	if (*text && !*end)
		return json_integer(whole);
	double number = strtod(text, &end);
	if (*text && !*end && isfinite(number))
		return json_real(number);
	if (!strcmp(text, "true") || !strcmp(text, "false"))
		return json_boolean(text[0] == 't');
	return json_string(text);
}

/* Returns NULL for the user's own worker or an unknown engine. */
static const struct engine *engine_of(const struct section *conf)
{
	const char *worker = section_text(conf, "worker");

	return worker && *worker ? NULL : engine_find(section_text(conf, "engine"));
}

static int read_option(json_t *to, const struct section *conf, const char *item, struct err *err)
{
	const struct engine *engine = engine_of(conf);
	const char *equals = strchr(item, '=');
	CLEANUP(free_text) char *name = equals ? xstrndup(item, (size_t)(equals - item)) : NULL;
	json_t *value = equals && equals > item ? option_value(equals + 1) : NULL;

	if (!value || json_object_set_new(to, name, value) < 0)
		return err_set(err, ERR_CONFIG,
			       "%s: options: \"%s\" must be written as in \"speed=160\"",
			       section_where(conf, "options"), item);
	if (engine && engine_check_option(engine, name, value, err) < 0)
		return err_wrap(err, "%s", section_where(conf, "options"));
	return 0;
}

int tts_read_options(json_t *to, const struct section *conf, struct mistakes *m, struct err *err)
{
	for (size_t i = 0; i < section_count(conf, "options"); i++)
		if (read_option(to, conf, section_item(conf, "options", i), err) < 0 &&
		    mistakes_note(m, NULL, err) < 0)
			return -1;
	return 0;
}

static int check_engine(const struct section *conf, struct err *err)
{
	const char *name = section_text(conf, "engine"), *worker = section_text(conf, "worker");

	if (engine_find(name) || (worker && *worker))
		return 0;
	const char *near = nearest_word(name, engine_names());
	return err_set(
		err, ERR_CONFIG,
		"%s: engine \"%s\" is unknown%s%s%s (an engine of your own needs worker = \"...\")",
		section_where(conf, "engine"), name, near ? "; did you mean \"" : "",
		near ? near : "", near ? "\"?" : "");
}

int tts_read_mode(const struct section *conf, enum input_mode *out, struct err *err)
{
	static const char *const modes[] = {
		[INPUT_AUTO] = "auto", [INPUT_LINES] = "lines", [INPUT_PARAGRAPHS] = "paragraphs"};

	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (!strcmp(section_text(conf, "input_mode"), modes[i])) {
			*out = (enum input_mode)i;
			return 0;
		}
	return err_set(err, ERR_CONFIG,
		       "%s: input_mode must be \"auto\", \"lines\" or \"paragraphs\"",
		       section_where(conf, "input_mode"));
}

static int check_formats(const struct section *join, struct mistakes *m, struct err *err)
{
	for (size_t i = 0; i < section_count(join, "formats"); i++) {
		const char *name = section_item(join, "formats", i);
		bool again = false;
		for (size_t k = 0; k < i; k++)
			again |= !strcmp(name, section_item(join, "formats", k));
		if (ffmpeg_format_find(name) && !again)
			continue;
		err_set(err, ERR_CONFIG, "%s: formats: \"%.*s\" %s", section_where(join, "formats"),
			utf8_fit(name, 40), name,
			again ? "is there twice" : "is none of m4b, mp3, opus, flac");
		if (mistakes_note(m, NULL, err) < 0)
			return -1;
	}
	return 0;
}

/* Its times would be taken for those of every card. */
static int check_estimate_gpu(const struct section *conf, struct err *err)
{
	const struct section *estimate = section_group(conf, "estimate");
	const char *gpu = section_text(estimate, "gpu"), *near;

	if (!gpu || !*gpu || gpu_find(gpu))
		return 0;
	near = gpu_nearest(gpu);
	return err_set(
		err, ERR_CONFIG,
		"%s: estimate: gpu \"%.*s\" is unknown%s%s%s; `burst gpus` lists those whose "
		"times can be carried over (absent: the times hold for all cards)",
		section_where(estimate, "gpu"), utf8_fit(gpu, 40), gpu,
		near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

int tts_check_conf(const struct section *conf, struct mistakes *m, struct err *err)
{
	CLEANUP(json_decref) json_t *values = json_object();
	enum input_mode mode;

	if (check_ranges(conf, m, err) < 0)
		return -1;
	if (job_check_env(conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (check_engine(conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (tts_read_mode(conf, &mode, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (check_formats(section_group(conf, "join"), m, err) < 0)
		return -1;
	if (check_estimate_gpu(conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	return tts_read_options(values, conf, m, err);
}

char *tts_text(const struct section *conf, const char *key)
{
	const char *text = section_text(conf, key);

	return text && *text ? xstrdup(text) : NULL;
}
