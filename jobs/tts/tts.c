/* tts.c - jobs of type "tts": its keys, its config, script and voices, the tasks for the engine */
#include "tts.h"

#include <regex.h>
#include <stdlib.h>

#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "join.h"
#include "jobs/common.h"
#include "engines.h"
#include "state.h"

/* ---- keys ----
 * The keys of `job`, and the checks that need no script. */

enum { CHARS_LEAST = 20, CHARS_USUAL = 280, CHARS_MOST = 100000 };

static const struct option_spec check_options[] = {
	{"enabled", OPTION_BOOL, 0, "true", "check each finished file"},
	{"tries", OPTION_INT, 0, "3", "how often a suspect segment is rendered in all", .least = 1,
	 .most = 20},
	{"min_duration", OPTION_DECIMAL, 0, "0.35",
	 "shortest length, times what the text should take", .least = 0, .most = 1},
	{"max_duration", OPTION_DECIMAL, 0, "3.0",
	 "longest length, times what the text should take", .least = 1, .most = 1000},
	{"silence", OPTION_DECIMAL, 0, "2.0", "longest silence within, in seconds", .least = 0.1,
	 .most = 3600},
	{"clipping", OPTION_DECIMAL, 0, "0.01", "largest share of clipped samples", .least = 0,
	 .most = 1},
	{"offset", OPTION_DECIMAL, 0, "0.05",
	 "largest mean of all samples, as a share of full scale", .least = 0, .most = 1},
	{"compare", OPTION_BOOL, 0, "true",
	 "suspect files that differ from others of their voice in speed, ending or sample rate"},
	{"words", OPTION_TEXT, 0, "off",
	 "hear each file and compare its words: \"tiny.en\" (English), \"base\" or \"off\""},
	{"trim", OPTION_BOOL, 0, "true",
	 "leave the silence and stray sounds at the ends of the files out of the joined track, so "
	 "that its pauses are those of join.pauses; the files stay as they are"},
	{0},
};

static const struct option_spec estimate_options[] = {
	{"gpu", OPTION_TEXT, 0, NULL,
	 "the GPU that the times were measured on; others follow by bandwidth and compute"},
	{"once", OPTION_DECIMAL, 0, "0", "seconds of each batch, whatever its content", .least = 0,
	 .most = 3600},
	{"longest", OPTION_DECIMAL, 0, "0", "seconds for each character of its longest segment",
	 .least = 0, .most = 3600},
	{"each", OPTION_DECIMAL, 0, "0", "seconds for each character of all its segments",
	 .least = 0, .most = 3600},
	{"host_share", OPTION_DECIMAL, 0, "0",
	 "share of `longest` and `each` that no faster card shortens", .least = 0, .most = 1},
	{"vram_base", OPTION_DECIMAL, 0, "0", "GiB of GPU memory that the engine always takes",
	 .least = 0, .most = 2000},
	{"vram_each", OPTION_DECIMAL, 0, "0", "GiB that each segment of a batch adds", .least = 0,
	 .most = 2000},
	{0},
};

static const struct option_spec columns_options[] = {
	{"text", OPTION_TEXT, 0, NULL,
	 "column of the text (absent: text, sentence, line and the like)"},
	{"id", OPTION_TEXT, 0, NULL, "column that names the output (absent: id)"},
	{"voice", OPTION_TEXT, 0, NULL, "column of the voice (absent: voice)"},
	{"speaker", OPTION_TEXT, 0, NULL, "column of the speaker, whose voice job.speakers names"},
	{"options", OPTION_TEXTS, 0, NULL,
	 "columns that are options of the engine, as in [\"speed\"]"},
	{"keep", OPTION_TEXTS, 0, NULL,
	 "columns to copy to the manifest alone, though their names sound as if they changed the "
	 "speech"},
	{0},
};

static const struct option_spec tts_options[] = {
	JOB_COMMON_OPTIONS,
	{"engine", OPTION_TEXT, 0, "espeak",
	 "what speaks: \"piper\" (a neural voice without a GPU), another of `burst engines`, or "
	 "any name with your own worker"},
	{"input", OPTION_PATH, OPTION_REQUIRED, NULL,
	 "the script: .txt, .md, .epub, .html, .srt, .vtt, .jsonl, .csv, .tsv, or a folder of .txt "
	 "and .md"},
	{"input_mode", OPTION_TEXT, 0, "auto",
	 "how .txt is cut: lines, paragraphs, or auto (wrapped lines are joined, others stay)"},
	{"columns", OPTION_GROUP, 0, NULL,
	 "which columns of a table, or keys of .jsonl, are for what", columns_options},
	{"fit", OPTION_BOOL, 0, "false",
	 "of .srt and .vtt: speak each cue in its time, faster where it must be, and place it "
	 "there "
	 "in the joined track"},
	{"list_numbers", OPTION_BOOL, 0, "false",
	 "speak the numbers of ordered lists in .md, .html and .epub"},
	{"lexicon", OPTION_PATH, 0, NULL,
	 "pronunciations: a file with a word, a tab and what to say for it on each line"},
	{"voice", OPTION_TEXT, 0, NULL, "voice of lines that name none"},
	{"speakers", OPTION_TEXTS, 0, NULL,
	 "whose voice is whose, as in [\"Alice=VOICE\"]: by a column, or by \"Alice: ...\" and "
	 "\"[Alice] ...\" in the text, where \"Note\" alone is spoken; []: there are no speakers"},
	{"language", OPTION_TEXT, 0, NULL,
	 "language of the texts, as in \"de\": it decides where sentences end (absent: the "
	 "voice's)"},
	{"voices", OPTION_PATH, 0, NULL,
	 "folder of voice samples: NAME.wav (flac, mp3, m4a, ogg with ffmpeg) is the voice NAME; "
	 "NAME.txt its words, for qwen3-clone"},
	{"options", OPTION_TEXTS, 0, NULL, "settings of the engine, as in [\"speed=160\"]"},
	{"seed", OPTION_INT, 0, "0", "base of the random seeds; the same seed gives the same files",
	 .least = 0, .most = INT32_MAX},
	{"accept_license", OPTION_BOOL, 0, "false",
	 "use weights whose licence forbids some use; you keep to it"},
	{"weights_url", OPTION_TEXT, 0, NULL,
	 "a server with the paths of huggingface.co that weights come from instead"},
	{"worker", OPTION_TEXT, 0, NULL, "shell command that starts your own worker program"},
	{"workers", OPTION_INT, 0, "1", "worker processes on each pod", .least = 1, .most = 256},
	{"max_batch", OPTION_INT, 0, NULL,
	 "largest number of segments in a batch (absent: the engine's own)", .least = 1,
	 .most = 10000},
	{"hang", OPTION_DURATION, 0, "60s",
	 "restart a worker that is silent for this long, or for ten times its estimate", NULL},
	{"vram_gb", OPTION_INT, 0, NULL,
	 "GB of the smallest card for your own worker, as it is sold (16 for a T4), or of all "
	 "cards of its pod; 0: it needs no GPU",
	 .least = 0, .most = 2000},
	{"setup_needs_gpu", OPTION_BOOL, 0, "true",
	 "false: your setup compiles nothing for a card, so all cards share its result and a pod "
	 "without a GPU can run it"},
	{"estimate", OPTION_GROUP, 0, NULL, "what is known of the engine before it has run here",
	 estimate_options},
	{"max_chars", OPTION_INT, 0, "280", "longer texts are cut at sentences, commas, words",
	 .least = CHARS_LEAST, .most = CHARS_MOST},
	{"min_chars", OPTION_INT, 0, "20",
	 "shorter items of a list are merged with a neighbour, and no piece of a cut text is "
	 "shorter",
	 .least = 0, .most = CHARS_MOST / 2},
	{"check", OPTION_GROUP, 0, NULL, "what a finished file must satisfy", check_options},
	{"join", OPTION_GROUP, 0, NULL, "one track of all segments", join_keys},
	{"book", OPTION_GROUP, 0, NULL,
	 "what the track says of itself in `join.formats`; replaces what an EPUB or front matter "
	 "says",
	 book_options},
	{0},
};

/* Checks min_chars against max_chars; the table holds the other ranges. */
static int check_min_chars(const struct section *conf, struct err *err)
{
	const long long most = (long long)MAX(section_int(conf, "max_chars"), 0) / 2;

	if (!section_has(conf, "min_chars") || section_int(conf, "min_chars") <= most)
		return 0;
	return err_set(err, ERR_CONFIG, "%s: min_chars must be at most half of max_chars: %lld",
		       section_where(conf, "min_chars"), most);
}

/* Returns burst's own engine, or NULL for the user's own worker or an unknown engine. */
static const struct engine *find_own_engine(const struct section *conf)
{
	const char *worker = section_text(conf, "worker");

	return worker && *worker ? NULL : engine_find(section_text(conf, "engine"));
}

static int read_option(json_t *to, const struct section *conf, const char *item, struct err *err)
{
	const struct engine *engine = find_own_engine(conf);
	const char *equals = strchr(item, '=');
	CLEANUP(free_text) char *name = equals ? xstrndup(item, (size_t)(equals - item)) : NULL;
	json_t *value = equals && equals > item ? script_option_value(equals + 1) : NULL;

	if (!value || json_object_set_new(to, name, value) < 0)
		return err_set(err, ERR_CONFIG,
			       "%s: options: \"%s\" must be written as in \"speed=160\"",
			       section_where(conf, "options"), item);
	if (engine && engine_check_option(engine, name, value, err) < 0)
		return err_wrap(err, "%s", section_where(conf, "options"));
	return 0;
}

/* Adds all valid options to the object. Returns -1 unless `m` collects mistakes. */
static int read_options(json_t *to, const struct section *conf, struct mistakes *m, struct err *err)
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

/* Refuses an unknown GPU: burst would take its times for those of every card. */
static int check_estimate_gpu(const struct section *conf, struct err *err)
{
	const struct section *estimate = section_group(conf, "estimate");
	const char *gpu = section_text(estimate, "gpu"), *near;

	if (!gpu || !*gpu || gpu_find(gpu))
		return 0;
	near = gpu_nearest(gpu);
	return err_set(
		err, ERR_CONFIG,
		"%s: job.estimate.gpu: \"%.*s\" is unknown%s%s%s; `burst gpus` lists those whose "
		"times can be carried over (absent: the times hold for all cards)",
		section_where(estimate, "gpu"), utf8_fit(gpu, 40), gpu,
		near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int check_mode(const struct section *conf, struct err *err)
{
	enum input_mode mode;

	return read_mode(conf, &mode, err);
}

/* As job_ops.check_conf. */
static int check_conf(const struct section *conf, struct mistakes *m, struct err *err)
{
	static int (*const checks[])(const struct section *conf, struct err *err) = {
		check_min_chars, job_check_env,      job_check_needs, check_engine,
		check_mode,      check_estimate_gpu, heard_check_conf};
	CLEANUP(json_decref) json_t *values = json_object();

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i](conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
			return -1;
	if (join_check(conf, m, err) < 0)
		return -1;
	return read_options(values, conf, m, err);
}

/* A copy of a key's text; NULL if absent or empty. The caller frees it. */
static char *duplicate_text(const struct section *conf, const char *key)
{
	const char *text = section_text(conf, key);

	return text && *text ? xstrdup(text) : NULL;
}

/* ---- load ----
 * Reads a job of type "tts": its config, script and voices. */

#define LEXICON_MOST_BYTES ((size_t)8 << 20)

static void tts_free(struct job *job)
{
	if (!job)
		return;
	segments_free(&job->segments);
	samples_free(&job->samples);
	script_free(&job->script);
	lexicon_free(job->lexicon);
	speakers_free(&job->speakers);
	habits_free(job->habits);
	join_meter_free(job->join_as.meter);
	json_decref(job->options);
	texts_free(job->env);
	for (size_t i = 0; i < job->joined_count; i++)
		free((char *)job->joined_names[i]);
	free(job->joined_names);
	free(job->joined_as);
	free(job->name);
	free(job->files);
	free(job->output);
	free(job->voice);
	free(job->language);
	free(job->worker);
	free(job->voices_dir);
	free(job->engine_name);
	free(job->setup);
	free(job->setup_packages);
	free(job->own_setup);
	free(job->install);
	free(job->speed_options);
	free(job->estimate_gpu);
	free(job->worker_line);
	free(job->pins);
	free(job->mirror);
	free(job->mirror_pair);
	tts_reuse_free(job->reuse);
	renders_free(job->renders);
	free(job->made_by);
	free(job);
}

static inline void tts_free_cleanup(struct job **job)
{
	tts_free(*job);
}

/* Checks the options of one script line. */
static int check_line_options(void *ctx, json_t *said, struct err *err)
{
	const struct job *job = ctx;
	const char *name;
	json_t *value;

	if (!job->engine)
		return 0;
	json_object_foreach (said, name, value)
		if (engine_check_option(job->engine, name, value, err) < 0)
			return -1;
	return 0;
}

static void read_engine(struct job *job, const struct section *conf)
{
	job->engine_name = xstrdup(section_text(conf, "engine"));
	job->worker = duplicate_text(conf, "worker");
	job->engine = find_own_engine(conf);
	if (job->engine)
		job->pins = environment_pins(job->engine);
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
		.cap_s = job->engine ? job->engine->cap_s : 0,
		.speed = 1,
	};
}

/* "de", "cmn", "pt-BR" */
static bool is_language_code(const char *code)
{
	size_t letters = strspn(code, "abcdefghijklmnopqrstuvwxyz");

	return (letters == 2 || letters == 3) && (!code[letters] || strchr("-_", code[letters]));
}

static int read_voice(struct job *job, const struct section *conf, struct err *err)
{
	const char *fallback = job->engine ? job->engine->voice : NULL;
	struct err why = {0};

	job->voice = duplicate_text(conf, "voice");
	job->language = duplicate_text(conf, "language");
	if (job->language && !is_language_code(job->language))
		return err_set(err, ERR_CONFIG,
			       "%s: language \"%.*s\": write its code, as in \"de\" or \"pt-BR\"",
			       section_where(conf, "language"), utf8_fit(job->language, 40),
			       job->language);
	job->voices_dir = duplicate_text(conf, "voices");
	if (!job->voice && fallback && !job->voices_dir)
		job->voice = xstrdup(fallback);
	if (section_has(conf, "voice") && job->voice &&
	    segments_check_voice(job, job->voice, &why) < 0)
		return err_set(err, ERR_CONFIG, "%s: %s", section_where(conf, "voice"), why.msg);
	return 0;
}

/* Reads job.speakers, and sets script.speakers if the key is there. */
static int read_speakers(struct job *job, const struct section *conf, struct mistakes *m,
			 struct err *err)
{
	if (!section_has(conf, "speakers"))
		return 0;
	for (size_t i = 0; i < section_count(conf, "speakers"); i++) {
		struct speakers *all = &job->speakers;
		struct err why = {0};
		int result = speakers_add(all, section_item(conf, "speakers", i), &why);
		const char *voice = all->list[all->count - 1].voice;
		if (result == 0 && voice)
			result = segments_check_voice(job, voice, &why);
		if (result < 0)
			err_set(err, ERR_CONFIG, "%s: %s", section_where(conf, "speakers"),
				why.msg);
		if (result < 0 && mistakes_note(m, NULL, err) < 0)
			return -1;
	}
	job->script.speakers = &job->speakers;
	return 0;
}

/* The input's name in messages: relative if it lies below the config's folder. */
static const char *shown_path(const char *path, const char *base_dir)
{
	size_t len = base_dir ? strlen(base_dir) : 0;

	return len && !strncmp(path, base_dir, len) && path[len] == '/' && path[len + 1]
		       ? path + len + 1
		       : path;
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
	struct phoneme_marks ipa = job->engine ? job->engine->ipa : (struct phoneme_marks){0};
	ipa.engine = job->engine_name;
	return lexicon_read(&job->lexicon, shown_path(path, setup->base_dir), str_text(&text),
			    text.len, &ipa, err);
}

/* Falls back to the usual limits if check_conf() has rejected these, so that mistakes of the script
 * are found too. */
static struct split_limits split_limits_of(const struct section *conf)
{
	int64_t most = section_int(conf, "max_chars"), least = section_int(conf, "min_chars");

	if (most < CHARS_LEAST || most > CHARS_MOST || least < 0 || least > most / 2)
		return (struct split_limits){CHARS_USUAL, 0};
	return (struct split_limits){(size_t)most, (size_t)least};
}

static int read_script(struct job *job, const struct job_setup *setup, struct err *err)
{
	const struct section *conf = setup->conf;
	const char *input = section_text(conf, "input");
	enum input_mode mode = INPUT_AUTO;

	if (!input) {
		err_set(err, ERR_CONFIG, "%s: job.input is missing: which script is to be spoken?",
			section_where(conf, NULL));
		return err_about(err, "job.input");
	}
	job->limits = split_limits_of(conf);
	(void)read_mode(conf, &mode, NULL); /* check_conf() has reported a bad value */
	if (read_lexicon(job, setup, err) < 0 && mistakes_note(setup->mistakes, NULL, err) < 0)
		return -1;
	job->script.check_voice = segments_check_voice;
	job->script.check_options = check_line_options;
	job->script.ctx = job;
	job->script.job_setup = setup;
	job->script.list_numbers = section_bool(conf, "list_numbers");
	job->script.columns = section_has(conf, "columns") ? section_group(conf, "columns") : NULL;
	CLEANUP(free_text) char *path = path_join(setup->base_dir ? setup->base_dir : ".", input);
	if (script_load(&job->script, path, shown_path(path, setup->base_dir), mode, &job->limits,
			err) < 0)
		return -1;
	job->script.ctx = NULL;
	job->script.job_setup = NULL;
	if (book_settle(&job->script.book, setup, path, err) < 0 &&
	    mistakes_note(setup->mistakes, NULL, err) < 0)
		return -1;
	job->script.columns = NULL;
	if (fit_read(job, conf, err) < 0 && mistakes_note(setup->mistakes, NULL, err) < 0)
		return -1;
	return segments_make(job, err);
}

/* Refuses a password or query, since messages and the environment's script show the URL. */
static int check_mirror(const char *url, struct err *err)
{
	static const char pattern[] =
		"^(https://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+])|http://(127\\.0\\.0\\.1|localhost|"
		"\\[::1]))(:[0-9]+)?(/[A-Za-z0-9._~!()*+,;=:%&/-]*)?$";
	CLEANUP(str_free) struct str shown = STR_INIT;
	regex_t regex;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB))
		return err_set(err, ERR_BUG, "the pattern of a mirror is wrong");
	int differs = regexec(&regex, url, 0, NULL, 0);
	regfree(&regex);
	if (!differs)
		return 0;
	str_add_printable(&shown, url, MIN(strcspn(url, "@?"), (size_t)60), 60);
	return err_set(err, ERR_CONFIG,
		       "weights_url \"%s\": it must be like https://HOST[:PORT][/PATH], without a "
		       "password or a query; http is for this machine alone",
		       str_text(&shown));
}

/* The job's mirror overrides the user's. Only a mirror from the user's own file gets the user's
 * token. */
static int read_mirror(struct job *job, const struct job_setup *setup, struct err *err)
{
	const char *own = section_text(setup->conf, "weights_url"), *users = setup->weights_url;
	const char *url = own && *own ? own : users && *users ? users : NULL;
	size_t n = 0;

	if (!url)
		return 0;
	if (check_mirror(url, err) < 0)
		return err_wrap(err, "%s",
				url == own ? section_where(setup->conf, "weights_url")
					   : "your own burst.cfg");
	job->mirror = xstrdup(url);
	job->setup_env[n++] = job->mirror_pair = xasprintf("BURST_WEIGHTS_URL=%s", url);
	if (users && !strcmp(users, url))
		job->setup_env[n++] = "BURST_WEIGHTS_TRUSTED=1";
	return 0;
}

/* The first line of the script that names a voice, or the config's. The caller frees it. */
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

/* Requires the user's consent to weights whose licence forbids some use. place: what names `what`
 * ("voice en_US-ryan-high"); terms NULL: nothing is forbidden. */
static int require_consent(const char *what, const struct engine_terms *terms,
			   const struct section *conf, const char *place, struct err *err)
{
	if (!terms)
		return 0;
	if (section_bool(conf, "accept_license")) {
		log_line(LOG_NOTE, "%s: %s, which forbids %s (%s); accepted by job.accept_license",
			 what, terms->licence, terms->forbids, terms->link);
		return 0;
	}
	return err_set(err, ERR_CONFIG,
		       "%s: %s: its licence (%s, %s) forbids %s: set job.accept_license = true if "
		       "you keep to that, or choose another",
		       section_has(conf, "accept_license") ? section_where(conf, "accept_license")
							   : place,
		       what, terms->licence, terms->link, terms->forbids);
}

/* Checks the terms of the engine's weights and of each voice. */
static int check_terms(const struct job *job, const struct section *conf, struct mistakes *m,
		       struct err *err)
{
	const struct engine_voices *by_voice = job->engine ? job->engine->by_voice : NULL;
	int result = 0;

	if (!job->engine)
		return 0;
	CLEANUP(free_text) char *weights = xasprintf("engine %s", job->engine->name);
	if (require_consent(weights, job->engine->terms, conf, section_where(conf, "engine"), err) <
		    0 &&
	    mistakes_note(m, NULL, err) < 0)
		return -1;
	const char **voices = segments_voices(&job->segments);
	for (size_t i = 0; by_voice && voices[i] && result == 0; i++) {
		CLEANUP(free_text) char *voice = xasprintf("voice %s", voices[i]);
		CLEANUP(free_text) char *place = place_of_voice(job, conf, voices[i]);
		if (require_consent(voice, by_voice->terms(voices[i]), conf, place, err) < 0)
			result = mistakes_note(m, NULL, err);
	}
	free(voices);
	return result;
}

/* Adds the job's mistakes to setup->mistakes. After a mistake the job serves only to find more. */
static int read_job(struct job *job, const struct job_setup *setup, struct err *err)
{
	const struct section *conf = setup->conf;
	struct mistakes *m = setup->mistakes;

	job->output = xstrdup(setup->output_dir);
	job->habits = habits_new();
	job->options = json_object();
	if (check_conf(conf, m, err) < 0 || read_options(job->options, conf, m, err) < 0)
		return -1;
	read_engine(job, conf);
	job->heard = whisper_find(section_text(section_group(conf, "check"), "words"));
	job->own_setup = duplicate_text(conf, "setup");
	job->seed = section_int(conf, "seed");
	job->loading = setup;
	if (read_voice(job, conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (read_speakers(job, conf, m, err) < 0)
		return -1;
	if (read_mirror(job, setup, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (read_script(job, setup, err) < 0)
		return -1;
	return heard_check_languages(job, conf, m, err) < 0 ? -1 : check_terms(job, conf, m, err);
}

/* Enables the render cache if burst's own engine speaks. A user's worker or set-up may depend on
 * files of the project, which no key covers. */
static void read_reuse(struct job *job, const struct job_setup *setup)
{
	job->anew = setup->anew;
	COPY_TEXT(job->commit, setup->commit ? setup->commit : "");
	job->prune = setup->prune;
	job->made_by =
		xasprintf("%s\n%s\n%s", setup->image ? setup->image : "",
			  job->own_setup ? job->own_setup : "", job->mirror ? job->mirror : "");
	if (!job->worker && !(setup->code && job->own_setup))
		job->renders = renders_new(setup->renders_dir, setup->renders_max_bytes);
}

static int load_job(struct job **out, const struct job_setup *setup, struct err *err)
{
	CLEANUP(tts_free) struct job *job = xcalloc(1, sizeof(*job));

	if (read_job(job, setup, err) < 0 || mistakes_end(setup->mistakes, err) < 0)
		return -1;
	read_check(job, section_group(setup->conf, "check"));
	heard_add_estimates(job);
	job->name = xstrdup(setup->name ? setup->name : "");
	if (join_read(job, setup->conf, err) < 0)
		return -1;
	tts_fill_needs(job, setup->conf);
	read_reuse(job, setup);
	job->loading = NULL;
	*out = TAKE(job);
	return 0;
}

/* As job_ops.load. */
static int tts_load(struct job **out, const struct job_setup *setup, struct err *err)
{
	return job_load_noting(out, setup, load_job, err);
}

/* ---- tts ----
 * Jobs of type "tts": the tasks for the engine, and the judgement of a finished file. */

/* A prime above any number of segments, so that tries never share a seed. */
#define TRY_SEED_STEP 1000003

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
	CLEANUP(free_text) char *file = xstrdup(segment->file);

	/* workers make no folders; no id has a "|" */
	for (char *p = file; (p = strchr(p, '/'));)
		*p = '|';
	return json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:I, s:O, s:s*}", "id", segment->id, "file",
			 file, "text", spoken->text, "voice", spoken->voice, "voice_file",
			 spoken->voice_file, "seed", (json_int_t)(seed & INT32_MAX), "options",
			 spoken->options, "language", job->heard ? spoken->language : NULL);
}

static const char *const *tts_finish_names(struct job *job)
{
	return job->joined_names;
}

static void tts_finish_progress(const struct job *job, struct job_finish *out)
{
	*out = (struct job_finish){.ms_per_s = join_ms_per_s(&job->join_as),
				   .share = join_meter_share(job->join_as.meter)};
}

static int tts_check(const struct job *job, size_t index, const char *file, struct check *out,
		     struct err *err)
{
	if (tts_check_file(job, index, file, job->check.habits, out, err) < 0)
		return -1;
	/* reject a file that is no audio even if checks are off */
	if (!job->check_enabled && out->sample_rate)
		out->ok = true;
	return 0;
}

const struct job_ops job_tts = {
	.abi = JOB_ABI,
	.type = "tts",
	.summary = "speak a script, one sound file for each line",
	.options = tts_options,
	.check_conf = check_conf,
	.load = tts_load,
	.free = tts_free,
	.segments = tts_segments,
	.needs = tts_needs,
	.task = tts_task,
	.find_cached = tts_find_cached,
	.changes = tts_changes,
	.read_as = tts_read_as,
	.left_out = tts_left_out,
	.foresee = tts_foresee,
	.bring = tts_bring,
	.check = tts_check,
	.record = tts_record,
	.kept = tts_kept,
	.finish = tts_finish,
	.finish_names = tts_finish_names,
	.finish_progress = tts_finish_progress,
};
