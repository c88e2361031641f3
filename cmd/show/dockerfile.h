/* dockerfile.h - writes the text of a Dockerfile for the image of a job's pods. */
#ifndef BURST_CMD_SHOW_DOCKERFILE_H
#define BURST_CMD_SHOW_DOCKERFILE_H

#include "engine/image.h"

struct dockerfile_want {
	const char *from;    /* base image, a checked reference */
	const char *job;     /* name of the job, for comments */
	const char *command; /* command that prints this file, for comments: "burst image
				--with-weights" */
	const struct job_needs *needs;
	enum image_has has;
};

void dockerfile_add(struct str *to, const struct dockerfile_want *want);

#endif
