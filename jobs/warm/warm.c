/* warm.c - makes a job that fills a volume, from the user's own. */
#include "warm.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct job {
	const struct job_ops *ops; /* of the real job */
	struct job *real;
	struct segment segment;
	struct job_needs needs;
};

static void warm_free(struct job *job)
{
	if (!job)
		return;
	job->ops->free(job->real);
	free(job);
}

/* Removes needs that a command without a GPU does not have: a worker, GPU memory, further tries. */
static void reduce_needs(struct job_needs *needs)
{
	needs->gpu = needs->stream = false;
	needs->vram_gb = 0;
	needs->command = true;
	needs->workers = needs->max_batch = needs->tries = 1;
	needs->max_batch_weight = 0;
	needs->worker = NULL;
	needs->outputs = NULL;
	needs->hang_ms = 0;
}

struct job *warm_job(const struct job_ops *real_ops, struct job *real)
{
	static char id[] = "prepare", group[] = "";
	struct job *job = xcalloc(1, sizeof(*job));

	*job = (struct job){.ops = real_ops, .real = real, .needs = *real_ops->needs(real)};
	job->segment = (struct segment){.id = id, .weight = 1, .group = group};
	sha256_hex(id, strlen(id), job->segment.key);
	reduce_needs(&job->needs);
	return job;
}

static struct segment *warm_segments(struct job *job, size_t *count)
{
	*count = 1;
	return &job->segment;
}

static const struct job_needs *warm_needs(struct job *job)
{
	return &job->needs;
}

static json_t *warm_task(struct job *job, size_t index, int attempt)
{
	(void)attempt;
	return json_pack("{s:s, s:s, s:I, s:I}", "id", job->segment.id, "run", "true", "index",
			 (json_int_t)index, "count", (json_int_t)1);
}

const struct job_ops job_warm = {
	.abi = JOB_ABI,
	.type = JOB_WARM,
	.free = warm_free,
	.segments = warm_segments,
	.needs = warm_needs,
	.task = warm_task,
};
