/* tts.c - jobs of type "tts": the tasks for the engine, and the judgement of a finished file. */
#include "tts.h"

#include "join_meter.h"
#include "state.h"

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
