/* common.h - what all types of job share: the keys that each `job` group has, lists of texts, and
 * the check of the output folder before any money is spent. */
#ifndef BURST_JOBS_COMMON_H
#define BURST_JOBS_COMMON_H

#include "base/str.h"
#include "job.h"

/* The rows of job_ops.options that mean the same for every type; to be put first in a table. */
/* clang-format off */
#define JOB_COMMON_OPTIONS                                                                         \
	{ "name", OPTION_TEXT, 0, NULL, "the job's name; the folder's name when absent" },         \
	{ "type", OPTION_TEXT, OPTION_REQUIRED, NULL, "tts or command" },                          \
	{ "output", OPTION_PATH, 0, "out", "folder that gets the results" },                       \
	{ "setup", OPTION_TEXT, 0, NULL, "shell text that runs once per volume; what it leaves in $BURST_ENV is kept" }, \
	{ "env", OPTION_TEXTS, 0, NULL, "environment variables that travel to the pod, as in [\"HF_TOKEN\"]" }
/* clang-format on */

/* The items of a TEXTS key as a NULL-terminated array of copies; free with job_texts_free(). */
char **job_texts(const struct section *conf, const char *key);
void job_texts_free(char **texts);
/* ERR_CONFIG naming a pattern of `outputs` that no output can match. */
int job_check_outputs(const struct section *conf, struct err *err);
/* ERR_CONFIG naming a variable of `env` whose name no shell would take. */
int job_check_env(const struct section *conf, struct err *err);
/* Calls `load` with a list of mistakes of its own, and adds these to setup's. For job_ops.load:
 * with setup->mistakes == NULL `load` ends at the first one. */
int job_load_noting(struct job **out, const struct job_setup *setup,
		    int (*load)(struct job **out, const struct job_setup *setup, struct err *err),
		    struct err *err);
/* A file of the folder that `key` of the config names: a plain one, or a link to one that may be
 * read. setup NULL: all may be read. ERR_CONFIG. */
int job_read_member(const struct job_setup *setup, const char *key, const char *path, size_t max,
		    struct str *out, struct err *err);
/* Makes the output folder if needed; ERR_CONFIG if it is a file or cannot be written. */
int job_check_output(const char *dir, struct err *err);

#endif
