/* environment.h - makes the set-up script of an engine's environment on a pod: Python packages,
 * weights, voices. */
#ifndef BURST_JOBS_TTS_ENVIRONMENT_H
#define BURST_JOBS_TTS_ENVIRONMENT_H

#include "engines.h"

/* The script that makes $BURST_ENV for these checked voices (NULL-terminated; ignored by engines
 * whose voices need no files). MIRROR: source of the weights in place of the hub, or NULL. Only
 * files without a known hash name the mirror in the script. The others are the same everywhere, so
 * an environment filled from one mirror serves another. Returns NULL if there is nothing to make.
 * The caller frees it. */
char *environment_setup(const struct engine *engine, const char *const *voices, const char *mirror);
/* The part of the script that makes the Python packages, for an image. In an image where it has
 * run, environment_setup() uses the result and fetches no packages. Returns NULL if there is
 * nothing to make. The caller frees it. */
char *environment_packages(const struct engine *engine);
/* The command that starts the worker, with the versions to check. The caller frees it. */
char *environment_worker(const struct engine *engine);
/* Versions and revisions that decide the sound; part of every segment's key. NULL: unknown. The
 * caller frees it. */
char *environment_pins(const struct engine *engine);
/* Download of a first set-up with the default voice, in MB: packages (approximate) and weights,
 * without torch. */
int environment_download_mb(const struct engine *engine);
/* Adds a file to the list that burst_weights.py reads. For struct engine_voices. */
void environment_add_weight(json_t *list, const struct engine_weight *weight, const char *mirror);

#endif
