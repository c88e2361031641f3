/* small_job.h - a job of one segment, for tests of an engine whose pods never come to render it. */
#ifndef BURST_TESTS_SMALL_JOB_H
#define BURST_TESTS_SMALL_JOB_H

#include "job.h"

static struct segment one_segment = {
	.id = (char *)"s1", .weight = 1, .group = (char *)"", .file = (char *)"s1.wav"};

static struct segment *segments(struct job *job, size_t *count)
{
	(void)job;
	*count = 1;
	return &one_segment;
}

static const struct job_needs *needs(struct job *job)
{
	static const struct job_needs n = {
		.engine = "none", .workers = 1, .max_batch = 1, .worker = "true", .tries = 1};

	(void)job;
	return &n;
}

static int finish(struct job *job, const struct segment_result *results, struct str *notes,
		  struct err *err)
{
	(void)job, (void)results, (void)notes, (void)err;
	return 0;
}

static const struct job_ops small_job = {
	.abi = JOB_ABI, .type = "small", .segments = segments, .needs = needs, .finish = finish};

#endif
