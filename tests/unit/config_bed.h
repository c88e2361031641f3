/* config_bed.h - two providers and two job types with their keys, and configs that are opened for
 * them. */
#ifndef BURST_TESTS_CONFIG_BED_H
#define BURST_TESTS_CONFIG_BED_H

#include "config/config.h"

extern const struct job_ops known_tts;
extern const struct provider_ops *const known_providers[];
extern const struct job_ops *const known_jobs[];
int open_config(struct config **out, bool need_job, struct err *err);
/* With this file of the user's and this project; fails the test if there is a mistake. */
struct config *must_open(const char *user, const char *project);
/* For a group's set-up: a folder of its own is its home and its current folder. */
int enter_home(void **state);

#define USER "~/.config/burst/burst.cfg"

#endif
