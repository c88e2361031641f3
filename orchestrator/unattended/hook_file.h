/* hook_file.h - the text of a git hook that burst writes: a shell script whose lines "# job {...}"
 * are its settings. One file serves all jobs of a repository, and of several repositories where
 * they share a hooks folder (core.hooksPath). */
#ifndef BURST_UNATTENDED_HOOK_FILE_H
#define BURST_UNATTENDED_HOOK_FILE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* What is appended to the name of a hook that was there before: ours runs it first. */
#define HOOK_BEFORE ".before-burst"

struct hook_job {
	char *repository; /* real path of git's common folder */
	char *config;     /* below the top of the working tree */
	/* of a bare repository: the working tree that outputs land in; NULL: the one that a hook
	 * runs in */
	char *into;
	char *made_tree; /* "yes": `burst hook install` has made that working tree; NULL */
	char *branch;    /* patterns with commas between; NULL: every branch */
	/* paths that count, as git reads them, with commas between; NULL: what the job reads */
	char *path;
	char *quiet, *min_segments, *max_wait; /* for burst submit; NULL: as it has them */
};

struct hook_file {
	struct hook_job *jobs;
	size_t count, cap;
	bool made_folder; /* the hooks folder was not there before */
};

/* The hooks that burst can write, NULL-terminated. */
extern const char *const hook_names[];
/* Whether git hands this one lines on its stdin. */
bool hook_has_lines(const char *name);

bool hook_file_is_ours(const char *text);
/* ERR_CONFIG: a line of settings was edited by hand. */
int hook_file_parse(struct hook_file *out, const char *text, struct err *err);
/* program: absolute path of burst. ERR_CONFIG: a path is no UTF-8 text. */
int hook_file_write(struct str *to, const struct hook_file *f, const char *name,
		    const char *program, struct err *err);
/* NULL: it has no such job. */
struct hook_job *hook_file_find(const struct hook_file *f, const char *repository,
				const char *config);
/* Puts a copy of the job in the place of the one that it has, or at the end. */
void hook_file_put(struct hook_file *f, const struct hook_job *job);
/* Removes the repository's job of this config (NULL: all of them); how many there were. */
size_t hook_file_remove(struct hook_file *f, const char *repository, const char *config);
void hook_file_free(struct hook_file *f);

static inline void hook_file_free_cleanup(struct hook_file *f)
{
	hook_file_free(f);
}

#endif
