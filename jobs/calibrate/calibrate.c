/* calibrate.c - makes a measurement out of the user's job: same engine, settings and texts;
 * temporary files with names of their own. */
#include "calibrate.h"

#include <stdlib.h>

#include "base/mem.h"

struct job {
	const struct job_ops *ops; /* of the real job */
	struct job *real;
	struct job_needs needs;
	struct segment *segments;
	size_t *like; /* index of the real segment that each repeats */
	size_t count;
};

static void calibrate_free(struct job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->count; i++) {
		free(job->segments[i].id);
		free(job->segments[i].file);
	}
	free(job->segments);
	free(job->like);
	job->ops->free(job->real);
	free(job);
}

/* The group (voice) with the most segments: several voices in a batch would slow it down. */
static const char *largest_group(const struct segment *list, size_t count)
{
	const char *best = "";
	size_t most = 0;

	for (size_t i = 0; i < count; i++) {
		size_t n = 0;
		if (i && !strcmp(list[i].group, list[i - 1].group))
			continue;
		for (size_t k = 0; k < count; k++)
			n += !strcmp(list[k].group, list[i].group);
		if (n > most) {
			most = n;
			best = list[i].group;
		}
	}
	return best;
}

/* Fills segment i as a copy of `like` with an id and a file of its own. */
static void make_segment(struct job *job, size_t i, const struct segment *like)
{
	static char group[] = "";
	struct segment *s = &job->segments[i];

	*s = *like;
	s->id = xasprintf("calibrate-%05zu", i + 1);
	s->file = xasprintf("%s.wav", s->id);
	s->group = group;
}

int calibrate_job(struct job **out, const struct job_ops *real_ops, struct job *real, size_t count,
		  struct err *err)
{
	size_t have = 0, next = 0;
	const struct segment *list = real_ops->segments(real, &have);

	if (!have) {
		real_ops->free(real);
		return err_set(
			err, ERR_CONFIG,
			"the job has no segments: there is nothing to measure its engine with");
	}
	struct job *job = xcalloc(1, sizeof(*job));
	const char *group = largest_group(list, have);
	*job = (struct job){
		.ops = real_ops, .real = real, .needs = *real_ops->needs(real), .count = count};
	/* a suspect file is not rendered again: only its time matters */
	job->needs.tries = 1;
	job->segments = xcalloc(count, sizeof(*job->segments));
	job->like = xcalloc(count, sizeof(*job->like));
	for (size_t i = 0; i < count; i++, next++) {
		while (strcmp(list[next % have].group, group) != 0)
			next++;
		job->like[i] = next % have;
		make_segment(job, i, &list[next % have]);
	}
	*out = job;
	return 0;
}

static struct segment *calibrate_segments(struct job *job, size_t *count)
{
	*count = job->count;
	return job->segments;
}

static const struct job_needs *calibrate_needs(struct job *job)
{
	return &job->needs;
}

static json_t *calibrate_task(struct job *job, size_t index, int attempt)
{
	json_t *task = job->ops->task(job->real, job->like[index], attempt);

	json_object_set_new(task, "id", json_string(job->segments[index].id));
	json_object_set_new(task, "file", json_string(job->segments[index].file));
	return task;
}

static int calibrate_check(const struct job *job, size_t index, const char *file, struct check *out,
			   struct err *err)
{
	return job->ops->check(job->real, job->like[index], file, out, err);
}

const struct job_ops calibrate_ops = {
	.abi = JOB_ABI,
	.type = CALIBRATE,
	.free = calibrate_free,
	.segments = calibrate_segments,
	.needs = calibrate_needs,
	.task = calibrate_task,
	.check = calibrate_check,
};
