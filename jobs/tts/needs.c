/* needs.c - what a job of type "tts" needs from a pod: files, set-up, memory, speed of its engine.
 */
#include <math.h>
#include <stdlib.h>

#include "state.h"
#include "jobs/common.h"
#include "jobs/workers/python.h"

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

void tts_fill_needs(struct job *job, const struct section *conf)
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
