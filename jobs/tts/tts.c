/* tts.c - jobs of type "tts": checks the config, makes segments, judges and delivers their sound.
 */
#include "tts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "check.h"
#include "environment.h"
#include "jobs/common.h"
#include "jobs/manifest.h"
#include "jobs/renders.h"
#include "jobs/workers/python.h"
#include "ffmpeg.h"
#include "join.h"
#include "mirror.h"
#include "reuse.h"
#include "segments.h"
#include "terms.h"

/* A prime above any number of segments: tries never share a seed. */
#define TRY_SEED_STEP      1000003
#define LISTED_MOST        20
#define STALE_LISTED       5
#define LEXICON_MOST_BYTES ((size_t)8 << 20)
enum {
	SETUP_WITH_TORCH_GB = 8
}; /* torch is imported twice to see that it stays: a guess on the safe side, not measured */
enum { CHARS_LEAST = 20, CHARS_USUAL = 280, CHARS_MOST = 100000 };

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

static const struct option_spec options[] = {
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

struct job {
	char *output, *voice, *worker, *voices_dir, *engine_name, *setup, *setup_packages,
		*speed_options, *estimate_gpu;
	char *worker_line, *pins;   /* of an engine of ours */
	char *mirror, *mirror_pair; /* NULL: weights come from the hub */
	const char *setup_env[3];
	const struct engine *engine;
	json_t *options;
	struct script script;
	struct lexicon *lexicon; /* NULL: none */
	struct samples samples;
	struct segments segments;
	struct job_needs needs;
	struct job_file *files;
	char **env;
	bool check_enabled;
	struct check_limits check;
	struct habits *habits; /* of its voices; has its own lock */
	bool join;
	struct join_options join_as;
	char format_names[JOIN_FORMATS_MOST][16];
	const char *joined_names[4 + JOIN_FORMATS_MOST + 1]; /* what it writes; NULL ends them */
	struct renders *renders;                             /* NULL: none */
	/* what else decides the sound, and is in no key: the pods' image, the user's set-up, a
	 * mirror of weights */
	char *made_by;
	char commit[65]; /* whose files were read; "": the working tree's */
	bool anew, prune;
	struct reuse *reuse; /* what find_cached() found; NULL: nothing yet */
};

static char *copy_or_null(const char *text)
{
	return text && *text ? xstrdup(text) : NULL;
}

static void tts_free(struct job *job)
{
	if (!job)
		return;
	segments_free(&job->segments);
	samples_free(&job->samples);
	script_free(&job->script);
	lexicon_free(job->lexicon);
	habits_free(job->habits);
	json_decref(job->options);
	job_texts_free(job->env);
	free(job->files);
	free(job->output);
	free(job->voice);
	free(job->worker);
	free(job->voices_dir);
	free(job->engine_name);
	free(job->setup);
	free(job->setup_packages);
	free(job->speed_options);
	free(job->estimate_gpu);
	free(job->worker_line);
	free(job->pins);
	free(job->mirror);
	free(job->mirror_pair);
	reuse_free(job->reuse);
	renders_free(job->renders);
	free(job->made_by);
	free(job);
}

static inline void tts_free_cleanup(struct job **job)
{
	tts_free(*job);
}

/* ---- reading the settings ---- */

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
		{conf, "max_chars", CHARS_LEAST, CHARS_MOST},
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

/* The engine that speaks; NULL: a worker of the user's own does, or it is unknown. */
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

static int read_options(json_t *to, const struct section *conf, struct mistakes *m, struct err *err)
{
	for (size_t i = 0; i < section_count(conf, "options"); i++)
		if (read_option(to, conf, section_item(conf, "options", i), err) < 0 &&
		    mistakes_note(m, NULL, err) < 0)
			return -1;
	return 0;
}

/* Those of one line of the script. */
static int check_line_options(void *ctx, json_t *said, struct err *err)
{
	const struct speaker *speaker = ctx;
	const char *name;
	json_t *value;

	if (!speaker->known || speaker->worker)
		return 0;
	json_object_foreach (said, name, value)
		if (engine_check_option(speaker->known, name, value, err) < 0)
			return -1;
	return 0;
}

static void read_engine(struct job *job, const struct section *conf)
{
	job->engine_name = xstrdup(section_text(conf, "engine"));
	job->worker = copy_or_null(section_text(conf, "worker"));
	job->engine = engine_find(job->engine_name);
	if (job->engine && !job->worker)
		job->pins = environment_pins(job->engine);
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

static int read_mode(const struct section *conf, enum input_mode *out, struct err *err)
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

static void read_check(struct job *job, const struct section *conf)
{
	job->check_enabled = section_bool(conf, "enabled");
	job->check = (struct check_limits){
		.min_duration = section_decimal(conf, "min_duration"),
		.max_duration = section_decimal(conf, "max_duration"),
		.max_silence = section_decimal(conf, "silence"),
		.max_clipped = section_decimal(conf, "clipping"),
		.max_offset = section_decimal(conf, "offset"),
		.habits = section_bool(conf, "compare") ? job->habits : NULL,
		.cap_s = job->engine && !job->worker ? job->engine->cap_s : 0,
		.speed = 1,
	};
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

static void read_join(struct job *job, const struct section *conf)
{
	const struct section *join = section_group(conf, "join");

	job->join = section_has(conf, "join");
	job->join_as = (struct join_options){
		.gap_s = section_decimal(join, "gap"),
		.piece_gap_s =
			MIN(section_decimal(join, "piece_gap"), section_decimal(join, "gap")),
		.normalise = section_has(join, "loudness"),
		.lufs = section_decimal(join, "loudness"),
		.subtitles = section_bool(join, "subtitles"),
	};
	for (size_t i = 0; i < MIN(section_count(join, "formats"), (size_t)JOIN_FORMATS_MOST); i++)
		job->join_as.formats[i] = ffmpeg_format_find(section_item(join, "formats", i));
}

static int read_voice(struct job *job, const struct section *conf, struct speaker *speaker,
		      struct err *err)
{
	const char *fallback = job->engine && !job->worker ? job->engine->voice : NULL;
	struct err why = {0};

	job->voice = copy_or_null(section_text(conf, "voice"));
	job->voices_dir = copy_or_null(section_text(conf, "voices"));
	speaker->voices_dir = job->voices_dir;
	if (!job->voice && fallback && !job->voices_dir)
		job->voice = xstrdup(fallback);
	speaker->voice = job->voice;
	if (section_has(conf, "voice") && job->voice &&
	    segments_check_voice(speaker, job->voice, &why) < 0)
		return err_set(err, ERR_CONFIG, "%s: %s", section_where(conf, "voice"), why.msg);
	return 0;
}

/* As messages call the input: short when it lies beside the config. */
static const char *shown_path(const char *path, const char *base_dir)
{
	size_t len = base_dir ? strlen(base_dir) : 0;

	return len && !strncmp(path, base_dir, len) && path[len] == '/' && path[len + 1]
		       ? path + len + 1
		       : path;
}

static void name_joined(struct job *job)
{
	size_t n = 0;

	if (!job->join)
		return;
	job->joined_names[n++] = "joined.wav";
	if (job->join_as.subtitles) {
		job->joined_names[n++] = "joined.srt";
		job->joined_names[n++] = "joined.vtt";
	}
	if (job->script.chapter_count)
		job->joined_names[n++] = "chapters.txt";
	for (size_t i = 0; i < JOIN_FORMATS_MOST && job->join_as.formats[i]; i++) {
		snprintf(job->format_names[i], sizeof(job->format_names[i]), "joined.%s",
			 job->join_as.formats[i]->name);
		job->joined_names[n++] = job->format_names[i];
	}
}

static int check_reserved(const struct job *job, struct err *err)
{
	for (size_t i = 0; job->join && i < job->segments.count; i++)
		if (!strcmp(job->segments.list[i].id, "joined"))
			return err_set(err, ERR_CONFIG,
				       "%s:%zu: the id \"joined\" is taken by the joined track",
				       job->script.items[job->segments.spoken[i].item].source,
				       job->script.items[job->segments.spoken[i].item].line);
	return 0;
}

static int read_lexicon(struct job *job, const struct job_setup *setup, struct err *err)
{
	const char *file = section_text(setup->conf, "lexicon");
	CLEANUP(str_free) struct str text = STR_INIT;

	if (!file || !*file)
		return 0;
	CLEANUP(free_text) char *path = path_join(setup->base_dir ? setup->base_dir : ".", file);
	if (job_read_member(setup, "lexicon", path, LEXICON_MOST_BYTES, &text, err) < 0)
		return err_wrap(err, "%s: lexicon", section_where(setup->conf, "lexicon"));
	return lexicon_read(&job->lexicon, shown_path(path, setup->base_dir), str_text(&text),
			    text.len, err);
}

/* Where they are out of range, which check_conf() says, the script is read with the usual ones for
 * its own mistakes. */
static struct split_limits split_limits_of(const struct section *conf)
{
	int64_t most = section_int(conf, "max_chars"), least = section_int(conf, "min_chars");

	if (most < CHARS_LEAST || most > CHARS_MOST || least < 0 || least > most / 2)
		return (struct split_limits){CHARS_USUAL, 0};
	return (struct split_limits){(size_t)most, (size_t)least};
}

static int read_script(struct job *job, const struct job_setup *setup, struct speaker *speaker,
		       struct err *err)
{
	const struct section *conf = setup->conf;
	const char *input = section_text(conf, "input");
	enum input_mode mode = INPUT_AUTO;

	if (!input) {
		err_set(err, ERR_CONFIG, "%s: job.input is missing: which script is to be spoken?",
			section_where(conf, NULL));
		return err_about(err, "job.input");
	}
	speaker->limits = split_limits_of(conf);
	(void)read_mode(conf, &mode, NULL); /* check_conf() has complained */
	if (read_lexicon(job, setup, err) < 0 && mistakes_note(setup->mistakes, NULL, err) < 0)
		return -1;
	speaker->lexicon = job->lexicon;
	job->script.check_voice = segments_check_voice;
	job->script.check_options = check_line_options;
	job->script.ctx = speaker;
	job->script.job_setup = setup;
	CLEANUP(free_text) char *path = path_join(setup->base_dir ? setup->base_dir : ".", input);
	if (script_load(&job->script, path, shown_path(path, setup->base_dir), mode,
			&speaker->limits, err) < 0)
		return -1;
	job->script.ctx = NULL;
	job->script.job_setup = NULL;
	return segments_make(&job->segments, &job->script, speaker, err);
}

static void gather_files(struct job *job, const struct engine *engine)
{
	size_t count = 0, voices = job->segments.file_count;
	bool harness = engine ? engine->python != NULL
			      : job->worker && strstr(job->worker, python_harness_main);

	job->files = xcalloc(voices + PYTHON_FILES_MAX + 1, sizeof(*job->files));
	if (engine && engine->file)
		job->files[count++] = *engine->file();
	for (const char *const *name = python_harness; harness && *name; name++)
		job->files[count++] = *python_file(*name);
	for (const char *const *name = engine ? engine->python : NULL; name && *name; name++)
		job->files[count++] = *python_file(*name);
	for (size_t i = 0; i < voices; i++)
		job->files[count++] = job->segments.files[i];
	job->needs.files = job->files;
	job->needs.file_count = count;
}

/* The engine's own preparation comes first, then the user's. */
static char *both_setups(const char *engine, const char *user)
{
	if (engine && user)
		return xasprintf("%s\n%s\n", engine, user);
	return engine || user ? xstrdup(engine ? engine : user) : NULL;
}

/* NULL: nothing to prepare. */
static char *engine_setup(const struct job *job, const struct engine *engine)
{
	if (!engine)
		return NULL;
	const char **voices = segments_voices(&job->segments);
	char *setup = environment_setup(engine, voices, job->mirror);
	free(voices);
	return setup;
}

/* What the speed of a batch depends on: how the engine is set up and started, and how many
 * processes share the card. */
static char *name_speed(const struct job *job)
{
	CLEANUP(free_text) char *chosen = json_dumps(job->options, JSON_SORT_KEYS | JSON_COMPACT);
	CLEANUP(free_text)
	char *all = xasprintf("%s\n%s\n%s", chosen ? chosen : "", job->worker ? job->worker : "",
			      job->setup ? job->setup : "");
	char hex[SHA256_HEX];

	sha256_hex(all, strlen(all), hex);
	return xasprintf("%.12s.w%d", hex, job->needs.workers);
}

/* What the user knows goes before what the engine ships. */
static struct job_prior read_prior(struct job *job, const struct section *conf,
				   const struct engine *engine)
{
	const struct section *s = section_group(conf, "estimate");
	struct job_prior prior = engine ? engine->prior : (struct job_prior){0};

	if (section_has(s, "once") || section_has(s, "longest") || section_has(s, "each")) {
		prior.once_s = section_decimal(s, "once");
		prior.longest_s = section_decimal(s, "longest");
		prior.each_s = section_decimal(s, "each");
		prior.gpu = job->estimate_gpu = copy_or_null(section_text(s, "gpu"));
		prior.host_share = section_decimal(s, "host_share");
		prior.source = "job.estimate";
	}
	if (section_has(s, "vram_base") || section_has(s, "vram_each")) {
		prior.base_gib = section_decimal(s, "vram_base");
		prior.each_gib = section_decimal(s, "vram_each");
	}
	return prior;
}

/* GB as sold of the smallest card that holds one segment for each worker: cards report down to 93 %
 * of that, and the driver keeps 1 GiB. */
static int smallest_card_gb(const struct job_prior *prior, int workers)
{
	return prior->base_gib > 0
		       ? (int)ceil((workers * (prior->base_gib + prior->each_gib) + 1) / 0.93)
		       : 0;
}

static void fill_needs(struct job *job, const struct section *conf)
{
	const struct engine *engine = job->worker ? NULL : job->engine;
	struct job_needs *n = &job->needs;

	n->engine = job->engine_name;
	n->hang_ms = MAX(section_int(conf, "hang"), 1000);
	n->vram_gb = section_has(conf, "vram_gb") ? (int)section_int(conf, "vram_gb")
		     : engine                     ? engine->vram_gb
						  : 0;
	n->gpu = engine ? engine->gpu
			: n->vram_gb > 0 ||
				  section_decimal(section_group(conf, "estimate"), "vram_base") > 0;
	n->workers = (int)section_int(conf, "workers");
	n->max_batch = section_has(conf, "max_batch") ? (int)section_int(conf, "max_batch")
		       : engine                       ? engine->max_batch
						      : 16;
	n->max_batch_is_cap = section_has(conf, "max_batch");
	n->max_batch_weight = engine ? engine->max_batch_weight : 0;
	if (engine)
		job->worker_line = environment_worker(engine);
	n->worker = engine ? job->worker_line : job->worker;
	n->install = engine ? engine->install : NULL;
	n->packages = engine ? engine->packages : NULL;
	CLEANUP(free_text) char *own = engine_setup(job, engine);
	job->setup = both_setups(own, section_text(conf, "setup"));
	n->setup = job->setup;
	n->setup_packages = job->setup_packages = engine ? environment_packages(engine) : NULL;
	n->setup_env = job->setup_env;
	n->setup_download_mb = engine ? environment_download_mb(engine) : 0;
	n->setup_memory_gb = engine && engine->torch ? SETUP_WITH_TORCH_GB : 0;
	/* what an engine of ours is set up with is the same for all cards: the image's torch, and
	 * packages without kernels of their own */
	n->setup_by_card =
		n->gpu && section_text(conf, "setup") && section_bool(conf, "setup_needs_gpu");
	n->tries = job->check_enabled ? (int)section_int(section_group(conf, "check"), "tries") : 1;
	job->env = job_texts(conf, "env");
	n->env_names = (const char *const *)job->env;
	gather_files(job, engine);
	n->prior = read_prior(job, conf, engine);
	n->vram_gb = MAX(n->vram_gb, n->gpu ? smallest_card_gb(&n->prior, n->workers) : 0);
	n->speed_options = job->speed_options = name_speed(job);
}

static int tts_check_conf(const struct section *conf, struct mistakes *m, struct err *err)
{
	CLEANUP(json_decref) json_t *values = json_object();
	enum input_mode mode;

	if (check_ranges(conf, m, err) < 0)
		return -1;
	if (job_check_env(conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (check_engine(conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (read_mode(conf, &mode, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (check_formats(section_group(conf, "join"), m, err) < 0)
		return -1;
	return read_options(values, conf, m, err);
}

/* The job's own mirror goes before the user's; only what the user's own file names gets the user's
 * token. */
static int read_mirror(struct job *job, const struct job_setup *setup, struct err *err)
{
	const char *own = section_text(setup->conf, "weights_url"), *users = setup->weights_url;
	const char *url = own && *own ? own : users && *users ? users : NULL;
	size_t n = 0;

	if (!url)
		return 0;
	if (mirror_check(url, err) < 0)
		return err_wrap(err, "%s",
				url == own ? section_where(setup->conf, "weights_url")
					   : "your own burst.cfg");
	job->mirror = xstrdup(url);
	job->setup_env[n++] = job->mirror_pair = xasprintf("BURST_WEIGHTS_URL=%s", url);
	if (users && !strcmp(users, url))
		job->setup_env[n++] = "BURST_WEIGHTS_TRUSTED=1";
	return 0;
}

/* The line of the script that names a voice first, or that of the config; to be freed. */
static char *place_of_voice(const struct job *job, const struct section *conf, const char *voice)
{
	for (size_t i = 0; i < job->segments.count; i++) {
		const struct script_item *item = &job->script.items[job->segments.spoken[i].item];
		const char *its = job->segments.spoken[i].voice;
		if (its && !strcmp(its, voice) && item->voice)
			return xasprintf("%s:%zu", item->source, item->line);
		if (its && !strcmp(its, voice))
			break;
	}
	return xstrdup(section_where(conf, section_has(conf, "voice") ? "voice" : "engine"));
}

/* Of the engine's weights, and of each voice. */
static int check_terms(const struct job *job, const struct section *conf, struct mistakes *m,
		       struct err *err)
{
	const struct engine_voices *by_voice = job->engine ? job->engine->by_voice : NULL;
	int result = 0;

	if (!job->engine || job->worker)
		return 0;
	CLEANUP(free_text) char *weights = xasprintf("engine %s", job->engine->name);
	if (terms_check(weights, job->engine->terms, conf, section_where(conf, "engine"), err) <
		    0 &&
	    mistakes_note(m, NULL, err) < 0)
		return -1;
	const char **voices = segments_voices(&job->segments);
	for (size_t i = 0; by_voice && voices[i] && result == 0; i++) {
		CLEANUP(free_text) char *voice = xasprintf("voice %s", voices[i]);
		CLEANUP(free_text) char *place = place_of_voice(job, conf, voices[i]);
		if (terms_check(voice, by_voice->terms(voices[i]), conf, place, err) < 0)
			result = mistakes_note(m, NULL, err);
	}
	free(voices);
	return result;
}

/* With mistakes of its own, setup->mistakes gets them, and the job is good for nothing but finding
 * more. */
static int read_job(struct job *job, const struct job_setup *setup, struct err *err)
{
	const struct section *conf = setup->conf;
	struct mistakes *m = setup->mistakes;

	job->output = xstrdup(setup->output_dir);
	job->habits = habits_new();
	job->options = json_object();
	if (tts_check_conf(conf, m, err) < 0 || read_options(job->options, conf, m, err) < 0)
		return -1;
	read_engine(job, conf);
	struct speaker speaker = {
		.engine = job->engine_name,
		.known = job->engine,
		.worker = job->worker,
		.setup = section_text(conf, "setup"),
		.pins = job->pins,
		.options = job->options,
		.seed = section_int(conf, "seed"),
		.samples = &job->samples,
		.job_setup = setup,
	};
	if (read_voice(job, conf, &speaker, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (read_mirror(job, setup, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (read_script(job, setup, &speaker, err) < 0)
		return -1;
	return check_terms(job, conf, m, err);
}

/* Renders are shared with other projects where all that speaks is burst's own: what a worker or a
 * set-up of the user's does with the project's files is in no key. */
static void read_reuse(struct job *job, const struct job_setup *setup)
{
	const char *own_setup = section_text(setup->conf, "setup");

	job->anew = setup->anew;
	COPY_TEXT(job->commit, setup->commit ? setup->commit : "");
	job->prune = setup->prune;
	job->made_by = xasprintf("%s\n%s\n%s", setup->image ? setup->image : "",
				 own_setup ? own_setup : "", job->mirror ? job->mirror : "");
	if (!job->worker && !(setup->code && own_setup && *own_setup))
		job->renders = renders_new(setup->renders_dir, setup->renders_max_bytes);
}

static int load_job(struct job **out, const struct job_setup *setup, struct err *err)
{
	CLEANUP(tts_free) struct job *job = xcalloc(1, sizeof(*job));

	if (read_job(job, setup, err) < 0 || mistakes_end(setup->mistakes, err) < 0)
		return -1;
	read_check(job, section_group(setup->conf, "check"));
	read_join(job, setup->conf);
	if (check_reserved(job, err) < 0)
		return -1;
	name_joined(job);
	fill_needs(job, setup->conf);
	read_reuse(job, setup);
	*out = TAKE(job);
	return 0;
}

static int tts_load(struct job **out, const struct job_setup *setup, struct err *err)
{
	return job_load_noting(out, setup, load_job, err);
}

/* ---- what the engine asks ---- */

static struct segment *tts_segments(struct job *job, size_t *count)
{
	*count = job->segments.count;
	return job->segments.list;
}

static const struct job_needs *tts_needs(struct job *job)
{
	return &job->needs;
}

static json_t *tts_task(struct job *job, size_t index, int attempt)
{
	const struct segment *segment = &job->segments.list[index];
	const struct spoken *spoken = &job->segments.spoken[index];
	int64_t seed = spoken->seed + (int64_t)TRY_SEED_STEP * attempt;

	return json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:I, s:O}", "id", segment->id, "file",
			 segment->file, "text", spoken->text, "voice", spoken->voice, "voice_file",
			 spoken->voice_file, "seed", (json_int_t)(seed & INT32_MAX), "options",
			 spoken->options);
}

static const char *const *tts_finish_names(struct job *job)
{
	return job->joined_names;
}

/* In a folder without a manifest, files of these names cannot be this job's. */
static int check_joined_names(const struct job *job, struct err *err)
{
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	struct stat st;

	for (const char *const *name = job->joined_names;
	     folder >= 0 && !manifest_is_there(folder) && *name; name++) {
		CLEANUP(free_text) char *path = path_join(job->output, *name);
		if (fstatat(folder, *name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return err_set(err, ERR_CONFIG,
				       "%s is there and was not made by this job; use --force to "
				       "overwrite it, or another output folder",
				       path);
	}
	return 0;
}

/* habits: of the voices of the run; NULL: the file is not compared. */
static int check_file(const struct job *job, size_t index, const char *file, struct habits *habits,
		      struct check *out, struct err *err)
{
	const struct spoken *spoken = &job->segments.spoken[index];
	struct check_limits limits = job->check;

	limits.habits = habits;
	if (job->engine)
		limits.speed = engine_speed(job->engine, jsonx_number(spoken->options, "speed", 0));
	CLEANUP(free_text)
	char *options_text = json_dumps(spoken->options, JSON_COMPACT | JSON_SORT_KEYS);
	CLEANUP(free_text)
	char *voice = xasprintf("%s %s", spoken->voice ? spoken->voice : "",
				options_text ? options_text : "");
	limits.voice = voice;
	return check_wav(file, spoken->text, &limits, out, err);
}

static int tts_check(const struct job *job, size_t index, const char *file, struct check *out,
		     struct err *err)
{
	if (check_file(job, index, file, job->check.habits, out, err) < 0)
		return -1;
	/* a file that is no audio at all is refused even when checks are off */
	if (!job->check_enabled && out->sample_rate)
		out->ok = true;
	return 0;
}

static json_t *line_of(const struct job *job, size_t index, const struct segment_result *result)
{
	const struct segment *segment = &job->segments.list[index];
	const struct spoken *spoken = &job->segments.spoken[index];
	const struct script_item *item = &job->script.items[spoken->item];
	json_t *line = manifest_line(segment, result, segment->file, job->commit);

	json_object_set_new(line, "text", json_string(spoken->shown));
	if (strcmp(spoken->shown, spoken->text))
		json_object_set_new(line, "spoken", json_string(spoken->text));
	json_object_set_new(line, "seconds", json_real(result->seconds));
	json_object_set_new(line, "sample_rate", json_integer(result->sample_rate));
	json_object_set_new(line, "engine", json_string(job->engine_name));
	json_object_set_new(line, "voice", json_string(spoken->voice ? spoken->voice : ""));
	manifest_add_result(line, result);
	if (strcmp(item->id, segment->id))
		json_object_set_new(line, "item", json_string(item->id));
	if (item->chapter >= 0)
		json_object_set_new(line, "chapter",
				    json_string(job->script.chapters[item->chapter]));
	json_object_update_missing(line, item->extra);
	return line;
}

static int tts_record(struct job *job, size_t index, const struct segment_result *results,
		      size_t count, struct err *err)
{
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	for (size_t i = 0; i < count; i++)
		manifest_lines_add(&lines, line_of(job, index, &results[i]));
	return manifest_append(job->output, &lines, err);
}

/* ---- what is there already ---- */

/* In the render cache, a segment is called by all that made it: another image may speak in another
 * way. Not by the engine's set-up, which names all voices of the job; its versions are in the
 * segment's key. */
static void name_render(const struct job *job, size_t index, char key[SHA256_HEX])
{
	CLEANUP(free_text)
	char *all = xasprintf("%s\n%s", job->segments.list[index].key, job->made_by);

	sha256_hex(all, strlen(all), key);
}

/* As reuse_want.cached. What another job found good enough need not be so for this one. */
static int open_render(const struct job *job, size_t index, struct segment_result *result)
{
	char key[SHA256_HEX], sha256[SHA256_HEX];
	CLEANUP(free_text) char *path = NULL;
	struct check check = {0};
	struct stat st;
	struct err err;

	name_render(job, index, key);
	int fd = renders_find(job->renders, key, sha256, &path);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || check_file(job, index, path, NULL, &check, &err) < 0 ||
	    !check.ok) {
		close(fd);
		return -1;
	}
	*result = (struct segment_result){.state = SEGMENT_SAFE,
					  .cached = true,
					  .bytes = st.st_size,
					  .seconds = check.seconds,
					  .sample_rate = check.sample_rate,
					  .tries = 1,
					  .provider = "cache"};
	COPY_TEXT(result->sha256, sha256);
	return fd;
}

static void tts_kept(struct job *job, size_t index, const struct segment_result *result)
{
	char key[SHA256_HEX];

	if (!job->renders || !job->check_enabled || result->suspect)
		return;
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	CLEANUP(fd_close)
	int fd =
		folder < 0 ? -1 : path_open_below(folder, job->segments.list[index].file, O_RDONLY);
	name_render(job, index, key);
	if (fd >= 0)
		renders_put(job->renders, key, fd, result->sha256, job->anew);
}

static struct reuse_want what_is_wanted(const struct job *job)
{
	return (struct reuse_want){
		.job = job,
		.segments = job->segments.list,
		.count = job->segments.count,
		.dir = job->output,
		.anew = job->anew,
		.cached = job->renders ? open_render : NULL,
		.line = line_of,
	};
}

static int tts_find_cached(struct job *job, struct segment_result *results, bool force,
			   struct err *err)
{
	struct reuse_want want = what_is_wanted(job);

	want.force = force;
	reuse_free(TAKE(job->reuse));
	if (!force && check_joined_names(job, err) < 0)
		return -1;
	return reuse_find(&job->reuse, &want, results, err);
}

static void tts_changes(const struct job *job, struct job_changes *out)
{
	reuse_count(job->reuse, out);
}

static void tts_left_out(const struct job *job, struct str *to)
{
	CLEANUP(str_free) struct str silent = STR_INIT;

	script_tell_silent(&job->script, &silent);
	if (silent.len)
		str_addf(to, "not spoken: %s", str_text(&silent));
}

static int tts_bring(struct job *job, struct segment_result *results, struct str *notes,
		     struct err *err)
{
	int result = reuse_bring(job->reuse, results, notes, err);

	renders_tell(job->renders, notes);
	return result;
}

/* ---- the end ---- */

static int write_manifest(const struct job *job, const struct segment_result *results,
			  struct err *err)
{
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	for (size_t i = 0; i < job->segments.count; i++)
		if (results[i].state == SEGMENT_SAFE)
			manifest_lines_add(&lines, line_of(job, i, &results[i]));
	return manifest_rewrite(job->output, &lines, err);
}

static void note_some(const struct job *job, const struct segment_result *results, bool suspects,
		      struct str *notes)
{
	size_t listed = 0, all = 0;

	for (size_t i = 0; i < job->segments.count; i++) {
		const struct segment_result *r = &results[i];
		bool bad = suspects ? r->state == SEGMENT_SAFE && r->suspect
				    : r->state == SEGMENT_FAILED;
		all += bad;
		if (!bad || listed == LISTED_MOST)
			continue;
		listed++;
		str_addf(notes, "%s: %s: ", job->segments.list[i].id,
			 suspects ? "kept, but" : "failed");
		str_add_printable(notes, r->reason, strlen(r->reason), 0);
		str_addc(notes, '\n');
	}
	if (all > listed)
		str_addf(notes, "and %zu more %s\n", all - listed,
			 suspects ? "kept with doubts" : "failed");
}

static int join(const struct job *job, const struct segment_result *results, struct str *notes,
		struct err *err)
{
	struct join_piece *pieces = xcalloc(job->segments.count, sizeof(*pieces));
	size_t count = 0;

	for (size_t i = 0; i < job->segments.count; i++) {
		const struct spoken *spoken = &job->segments.spoken[i];
		if (results[i].state == SEGMENT_SAFE)
			pieces[count++] = (struct join_piece){
				job->segments.list[i].file, spoken->shown, spoken->item,
				job->script.items[spoken->item].chapter, spoken->before_s};
	}
	int result =
		join_pieces(job->output, pieces, count, (const char *const *)job->script.chapters,
			    job->script.chapter_count, &job->join_as, notes, err);
	if (count < job->segments.count)
		str_addf(notes, "%zu of %zu segments are not in the joined track\n",
			 job->segments.count - count, job->segments.count);
	free(pieces);
	return result;
}

static bool all_are_safe(const struct job *job, const struct segment_result *results)
{
	for (size_t i = 0; i < job->segments.count; i++)
		if (results[i].state != SEGMENT_SAFE)
			return false;
	return true;
}

static void note_stale(const struct reuse_names *names, bool pruned, struct str *notes)
{
	if (!names->count)
		return;
	str_addf(notes, "%s%zu old output%s without a segment: ", pruned ? "removed " : "",
		 names->count, names->count == 1 ? "" : "s");
	for (size_t i = 0; i < MIN(names->count, (size_t)STALE_LISTED); i++) {
		str_add(notes, i ? ", " : "");
		str_add_printable(notes, names->list[i], strlen(names->list[i]), 60);
	}
	str_addf(notes, "%s%s\n", names->count > STALE_LISTED ? ", ..." : "",
		 pruned ? "" : " (see `burst run --prune`)");
}

/* Only what is just as the manifest says; while something is still to be rendered, what is old may
 * be all there is. */
static int tend_stale(const struct job *job, const struct segment_result *results,
		      struct str *notes, struct err *err)
{
	CLEANUP(reuse_names_free) struct reuse_names names = {0};
	struct reuse_want want = what_is_wanted(job);
	bool prune = job->prune && all_are_safe(job, results);

	if (reuse_stale(&want, &names, err) < 0)
		return -1;
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	for (size_t i = 0; prune && i < names.count; i++) {
		const char *base;
		CLEANUP(fd_close) int parent = path_open_parent(folder, names.list[i], &base);
		if (parent >= 0 && unlinkat(parent, base, 0) < 0 && errno != ENOENT)
			return err_set(err, ERR_LOCAL, "%s/%s: cannot be removed: %s", job->output,
				       names.list[i], strerror(errno));
	}
	note_stale(&names, prune, notes);
	return 0;
}

static int tts_finish(struct job *job, const struct segment_result *results, struct str *notes,
		      struct err *err)
{
	size_t before = notes->len;

	tts_left_out(job, notes);
	if (notes->len > before)
		str_addc(notes, '\n');
	note_some(job, results, false, notes);
	note_some(job, results, true, notes);
	renders_trim(job->renders);
	renders_tell(job->renders, notes);
	if (tend_stale(job, results, notes, err) < 0 || write_manifest(job, results, err) < 0)
		return -1;
	return job->join ? join(job, results, notes, err) : 0;
}

const struct job_ops job_tts = {
	.abi = JOB_ABI,
	.type = "tts",
	.summary = "speak a script, one sound file for each line",
	.options = options,
	.check_conf = tts_check_conf,
	.load = tts_load,
	.free = tts_free,
	.segments = tts_segments,
	.needs = tts_needs,
	.task = tts_task,
	.find_cached = tts_find_cached,
	.changes = tts_changes,
	.left_out = tts_left_out,
	.bring = tts_bring,
	.check = tts_check,
	.record = tts_record,
	.kept = tts_kept,
	.finish = tts_finish,
	.finish_names = tts_finish_names,
};
