/* fuzz_config.c - any bytes as a project's burst.cfg: an error or a config, never more, and never a
 * key that only the user may set. */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
const char *__lsan_default_suppressions(void);

/* libconfig 1.5 itself forgets the pieces of a file that it gives up on. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so";
}

static const struct option_spec secret_keys[] = {
	{"api_key_command", OPTION_TEXT, OPTION_USER_ONLY, NULL, "prints the key", NULL},
	{"datacenters", OPTION_TEXTS, 0, NULL, "only there", NULL},
	{"price", OPTION_MONEY, 0, "0", "dollars", NULL},
	{NULL},
};
static const struct option_spec join_keys[] = {{"gap", OPTION_DECIMAL, 0, "0.4", "seconds", NULL},
					       {NULL}};
static const struct option_spec job_keys[] = {
	{"name", OPTION_TEXT, 0, NULL, "its name", NULL},
	{"type", OPTION_TEXT, 0, NULL, "its kind", NULL},
	{"input", OPTION_PATH, OPTION_REQUIRED, NULL, "the script", NULL},
	{"join", OPTION_GROUP, 0, NULL, "joined", join_keys},
	{NULL},
};
static const struct provider_ops local = {
	.abi = PROVIDER_ABI, .name = "local", .options = secret_keys};
static const struct job_ops tts = {.abi = JOB_ABI, .type = "tts", .options = job_keys};
static const struct provider_ops *const providers[] = {&local, NULL};
static const struct job_ops *const jobs[] = {&tts, NULL};

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

static int open_file(void)
{
	setenv("HOME", "/nonexistent", 1);
	unsetenv("XDG_CONFIG_HOME");
	snprintf(path, sizeof(path), "%s/burst-fuzz-%d.cfg",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
	atexit(remove_file);
	return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static void look(struct config *c)
{
	struct err err = {0};

	(void)!config_check(c, &err);
	(void)!config_override(c, "caps.max_cost", "1", "--max-cost", &err);
	assert(!section_has(config_top(c), "on_exit"));
	assert(!section_has(config_provider(c, "local"), "api_key_command"));
	if (config_job(c))
		assert(section_text(config_job(c), "input")[0] == '/');
	config_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int fd = -1;
	struct config_ask ask = {.file = path, .providers = providers, .jobs = jobs};
	struct config *c = NULL;
	struct err err = {0};

	if (fd < 0)
		fd = open_file();
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, len, 0) != (ssize_t)len)
		abort();
	if (config_open(&c, &ask, &err) == 0)
		look(c);
	else
		assert(err.kind == ERR_CONFIG && err.msg[0]);
	return 0;
}
