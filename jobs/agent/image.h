/* image.h - what the pod's image contains: its Python, and environments made when it was built. */
#ifndef BURST_JOBS_AGENT_IMAGE_H
#define BURST_JOBS_AGENT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent.h"
#include "base/str.h"

/* Writes the file name of the image's Python behind all links ("python3.11"), or "" if there is
 * none. An environment works for one version only. Runs no program. */
void python_of_image(const struct agent *a, char *name, size_t room);
char *image_path(const struct agent *a, const char *key);

/* Returns whether the environment is complete and its owner could have changed the image anyway. */
bool image_has(const struct agent *a, const char *key);
void add_image(const struct agent *a, struct str *b);

#endif
