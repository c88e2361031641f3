/* environment.h - the environment of an engine on a pod, as the set-up script that makes it: Python
 * packages, weights, voices. */
#ifndef BURST_JOBS_TTS_ENVIRONMENT_H
#define BURST_JOBS_TTS_ENVIRONMENT_H

#include "engines.h"

/* The script that makes $BURST_ENV for these voices (NULL-terminated, all checked; engines whose
 * voices need no files ignore them). MIRROR: the source of the weights in place of the hub, or
 * NULL. The script names it only for files with an unknown hash: the others are the same
 * everywhere, so an environment filled from one mirror is used with another. NULL: nothing to make.
 * The caller frees it. */
char *environment_setup(const struct engine *engine, const char *const *voices, const char *mirror);
/* The part of it that makes the Python packages, for an image. In an image where it was run,
 * environment_setup() uses its result and fetches no packages. NULL: nothing to make. The caller
 * frees it. */
char *environment_packages(const struct engine *engine);
/* The command that starts its worker, with the versions that it must find. The caller frees it. */
char *environment_worker(const struct engine *engine);
/* Everything that decides its sound: versions of packages and revisions of weights; part of every
 * segment's key. NULL: unknown. The caller frees it. */
char *environment_pins(const struct engine *engine);
/* MB of a first set-up with its default voice: packages (about) and weights, without torch. */
int environment_download_mb(const struct engine *engine);
/* Adds a file to the list that burst_weights.py reads; for struct engine_voices. */
void environment_add_weight(json_t *list, const struct engine_weight *weight, const char *mirror);

#endif
