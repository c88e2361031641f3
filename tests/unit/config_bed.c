/* config_bed.c - two providers and two job types with their keys, and configs that are opened for
 * them. */
#include "config_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "config/config.h"
#include "folder.h"

static const struct option_spec local_keys[] = {
	{"price_per_hour", OPTION_MONEY, 0, "0", "what an hour of a pod costs", NULL},
	{"boot_delay", OPTION_DURATION, 0, "0", "wait before a pod answers", NULL},
	{NULL},
};

static const struct option_spec runpod_keys[] = {
	{"cloud", OPTION_TEXT, 0, "SECURE", "which cloud", NULL},
	{"datacenters", OPTION_TEXTS, 0, NULL, "only there", NULL},
	{"api_key", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY | OPTION_REQUIRED, NULL,
	 "the key", NULL},
	{"api_key_command", OPTION_TEXT, OPTION_USER_ONLY, NULL, "prints the key", NULL},
	{"api_url", OPTION_TEXT, OPTION_USER_ONLY, "https://api.runpod.io", "the API's root", NULL},
	{NULL},
};

static const struct option_spec join_keys[] = {
	{"gap", OPTION_DECIMAL, 0, "0.4", "seconds between two", NULL},
	{"subtitles", OPTION_BOOL, 0, "true", "write subtitles", NULL},
	{NULL},
};

static const struct option_spec then_keys[] = {
	{"name", OPTION_TEXT, 0, NULL, "its name", NULL},
	{"env", OPTION_TEXTS, 0, NULL, "variables that travel", NULL},
	{"join", OPTION_GROUP, 0, NULL, "a group inside", join_keys},
	{NULL},
};

static const struct option_spec tts_keys[] = {
	{"name", OPTION_TEXT, 0, NULL, "its name", NULL},
	{"type", OPTION_TEXT, 0, NULL, "its kind", NULL},
	{"input", OPTION_PATH, OPTION_REQUIRED, NULL, "the script", NULL},
	{"output", OPTION_PATH, 0, "out", "the folder", NULL},
	{"workers", OPTION_INT, 0, "1", "processes a pod", NULL},
	{"env", OPTION_TEXTS, 0, NULL, "variables that travel", NULL},
	{"join", OPTION_GROUP, 0, NULL, "the joined track", join_keys},
	{"then", OPTION_GROUPS, 0, NULL, "what follows", then_keys},
	{NULL},
};

static const struct provider_ops local = {
	.abi = PROVIDER_ABI, .name = "local", .summary = "here", .options = local_keys};

static const struct provider_ops runpod = {
	.abi = PROVIDER_ABI, .name = "runpod", .summary = "there", .options = runpod_keys};

const struct job_ops known_tts = {
	.abi = JOB_ABI, .type = "tts", .summary = "speech", .options = tts_keys};

static const struct job_ops command = {
	.abi = JOB_ABI, .type = "command", .summary = "a command", .options = tts_keys};

const struct provider_ops *const known_providers[] = {&local, &runpod, NULL};

const struct job_ops *const known_jobs[] = {&known_tts, &command, NULL};

int open_config(struct config **out, bool need_job, struct err *err)
{
	struct config_source ask = {
		.need_job = need_job, .providers = known_providers, .jobs = known_jobs};

	*out = NULL;
	if (config_open(out, &ask, err) < 0)
		return -1;
	return config_check(*out, err);
}

struct config *must_open(const char *user, const char *project)
{
	struct config *c;
	struct err err = {0};

	unlink("home/.config/burst/burst.cfg");
	unlink("burst.cfg");
	if (user)
		write_text("home/.config/burst/burst.cfg", user);
	if (project)
		write_text("burst.cfg", project);
	if (open_config(&c, false, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

int enter_home(void **state)
{
	struct err err = {0};
	char home[64];

	unsetenv("XDG_CONFIG_HOME");
	unsetenv("RUNPOD_API_KEY");
	unsetenv("RUNPOD_API_URL");
	if (enter_folder(state) < 0)
		return -1;
	snprintf(home, sizeof(home), "%s/home", folder);
	setenv("HOME", home, 1);
	return path_mkdirs("home/.config/burst", 0700, &err);
}
