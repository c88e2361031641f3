/* common.h - what all job types share: the keys of each `job` group, lists of texts, and the check
 * of the output folder before money is spent. */
#ifndef BURST_JOBS_COMMON_H
#define BURST_JOBS_COMMON_H

#include "base/card_needs.h"
#include "base/str.h"
#include "job.h"

/* Rows of job_ops.options with the same meaning for every type; they come first in a table. */
/* clang-format off */
#define JOB_COMMON_OPTIONS                                                                         \
	{ "name", OPTION_TEXT, 0, NULL, "the job's name; the folder's name when absent" },         \
	{ "type", OPTION_TEXT, OPTION_REQUIRED, NULL, "tts or command" },                          \
	{ "output", OPTION_PATH, 0, "out", "folder that gets the results" },                       \
	{ "setup", OPTION_TEXT, 0, NULL, "shell text that runs once per volume; what it leaves in $BURST_ENV is kept" }, \
	{ "env", OPTION_TEXTS, 0, NULL, "environment variables that travel to the pod, as in [\"HF_TOKEN\"]" }, \
	{ "needs", OPTION_TEXTS, 0, NULL, "what a card and its host must have: " CARD_NEEDS_KNOWN }, \
	{ "then", OPTION_GROUPS, 0, NULL, "stages after the render, in this order: commands on pods of their own", job_stage_keys }
/* clang-format on */

/* The keys of a stage of `then`. */
extern const struct option_spec job_stage_keys[];

/* Copies the items of a TEXTS key into a NULL-terminated array. Free with texts_free(). */
char **job_texts(const struct section *conf, const char *key);
/* ERR_CONFIG names a pattern of `outputs` that no output can match. */
int job_check_outputs(const struct section *conf, struct err *err);
/* ERR_CONFIG names a variable of `env` that is no valid shell name. */
int job_check_env(const struct section *conf, struct err *err);
/* ERR_CONFIG names an item of `needs` that is no need of a card. */
int job_check_needs(const struct section *conf, struct err *err);
/* Adds the items of a list of needs to *to; unknown ones are left out. */
void job_read_needs(struct card_needs *to, const struct section *conf, const char *key);
/* Implements job_ops.load by `load`: calls it with a list of mistakes of its own, which are then
 * added to setup's. If setup->mistakes is NULL, `load` stops at the first mistake. */
int job_load_noting(struct job **out, const struct job_setup *setup,
		    int (*load)(struct job **out, const struct job_setup *setup, struct err *err),
		    struct err *err);
/* Appends to *out a file of the folder that `key` of the config names: a plain file, or a link to a
 * file that setup->may_read() allows. setup NULL: all files are allowed. ERR_CONFIG. */
int job_read_member(const struct job_setup *setup, const char *key, const char *path, size_t max,
		    struct str *out, struct err *err);
/* Makes the output folder if needed. ERR_CONFIG: it is a file, or nothing can be written there. */
int job_check_output(const char *dir, struct err *err);

#endif
