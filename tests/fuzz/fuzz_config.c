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

/* What only the user may set is not set; what names a file has become whole. */
static void check_keys(const struct section *s)
{
	const struct option_spec *spec = s ? section_table(s) : NULL;

	for (; spec && spec->key; spec++) {
		assert(!(spec->flags & OPTION_USER_ONLY) || !section_has(s, spec->key));
		if (spec->type == OPTION_GROUP)
			check_keys(section_group(s, spec->key));
		else if (spec->type == OPTION_PATH && section_has(s, spec->key))
			assert(section_text(s, spec->key)[0] == '/');
	}
}

static void read_values(struct config *c)
{
	struct err err = {0};

	(void)!config_check(c, &err);
	(void)!config_override(c, "caps.max_cost", "1", "--max-cost", &err);
	(void)!config_override(c, "job.voice", "en", "--voice", &err);
	(void)!config_override(c, "providers.runpod.cloud", "ANY", "--set", &err);
	assert(!section_has(config_top(c), "on_exit"));
	check_keys(config_top(c));
	check_keys(config_job(c));
	for (size_t i = 0; provider_registry[i]; i++)
		check_keys(config_provider(c, provider_registry[i]->name));
	config_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int fd = -1;
	struct config_source ask = {.file = path,
				    .need_job = len % 2,
				    .providers = provider_registry,
				    .jobs = job_registry};
	struct config *c = NULL;
	struct err err = {0};

	if (fd < 0)
		fd = open_file();
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, len, 0) != (ssize_t)len)
		abort();
	if (config_open(&c, &ask, &err) == 0)
		read_values(c);
	else
		assert(err.kind == ERR_CONFIG && err.msg[0]);
	return 0;
}
