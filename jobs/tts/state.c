/* state.c - frees a tts job, and checks a file that it has rendered. */
#include "state.h"

#include <stdlib.h>

#include "base/jsonx.h"
#include "jobs/common.h"
#include "join_meter.h"
#include "tts.h"

void tts_free(struct job *job)
{
	if (!job)
		return;
	segments_free(&job->segments);
	samples_free(&job->samples);
	script_free(&job->script);
	lexicon_free(job->lexicon);
	habits_free(job->habits);
	join_meter_free(job->join_as.meter);
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

int tts_check_file(const struct job *job, size_t index, const char *file, struct habits *habits,
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
