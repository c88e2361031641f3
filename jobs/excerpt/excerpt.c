/* excerpt.c - jobs of a few segments of the user's job, with its engine and settings: repeated to
 * measure the engine, or single ones to be listened to */
#include "excerpt.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct job {
	const struct job_ops *ops; /* of the real job */
	struct job *real;
	struct job_needs needs;
	struct segment *segments;
	size_t *like; /* index of the real segment that each repeats */
	size_t count;
};

static void excerpt_free(struct job *job)
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

/* Fills segment i as a copy of real's segment `like`, with an id of its own. Takes over the id. */
static void make_segment(struct job *job, size_t i, size_t like, char *id)
{
	static char group[] = "";
	size_t count;
	struct segment *s = &job->segments[i];

	*s = job->ops->segments(job->real, &count)[like];
	s->id = id;
	s->file = xasprintf("%s.wav", id);
	s->group = group;
	job->like[i] = like;
}

/* Makes the job without its segments. Takes over `real`. */
static struct job *new_job(const struct job_ops *ops, struct job *real, size_t count)
{
	struct job *job = xcalloc(1, sizeof(*job));

	*job = (struct job){.ops = ops, .real = real, .needs = *ops->needs(real), .count = count};
	job->segments = xcalloc(count, sizeof(*job->segments));
	job->like = xcalloc(count, sizeof(*job->like));
	return job;
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
	struct job *job = new_job(real_ops, real, count);
	const char *group = largest_group(list, have);
	/* a suspect file is not rendered again: only its time matters */
	job->needs.tries = 1;
	for (size_t i = 0; i < count; i++, next++) {
		while (strcmp(list[next % have].group, group) != 0)
			next++;
		make_segment(job, i, next % have, xasprintf("calibrate-%05zu", i + 1));
	}
	*out = job;
	return 0;
}

struct job *listen_job(const struct job_ops *real_ops, struct job *real, const size_t *indices,
		       size_t count)
{
	struct job *job = new_job(real_ops, real, count);
	size_t have;
	const struct segment *list = real_ops->segments(real, &have);

	for (size_t i = 0; i < count; i++)
		make_segment(job, i, indices[i], xstrdup(list[indices[i]].id));
	return job;
}

const char *const excerpt_types[] = {CALIBRATE, LISTEN, NULL};

bool excerpt_is(const char *type)
{
	return !strcmp(type, CALIBRATE) || !strcmp(type, LISTEN);
}

static struct segment *excerpt_segments(struct job *job, size_t *count)
{
	*count = job->count;
	return job->segments;
}

static const struct job_needs *excerpt_needs(struct job *job)
{
	return &job->needs;
}

static json_t *excerpt_task(struct job *job, size_t index, int attempt)
{
	json_t *task = job->ops->task(job->real, job->like[index], attempt);

	json_object_set_new(task, "id", json_string(job->segments[index].id));
	json_object_set_new(task, "file", json_string(job->segments[index].file));
	return task;
}

static int excerpt_check(const struct job *job, size_t index, const char *file, struct check *out,
			 struct err *err)
{
	return job->ops->check(job->real, job->like[index], file, out, err);
}

#define EXCERPT_OPS                                                                                \
	.abi = JOB_ABI, .free = excerpt_free, .segments = excerpt_segments,                        \
	.needs = excerpt_needs, .task = excerpt_task, .check = excerpt_check

const struct job_ops calibrate_ops = {EXCERPT_OPS, .type = CALIBRATE};
const struct job_ops listen_ops = {EXCERPT_OPS, .type = LISTEN};
