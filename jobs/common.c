/* common.c - what all job types share: common keys, lists of texts, and the check of the output
 * folder. */
#include "common.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

static const struct option_spec stage_pod_keys[] = {
	{"gpu", OPTION_TEXTS, 0, NULL,
	 "acceptable GPUs, in order of preference (absent: a pod without one, unless needs asks "
	 "for one)"},
	{"needs", OPTION_TEXTS, 0, NULL,
	 "what its card and host must have, as job.needs: \"gpu\" for any GPU"},
	{"image", OPTION_TEXT, 0, NULL, "container image (default: the provider's choice)"},
	{"disk_gb", OPTION_INT, 0, NULL, "disk of its container, in GB"},
	{"cpu", OPTION_INT, 0, NULL, "minimum number of CPU cores"},
	{"memory_gb", OPTION_INT, 0, NULL, "minimum memory, in GB"},
	{0},
};

const struct option_spec job_stage_keys[] = {
	{"name", OPTION_TEXT, 0, NULL, "its name, as in \"video\"; required"},
	{"run", OPTION_TEXT, 0, NULL,
	 "shell command; $BURST_INPUTS holds the files of the earlier steps; required"},
	{"from", OPTION_TEXTS, 0, NULL,
	 "earlier stages whose files it gets; \"render\": those of the render (absent: all)"},
	{"inputs", OPTION_TEXTS, 0, NULL, "patterns of the files that it gets (absent: all)"},
	{"outputs", OPTION_TEXTS, 0, NULL, "patterns of files to fetch (\"*.mp4\")"},
	{"no_outputs", OPTION_BOOL, 0, "false",
	 "without a volume: the command stores its results elsewhere"},
	{"env", OPTION_TEXTS, 0, NULL, "variables sent to the pod (absent: those of job.env)"},
	{"pods", OPTION_INT, 0, "1",
	 "number of pods; $BURST_INDEX of $BURST_COUNT says which one it is"},
	{"pod", OPTION_GROUP, 0, NULL, "requirements on its pods", stage_pod_keys},
	{0},
};

char **job_texts(const struct section *conf, const char *key)
{
	size_t count = section_count(conf, key);
	char **texts = xcalloc(count + 1, sizeof(*texts));

	for (size_t i = 0; i < count; i++)
		texts[i] = xstrdup(section_item(conf, key, i));
	return texts;
}

static bool is_variable_name(const char *name)
{
	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return false;
	return true;
}

int job_check_outputs(const struct section *conf, struct err *err)
{
	for (size_t i = 0; i < section_count(conf, "outputs"); i++) {
		const char *pattern = section_item(conf, "outputs", i);
		if (!path_is_safe(pattern))
			return err_set(err, ERR_CONFIG,
				       "%s: outputs: \"%s\" must be a path inside the tree, "
				       "without .. or a leading /",
				       section_where(conf, "outputs"), pattern);
		if (path_in_git_folder(pattern))
			return err_set(
				err, ERR_CONFIG,
				"%s: outputs: \"%s\": nothing is written into git's own folder",
				section_where(conf, "outputs"), pattern);
	}
	return 0;
}

int job_check_env(const struct section *conf, struct err *err)
{
	for (size_t i = 0; i < section_count(conf, "env"); i++) {
		const char *name = section_item(conf, "env", i);
		if (!is_variable_name(name))
			return err_set(
				err, ERR_CONFIG,
				"%s: job.env: \"%s\" is not the name of a variable (write the name "
				"only; the value is taken from your environment)",
				section_where(conf, "env"), name);
	}
	return 0;
}

void job_read_needs(struct card_needs *to, const struct section *conf, const char *key)
{
	for (size_t i = 0; i < section_count(conf, key); i++)
		(void)card_needs_add(to, section_item(conf, key, i));
}

int job_check_needs(const struct section *conf, struct err *err)
{
	struct card_needs needs = {0};

	for (size_t i = 0; i < section_count(conf, "needs"); i++) {
		const char *word = section_item(conf, "needs", i);
		if (card_needs_add(&needs, word) < 0)
			return err_set(err, ERR_CONFIG,
				       "%s: job.needs: \"%.*s\" is none of " CARD_NEEDS_KNOWN,
				       section_where(conf, "needs"), utf8_fit(word, 40), word);
	}
	return 0;
}

int job_load_noting(struct job **out, const struct job_setup *setup,
		    int (*load)(struct job **out, const struct job_setup *setup, struct err *err),
		    struct err *err)
{
	struct job_setup noting = *setup;
	struct mistakes mistakes = {0};

	if (!setup->mistakes)
		return load(out, setup, err);
	noting.mistakes = &mistakes;
	int result = load(out, &noting, err);
	mistakes_move(setup->mistakes, &mistakes);
	return result;
}

/* Whether the file itself is a link (real: where it leads). Links among its folders do not count:
 * these were checked when the config was read. */
static bool is_link(const char *path, const char *real)
{
	CLEANUP(free_text) char *dir = path_dir(path);
	char folder[PATH_MAX];

	if (!realpath(dir, folder))
		return true;
	CLEANUP(free_text) char *plain = path_join(folder, path_base(path));
	return strcmp(plain, real) != 0;
}

int job_read_member(const struct job_setup *setup, const char *key, const char *path, size_t max,
		    struct str *out, struct err *err)
{
	char real[PATH_MAX];
	struct err why = {0};

	if (!realpath(path, real))
		return err_set(err, ERR_CONFIG, "%s: %s", path, strerror(errno));
	if (setup && setup->may_read && is_link(path, real) &&
	    setup->may_read(setup->ctx, key, real, err) < 0)
		return -1;
	/* path_read_plain_at() does not block on other kinds of files and refuses a link */
	if (path_read_plain_at(AT_FDCWD, real, path, max, out, &why) < 0)
		return err_set(err, ERR_CONFIG, "%s", why.msg);
	return 0;
}

int job_check_output(const char *dir, struct err *err)
{
	struct stat st;
	struct err why = {0};

	if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
		return err_set(err, ERR_CONFIG, "output folder %s: there is a file of that name",
			       dir);
	if (path_mkdirs(dir, 0777, &why) < 0)
		return err_set(err, ERR_CONFIG, "output folder: %s", why.msg);
	/* write a probe file: on some read-only mounts access() allows root everything */
	CLEANUP(free_text) char *probe = xasprintf(".burst-probe-%ld", (long)getpid());
	CLEANUP(fd_close) int folder = path_open_dir(dir);
	int fd = folder < 0 ? -1 : path_open_new_at(folder, probe, O_WRONLY, 0600);
	if (fd < 0)
		return err_set(err, ERR_CONFIG,
			       "output folder %s: nothing can be written there: %s", dir,
			       strerror(errno));
	close(fd);
	unlinkat(folder, probe, 0);
	return 0;
}
