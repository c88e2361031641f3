/* hook_file.h - the text of a git hook that burst writes: a shell script whose lines "# job {...}"
 * are its settings.
 *
 * One file serves all jobs of a repository, or of several repositories that share a hooks folder
 * (core.hooksPath). */
#ifndef BURST_UNATTENDED_HOOK_FILE_H
#define BURST_UNATTENDED_HOOK_FILE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* Suffix of an earlier hook, which burst's hook runs first. */
#define HOOK_BEFORE ".before-burst"

struct hook_job {
	char *repository; /* real path of git's common folder */
	char *config;     /* path below the top of the working tree */
	/* of a bare repository: the working tree for outputs; NULL: the one that the hook runs in
	 */
	char *into;
	char *made_tree; /* "yes": `burst hook install` made that working tree; NULL: it did not */
	char *branch;    /* comma-separated patterns; NULL: every branch */
	/* comma-separated paths that trigger, in git's form; NULL: what the job reads */
	char *path;
	char *quiet, *min_segments, *max_wait; /* options of burst submit; NULL: not given */
};

struct hook_file {
	struct hook_job *jobs;
	size_t count, cap;
	bool made_folder; /* `burst hook install` made the hooks folder */
};

/* The hooks that burst can write. NULL-terminated. */
extern const char *const hook_names[];
/* Whether git passes lines to this hook on stdin. */
bool hook_has_lines(const char *name);

bool hook_file_is_ours(const char *text);
/* ERR_CONFIG: a user has edited a line of settings. */
int hook_file_parse(struct hook_file *out, const char *text, struct err *err);
/* program: absolute path of burst. ERR_CONFIG: a path is not UTF-8. */
int hook_file_write(struct str *to, const struct hook_file *f, const char *name,
		    const char *program, struct err *err);
/* Returns NULL if there is no such job. */
struct hook_job *hook_file_find(const struct hook_file *f, const char *repository,
				const char *config);
/* Replaces the job by a copy of this one, or appends the copy. */
void hook_file_put(struct hook_file *f, const struct hook_job *job);
/* Removes the repository's job of this config (NULL: all of them). Returns the number removed. */
size_t hook_file_remove(struct hook_file *f, const char *repository, const char *config);
void hook_file_free(struct hook_file *f);

static inline void hook_file_free_cleanup(struct hook_file *f)
{
	hook_file_free(f);
}

#endif
