/* load.c - reads a job of type "tts": its config, script and voices. */
#include <stdlib.h>

#include "base/path.h"
#include "ffmpeg.h"
#include "join_meter.h"
#include "state.h"
#include "jobs/common.h"
#include "mirror.h"
#include "terms.h"

#define LEXICON_MOST_BYTES ((size_t)8 << 20)

static inline void tts_free_cleanup(struct job **job)
{
	tts_free(*job);
}

/* Checks the options of one script line. */
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
	job->worker = tts_text(conf, "worker");
	job->engine = engine_find(job->engine_name);
	if (job->engine && !job->worker)
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
		.cap_s = job->engine && !job->worker ? job->engine->cap_s : 0,
		.speed = 1,
	};
}

static void read_join(struct job *job, const struct section *conf)
{
	const struct section *join = section_group(conf, "join");

	job->join = section_has(conf, "join");
	job->join_as = (struct join_options){
		.meter = join_meter_new(),
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

	job->voice = tts_text(conf, "voice");
	job->voices_dir = tts_text(conf, "voices");
	speaker->voices_dir = job->voices_dir;
	if (!job->voice && fallback && !job->voices_dir)
		job->voice = xstrdup(fallback);
	speaker->voice = job->voice;
	if (section_has(conf, "voice") && job->voice &&
	    segments_check_voice(speaker, job->voice, &why) < 0)
		return err_set(err, ERR_CONFIG, "%s: %s", section_where(conf, "voice"), why.msg);
	return 0;
}

/* The input's name in messages: short if it lies beside the config. */
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
	for (size_t i = 0; job->join && i < job->segments.count; i++) {
		const char *id = job->segments.list[i].id;
		if (!strcmp(id, "joined") || !strcmp(id, "joined.partial"))
			return err_set(err, ERR_CONFIG,
				       "%s:%zu: the id \"%s\" is taken by the joined track",
				       job->script.items[job->segments.spoken[i].item].source,
				       job->script.items[job->segments.spoken[i].item].line, id);
	}
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

/* Falls back to the usual limits if check_conf() has rejected these, so that mistakes of the script
 * are found too. */
static struct split_limits split_limits_of(const struct section *conf)
{
	int64_t most = section_int(conf, "max_chars"), least = section_int(conf, "min_chars");

	if (most < TTS_CHARS_LEAST || most > TTS_CHARS_MOST || least < 0 || least > most / 2)
		return (struct split_limits){TTS_CHARS_USUAL, 0};
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
	(void)tts_read_mode(conf, &mode, NULL); /* check_conf() has reported a bad value */
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

/* The job's mirror overrides the user's. Only a mirror from the user's own file gets the user's
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

/* Checks the terms of the engine's weights and of each voice. */
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

/* Adds the job's mistakes to setup->mistakes. After a mistake the job serves only to find more. */
static int read_job(struct job *job, const struct job_setup *setup, struct err *err)
{
	const struct section *conf = setup->conf;
	struct mistakes *m = setup->mistakes;

	job->output = xstrdup(setup->output_dir);
	job->habits = habits_new();
	job->options = json_object();
	if (tts_check_conf(conf, m, err) < 0 || tts_read_options(job->options, conf, m, err) < 0)
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

/* Enables the render cache if burst's own engine speaks. A user's worker or set-up may depend on
 * files of the project, which no key covers. */
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
	tts_fill_needs(job, setup->conf);
	read_reuse(job, setup);
	*out = TAKE(job);
	return 0;
}

int tts_load(struct job **out, const struct job_setup *setup, struct err *err)
{
	return job_load_noting(out, setup, load_job, err);
}
