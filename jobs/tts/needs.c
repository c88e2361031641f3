/* needs.c - what a job needs: of a pod, and of this machine at its end */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/path.h"
#include "engines.h"
#include "join.h"
#include "jobs/common.h"
#include "jobs/workers/python.h"
#include "state.h"

/* ---- of a pod: files, set-up, memory, speed of its engine ---- */

enum {
	SETUP_WITH_TORCH_GB = 8
}; /* importing torch twice, to check that it did not change: a cautious guess, not measured */

/* Lists what the pods get: worker, harness (also for a user's worker that names it), samples. */
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

/* The engine's own script runs first, then the user's. NULL: there is none. Caller frees. */
static char *join_setups(const char *engine, const char *user)
{
	if (engine && user)
		return xasprintf("%s\n%s\n", engine, user);
	return engine || user ? xstrdup(engine ? engine : user) : NULL;
}

/* Returns NULL if there is nothing to prepare. The caller frees it. */
static char *engine_setup(const struct job *job, const struct engine *engine)
{
	if (!engine)
		return NULL;
	const char **voices = segments_voices(&job->segments);
	char *setup = environment_setup(engine, voices, job->mirror, job->heard);
	free(voices);
	return setup;
}

/* Names what the speed of a batch depends on: how the engine is set up and started, and how many
 * processes share the card. The caller frees the name. */
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
	const char *gpu = section_text(s, "gpu");
	struct job_prior prior = engine ? engine->prior : (struct job_prior){0};

	if (section_has(s, "once") || section_has(s, "longest") || section_has(s, "each")) {
		prior.once_s = section_decimal(s, "once");
		prior.longest_s = section_decimal(s, "longest");
		prior.each_s = section_decimal(s, "each");
		prior.gpu = job->estimate_gpu = gpu && *gpu ? xstrdup(gpu) : NULL;
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

void tts_fill_needs(struct job *job, const struct section *conf)
{
	const struct engine *engine = job->engine;
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
	n->variant = engine ? engine->variant : NULL;
	n->variant_is = engine ? engine->variant_is : NULL;
	n->workers = (int)section_int(conf, "workers");
	n->max_batch = section_has(conf, "max_batch") ? (int)section_int(conf, "max_batch")
		       : engine                       ? engine->max_batch
						      : 16;
	n->max_batch_is_cap = section_has(conf, "max_batch");
	n->max_batch_weight = engine ? engine->max_batch_weight : 0;
	if (engine)
		job->worker_line = environment_worker(engine);
	if (job->heard) {
		char *plain = job->worker_line;
		job->worker_line = heard_worker(job, plain ? plain : job->worker);
		free(plain);
	}
	n->worker = job->worker_line ? job->worker_line : job->worker;
	if (engine && engine->debian) {
		n->install = job->install = environment_install(engine);
		n->installed = engine->debian->installed;
		n->packages = engine->debian->packages;
	}
	CLEANUP(free_text) char *own = engine_setup(job, engine);
	job->setup = join_setups(own, job->own_setup);
	n->setup = job->setup;
	n->setup_is_ours = own && !job->own_setup && !section_text(conf, "weights_url");
	n->setup_packages = job->setup_packages = engine ? environment_packages(engine) : NULL;
	n->setup_env = job->setup_env;
	n->setup_download_mb = engine ? environment_download_mb(engine, job->heard) : 0;
	n->setup_memory_gb = engine && engine->torch ? SETUP_WITH_TORCH_GB : 0;
	/* burst's engines have the same environment on all cards: the image's torch, and packages
	 * without kernels */
	n->setup_by_card = n->gpu && job->own_setup && section_bool(conf, "setup_needs_gpu");
	n->tries = job->check_enabled ? (int)section_int(section_group(conf, "check"), "tries") : 1;
	job->env = job_texts(conf, "env");
	n->env_names = (const char *const *)job->env;
	gather_files(job, engine);
	n->prior = read_prior(job, conf, engine);
	n->vram_gb = MAX(n->vram_gb, n->gpu ? smallest_card_gb(&n->prior, n->workers) : 0);
	n->speed_options = job->speed_options = name_speed(job);
}

/* ---- of this machine ----
 * Tells before a render what the end of the job will lack: ffmpeg, chapters, room on the disk, a
 * WAV file that is not too long. */

#define USUAL_RATE   24000
#define SAMPLE_BYTES 2
/* The length of speech is a guess: less room than SURELY is too little, more than SAFELY enough. */
#define SURELY 0.7
#define SAFELY 1.3

struct sound_size {
	double open_s, track_s; /* of sound: what is to be rendered, what is joined */
	double byte_s;
};

/* Estimates what is still to be rendered and what will be joined. */
static struct sound_size estimate_size(const struct job *job, const struct segment_result *results)
{
	const struct engine *engine = job->engine;
	struct sound_size size = {.byte_s = (engine ? engine->facts.sample_rate : USUAL_RATE) *
					    SAMPLE_BYTES};

	for (size_t i = 0; i < job->segments.count; i++) {
		const struct spoken *spoken = &job->segments.spoken[i];
		double s = results[i].state == SEGMENT_SAFE
				   ? results[i].seconds
				   : job->segments.list[i].weight / CHARS_PER_S;
		if (job->fit && spoken->at_s >= 0)
			size.track_s = MAX(size.track_s, spoken->at_s);
		else if (i > 0)
			size.track_s +=
				join_pause_s(&job->join_as, spoken->border, spoken->before_s);
		size.track_s += s;
		size.open_s += results[i].state == SEGMENT_SAFE ? 0 : s;
	}
	return size;
}

static void note_missing_ffmpeg(const struct job *job, struct str *notes)
{
	const struct join_options *as = &job->join_as;

	if ((!as->formats[0] && !as->normalise) || ffmpeg_found())
		return;
	str_add(notes, "ffmpeg is not installed on this machine:");
	for (size_t i = 0; i < JOIN_FORMATS_MOST && as->formats[i]; i++)
		str_addf(notes, "%s %s.%s", i ? "," : "", as->name, as->formats[i]->name);
	str_addf(notes, "%s%s%s; install it before the run ends\n",
		 as->formats[0] ? " will not be made" : "",
		 as->formats[0] && as->normalise ? ", and" : "",
		 as->normalise ? " the loudness of the track stays as it is" : "");
}

static void note_missing_chapters(const struct job *job, struct str *notes)
{
	for (size_t i = 0;
	     !job->script.chapter_count && i < JOIN_FORMATS_MOST && job->join_as.formats[i]; i++)
		if (!strcmp(job->join_as.formats[i]->name, "m4b"))
			str_addf(notes,
				 "%s.m4b will have no chapters: the script has no headings (lines "
				 "that begin with # in .md, or a folder with a .txt file for each "
				 "chapter)\n",
				 job->joined_as);
}

/* Notes voices of different rates, which the worker would refuse only on a pod that bills. */
static void note_mixed_rates(const struct job *job, struct str *notes)
{
	const struct engine_voices *by_voice = job->engine ? job->engine->by_voice : NULL;

	if (!by_voice || !by_voice->rate)
		return;
	const char **voices = segments_voices(&job->segments);
	for (size_t i = 1; voices[0] && voices[i]; i++) {
		int first = by_voice->rate(voices[0]), other = by_voice->rate(voices[i]);
		if (first == other)
			continue;
		str_addf(notes,
			 "voice %s has %d samples a second and %s has %d: %s refuses to speak both "
			 "in one "
			 "job; make a job of each\n",
			 voices[0], first, voices[i], other, job->engine->name);
		break;
	}
	free(voices);
}

/* Notes that the track may be too long for a plain WAV file. */
static void note_long_track(const struct job *job, const struct sound_size *size, struct str *notes)
{
	char gb[32];

	if (size->track_s * size->byte_s * SAFELY < (double)WAV_MOST_BYTES)
		return;
	str_addf(notes,
		 "%s.wav will have about %s GB: above 4.29 GB it is written as RF64, which some "
		 "players cannot read; join.formats = [\"flac\"] makes a file that they can\n",
		 job->joined_as, number_show(gb, size->track_s * size->byte_s / 1e9, 3));
}

/* Free bytes in the folder, or in the one in which it will be made; -1: unknown. */
static int64_t free_bytes(const char *folder)
{
	CLEANUP(free_text) char *path = xstrdup(folder);
	int64_t bytes;

	while ((bytes = path_free_bytes(path)) < 0 && strcmp(path, "/") != 0 &&
	       strcmp(path, ".") != 0) {
		char *above = path_dir(path);
		free(path);
		path = above;
	}
	return bytes;
}

/* ERR_LOCAL: the output folder surely has too little room. Notes that it may have too little. */
static int check_room(const struct job *job, const struct sound_size *size, struct str *notes,
		      struct err *err)
{
	const int tracks = job->join ? 1 + job->join_as.normalise : 0;
	double need = (size->open_s + size->track_s * tracks) * size->byte_s;
	int64_t have = free_bytes(job->output);
	char need_gb[32], have_gb[32];

	if (have < 0 || need < 1e6 || (double)have >= need * SAFELY)
		return 0;
	number_show(need_gb, need / 1e9, 2);
	number_show(have_gb, (double)have / 1e9, 2);
	if ((double)have < need * SURELY)
		return err_set(
			err, ERR_LOCAL,
			"the output folder %s needs about %s GB%s, and %s GB are free there: "
			"free some space, or set another job.output",
			job->output, need_gb,
			tracks > 1 ? " while the track gets its loudness" : "", have_gb);
	str_addf(notes, "the output folder needs about %s GB, and %s GB are free there\n", need_gb,
		 have_gb);
	return 0;
}

static void note_labels(const struct job *job, struct str *notes)
{
	CLEANUP(str_free) struct str labels = STR_INIT;

	script_tell_labels(&job->script, &labels);
	if (labels.len)
		str_addf(notes, "%s\n", str_text(&labels));
}

int tts_foresee(struct job *job, const struct segment_result *results, struct str *notes,
		struct err *err)
{
	const struct sound_size size = estimate_size(job, results);

	if (size.open_s <= 0)
		return 0;
	note_labels(job, notes);
	tts_note_languages(job, notes);
	note_mixed_rates(job, notes);
	if (job->join) {
		note_missing_ffmpeg(job, notes);
		note_missing_chapters(job, notes);
		note_long_track(job, &size, notes);
	}
	fit_foresee(job, notes);
	heard_foresee(job, results, notes);
	return check_room(job, &size, notes, err);
}
