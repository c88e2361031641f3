/* tts.c - jobs of type "tts": its config, script and voices are read, what it needs from a pod,
 * the tasks for the engine */
#include "tts.h"

#include <math.h>
#include <stdlib.h>

#include "base/path.h"
#include "join.h"
#include "jobs/common.h"
#include "jobs/workers/python.h"
#include "engines.h"
#include "state.h"

/* ---- needs ----
 * What a job of type "tts" needs from a pod: files, set-up, memory, speed of its engine. */

enum {
	SETUP_WITH_TORCH_GB = 8
}; /* importing torch twice, to check that it did not change: a cautious guess, not measured */

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

/* Joins the scripts: the engine's own runs first, then the user's. */
static char *both_setups(const char *engine, const char *user)
{
	if (engine && user)
		return xasprintf("%s\n%s\n", engine, user);
	return engine || user ? xstrdup(engine ? engine : user) : NULL;
}

/* Returns NULL if there is nothing to prepare. */
static char *engine_setup(const struct job *job, const struct engine *engine)
{
	if (!engine)
		return NULL;
	const char **voices = segments_voices(&job->segments);
	char *setup = environment_setup(engine, voices, job->mirror);
	free(voices);
	return setup;
}

/* Names what the speed of a batch depends on: how the engine is set up and started, and how many
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

/* Values from the user's config override the engine's. */
static struct job_prior read_prior(struct job *job, const struct section *conf,
				   const struct engine *engine)
{
	const struct section *s = section_group(conf, "estimate");
	struct job_prior prior = engine ? engine->prior : (struct job_prior){0};

	if (section_has(s, "once") || section_has(s, "longest") || section_has(s, "each")) {
		prior.once_s = section_decimal(s, "once");
		prior.longest_s = section_decimal(s, "longest");
		prior.each_s = section_decimal(s, "each");
		prior.gpu = job->estimate_gpu = tts_text(s, "gpu");
		prior.host_share = section_decimal(s, "host_share");
		prior.source = "job.estimate";
	}
	if (section_has(s, "vram_base") || section_has(s, "vram_each")) {
		prior.base_gib = section_decimal(s, "vram_base");
		prior.each_gib = section_decimal(s, "vram_each");
	}
	return prior;
}

/* Advertised GB of the smallest card that holds one segment for each worker. Cards report as little
 * as 93 % of that, and the driver keeps 1 GiB. */
static int smallest_card_gb(const struct job_prior *prior, int workers)
{
	return prior->base_gib > 0
		       ? (int)ceil((workers * (prior->base_gib + prior->each_gib) + 1) / 0.93)
		       : 0;
}

/* tts.c: what the job needs of a pod, from its config and its segments. */
static void tts_fill_needs(struct job *job, const struct section *conf)
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
	n->bf16 = engine && engine->bf16;
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
	n->installed = engine ? engine->installed : NULL;
	n->packages = engine ? engine->packages : NULL;
	CLEANUP(free_text) char *own = engine_setup(job, engine);
	job->setup = both_setups(own, section_text(conf, "setup"));
	n->setup = job->setup;
	n->setup_is_ours =
		own && !section_text(conf, "setup") && !section_text(conf, "weights_url");
	n->setup_packages = job->setup_packages = engine ? environment_packages(engine) : NULL;
	n->setup_env = job->setup_env;
	n->setup_download_mb = engine ? environment_download_mb(engine) : 0;
	n->setup_memory_gb = engine && engine->torch ? SETUP_WITH_TORCH_GB : 0;
	/* burst's engines have the same environment on all cards: the image's torch, and packages
	 * without kernels */
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

/* ---- load ----
 * Reads a job of type "tts": its config, script and voices. */

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

/* tts.c: job_ops.load */
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

	return json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:I, s:O}", "id", segment->id, "file",
			 segment->file, "text", spoken->text, "voice", spoken->voice, "voice_file",
			 spoken->voice_file, "seed", (json_int_t)(seed & INT32_MAX), "options",
			 spoken->options);
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
	.check_conf = tts_check_conf,
	.load = tts_load,
	.free = tts_free,
	.segments = tts_segments,
	.needs = tts_needs,
	.task = tts_task,
	.find_cached = tts_find_cached,
	.changes = tts_changes,
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
