/* image.h - what the pod's image has: its Python, and environments that were made when it was
 * built. */
#ifndef BURST_JOBS_AGENT_IMAGE_H
#define BURST_JOBS_AGENT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent.h"
#include "base/str.h"

/* The image's Python, by the name of its program behind all links ("python3.11"): an environment
 * works for one version alone. "": none. No program is run to find out. */
void python_of_image(const struct agent *a, char *name, size_t room);
char *image_path(const struct agent *a, const char *key);

/* Whether the environment is complete, and made by a user who could have changed this image anyway.
 */
bool image_has(const struct agent *a, const char *key);
void say_image(const struct agent *a, struct str *b);

#endif
